// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <elf.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "elf_image.h"

// ELF images for tests.

namespace kjudge {

struct MadeSection {
  std::string name;
  std::uint32_t type = SHT_PROGBITS;
  std::string bytes;
  std::uint64_t size = 0;  // of SHT_NOBITS
  std::uint64_t address = 0;
};

struct MadeSymbol {
  std::string name;
  std::uint16_t section = 0;  // 1: the first of the given sections
  std::uint64_t value = 0, size = 0;
  unsigned char type = STT_OBJECT;
};

inline std::string string_table(const std::vector<std::string>& names,
                                std::vector<std::uint32_t>& at) {
  std::string table(1, '\0');
  for (const auto& name : names) {
    at.push_back(static_cast<std::uint32_t>(table.size()));
    table += name + '\0';
  }
  return table;
}

// An ELF image with the sections given, then .symtab, .strtab, .shstrtab.
inline std::string make_elf(std::uint16_t machine, std::vector<MadeSection> sections,
                            const std::vector<MadeSymbol>& symbols) {
  std::vector<std::string> names;
  std::vector<std::uint32_t> at;
  for (const auto& symbol : symbols) names.push_back(symbol.name);
  const std::string strings = string_table(names, at);
  std::string table(sizeof(Elf64_Sym), '\0');
  for (std::size_t i = 0; i < symbols.size(); ++i) {
    Elf64_Sym entry{};
    entry.st_name = at[i];
    entry.st_info = ELF64_ST_INFO(STB_GLOBAL, symbols[i].type);
    entry.st_shndx = symbols[i].section;
    entry.st_value = symbols[i].value;
    entry.st_size = symbols[i].size;
    table.append(reinterpret_cast<const char*>(&entry), sizeof(entry));
  }
  const auto link = static_cast<std::uint32_t>(sections.size() + 2);
  sections.push_back({".symtab", SHT_SYMTAB, table});
  sections.push_back({".strtab", SHT_STRTAB, strings});
  sections.push_back({".shstrtab", SHT_STRTAB, ""});
  names.clear();
  at.clear();
  for (const auto& section : sections) names.push_back(section.name);
  sections.back().bytes = string_table(names, at);

  std::string image(sizeof(Elf64_Ehdr), '\0');
  std::string headers(sizeof(Elf64_Shdr), '\0');
  for (std::size_t i = 0; i < sections.size(); ++i) {
    Elf64_Shdr entry{};
    entry.sh_name = at[i];
    entry.sh_type = sections[i].type;
    entry.sh_addr = sections[i].address;
    entry.sh_offset = image.size();
    entry.sh_size = sections[i].type == SHT_NOBITS ? sections[i].size : sections[i].bytes.size();
    if (sections[i].type == SHT_SYMTAB) {
      entry.sh_entsize = sizeof(Elf64_Sym);
      entry.sh_link = link;
    }
    image += sections[i].bytes;
    headers.append(reinterpret_cast<const char*>(&entry), sizeof(entry));
  }
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_machine = machine;
  header.e_shoff = image.size();
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = static_cast<std::uint16_t>(sections.size() + 1);
  header.e_shstrndx = static_cast<std::uint16_t>(sections.size());
  std::memcpy(image.data(), &header, sizeof(header));
  return image + headers;
}

// As nvcc 13 lays a cubin out.
inline std::string make_cubin() {
  return make_elf(kElfCuda,
                  {{".text._Z1kPi", SHT_PROGBITS, "code"},
                   {".nv.global", SHT_NOBITS, "", 20},
                   {".nv.global.init", SHT_PROGBITS, "....abcdefgh"},
                   {".nv.constant3", SHT_PROGBITS, "0123456789"},
                   {".nv.constant0._Z1kPi", SHT_PROGBITS, "parameters"},
                   {".nv.shared._Z1kPi", SHT_NOBITS, "", 4096}},
                  {{"zero", 2, 4, 16},
                   {"init", 3, 4, 8},
                   {"bank", 4, 2, 3},
                   {"parameter", 5, 0, 4},
                   {"tile", 6, 0, 64},
                   {"_Z1kPi", 1, 0, 4, STT_FUNC},
                   {"vprintf", 0, 0, 0, STT_FUNC},
                   {"vprintf", 0, 0, 0, STT_FUNC}});
}

}  // namespace kjudge
