// SPDX-License-Identifier: Apache-2.0
#include "elf_image.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <unordered_set>

#include "error.h"

namespace kjudge {
namespace {

// Far more than any image has; without a bound, an image that compresses to little could ask for
// several times its size in memory.
constexpr std::uint64_t kMaxSections = 1'000'000;
constexpr std::uint64_t kMaxSymbols = 4'000'000;
// Names can overlap: without this bound, an image of n bytes could have n * n bytes of them read.
constexpr std::uint64_t kMaxName = 64u << 10;

static_assert(sizeof(Elf64_Ehdr) == 64 && sizeof(Elf64_Shdr) == 64 && sizeof(Elf64_Sym) == 24 &&
              sizeof(Elf64_Phdr) == 56);

[[noreturn]] void malformed(const std::string& what) {
  throw Error(Fault::malformed, cat("ELF image: ", what));
}

std::span<const std::byte> slice(std::span<const std::byte> bytes, std::uint64_t offset,
                                 std::uint64_t size, std::string_view what,
                                 std::optional<std::uint64_t> index = std::nullopt) {
  if (offset > bytes.size() || size > bytes.size() - offset) {
    malformed(cat(what, index ? cat(" ", *index) : "", " reaches past the end (offset ", offset,
                  ", ", size, " bytes of ", bytes.size(), ")"));
  }
  return bytes.subspan(offset, size);
}

// A name for a message: whoever made the image shall not write to the reader's terminal.
std::string printable(std::string_view name) {
  std::string text(name.substr(0, 200));
  for (char& c : text) {
    if (c < 0x20 || c > 0x7e) c = '?';
  }
  return text;
}

// Images lie at any alignment, so records are copied out.
template <class Record>
Record record_at(std::span<const std::byte> table, std::uint64_t index) {
  Record record;
  std::memcpy(&record, table.data() + index * sizeof(Record), sizeof(Record));
  return record;
}

std::string_view string_at(std::span<const std::byte> table, std::uint64_t offset,
                           std::string_view what, std::uint64_t index) {
  if (offset >= table.size()) {
    malformed(cat(what, " ", index, ": name lies outside its string table"));
  }
  const char* begin = reinterpret_cast<const char*>(table.data()) + offset;
  const std::size_t most = std::min<std::uint64_t>(table.size() - offset, kMaxName + 1);
  const void* end = std::memchr(begin, 0, most);
  if (end == nullptr) {
    malformed(cat(what, " ", index,
                  most > kMaxName ? ": name is longer than 64 KiB" : ": name has no end"));
  }
  return {begin, static_cast<std::size_t>(static_cast<const char*>(end) - begin)};
}

Elf64_Ehdr check_header(const Elf64_Ehdr& header) {
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) malformed("no ELF magic");
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB) {
    malformed("not 64-bit little-endian");
  }
  if (header.e_shoff != 0 && header.e_shentsize != sizeof(Elf64_Shdr)) {
    malformed(cat("section headers of ", header.e_shentsize, " bytes, expected 64"));
  }
  if (header.e_phnum != 0 && header.e_phentsize != sizeof(Elf64_Phdr)) {
    malformed(cat("program headers of ", header.e_phentsize, " bytes, expected 56"));
  }
  return header;
}

bool occupies_file(std::uint32_t section_type) {
  return section_type != SHT_NOBITS && section_type != SHT_NULL;
}

// .nv.constant3 and its like; a bank with a kernel's name after it (.nv.constant0.KERNEL) holds
// that kernel's parameters or literals, which no launch can change.
bool is_variable_section(std::uint16_t machine, std::string_view name) {
  if (machine != kElfCuda) return name == "kjudge_variables";
  if (name == ".nv.global" || name == ".nv.global.init") return true;
  constexpr std::string_view kBank = ".nv.constant";
  return name.size() > kBank.size() && name.substr(0, kBank.size()) == kBank &&
         name.find_first_not_of("0123456789", kBank.size()) == name.npos;
}

}  // namespace

Elf::Elf(std::span<const std::byte> image) : image_(image) {
  const auto header =
      check_header(record_at<Elf64_Ehdr>(slice(image, 0, sizeof(Elf64_Ehdr), "header"), 0));
  machine_ = header.e_machine;
  if (header.e_shoff == 0) malformed("no section table");

  // Numbers that do not fit the header stand in the first section header.
  const auto first =
      record_at<Elf64_Shdr>(slice(image, header.e_shoff, sizeof(Elf64_Shdr), "section table"), 0);
  const std::uint64_t count = header.e_shnum != 0 ? header.e_shnum : first.sh_size;
  if (count > std::min<std::uint64_t>(kMaxSections, image.size() / sizeof(Elf64_Shdr))) {
    malformed(cat(count, " sections are too many"));
  }
  const auto table = slice(image, header.e_shoff, count * sizeof(Elf64_Shdr), "section table");
  const std::uint64_t names_index =
      header.e_shstrndx != SHN_XINDEX ? header.e_shstrndx : first.sh_link;
  if (names_index >= count) malformed("section names lie in no section");

  const auto names_header = record_at<Elf64_Shdr>(table, names_index);
  const auto names =
      slice(image, names_header.sh_offset, names_header.sh_size, "section name table");
  sections_.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto entry = record_at<Elf64_Shdr>(table, i);
    ElfSection section;
    if (i != 0) section.name = string_at(names, entry.sh_name, "section", i);
    section.type = entry.sh_type;
    section.link = entry.sh_link;
    section.info = entry.sh_info;
    section.address = entry.sh_addr;
    section.size = entry.sh_size;
    section.entry_size = entry.sh_entsize;
    if (occupies_file(entry.sh_type)) {
      section.bytes = slice(image, entry.sh_offset, entry.sh_size, "section", i);
    }
    sections_.push_back(section);
  }

  for (const std::uint32_t type : {SHT_SYMTAB, SHT_DYNSYM}) {
    const auto found = std::find_if(sections_.begin(), sections_.end(),
                                    [&](const ElfSection& s) { return s.type == type; });
    if (found == sections_.end()) continue;
    symbols_ = read_symbols(static_cast<std::size_t>(found - sections_.begin()));
    break;
  }
}

std::vector<ElfSymbol> Elf::read_symbols(std::size_t table) const {
  const auto& section = sections_[table];
  if (section.entry_size != sizeof(Elf64_Sym) || section.bytes.size() % sizeof(Elf64_Sym) != 0) {
    malformed("symbol table with entries of a wrong size");
  }
  if (section.link >= sections_.size()) malformed("symbol table without names");
  const auto names = sections_[section.link].bytes;
  std::span<const std::byte> wide_indexes;
  for (const auto& other : sections_) {
    if (other.type == SHT_SYMTAB_SHNDX && other.link == table) wide_indexes = other.bytes;
  }

  const std::size_t count = section.bytes.size() / sizeof(Elf64_Sym);
  if (count > kMaxSymbols) malformed(cat(count, " symbols are too many"));
  std::vector<ElfSymbol> symbols;
  symbols.reserve(count);
  for (std::size_t i = 1; i < count; ++i) {
    const auto entry = record_at<Elf64_Sym>(section.bytes, i);
    ElfSymbol symbol;
    symbol.name = string_at(names, entry.st_name, "symbol", i);
    symbol.type = ELF64_ST_TYPE(entry.st_info);
    symbol.binding = ELF64_ST_BIND(entry.st_info);
    symbol.other = entry.st_other;
    symbol.undefined = entry.st_shndx == SHN_UNDEF;
    symbol.value = entry.st_value;
    symbol.size = entry.st_size;
    std::uint64_t index = entry.st_shndx;
    if (index == SHN_XINDEX) {
      if (wide_indexes.size() / sizeof(std::uint32_t) <= i)
        malformed(cat("symbol ", i, ": no section"));
      index = record_at<std::uint32_t>(wide_indexes, i);
    } else if (index >= SHN_LORESERVE) {
      index = 0;
    }
    if (index >= sections_.size())
      malformed(cat("symbol ", i, ": section ", index, " does not exist"));
    symbol.section = static_cast<std::uint32_t>(index);
    symbols.push_back(symbol);
  }
  return symbols;
}

const ElfSection* Elf::find_section(std::string_view name) const {
  for (const auto& section : sections_) {
    if (section.name == name) return &section;
  }
  return nullptr;
}

std::vector<ElfVariable> Elf::variables() const {
  std::vector<ElfVariable> variables;
  for (const auto& symbol : symbols_) {
    if (symbol.type != STT_OBJECT || symbol.section == 0 || symbol.size == 0) continue;
    const auto& section = sections_[symbol.section];
    if (!is_variable_section(machine_, section.name)) continue;
    ElfVariable variable{symbol.name, section.name, symbol.value, symbol.size, {}};
    const std::uint64_t offset = symbol.value - section.address;
    if (symbol.value < section.address || offset > section.size ||
        symbol.size > section.size - offset) {
      malformed(cat("variable ", printable(symbol.name), " reaches outside ", section.name));
    }
    if (!section.bytes.empty()) variable.initial = section.bytes.subspan(offset, symbol.size);
    // STO_CUDA_MANAGED, as nvcc 13.0 writes it.
    variable.managed = machine_ == kElfCuda && (symbol.other & 4) != 0;
    variables.push_back(variable);
  }
  return variables;
}

std::vector<std::string_view> Elf::undefined_symbols() const {
  std::vector<std::string_view> names;
  std::unordered_set<std::string_view> seen;
  for (const auto& symbol : symbols_) {
    if (symbol.undefined && !symbol.name.empty() && seen.insert(symbol.name).second) {
      names.push_back(symbol.name);
    }
  }
  return names;
}

std::span<const std::byte> Elf::strings_of(const ElfSection& section) const {
  if (section.link >= sections_.size()) malformed(cat(printable(section.name), " without names"));
  return sections_[section.link].bytes;
}

std::vector<std::string_view> Elf::needed_libraries() const {
  std::vector<std::string_view> names;
  for (const ElfSection& section : sections_) {
    if (section.type != SHT_DYNAMIC) continue;
    const auto strings = strings_of(section);
    for (std::size_t i = 0; i < section.bytes.size() / sizeof(Elf64_Dyn); ++i) {
      const auto entry = record_at<Elf64_Dyn>(section.bytes, i);
      if (entry.d_tag == DT_NULL) break;
      if (entry.d_tag == DT_NEEDED) {
        names.push_back(string_at(strings, entry.d_un.d_val, "needed library", i));
      }
    }
  }
  return names;
}

std::vector<std::string_view> Elf::needed_versions() const {
  std::vector<std::string_view> names;
  for (const ElfSection& section : sections_) {
    if (section.type != SHT_GNU_verneed) continue;
    const auto strings = strings_of(section);
    // A list of lists; steps are forward only, so both end.
    for (std::uint64_t at = 0;;) {
      const auto file = record_at<Elf64_Verneed>(
          slice(section.bytes, at, sizeof(Elf64_Verneed), "needed version"), 0);
      std::uint64_t inner = at + file.vn_aux;
      for (std::uint64_t i = 0; i < file.vn_cnt; ++i) {
        const auto version = record_at<Elf64_Vernaux>(
            slice(section.bytes, inner, sizeof(Elf64_Vernaux), "needed version"), 0);
        names.push_back(string_at(strings, version.vna_name, "needed version", i));
        if (version.vna_next == 0) break;
        inner += version.vna_next;
      }
      if (file.vn_next == 0) break;
      at += file.vn_next;
    }
  }
  return names;
}

bool is_elf(const void* image) { return std::memcmp(image, ELFMAG, SELFMAG) == 0; }

std::size_t elf_size(const void* image) {
  if (!is_elf(image)) malformed("no ELF magic");
  const auto* bytes = static_cast<const std::byte*>(image);
  Elf64_Ehdr header;
  std::memcpy(&header, bytes, sizeof(header));
  check_header(header);

  std::uint64_t size = sizeof(header);
  // Nothing real comes near 1 TiB; below it no sum here wraps.
  constexpr std::uint64_t kTooLarge = std::uint64_t{1} << 40;
  const auto include = [&](std::uint64_t offset, std::uint64_t length) {
    if (offset >= kTooLarge || length >= kTooLarge) malformed("absurd size or offset");
    size = std::max(size, offset + length);
  };
  if (header.e_shoff != 0) {
    include(header.e_shoff, sizeof(Elf64_Shdr));
    Elf64_Shdr section;
    std::memcpy(&section, bytes + header.e_shoff, sizeof(section));
    const std::uint64_t count = header.e_shnum != 0 ? header.e_shnum : section.sh_size;
    if (count >= kTooLarge / sizeof(section)) malformed("absurd number of sections");
    include(header.e_shoff, count * sizeof(section));
    for (std::uint64_t i = 0; i < count; ++i) {
      std::memcpy(&section, bytes + header.e_shoff + i * sizeof(section), sizeof(section));
      if (occupies_file(section.sh_type)) include(section.sh_offset, section.sh_size);
    }
  }
  if (header.e_phnum != 0) {
    include(header.e_phoff, std::uint64_t{header.e_phnum} * sizeof(Elf64_Phdr));
    for (std::uint64_t i = 0; i < header.e_phnum; ++i) {
      Elf64_Phdr segment;
      std::memcpy(&segment, bytes + header.e_phoff + i * sizeof(segment), sizeof(segment));
      if (segment.p_type != PT_NULL) include(segment.p_offset, segment.p_filesz);
    }
  }
  return size;
}

}  // namespace kjudge
