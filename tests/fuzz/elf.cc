// SPDX-License-Identifier: Apache-2.0
// Any bytes as an ELF image: a cubin or a host module of a bundle.

#include <cstdlib>

#include "elf_image.h"
#include "error.h"

using namespace kjudge;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const Elf elf(std::as_bytes(std::span(data, size)));
    // Every byte that is handed out lies in the image: reading it is what the sanitizer checks.
    unsigned sum = 0;
    for (const ElfSection& section : elf.sections()) {
      for (const std::byte byte : section.bytes) sum += std::to_integer<unsigned>(byte);
      for (const char c : section.name) sum += static_cast<unsigned char>(c);
    }
    for (const ElfVariable& variable : elf.variables()) {
      if (!variable.initial.empty() && variable.initial.size() != variable.size) std::abort();
      for (const std::byte byte : variable.initial) sum += std::to_integer<unsigned>(byte);
    }
    for (const std::string_view name : elf.undefined_symbols()) sum += name.size();
    for (const std::string_view name : elf.needed_libraries()) sum += name.size();
    for (const std::string_view name : elf.needed_versions()) sum += name.size();
    asm volatile("" : : "r"(sum));
  } catch (const Error& error) {
    if (error.fault() != Fault::malformed) throw;
  }
  return 0;
}
