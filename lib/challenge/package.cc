// SPDX-License-Identifier: Apache-2.0
#include "challenge/package.h"

#include <algorithm>

#include "challenge/program_files.h"
#include "error.h"
#include "file.h"
#include "server_address.h"
#include "sha256.h"

namespace kjudge {
namespace {

namespace fs = std::filesystem;

// The pattern is for schemas, and the looser of the two rules.
Kind<std::string> server_kind() {
  const std::string what = "an http or https address";
  Kind<std::string> kind =
      matching_kind(what,
                    "https?://([A-Za-z0-9._-]+|\\[[0-9A-Fa-f:]+\\])(:[1-9][0-9]{0,4})?"
                    "(/[A-Za-z0-9._~%+-]+)*");
  kind.read = [what, read = kind.read](const JsonCursor& at) {
    std::string address = read(at);
    ServerAddress ignored;
    if (!read_server_address(address, ignored).empty()) at.expected(what);
    return address;
  };
  return kind;
}

FieldTable<PackedFile> packed_file_table() {
  return FieldTable<PackedFile>(
      {required("name", &PackedFile::name, line_kind(1, 255), "below the package's folder"),
       required("sha256", &PackedFile::sha256, hexadecimal_kind(64), "of its bytes")});
}

std::string stored_server(const std::string& server) {
  ServerAddress ignored;
  return server.empty() ? "" : require_server_address(server, ignored);
}

// Whether it lies in an unpacked package, as that has it: what it hides was left out there, and
// what is there is known to all.
bool is_packed(const Challenge& challenge) {
  const fs::path packages = fs::canonical(challenge.folder).parent_path();
  const fs::path manifest = packages.parent_path().parent_path().parent_path() / "package.json";
  if (!packages.native().ends_with("/lib/kjudge/packages") || !fs::is_regular_file(manifest)) {
    return false;
  }
  const std::string text = read_file(manifest);
  return package_from_json(text, manifest).challenge_sha256 == challenge.sha256;
}

void require_hidden(const Challenge& challenge) {
  if (is_packed(challenge)) return;
  for (const std::string& name : challenge.hidden) {
    if (fs::exists(challenge.folder / name)) continue;
    throw Error(Fault::package,
                cat((challenge.folder / "challenge.json").string(), ": hidden: there is no ", name,
                    "; under another name it would be packed: write the name that it has, or "
                    "leave it out of hidden"));
  }
}

// Whether no part of it is empty, "." or "..".
bool stays_below(std::string_view name) {
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find('/', begin), name.size());
    const std::string_view part = name.substr(begin, end - begin);
    if (part.empty() || part == "." || part == "..") return false;
    begin = end + 1;
  }
  return true;
}

// `variable = ""` of submit.py with its value.
void assign(std::string& script, std::string_view variable, const std::string& value) {
  const std::string line = cat("\n", variable, " = \"\"\n");
  const std::size_t at = script.find(line);
  KJ_CHECK(at != script.npos);
  script.replace(at, line.size(), cat("\n", variable, " = \"", value, "\"\n"));
}

class Packing {
 public:
  Packing(const Challenge& challenge, const PackageOptions& options)
      : challenge_(challenge), server_(stored_server(options.server)) {
    require_hidden(challenge);
    program_ = program_files(options.binary);
  }

  Package run() {
    add_challenge();
    add_scripts();
    std::move(program_.files.begin(), program_.files.end(), std::back_inserter(files_));
    Package package;
    package.manifest = manifest();
    files_.push_back({"package.json", package_to_json(package.manifest)});
    for (ArchiveFile& file : files_) file.name = folder() + file.name;
    package.bytes = make_archive(std::move(files_));
    return package;
  }

 private:
  // What a package unpacks to.
  std::string folder() const { return cat(challenge_.name, "-", challenge_.version, "/"); }

  // In lib/kjudge/packages, where kjudge finds it as the only one there is.
  void add_challenge() {
    read_challenge_files(challenge_, [&](const std::string& name, std::string bytes) {
      ArchiveFile file{name, std::move(bytes)};
      file.executable = is_program(file.bytes);
      // What a contestant reads and changes is at the top too.
      if (name == "TASK.md" || name == "submission.py") files_.push_back(file);
      file.name = cat("lib/kjudge/packages/", challenge_.name, "/", name);
      if (!fits_archive(folder() + file.name)) {
        throw Error(
            Fault::package,
            cat((challenge_.folder / name).string(), ": too long a path for a package, where ",
                folder(), "lib/kjudge/packages/", challenge_.name,
                "/ stands before it: a tar has room for 100 bytes, and for 155 more before "
                "a \"/\"; shorten it"));
      }
      files_.push_back(std::move(file));
    });
  }

  void add_scripts() {
    for (const std::string name : {"harness.py", "submit.py"}) {
      const auto found = std::find_if(
          program_.files.begin(), program_.files.end(),
          [&](const ArchiveFile& file) { return file.name == "lib/kjudge/harness/" + name; });
      if (found == program_.files.end()) {
        throw Error(Fault::usage, cat("the kjudge to pack has no lib/kjudge/harness/", name,
                                      "; take that of an installation"));
      }
      ArchiveFile script{name, found->bytes, true};
      if (name == "submit.py") {
        assign(script.bytes, "SERVER", server_);
        assign(script.bytes, "CHALLENGE", challenge_.name);
      }
      files_.push_back(std::move(script));
    }
  }

  PackageManifest manifest() const {
    PackageManifest manifest;
    manifest.challenge = challenge_.name;
    manifest.challenge_version = challenge_.version;
    manifest.challenge_sha256 = challenge_.sha256;
    manifest.server = server_;
    manifest.kjudge_version = program_.version;
    manifest.kjudge_commit = program_.commit;
    manifest.arch = program_.arch;
    manifest.glibc = program_.glibc;
    for (const ArchiveFile& file : files_) {
      manifest.files.push_back({file.name, sha256_hex(file.bytes)});
    }
    std::sort(manifest.files.begin(), manifest.files.end(),
              [](const PackedFile& a, const PackedFile& b) { return a.name < b.name; });
    return manifest;
  }

  const Challenge& challenge_;
  std::string server_;
  ProgramFiles program_;
  std::vector<ArchiveFile> files_;
};

}  // namespace

const FieldTable<PackageManifest>& package_table() {
  using M = PackageManifest;
  static const FieldTable<M> table(
      {format_field<M>("kjudge-package/1"),
       required("challenge", &M::challenge,
                matching_kind("the name of a challenge", "[a-z0-9][a-z0-9-]{0,63}"),
                "name of the challenge"),
       required("challenge_version", &M::challenge_version, integer_kind(1, 1'000'000),
                "its version"),
       required("challenge_sha256", &M::challenge_sha256, hexadecimal_kind(64),
                "of its files, as in results"),
       optional("server", &M::server, server_kind(),
                "where submit.py hands in; absent where none was given"),
       required("kjudge_version", &M::kjudge_version, line_kind(1, 100), "of the binary"),
       required("kjudge_commit", &M::kjudge_commit, line_kind(1, 100),
                "of the source it was built from"),
       required("arch", &M::arch, word_kind<std::string>({{"x86_64", "x86_64"}}),
                "of the processor that the binary is for"),
       required("glibc", &M::glibc,
                matching_kind("a version such as 2.36", "[0-9]{1,4}[.][0-9]{1,4}"),
                "the oldest C library that the binary runs with"),
       required("files", &M::files, list_kind(object_kind(packed_file_table()), 1, 100'000),
                "all but package.json, in the order of their names")});
  return table;
}

const FieldTable<Packed>& packed_table() {
  using P = Packed;
  static const FieldTable<P> table(
      {format_field<P>("kjudge-packed/1"),
       required("path", &P::path, text_kind(), "of the archive"),
       required("bytes", &P::bytes, integer_kind<std::uint64_t>(0, std::uint64_t{1} << 62),
                "its size"),
       required("sha256", &P::sha256, hexadecimal_kind(64), "of its bytes"),
       required("checked", &P::checked, boolean_kind(),
                "whether its challenge was run on this machine before"),
       required("package", &P::package, object_kind(package_table()),
                "the manifest, as in the archive")});
  return table;
}

std::string package_to_json(const PackageManifest& manifest) {
  return print_json(Json{package_table().write(manifest)});
}

PackageManifest package_from_json(const std::string& text, const fs::path& path) {
  const Json json = parse_json(text, path.native(), Fault::malformed);
  PackageManifest manifest =
      package_table().read(JsonCursor(json, path.native(), Fault::malformed));
  for (std::size_t i = 0; i < manifest.files.size(); ++i) {
    const auto refuse = [&](std::string_view why) {
      throw Error(Fault::malformed, cat(path.native(), ": files[", i, "].name: ", why));
    };
    const std::string& name = manifest.files[i].name;
    if (!stays_below(name))
      refuse("expected a path below the package's folder, without \".\" and \"..\"");
    if (i > 0 && manifest.files[i - 1].name >= name) refuse("expected names in order, each once");
  }
  return manifest;
}

Package make_package(const Challenge& challenge, const PackageOptions& options) {
  return Packing(challenge, options).run();
}

}  // namespace kjudge
