// SPDX-License-Identifier: Apache-2.0
#include "failure.h"

#include <filesystem>
#include <iostream>

#include "error.h"
#include "judge/interrupt.h"

namespace kjudge {
namespace {

int exit_code(Fault fault) {
  switch (fault) {
    case Fault::usage:
      return exit_usage;
    case Fault::package:
    case Fault::malformed:
      return exit_malformed;
    case Fault::submission:
      return exit_not_accepted;
    case Fault::host:
      return exit_io;
    case Fault::device:
    case Fault::bug:
      break;
  }
  return exit_judge_error;
}

}  // namespace

int report_failure(const CLI::App& app) {
  try {
    throw;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? exit_done : exit_usage;
  } catch (const Interrupted& interrupted) {
    std::cerr << "kjudge: interrupted\n";
    return 128 + interrupted.signal;
  } catch (const Error& error) {
    std::cerr << "kjudge: " << name(error.fault()) << ": " << error.what() << "\n";
    if (error.fault() == Fault::bug) {
      std::cerr << "kjudge: at " << error.where().file_name() << ":" << error.where().line()
                << "; please report this\n";
    }
    return exit_code(error.fault());
  } catch (const std::filesystem::filesystem_error& error) {
    std::cerr << "kjudge: host: " << error.what() << "\n";
    return exit_io;
  } catch (const std::exception& error) {
    std::cerr << "kjudge: bug: " << error.what() << "; please report this\n";
    return exit_judge_error;
  }
}

}  // namespace kjudge
