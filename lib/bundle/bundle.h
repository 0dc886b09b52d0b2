// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tensor.h"

namespace kjudge {

// A bundle is the recording of a capture: what a worker needs to rebuild the graphs of every shape
// at the same addresses, and nothing else. All addresses are device addresses inside the arena.
// The file format is described in bundle/format.h and in kjudge-bundle(5).

using Bytes = std::vector<std::byte>;

enum class Role : std::uint8_t {
  state = 0,   // memory the graphs use: weights, workspaces; its contents are in the bundle
  input = 1,   // read-only for the graphs; contents are not in the bundle
  output = 2,  // written by the graphs; contents are not in the bundle
  inout = 3,   // an input that the graphs may also write
};
std::string_view name(Role role);

// A kernel's or variable's symbol as messages show it: demangled, or the names it begins with where
// all of it could be very long; cut at 160 bytes.
std::string readable_name(const std::string& symbol);

// One arena allocation. Address and size are multiples of the granularity (2 MiB).
struct Region {
  std::uint64_t address = 0;
  std::uint64_t size = 0;
  Role role = Role::state;
  std::uint32_t device = 0;
};

// An argument tensor of one shape. Lies inside exactly one region of the same role.
struct Tensor {
  std::uint32_t shape = 0;  // index into Bundle::shapes
  Role role = Role::input;
  TensorSpec spec;  // strides always filled in
  std::uint64_t address = 0;
};

// A module variable and its bytes at load, restored before every replay. `__device__` and
// `__constant__` variables of a cubin; KJ_VARIABLE of a host module.
struct ModuleVariable {
  std::string name;
  std::uint64_t size = 0;
};

struct Module {
  Bytes image;  // a cubin, or an ELF shared object for the host driver
  std::vector<ModuleVariable> variables;
};

// Attribute of a launch or a function, as the driver API has it: id and the raw value. Only what
// was set is here (a set default is not the same as unset: it can cost 3x).
struct Attribute {
  std::uint32_t id = 0;
  std::array<std::byte, 64> value{};  // CUlaunchAttributeValue; an int for function attributes
};

struct Dim3 {
  std::uint32_t x = 1, y = 1, z = 1;
};

struct KernelNode {
  std::uint32_t module = 0;  // index into Bundle::modules
  std::string name;          // mangled
  Dim3 grid, block;
  std::uint32_t shared_bytes = 0;               // dynamic
  std::vector<std::uint32_t> argument_offsets;  // into `arguments`, as cuFuncGetParamInfo has them
  std::vector<std::uint32_t> argument_sizes;
  Bytes arguments;                             // the parameter buffer
  std::vector<Attribute> launch_attributes;    // CUlaunchAttributeID
  std::vector<Attribute> function_attributes;  // CUfunction_attribute, set before the launch
  std::vector<Attribute> observed_attributes;  // read-only ones: registers, shared, local, ...
  std::int32_t cache_config = -1;              // CUfunc_cache; -1 when never set
};

struct MemsetNode {
  std::uint64_t address = 0;
  std::uint64_t pitch = 0;
  std::uint32_t value = 0;
  std::uint32_t element_size = 1;  // 1, 2 or 4
  std::uint64_t width = 0;         // elements
  std::uint64_t height = 1;        // rows
};

// Device to device. Row r of slice z starts at address + (z * height + r) * pitch.
struct MemcpyNode {
  std::uint64_t destination = 0, source = 0;
  std::uint64_t destination_pitch = 0, source_pitch = 0;
  std::uint64_t destination_height = 0, source_height = 0;
  std::uint64_t width_bytes = 0, height = 1, depth = 1;
};

struct EmptyNode {};  // a join

using Node = std::variant<KernelNode, MemsetNode, MemcpyNode, EmptyNode>;

// CUgraphEdgeData without its reserved bytes.
struct Edge {
  std::uint32_t from = 0, to = 0;
  std::uint8_t from_port = 0, to_port = 0, type = 0;
};

struct Graph {
  std::vector<Node> nodes;
  std::vector<Edge> edges;
};

// What a fault of the graph's may be of: "kernel rows (node 1)", or
// "one of 3 kernels (rows: nodes 0, 2; columns: node 1)".
std::string suspects(const Graph& graph);

// One captured shape or test. Graph and tensors belong to it.
struct CapturedShape {
  std::string name;
  Graph graph;
  // XXH3-64 of each output tensor's bytes, in the order of the tensors, as the capturing process's
  // own replay on the made-up inputs left them.
  std::vector<std::uint64_t> output_hashes;
};

struct Limit {
  std::uint32_t id = 0;  // CUlimit
  std::uint64_t value = 0;
};

struct Provenance {
  std::string arch;    // "x86_64" for the host driver, "sm_90" for a GPU
  std::string driver;  // "host" or "cuda"
  std::uint32_t driver_version = 0;
  std::string driver_release;  // "580.159.04"; empty: not known
  std::string device;          // name of the GPU or processor
  std::string kjudge_version;
  std::uint64_t seed = 0;        // of the made-up inputs
  std::uint64_t peak_bytes = 0;  // arena high-water mark
  double import_s = 0, prepare_s = 0, capture_s = 0;
  std::vector<std::string> notes;  // what was left out, and why
};

struct Bundle {
  Provenance provenance;
  std::vector<Module> modules;
  std::vector<Region> regions;  // ascending, disjoint
  std::vector<CapturedShape> shapes;
  std::vector<Tensor> tensors;
  std::vector<Limit> limits;  // context limits that were set
};

// Bounds that a reader holds a bundle to before it allocates or loads anything.
struct BundleLimits {
  std::uint64_t memory_bytes = std::uint64_t{1} << 40;  // of all regions together
  // Of all sections but memory, decompressed; and as much again for the records made of them.
  std::uint64_t meta_bytes = std::uint64_t{1} << 30;
  std::uint32_t nodes = 1'000'000;  // of all graphs together
};

// Granularity of regions: what GPUs since Volta map.
inline constexpr std::uint64_t kRegionGranule = 2u << 20;
// Regions lie in [kArenaBase, kArenaBase + kArenaSize * kMaxDevices).
// The upper half of an address in it is no number that sizes and strides like to be: packed in
// pairs into a kernel's argument, they would look like pointers.
inline constexpr std::uint64_t kArenaBase = 0x2d1b'0000'0000;
// torch reserves 9/8 of a GPU's memory for each stream and kind of pool (158 GiB on an H200).
inline constexpr std::uint64_t kArenaSize = std::uint64_t{2} << 40;
inline constexpr std::uint32_t kMaxDevices = 16;

// Writes a bundle in one pass. Memory goes first and is streamed; all else fits in memory.
// The file appears under its name only when finish() returns.
class BundleWriter {
 public:
  // Fills `out` with the contents of a region from `offset`.
  using ReadMemory = std::function<void(std::uint64_t offset, std::span<std::byte> out)>;

  explicit BundleWriter(const std::filesystem::path& path);
  ~BundleWriter();
  BundleWriter(const BundleWriter&) = delete;
  BundleWriter& operator=(const BundleWriter&) = delete;

  // Contents of a region of Role::state, in the order of Bundle::regions. Zero pages are left out.
  void add_memory(const Region& region, const ReadMemory& read);
  std::uint64_t size_bytes() const;  // of the file so far
  // Writes everything else. Throws Fault::bug if `bundle` would not be accepted by a reader.
  void finish(const Bundle& bundle);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// What `bundle` counts against BundleLimits::meta_bytes, but for its index of blocks, which its
// memory decides.
std::uint64_t meta_bytes(const Bundle& bundle);

// What a bundle holds of one region's contents.
struct StoredMemory {
  std::uint64_t blocks = 0;      // runs of pages that are not all zero
  std::uint64_t bytes = 0;       // in the region
  std::uint64_t file_bytes = 0;  // in the file
};

// Reads a bundle as hostile bytes. The constructor checks all of it but the memory contents:
// hashes, counts, spans inside one region, acyclic edges, known kinds. Fault::malformed otherwise,
// with the section and field. Memory contents are checked as they are read.
class BundleReader {
 public:
  // Called in ascending offsets with runs of the region's 64 KiB pages; what is not passed is zero.
  using WriteMemory = std::function<void(std::uint64_t offset, std::span<const std::byte> bytes)>;

  explicit BundleReader(const std::filesystem::path& path, const BundleLimits& limits = {});
  // Keeps a duplicate of `fd`; `name` is what messages call the file.
  explicit BundleReader(int fd, std::string name, const BundleLimits& limits = {});
  ~BundleReader();
  BundleReader(BundleReader&&) noexcept;

  const Bundle& bundle() const;
  void read_memory(std::size_t region, const WriteMemory& write) const;
  StoredMemory stored_memory(std::size_t region) const;
  std::uint32_t version() const;  // of the format
  std::uint64_t file_bytes() const;
  // The open file, for a process that reads the same bundle. Stays the reader's.
  int fd() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// Throws Fault::malformed unless `bundle` keeps every rule above. What reader and writer share.
void validate(const Bundle& bundle, const BundleLimits& limits);

// Text of everything in the bundle for people; of memory and images their sizes and hashes.
std::string dump(const BundleReader& reader);

}  // namespace kjudge
