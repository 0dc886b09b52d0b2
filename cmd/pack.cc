// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <iostream>

#include "challenge/package.h"
#include "challenge/program_files.h"
#include "error.h"
#include "file.h"
#include "judge/report.h"
#include "judge/version.h"
#include "options.h"
#include "sha256.h"

namespace kjudge {
namespace {

// "kjudge_build" is kBuildSection: pack reads it from a binary that this machine may not run.
[[gnu::section("kjudge_build"), gnu::used]] const auto kBuildMark = std::to_array(kBuild);

struct PackOptions {
  bool json = false;
  std::string challenge, output, server, binary;
};

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
  write_file_atomically(output, package.bytes);
  const std::string digest = sha256_hex(package.bytes);
  if (options.json) {
    std::cout << print_json(
        Json{Json::Object{{"format", Json{std::string("kjudge-packed/1")}},
                          {"path", Json{output.string()}},
                          {"bytes", Json{static_cast<std::int64_t>(package.bytes.size())}},
                          {"sha256", Json{digest}},
                          {"package", Json{package_table().write(manifest)}}}});
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
  command->callback([=, &status] { status = pack(*options); });
}

}  // namespace kjudge
