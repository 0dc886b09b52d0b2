// SPDX-License-Identifier: Apache-2.0
// Any bytes as a bundle: read, memory read, everything shown that a command shows of it.
//
// Hashes and compression stop a fuzzer that changes bytes, so most changes here are made one level
// up: the records are decoded, one of their fields is changed, by the grammar that reader and
// writer share, and all is put together again with right hashes. One change in eight is to the file
// itself.

#include <sys/mman.h>
#include <unistd.h>
#include <sstream>

#include <cstdlib>
#include <random>

#include "accepted.h"
#include "bundle/format.h"
#include "file.h"
#include "judge/bundle_json.h"

using namespace kjudge;

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

namespace {

using Random = std::minstd_rand;

// Records whose bytes are there, whether or not they make a bundle that keeps the rules.
struct Parts {
  Bundle bundle;
  std::vector<BundleBlock> blocks;
  Bytes memory;
};

// The file's header as far as it is there.
std::optional<BundleHeader> header_of(std::span<const std::byte> file) {
  BundleHeader header;
  if (file.size() < sizeof(header)) return std::nullopt;
  std::memcpy(&header, file.data(), sizeof(header));
  return header;
}

std::optional<std::span<const std::byte>> stored_of(std::span<const std::byte> file,
                                                    const BundleEntry& entry) {
  if (entry.offset > file.size() || entry.stored > file.size() - entry.offset) return std::nullopt;
  return file.subspan(entry.offset, entry.stored);
}

std::optional<Parts> take_apart(std::span<const std::byte> file) {
  const auto header = header_of(file);
  if (!header) return std::nullopt;
  Parts parts;
  static constexpr BundleLimits kLimits{.meta_bytes = 1u << 20, .nodes = 1000};
  BundleBudget budget(kLimits);
  try {
    for (std::uint32_t i = 0; i < kBundleSections; ++i) {
      const BundleEntry& entry = header->table[i];
      const auto stored = stored_of(file, entry);
      if (!stored || entry.size > 1u << 20) return std::nullopt;
      if (i == 0) {
        parts.memory.assign(stored->begin(), stored->end());
        continue;
      }
      Bytes raw(stored->begin(), stored->end());
      if (entry.codec == BundleCodec::zstd) {
        raw.resize(entry.size);
        decompress(*stored, raw);
      }
      BundleDecoder decoder(header->version, raw, budget);
      section(decoder, static_cast<BundleSection>(i + 1), parts.bundle, parts.blocks);
    }
  } catch (const Error&) {
    return std::nullopt;
  }
  return parts;
}

Bytes compressed(std::span<const std::byte> bytes) {
  Bytes out(bytes.size() + bytes.size() / 2 + 64);
  const auto size = BundleCompressor().compress(bytes, out, 1);
  out.resize(size.value_or(0));
  return out;
}

// Right hashes over payloads that may be wrong in every other way.
void hash_blocks(std::vector<BundleBlock>& blocks, std::span<const std::byte> memory) {
  for (BundleBlock& block : blocks) {
    if (block.stored > memory.size()) return;
    block.hash = xxh3(memory.first(block.stored));
    memory = memory.subspan(block.stored);
  }
}

Bytes put_together(Parts& parts, bool compress) {
  hash_blocks(parts.blocks, parts.memory);
  BundleHeader header;
  Bytes file(sizeof(header));
  for (std::uint32_t i = 0; i < kBundleSections; ++i) {
    const auto kind = static_cast<BundleSection>(i + 1);
    BundleEncoder encoder;
    section(encoder, kind, parts.bundle, parts.blocks);
    Bytes stored = i == 0 ? parts.memory : encoder.bytes();
    const std::size_t size = stored.size();
    auto codec = BundleCodec::stored;
    if (const Bytes packed = compress && i != 0 ? compressed(stored) : Bytes();
        !packed.empty() && packed.size() < size) {
      codec = BundleCodec::zstd;
      stored = packed;
    }
    header.table[i] = {kind, codec, file.size(), stored.size(), size, i == 0 ? 0 : xxh3(stored)};
    file.insert(file.end(), stored.begin(), stored.end());
  }
  header.file_size = file.size();
  const auto bytes = std::as_bytes(std::span(&header, 1));
  header.hash = xxh3(bytes.first(sizeof(header) - sizeof(header.hash)));
  std::memcpy(file.data(), &header, sizeof(header));
  return file;
}

// One level down: bytes of the header or of a section as they are stored, then right hashes.
void change_stored(Bytes& file, Random& random) {
  BundleHeader header = *header_of(file);
  const std::size_t part = random() % (kBundleSections + 1);
  const std::size_t at = part == kBundleSections ? 0 : header.table[part].offset;
  const std::size_t size = part == kBundleSections ? sizeof(header) : header.table[part].stored;
  if (size == 0) return;
  LLVMFuzzerMutate(reinterpret_cast<std::uint8_t*>(file.data() + at), size, size);
  header = *header_of(file);
  for (std::size_t i = 1; i < kBundleSections; ++i) {
    if (const auto stored = stored_of(file, header.table[i])) header.table[i].hash = xxh3(*stored);
  }
  const auto bytes = std::as_bytes(std::span(&header, 1));
  header.hash = xxh3(bytes.first(sizeof(header) - sizeof(header.hash)));
  std::memcpy(file.data(), &header, sizeof(header));
}

// Visits every field of the records; changes the one with number `target`, of any kind. A list is a
// field of its own: an item goes, or comes twice.
class Changer {
 public:
  template <class T>
  using Ref = T&;

  Changer(Random& random, std::size_t target) : random_(random), target_(target) {}
  std::size_t fields() const { return next_; }
  std::uint32_t version() const { return kBundleVersion; }  // which they are put together as

  template <Number T>
  void number(std::string_view, T& value) {
    if (!is_target()) return;
    std::array<std::uint8_t, sizeof(T)> bytes;
    switch (random_() % 4) {
      case 0:
        if constexpr (std::integral<T>) {
          value = static_cast<T>(value + static_cast<T>(random_() % 2 == 0 ? 1 : -1));
          return;
        }
        [[fallthrough]];
      case 1:
        if constexpr (std::integral<T>) {
          // What bounds are made of.
          const std::uint64_t special[] = {
              0,          ~std::uint64_t{0}, kRegionGranule,
              kArenaBase, kArenaSize,        std::uint64_t{1} << (random_() % 64)};
          value = static_cast<T>(special[random_() % std::size(special)]);
          return;
        }
        [[fallthrough]];
      default:
        std::memcpy(bytes.data(), &value, sizeof(T));
        LLVMFuzzerMutate(bytes.data(), sizeof(T), sizeof(T));
        std::memcpy(&value, bytes.data(), sizeof(T));
    }
  }
  void text(std::string_view, std::string& value) {
    if (is_target()) change(value, 1024);
  }
  void blob(std::string_view, Bytes& value) {
    if (is_target()) change(value, 4096);
  }
  void array(std::string_view, std::array<std::byte, 64>& value) {
    if (is_target()) {
      LLVMFuzzerMutate(reinterpret_cast<std::uint8_t*>(value.data()), value.size(), value.size());
    }
  }
  template <class T, class Each>
  void list(std::string_view, std::vector<T>& values, const Each& each,
            std::uint32_t = UINT32_MAX) {
    if (is_target()) change_items(values);
    for (T& value : values) each(*this, value);
  }

 private:
  bool is_target() { return next_++ == target_; }

  template <class Text>
  void change(Text& value, std::size_t most) {
    const std::size_t size = std::min(value.size(), most);
    value.resize(std::max(most, value.size()));
    const std::size_t changed =
        LLVMFuzzerMutate(reinterpret_cast<std::uint8_t*>(value.data()), size, most);
    value.resize(changed);
  }

  template <class T>
  void change_items(std::vector<T>& values) {
    if (values.empty() || random_() % 8 == 0) {
      values.emplace_back();
      return;
    }
    const auto at = static_cast<std::ptrdiff_t>(random_() % values.size());
    const auto other = static_cast<std::ptrdiff_t>(random_() % values.size());
    switch (random_() % 3) {
      case 0:
        values.erase(values.begin() + at);
        break;
      case 1:
        values.insert(values.begin() + other, T(values[static_cast<std::size_t>(at)]));
        break;
      default:
        std::swap(values[static_cast<std::size_t>(at)], values[static_cast<std::size_t>(other)]);
    }
  }

  Random& random_;
  std::size_t target_, next_ = 0;
};

std::size_t visit(Parts& parts, Random& random, std::size_t target) {
  Changer changer(random, target);
  for (std::uint32_t kind = 2; kind <= kBundleSections; ++kind) {
    section(changer, static_cast<BundleSection>(kind), parts.bundle, parts.blocks);
  }
  return changer.fields();
}

Accepted& accepted() {
  static Accepted inputs;
  return inputs;
}

void show(const BundleReader& reader) {
  const Bundle& bundle = reader.bundle();
  for (std::size_t i = 0; i < bundle.regions.size(); ++i) {
    std::uint64_t end = 0;
    reader.read_memory(i, [&](std::uint64_t offset, std::span<const std::byte> bytes) {
      const std::uint64_t size = bundle.regions[i].size;
      if (offset < end || offset > size || bytes.size() > size - offset) std::abort();
      end = offset + bytes.size();
    });
  }
  dump(reader);
  std::ostringstream printed;
  print_bundle_json(bundle, printed);
  for (const CapturedShape& shape : bundle.shapes) {
    for (const Node& node : shape.graph.nodes) {
      const auto* kernel = std::get_if<KernelNode>(&node);
      if (kernel != nullptr && readable_name(kernel->name).size() > 160) std::abort();
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Fd memory(::memfd_create("fuzz", MFD_CLOEXEC));
  if (::ftruncate(memory.get(), static_cast<off_t>(size)) != 0 ||
      ::pwrite(memory.get(), data, size, 0) != static_cast<ssize_t>(size)) {
    std::abort();
  }
  BundleLimits limits;
  limits.meta_bytes = 4u << 20;
  limits.nodes = 1000;
  try {
    show(BundleReader(memory.get(), "fuzz", limits));
    accepted().add({data, size});
  } catch (const Error& error) {
    if (error.fault() != Fault::malformed) throw;
  }
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t most, unsigned seed) {
  Random random(seed);
  random.discard(8);  // seeds that are near each other begin alike
  auto parts = take_apart(std::as_bytes(accepted().base({data, size}, random)));
  if (!parts || random() % 8 == 0) return LLVMFuzzerMutate(data, size, most);
  if (random() % 16 == 0) {
    parts->memory.resize(std::max<std::size_t>(parts->memory.size(), 1));
    LLVMFuzzerMutate(reinterpret_cast<std::uint8_t*>(parts->memory.data()), parts->memory.size(),
                     parts->memory.size());
  }
  Parts counted = *parts;
  const std::size_t fields = visit(counted, random, SIZE_MAX);
  for (std::size_t changes = 1 + random() % 3; changes > 0; --changes) {
    visit(*parts, random, random() % fields);
  }
  Bytes file = put_together(*parts, random() % 4 == 0);
  if (random() % 8 == 0) change_stored(file, random);
  if (file.size() > most) return LLVMFuzzerMutate(data, size, most);
  std::memcpy(data, file.data(), file.size());
  return file.size();
}
