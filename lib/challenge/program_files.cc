// SPDX-License-Identifier: Apache-2.0
#include "challenge/program_files.h"

#include <link.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "elf_image.h"
#include "error.h"
#include "file.h"

namespace kjudge {
namespace {

namespace fs = std::filesystem;

// The C library's own belong to the machine: they and its loader are of one build.
constexpr std::array<std::string_view, 11> kMachines = {
    "ld-linux", "libc.so",    "libm.so",   "libmvec.so",   "libdl.so", "libpthread.so",
    "librt.so", "libutil.so", "libanl.so", "libresolv.so", "libnss_"};

bool is_machines(std::string_view library) {
  return std::any_of(kMachines.begin(), kMachines.end(),
                     [&](std::string_view name) { return library.starts_with(name); });
}

// The shared libraries of this process, by name.
std::map<std::string, fs::path> loaded_libraries() {
  std::map<std::string, fs::path> loaded;
  ::dl_iterate_phdr(
      [](dl_phdr_info* object, std::size_t, void* into) {
        const fs::path path = object->dlpi_name;
        static_cast<std::map<std::string, fs::path>*>(into)->emplace(path.filename(), path);
        return 0;
      },
      &loaded);
  return loaded;
}

// "2.36" as numbers.
using GlibcVersion = std::pair<int, int>;

GlibcVersion glibc_version(std::string_view symbol_version) {
  constexpr std::string_view kPrefix = "GLIBC_";
  // A kind of relocation that loaders know since then.
  if (symbol_version == "GLIBC_ABI_DT_RELR") return {2, 36};
  GlibcVersion version{};
  if (!symbol_version.starts_with(kPrefix)) return version;
  const std::string numbers(symbol_version.substr(kPrefix.size()));
  std::sscanf(numbers.c_str(), "%d.%d", &version.first, &version.second);
  return version;
}

class Collection {
 public:
  explicit Collection(const fs::path& given) : given_(given) {
    std::error_code error;
    binary_ = fs::canonical(given, error);
    if (error) throw Error(Fault::usage, cat(given.string(), ": ", error.message()));
    if (!fs::is_regular_file(binary_)) refuse("not a regular file");
    const bool running = fs::equivalent(binary_, "/proc/self/exe");
    library_ = running ? library_directory() : binary_.parent_path().parent_path() / "lib/kjudge";
    if (running) loaded_ = loaded_libraries();
  }

  ProgramFiles run() {
    add_elf("bin/kjudge", binary_, true);
    for (const char* name : {"libkjudge_recorder.so", "libkjudge_host_driver.so"}) {
      add_elf(cat("lib/kjudge/", name), beside(library_ / name), false);
    }
    add_folder("lib/kjudge/harness", library_ / "harness", ".py");
    add_folder("include/kjudge", library_.parent_path().parent_path() / "include/kjudge", ".h");
    program_.glibc = cat(glibc_.first, ".", glibc_.second);
    return std::move(program_);
  }

 private:
  [[noreturn]] void refuse(std::string_view what) const {
    throw Error(
        Fault::usage,
        cat(given_.string(), ": ", what,
            "; name bin/kjudge of an installation (cmake --install BUILD --prefix FOLDER)"));
  }

  fs::path beside(const fs::path& path) const {
    if (!fs::exists(path)) refuse(cat("there is no ", path.string()));
    return path;
  }

  void add_elf(const std::string& name, const fs::path& path, bool executable) {
    const std::string& bytes =
        program_.files.emplace_back(ArchiveFile{name, read_file(path), executable}).bytes;
    std::set<std::string> needed;
    try {
      const Elf elf(std::as_bytes(std::span(bytes)));
      if (executable) identify(elf);
      for (const auto version : elf.needed_versions()) {
        glibc_ = std::max(glibc_, glibc_version(version));
      }
      for (const auto library : elf.needed_libraries()) needed.emplace(library);
    } catch (const Error& error) {
      if (error.fault() == Fault::malformed) refuse(cat(path.string(), ": ", error.what()));
      throw;
    }
    for (const std::string& library : needed) {
      if (is_machines(library) || !seen_.insert(library).second) continue;
      add_elf(cat("lib/kjudge/", library), find(library), false);
    }
  }

  void identify(const Elf& elf) {
    const ElfSection* section = elf.find_section(kBuildSection);
    if (section == nullptr) refuse("no kjudge of this version or a later one");
    std::string text(reinterpret_cast<const char*>(section->bytes.data()), section->bytes.size());
    text.erase(std::min(text.find('\0'), text.size()));
    const std::size_t blank = std::min(text.find(' '), text.size());
    program_.version = text.substr(0, blank);
    program_.commit = text.substr(std::min(blank + 1, text.size()));
    if (elf.machine() != kElfX86_64) refuse("not for x86_64, the one architecture kjudge has");
    program_.arch = "x86_64";
  }

  fs::path find(const std::string& library) const {
    if (fs::exists(library_ / library)) return library_ / library;
    const auto loaded = loaded_.find(library);
    if (loaded != loaded_.end()) return loaded->second;
    refuse(cat("it needs ", library, ", which is not in ", library_.string()));
  }

  void add_folder(const std::string& name, const fs::path& folder, std::string_view suffix) {
    for (const auto& item : fs::directory_iterator(beside(folder))) {
      const std::string file = item.path().filename();
      if (file.ends_with(suffix)) {
        program_.files.push_back({cat(name, "/", file), read_file(item.path())});
      }
    }
  }

  fs::path given_, binary_, library_;
  std::map<std::string, fs::path> loaded_;  // of the running binary
  std::set<std::string> seen_;
  GlibcVersion glibc_{};
  ProgramFiles program_;
};

}  // namespace

ProgramFiles program_files(const fs::path& binary) { return Collection(binary).run(); }

}  // namespace kjudge
