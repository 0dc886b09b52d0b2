// SPDX-License-Identifier: Apache-2.0
#pragma once

// What reader and writer share of the file format. kjudge-bundle(5) is its text.
//
//   file     = header payload* section*                     ; all integers little-endian
//   header   = magic version:u32 sections:u32 file_size:u64 entry*sections hash:u64
//                                                           ; hash: of all header bytes before it
//   entry    = kind:u32 codec:u32 offset:u64 stored:u64 size:u64 hash:u64
//                                                           ; hash: of the stored bytes
//   payload  = bytes of one block, as its codec has them
//
// Sections are in the order of BundleSection, each once, each where the one before it ends; the
// first begins where the header ends and the last ends with the file. `memory` is all payloads in a
// row; its own hash is 0, for each block has one. The rest decompress to one record each:
//
//   blocks     = list(region:u32 codec:u32 offset:u64 size:u32 stored:u32 hash:u64)
//   provenance = arch driver driver_version:u32 driver_release device kjudge_version seed:u64
//                peak_bytes:u64 import_s:f64 prepare_s:f64 capture_s:f64 list(note)
//                                     ; names are text; version 1 has no driver_release
//   modules    = list(image:blob list(name:text size:u64))
//   regions    = list(address:u64 size:u64 role:u8 device:u32)
//   shapes     = list(name:text list(node) list(edge) list(output_hash:u64))
//   node       = 0:u8 module:u32 name:text grid:dim3 block:dim3 shared_bytes:u32
//                     list(offset:u32) list(size:u32) arguments:blob
//                     launch:list(attribute) function:list(attribute) observed:list(attribute)
//                     cache_config:i32
//              | 1:u8 address:u64 pitch:u64 value:u32 element_size:u32 width:u64 height:u64
//              | 2:u8 destination:u64 source:u64 destination_pitch:u64 source_pitch:u64
//                     destination_height:u64 source_height:u64 width_bytes:u64 height:u64 depth:u64
//              | 3:u8
//   dim3       = x:u32 y:u32 z:u32
//   attribute  = id:u32 value:64 bytes
//   edge       = from:u32 to:u32 from_port:u8 to_port:u8 type:u8
//   tensors    = list(shape:u32 role:u8 name:text dtype:u8 list(dim:i64) list(stride:i64)
//   address:u64) limits     = list(id:u32 value:u64) text, blob = length:u32 bytes;  list(x) =
//   count:u32 x*count
//
// fields() below are that grammar, once for both directions.

#include <array>
#include <bit>
#include <concepts>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "bundle/bundle.h"
#include "error.h"

namespace kjudge {

static_assert(std::endian::native == std::endian::little);

// As PNG's: catches transfers that cut the eighth bit or change line ends.
inline constexpr std::array<char, 8> kBundleMagic = {'\x89', 'K',  'J',    'B',
                                                     '\r',   '\n', '\x1a', '\n'};

// History. A released version stays readable.
//   1  first
//   2  driver_release in provenance
inline constexpr std::uint32_t kBundleVersion = 2;

enum class BundleSection : std::uint32_t {
  memory = 1,
  blocks = 2,
  provenance = 3,
  modules = 4,
  regions = 5,
  shapes = 6,
  tensors = 7,
  limits = 8,
};
inline constexpr std::uint32_t kBundleSections = 8;
std::string_view name(BundleSection section);

enum class BundleCodec : std::uint32_t { stored = 0, zstd = 1 };

struct BundleEntry {
  BundleSection kind = BundleSection::memory;
  BundleCodec codec = BundleCodec::stored;
  std::uint64_t offset = 0, stored = 0, size = 0, hash = 0;
};
static_assert(sizeof(BundleEntry) == 40);

struct BundleHeader {
  std::array<char, 8> magic = kBundleMagic;
  std::uint32_t version = kBundleVersion;
  std::uint32_t sections = kBundleSections;
  std::uint64_t file_size = 0;
  std::array<BundleEntry, kBundleSections> table;
  std::uint64_t hash = 0;
};
static_assert(sizeof(BundleHeader) == 24 + 40 * kBundleSections + 8);
static_assert(std::is_trivially_copyable_v<BundleHeader>);

// A run of a region's pages. Pages that are all zero are in no block.
struct BundleBlock {
  std::uint32_t region = 0;  // index into Bundle::regions
  BundleCodec codec = BundleCodec::stored;
  std::uint64_t offset = 0;  // in the region
  std::uint32_t size = 0, stored = 0;
  std::uint64_t hash = 0;
};
inline constexpr std::uint32_t kBundlePage = 64u << 10;
inline constexpr std::uint32_t kMaxBundleBlock = 4u << 20;

// Runs `step` and puts the place before what it throws; the words are made only then.
template <class Step>
void within(std::string_view place, const Step& step) {
  try {
    step();
  } catch (Error& error) {
    error.context(place);
    throw;
  }
}
template <class Which, class Step>
void within(std::string_view place, const Which& which, const Step& step) {
  try {
    step();
  } catch (Error& error) {
    error.context(cat(place, " ", which));
    throw;
  }
}

std::uint64_t xxh3(std::span<const std::byte> bytes);

// Throws Fault::malformed unless `stored` is exactly one zstd frame of out.size() bytes.
void decompress(std::span<const std::byte> stored, std::span<std::byte> out);

struct BundleCompressor {
  BundleCompressor();
  ~BundleCompressor();
  BundleCompressor(const BundleCompressor&) = delete;
  BundleCompressor& operator=(const BundleCompressor&) = delete;

  // Bytes written to `out`, or nullopt when they would not fit it. The same bytes give the same
  // result on every machine.
  std::optional<std::size_t> compress(std::span<const std::byte> bytes, std::span<std::byte> out,
                                      int level);

 private:
  void* context_;
};

template <class T>
concept Number = std::integral<T> || std::floating_point<T> || std::is_enum_v<T>;

class BundleEncoder {
 public:
  template <class T>
  using Ref = const T&;

  std::uint32_t version() const { return kBundleVersion; }
  const Bytes& bytes() const { return bytes_; }
  // What a decoder will count against its limit.
  std::uint64_t record_bytes() const { return record_bytes_; }

  template <Number T>
  void number(std::string_view, const T& value) {
    append(&value, sizeof(value));
  }
  void text(std::string_view field, const std::string& value) {
    length(field, value.size());
    append(value.data(), value.size());
  }
  void blob(std::string_view field, const Bytes& value) {
    length(field, value.size());
    append(value.data(), value.size());
  }
  void array(std::string_view, const std::array<std::byte, 64>& value) {
    append(value.data(), value.size());
  }
  template <class T, class Each>
  void list(std::string_view field, const std::vector<T>& values, const Each& each,
            std::uint32_t most = UINT32_MAX) {
    KJ_CHECK(values.size() <= most);
    length(field, values.size());
    record_bytes_ += values.size() * sizeof(T);
    for (const T& value : values) each(*this, value);
  }

 private:
  void length(std::string_view field, std::size_t size) {
    if (size > UINT32_MAX) throw Error(Fault::bug, cat(field, " is larger than 4 GiB"));
    number(field, static_cast<std::uint32_t>(size));
  }
  void append(const void* from, std::size_t size) {
    const auto* first = static_cast<const std::byte*>(from);
    bytes_.insert(bytes_.end(), first, first + size);
  }

  Bytes bytes_;
  std::uint64_t record_bytes_ = 0;
};

// What is left of the limits, over all sections.
struct BundleBudget {
  explicit BundleBudget(const BundleLimits& given)
      : limits(given), record_bytes(given.meta_bytes), nodes(given.nodes) {}

  const BundleLimits& limits;
  std::uint64_t record_bytes;
  std::uint32_t nodes;
};

// Memory grows with the bytes that were really there, never with a count that they claim. Records
// can be larger than their bytes, and bytes can come from a small file: so they count too.
class BundleDecoder {
 public:
  template <class T>
  using Ref = T&;

  BundleDecoder(std::uint32_t version, std::span<const std::byte> bytes, BundleBudget& budget)
      : version_(version), rest_(bytes), budget_(budget) {}

  std::uint32_t version() const { return version_; }

  template <Number T>
  void number(std::string_view field, T& value) {
    std::memcpy(&value, take(field, sizeof(value)).data(), sizeof(value));
  }
  void text(std::string_view field, std::string& value) {
    const auto bytes = take(field, length(field));
    value.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  void blob(std::string_view field, Bytes& value) {
    const auto bytes = take(field, length(field));
    value.assign(bytes.begin(), bytes.end());
  }
  void array(std::string_view field, std::array<std::byte, 64>& value) {
    std::memcpy(value.data(), take(field, value.size()).data(), value.size());
  }
  template <class T, class Each>
  void list(std::string_view field, std::vector<T>& values, const Each& each,
            std::uint32_t most = UINT32_MAX) {
    const std::uint32_t count = length(field);
    if (count > most) {
      throw Error(Fault::malformed, cat(field, ": ", count, ", at most ", most, " are allowed"));
    }
    for (std::uint32_t i = 0; i < count; ++i) {
      within(field, i, [&] {
        charge(sizeof(T), std::is_same_v<T, Node> ? 1 : 0);
        each(*this, values.emplace_back());
      });
    }
  }

  void finish() const {
    if (!rest_.empty()) {
      throw Error(Fault::malformed, cat(rest_.size(), " bytes after the last field"));
    }
  }

 private:
  std::uint32_t length(std::string_view field) {
    std::uint32_t value = 0;
    number(field, value);
    // Nothing in a list or a text is shorter than a byte.
    if (value > rest_.size()) {
      throw Error(Fault::malformed,
                  cat(field, ": length ", value, ", but ", rest_.size(), " bytes are left"));
    }
    return value;
  }
  std::span<const std::byte> take(std::string_view field, std::size_t size) {
    if (size > rest_.size()) throw Error(Fault::malformed, cat(field, ": cut short"));
    const auto taken = rest_.first(size);
    rest_ = rest_.subspan(size);
    return taken;
  }
  void charge(std::size_t bytes, std::uint32_t nodes) {
    if (nodes > budget_.nodes) {
      throw Error(Fault::malformed,
                  cat("all graphs together have more than ", budget_.limits.nodes, " nodes"));
    }
    if (bytes > budget_.record_bytes) {
      throw Error(Fault::malformed,
                  cat("records take more than ", budget_.limits.meta_bytes, " bytes of memory"));
    }
    budget_.nodes -= nodes;
    budget_.record_bytes -= bytes;
  }

  std::uint32_t version_;  // of the file
  std::span<const std::byte> rest_;
  BundleBudget& budget_;
};

// Most records of the lists whose records grow when they are read.
inline constexpr std::uint32_t kMaxNotes = 1000;
inline constexpr std::uint32_t kMaxModules = 65'536;
inline constexpr std::uint32_t kMaxVariables = 65'536;  // of one module
inline constexpr std::uint32_t kMaxShapes = 4096;
inline constexpr std::uint32_t kMaxTensors = 65'536;

template <class Io, class T>
using Ref = typename Io::template Ref<T>;

template <class Io>
void fields(Io& io, Ref<Io, BundleBlock> block) {
  io.number("region", block.region);
  io.number("codec", block.codec);
  io.number("offset", block.offset);
  io.number("size", block.size);
  io.number("stored", block.stored);
  io.number("hash", block.hash);
}

template <class Io>
void fields(Io& io, Ref<Io, Provenance> provenance) {
  io.text("arch", provenance.arch);
  io.text("driver", provenance.driver);
  io.number("driver_version", provenance.driver_version);
  if (io.version() >= 2) io.text("driver_release", provenance.driver_release);
  io.text("device", provenance.device);
  io.text("kjudge_version", provenance.kjudge_version);
  io.number("seed", provenance.seed);
  io.number("peak_bytes", provenance.peak_bytes);
  io.number("import_s", provenance.import_s);
  io.number("prepare_s", provenance.prepare_s);
  io.number("capture_s", provenance.capture_s);
  io.list(
      "note", provenance.notes, [](Io& i, auto& note) { i.text("note", note); }, kMaxNotes);
}

template <class Io>
void fields(Io& io, Ref<Io, Module> module) {
  io.blob("image", module.image);
  io.list(
      "variable", module.variables,
      [](Io& i, auto& variable) {
        i.text("name", variable.name);
        i.number("size", variable.size);
      },
      kMaxVariables);
}

template <class Io>
void fields(Io& io, Ref<Io, Region> region) {
  io.number("address", region.address);
  io.number("size", region.size);
  io.number("role", region.role);
  io.number("device", region.device);
}

template <class Io>
void fields(Io& io, Ref<Io, Dim3> dim) {
  io.number("x", dim.x);
  io.number("y", dim.y);
  io.number("z", dim.z);
}

template <class Io>
void fields(Io& io, Ref<Io, std::vector<Attribute>> attributes) {
  io.list("attribute", attributes, [](Io& i, auto& attribute) {
    i.number("id", attribute.id);
    i.array("value", attribute.value);
  });
}

template <class Io>
void fields(Io& io, Ref<Io, KernelNode> kernel) {
  io.number("module", kernel.module);
  io.text("name", kernel.name);
  fields<Io>(io, kernel.grid);
  fields<Io>(io, kernel.block);
  io.number("shared_bytes", kernel.shared_bytes);
  io.list("argument_offset", kernel.argument_offsets,
          [](Io& i, auto& offset) { i.number("offset", offset); });
  io.list("argument_size", kernel.argument_sizes,
          [](Io& i, auto& size) { i.number("size", size); });
  io.blob("arguments", kernel.arguments);
  fields<Io>(io, kernel.launch_attributes);
  fields<Io>(io, kernel.function_attributes);
  fields<Io>(io, kernel.observed_attributes);
  io.number("cache_config", kernel.cache_config);
}

template <class Io>
void fields(Io& io, Ref<Io, MemsetNode> memset) {
  io.number("address", memset.address);
  io.number("pitch", memset.pitch);
  io.number("value", memset.value);
  io.number("element_size", memset.element_size);
  io.number("width", memset.width);
  io.number("height", memset.height);
}

template <class Io>
void fields(Io& io, Ref<Io, MemcpyNode> copy) {
  io.number("destination", copy.destination);
  io.number("source", copy.source);
  io.number("destination_pitch", copy.destination_pitch);
  io.number("source_pitch", copy.source_pitch);
  io.number("destination_height", copy.destination_height);
  io.number("source_height", copy.source_height);
  io.number("width_bytes", copy.width_bytes);
  io.number("height", copy.height);
  io.number("depth", copy.depth);
}

template <class Io>
void fields(Io&, Ref<Io, EmptyNode>) {}

template <class Io>
void fields(Io& io, Ref<Io, Node> node) {
  auto kind = static_cast<std::uint8_t>(node.index());
  io.number("kind", kind);
  if constexpr (std::is_same_v<Io, BundleDecoder>) {
    switch (kind) {
      case 0:
        node.template emplace<KernelNode>();
        break;
      case 1:
        node.template emplace<MemsetNode>();
        break;
      case 2:
        node.template emplace<MemcpyNode>();
        break;
      case 3:
        node.template emplace<EmptyNode>();
        break;
      default:
        throw Error(Fault::malformed, cat("unknown kind ", int{kind}));
    }
  }
  std::visit([&](auto& each) { fields<Io>(io, each); }, node);
}
static_assert(std::is_same_v<Node, std::variant<KernelNode, MemsetNode, MemcpyNode, EmptyNode>>);

template <class Io>
void fields(Io& io, Ref<Io, CapturedShape> shape) {
  io.text("name", shape.name);
  io.list("node", shape.graph.nodes, [](Io& i, auto& node) { fields<Io>(i, node); });
  io.list("edge", shape.graph.edges, [](Io& i, auto& edge) {
    i.number("from", edge.from);
    i.number("to", edge.to);
    i.number("from_port", edge.from_port);
    i.number("to_port", edge.to_port);
    i.number("type", edge.type);
  });
  io.list("output_hash", shape.output_hashes, [](Io& i, auto& hash) { i.number("hash", hash); });
}

template <class Io>
void fields(Io& io, Ref<Io, Tensor> tensor) {
  io.number("shape", tensor.shape);
  io.number("role", tensor.role);
  io.text("name", tensor.spec.name);
  io.number("dtype", tensor.spec.dtype);
  io.list("dim", tensor.spec.dims, [](Io& i, auto& dim) { i.number("dim", dim); });
  io.list("stride", tensor.spec.strides, [](Io& i, auto& stride) { i.number("stride", stride); });
  io.number("address", tensor.address);
}

template <class Io>
void fields(Io& io, Ref<Io, Limit> limit) {
  io.number("id", limit.id);
  io.number("value", limit.value);
}

// The record of one section other than memory; `blocks` stands beside the bundle.
template <class Io>
void section(Io& io, BundleSection kind, Ref<Io, Bundle> bundle,
             Ref<Io, std::vector<BundleBlock>> blocks) {
  const auto each = [](Io& i, auto& record) { fields<Io>(i, record); };
  switch (kind) {
    case BundleSection::memory:
      break;
    case BundleSection::blocks:
      io.list("block", blocks, each);
      break;
    case BundleSection::provenance:
      fields<Io>(io, bundle.provenance);
      break;
    case BundleSection::modules:
      io.list("module", bundle.modules, each, kMaxModules);
      break;
    case BundleSection::regions:
      io.list("region", bundle.regions, each);
      break;
    case BundleSection::shapes:
      io.list("shape", bundle.shapes, each, kMaxShapes);
      break;
    case BundleSection::tensors:
      io.list("tensor", bundle.tensors, each, kMaxTensors);
      break;
    case BundleSection::limits:
      io.list("limit", bundle.limits, each);
      break;
  }
}

}  // namespace kjudge
