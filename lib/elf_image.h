// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace kjudge {

// A bounds-checked reader of 64-bit little-endian ELF: shared objects of the host driver and
// cubins. The bytes are read as hostile: Fault::malformed for anything that reaches outside them.

inline constexpr std::uint16_t kElfX86_64 = 62;
inline constexpr std::uint16_t kElfCuda = 190;

struct ElfSection {
  std::string_view name;
  std::uint32_t type = 0;  // SHT_*
  std::uint32_t link = 0, info = 0;
  std::uint64_t address = 0, size = 0, entry_size = 0;
  std::span<const std::byte> bytes;  // empty for SHT_NOBITS: `size` zero bytes
};

struct ElfSymbol {
  std::string_view name;
  std::uint8_t type = 0;      // STT_*
  std::uint8_t binding = 0;   // STB_*
  std::uint8_t other = 0;     // visibility, and flags of the machine
  std::uint32_t section = 0;  // index; 0 when undefined, absolute or common
  bool undefined = false;
  std::uint64_t value = 0, size = 0;
};

// A variable that a kernel can change and that outlives a launch.
struct ElfVariable {
  std::string_view name;
  std::string_view section;
  std::uint64_t address = 0;  // symbol value: relative to the load address in a shared object
  std::uint64_t size = 0;
  std::span<const std::byte> initial;  // `size` bytes, or empty when they are all zero
  bool managed = false;                // of a cubin: declared __managed__
};

// Views into the bytes given to the constructor, which must outlive it.
class Elf {
 public:
  explicit Elf(std::span<const std::byte> image);

  std::uint16_t machine() const { return machine_; }
  const std::vector<ElfSection>& sections() const { return sections_; }
  // Of .symtab, or of .dynsym where the image is stripped.
  const std::vector<ElfSymbol>& symbols() const { return symbols_; }
  const ElfSection* find_section(
      std::string_view name) const;  // nullptr: none; the first of several
  bool has_section(std::string_view name) const { return find_section(name) != nullptr; }

  // Of a cubin: objects in .nv.global, .nv.global.init and the constant banks that are not a
  // kernel's own. Of a shared object: objects in the section kjudge_variables. In file order.
  std::vector<ElfVariable> variables() const;

  // Names the image expects others to define, each once, in file order.
  std::vector<std::string_view> undefined_symbols() const;

  // Of an executable or shared object: the libraries it needs ("libc.so.6"), in file order.
  std::vector<std::string_view> needed_libraries() const;
  // Versions of symbols that it needs of others ("GLIBC_2.34"), in file order.
  std::vector<std::string_view> needed_versions() const;

 private:
  std::vector<ElfSymbol> read_symbols(std::size_t table) const;
  std::span<const std::byte> strings_of(const ElfSection& section) const;

  std::span<const std::byte> image_;
  std::uint16_t machine_ = 0;
  std::vector<ElfSection> sections_;
  std::vector<ElfSymbol> symbols_;
};

// True when the four bytes at `image` are ELF's magic.
bool is_elf(const void* image);

// Bytes of an ELF image known by its address only, as cuModuleLoadData gets it: the largest end of
// header, section table, program headers and all they place in the file. Trusts the pointer;
// Fault::malformed when it is no 64-bit little-endian ELF or its sizes overflow.
std::size_t elf_size(const void* image);

}  // namespace kjudge
