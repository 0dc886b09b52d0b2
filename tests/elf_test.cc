// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "elf_image.h"
#include "error.h"
#include "file.h"
#include "make_elf.h"

using namespace kjudge;

namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::string message_of(std::string_view image) {
  try {
    Elf elf(bytes_of(image));
    elf.variables();
  } catch (const Error& error) {
    CHECK(error.fault() == Fault::malformed);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("elf: a cubin's kernels, variables and undefined symbols") {
  const std::string image = make_cubin();
  const Elf elf(bytes_of(image));
  CHECK(elf.machine() == kElfCuda);
  CHECK(elf.has_section(".text._Z1kPi"));
  CHECK_FALSE(elf.has_section(".text.other"));
  const auto variables = elf.variables();
  REQUIRE(variables.size() == 3);
  CHECK(variables[0].name == "zero");
  CHECK(variables[0].section == ".nv.global");
  CHECK(variables[0].size == 16);
  CHECK(variables[0].initial.empty());
  CHECK(variables[1].name == "init");
  CHECK(std::memcmp(variables[1].initial.data(), "abcdefgh", 8) == 0);
  CHECK(variables[2].name == "bank");
  CHECK(std::memcmp(variables[2].initial.data(), "234", 3) == 0);
  CHECK(elf.undefined_symbols() == std::vector<std::string_view>{"vprintf"});
  CHECK(elf_size(image.data()) == image.size());
}

TEST_CASE("elf: a shared object's variables lie at their section's address") {
  const std::string image =
      make_elf(kElfX86_64,
               {{"kjudge_variables", SHT_PROGBITS, "01234567", 0, 0x4000}, {".data", 1, "other"}},
               {{"counter", 1, 0x4004, 4}, {"other", 2, 0, 4}});
  const auto variables = Elf(bytes_of(image)).variables();
  REQUIRE(variables.size() == 1);
  CHECK(variables[0].name == "counter");
  CHECK(variables[0].address == 0x4004);
  CHECK(std::memcmp(variables[0].initial.data(), "4567", 4) == 0);
}

TEST_CASE("elf: this program reads, and its size is found from its address") {
  const std::string image = read_file("/proc/self/exe", std::size_t{1} << 30);
  const Elf elf(bytes_of(image));
  CHECK(elf.machine() == kElfX86_64);
  CHECK(elf.has_section(".text"));
  const auto& symbols = elf.symbols();
  CHECK(std::any_of(symbols.begin(), symbols.end(), [](auto& s) { return s.name == "main"; }));
  CHECK(elf_size(image.data()) == image.size());
}

TEST_CASE("elf: libraries and versions of symbols that this program needs") {
  const std::string image = read_file("/proc/self/exe", std::size_t{1} << 30);
  const Elf elf(bytes_of(image));
  const auto libraries = elf.needed_libraries();
  CHECK(std::count(libraries.begin(), libraries.end(), "libc.so.6") == 1);
  const auto versions = elf.needed_versions();
  CHECK(std::count(versions.begin(), versions.end(), "GLIBC_2.34") >= 1);
  CHECK(std::any_of(versions.begin(), versions.end(),
                    [](std::string_view version) { return version.starts_with("GLIBCXX_"); }));
}

TEST_CASE("elf: lists of needed things that lead outside are refused") {
  const std::uint64_t needed[] = {DT_NEEDED, 1000, DT_NULL, 0};
  const std::string dynamic(reinterpret_cast<const char*>(needed), sizeof(needed));
  const std::string image = make_elf(kElfX86_64, {{".dynamic", SHT_DYNAMIC, dynamic}}, {});
  CHECK_THROWS_AS(Elf(bytes_of(image)).needed_libraries(), Error);
  Elf64_Verneed one{};
  one.vn_next = 1 << 20;
  const std::string list(reinterpret_cast<const char*>(&one), sizeof(one));
  for (const std::string& bytes : {list, list.substr(1)}) {
    const std::string far = make_elf(kElfX86_64, {{".gnu.version_r", SHT_GNU_verneed, bytes}}, {});
    CHECK_THROWS_AS(Elf(bytes_of(far)).needed_versions(), Error);
  }
}

TEST_CASE("elf: a variable that reaches outside its section is refused") {
  CHECK(message_of(make_elf(kElfCuda, {{".nv.global", SHT_NOBITS, "", 8}}, {{"v", 1, 4, 8}})) ==
        "ELF image: variable v reaches outside .nv.global");
  CHECK(message_of(make_elf(kElfX86_64, {{"kjudge_variables", 1, "12345678", 0, 0x1000}},
                            {{"v", 1, 0xff8, 4}})) ==
        "ELF image: variable v reaches outside kjudge_variables");
}

TEST_CASE("elf: names in messages are printable") {
  CHECK(message_of(
            make_elf(kElfCuda, {{".nv.global", SHT_NOBITS, "", 8}}, {{"\x1b[31m", 1, 4, 8}})) ==
        "ELF image: variable ?[31m reaches outside .nv.global");
}

TEST_CASE("elf: what is no such image is refused") {
  CHECK(message_of("").find("header reaches past the end") != std::string::npos);
  CHECK(message_of(std::string(64, 'x')) == "ELF image: no ELF magic");
  std::string image = make_cubin();
  image[EI_CLASS] = ELFCLASS32;
  CHECK(message_of(image) == "ELF image: not 64-bit little-endian");
  CHECK_THROWS_AS(elf_size(image.data()), Error);
  CHECK_THROWS_AS(elf_size("no ELF image at all"), Error);
}

// Names may overlap: 40 000 symbols that each begin a byte later in 3 MB without a zero byte would
// otherwise be 120 GB to look through.
TEST_CASE("elf: a name without end is not looked through to the end of its table") {
  const auto with_name = [](std::size_t size) {
    return make_elf(kElfCuda, {{".nv.global", SHT_NOBITS, "", 8}},
                    {{std::string(size, 'n'), 1, 0, 8}});
  };
  CHECK(message_of(with_name(64u << 10)) == "");
  CHECK(message_of(with_name((64u << 10) + 1)) ==
        "ELF image: symbol 1: name is longer than 64 KiB");
}

// Each image ends at a page that cannot be read, so that one byte too far ends the test program.
TEST_CASE("elf: no cut and no changed byte makes the reader leave the image") {
  const std::string image = make_cubin();
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t room = (image.size() + page - 1) / page * page;
  void* memory =
      ::mmap(nullptr, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(memory != MAP_FAILED);
  REQUIRE(::mprotect(static_cast<char*>(memory) + room, page, PROT_NONE) == 0);
  const auto try_at_end = [&](std::string_view bytes) {
    char* at = static_cast<char*>(memory) + room - bytes.size();
    std::memcpy(at, bytes.data(), bytes.size());
    return message_of({at, bytes.size()});
  };
  CHECK(try_at_end(image) == "");
  for (std::size_t length = 0; length < image.size(); ++length) {
    CHECK(try_at_end(std::string_view(image).substr(0, length)) != "");
  }
  for (std::size_t i = 0; i < image.size(); ++i) {
    for (const char value : {'\x00', '\x7f', '\xff'}) {
      std::string changed = image;
      changed[i] = value;
      try_at_end(changed);
    }
  }
  ::munmap(memory, room + page);
}
