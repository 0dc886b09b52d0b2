// SPDX-License-Identifier: Apache-2.0
// Any bytes as a bundle: read, memory read, dumped. Once as they are, and once with every hash made
// right, since no fuzzer gets past those alone.

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

#include "bundle/format.h"
#include "file.h"

using namespace kjudge;

namespace {

void mend_block_hashes(const BundleHeader& header, std::span<std::byte> file) {
  const BundleEntry& memory = header.table[0];
  const BundleEntry& index = header.table[1];
  constexpr std::size_t kRecord = 32, kCount = 4;
  std::uint64_t payload = memory.offset;
  for (std::uint64_t at = kCount; at + kRecord <= index.stored; at += kRecord) {
    const auto record = file.subspan(index.offset + at, kRecord);
    std::uint32_t stored = 0;
    std::memcpy(&stored, record.data() + 20, sizeof(stored));
    if (payload > file.size() || stored > file.size() - payload) return;
    const std::uint64_t hash = xxh3(file.subspan(payload, stored));
    std::memcpy(record.data() + 24, &hash, sizeof(hash));
    payload += stored;
  }
}

// False when the header is not worth mending.
bool mend(std::span<std::byte> file) {
  BundleHeader header;
  if (file.size() < sizeof(header)) return false;
  std::memcpy(&header, file.data(), sizeof(header));
  header.magic = kBundleMagic;
  header.version = kBundleVersion;
  header.sections = kBundleSections;
  header.file_size = file.size();
  std::uint64_t end = sizeof(header);
  for (std::uint32_t i = 0; i < kBundleSections; ++i) {
    BundleEntry& entry = header.table[i];
    entry.kind = static_cast<BundleSection>(i + 1);
    entry.offset = end;
    // The last takes what is left, so that a change of length still gives a file.
    if (i + 1 == kBundleSections) entry.stored = file.size() - end;
    if (entry.stored > file.size() - end) return false;
    end += entry.stored;
    if (entry.codec == BundleCodec::stored) entry.size = entry.stored;
    if (i == 1 && entry.codec == BundleCodec::stored) mend_block_hashes(header, file);
    entry.hash = i == 0 ? 0 : xxh3(file.subspan(entry.offset, entry.stored));
  }
  const auto bytes = std::as_bytes(std::span(&header, 1));
  header.hash = xxh3(bytes.first(sizeof(header) - sizeof(header.hash)));
  std::memcpy(file.data(), &header, sizeof(header));
  return true;
}

void read_all(std::span<const std::byte> file) {
  static const Fd memory(::memfd_create("fuzz", MFD_CLOEXEC));
  const auto size = static_cast<ssize_t>(file.size());
  if (::ftruncate(memory.get(), size) != 0 ||
      ::pwrite(memory.get(), file.data(), file.size(), 0) != size) {
    std::abort();
  }
  BundleLimits limits;
  limits.meta_bytes = 4u << 20;
  limits.nodes = 1000;
  try {
    const BundleReader reader(memory.get(), "fuzz", limits);
    for (std::size_t i = 0; i < reader.bundle().regions.size(); ++i) {
      reader.read_memory(i, [&](std::uint64_t offset, std::span<const std::byte> bytes) {
        const std::uint64_t region_size = reader.bundle().regions[i].size;
        if (offset > region_size || bytes.size() > region_size - offset) std::abort();
      });
    }
    dump(reader);
  } catch (const Error& error) {
    if (error.fault() != Fault::malformed) throw;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto given = std::as_bytes(std::span(data, size));
  Bytes file(given.begin(), given.end());
  read_all(file);
  if (mend(file)) read_all(file);
  return 0;
}
