// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <iostream>

#include "challenge/package.h"
#include "challenge/program_files.h"
#include "error.h"
#include "file.h"
#include "judge/device.h"
#include "judge/version.h"
#include "options.h"
#include "progress.h"
#include "sha256.h"

namespace kjudge {
namespace {

// "kjudge_build" is kBuildSection: pack reads it from a binary that this machine may not run.
[[gnu::section("kjudge_build"), gnu::used]] const auto kBuildMark = std::to_array(kBuild);

struct PackOptions {
  bool json = false;
  bool no_check = false;
  std::string challenge, output, server, binary;
};

// Runs the challenge's own code without what it hides, as contestants will: a file that baseline.py
// opens and that is hidden is missing then. False: this machine has no device for it.
bool check_challenge(const Challenge& challenge) {
  constexpr std::string_view kAdvice = "; --no-check packs it as it is";
  ProgressLine line;
  EvaluateOptions options;
  options.submission = challenge.folder / "submission.py";
  options.cache = cache_directory();
  options.replay.rounds = options.replay.pairs_per_round = 1;
  try {
    const Evaluation evaluation = evaluate(open_driver("auto", challenge), challenge, options,
                                           [&](const Progress& now) { line.show(now); });
    line.wipe();
    if (evaluation.verdict == Verdict::accepted) return true;
    throw Error(Fault::package,
                cat(options.submission.string(), ": ", name(evaluation.verdict), ": ",
                    evaluation.message, evaluation.log.empty() ? "" : "\n", evaluation.log));
  } catch (Error& error) {
    line.wipe();
    if (error.fault() == Fault::device) {
      say(cat("not checked, for it cannot run here: ", error.what()));
      return false;
    }
    throw Error(error.fault(), cat(error.what(), kAdvice));
  }
}

int pack(const PackOptions& options) {
  const Challenge challenge = read_challenge(find_challenge(options.challenge, {}));
  const Package package = make_package(
      challenge, {options.binary.empty() ? "/proc/self/exe" : options.binary, options.server});
  const PackageManifest& manifest = package.manifest;
  const std::filesystem::path output =
      options.output.empty() ? cat(manifest.challenge, "-", manifest.challenge_version, ".tar.zst")
                             : options.output;
  if (!output.filename().native().ends_with(".tar.zst")) {
    throw Error(Fault::usage, cat("--output ", output.string(), ": expected a name in .tar.zst"));
  }
  const auto real = [](const std::filesystem::path& path) {
    return std::filesystem::weakly_canonical(std::filesystem::absolute(path));
  };
  const auto inside = real(output).lexically_relative(real(challenge.folder));
  if (!inside.empty() && *inside.begin() != "..") {
    throw Error(Fault::usage, cat("--output ", output.string(), ": lies in the challenge ",
                                  challenge.folder.string(),
                                  ", of which it would become a part; write it elsewhere"));
  }
  require_replaceable(output);  // before all the work
  const bool checked = !options.no_check && check_challenge(challenge);
  write_file_atomically(output, package.bytes);
  const std::string digest = sha256_hex(package.bytes);
  if (options.json) {
    std::cout << print_json(Json{
        packed_table().write({output.string(), package.bytes.size(), digest, checked, manifest})});
    return exit_done;
  }
  std::cout << output.string() << "\n";
  std::cerr << "kjudge: " << manifest.files.size() + 1 << " files, " << package.bytes.size()
            << " bytes, SHA-256 " << digest << "; runs on " << manifest.arch << " with glibc "
            << manifest.glibc << " or newer\n";
  if (manifest.server.empty()) {
    std::cerr << "kjudge: no --server: contestants must name one to submit.py\n";
  }
  return exit_done;
}

}  // namespace

void add_pack(CLI::App& app, int& status) {
  CLI::App* command = nullptr;
  const auto options =
      add_command<PackOptions>(app, "pack", "Make the archive that contestants download", command);
  command
      ->add_option("challenge", options->challenge,
                   "Folder with challenge.json, or the name of a package")
      ->type_name("FOLDER|NAME")
      ->required();
  command
      ->add_option("-o,--output", options->output,
                   "The archive to write; else NAME-VERSION.tar.zst in the current folder")
      ->type_name("FILE");
  command
      ->add_option("--server", options->server,
                   "Address of the contest's server, stored for submit.py")
      ->type_name("URL")
      ->envname("KJUDGE_SERVER");
  command
      ->add_option("--binary", options->binary,
                   "Pack this kjudge, bin/kjudge of an installation, and what lies beside it; "
                   "else the one that runs")
      ->type_name("FILE");
  command->add_flag("--no-check", options->no_check,
                    "Do not run baseline, reference and starting point before");
  command->callback([=, &status] { status = pack(*options); });
}

}  // namespace kjudge
