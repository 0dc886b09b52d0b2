// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "bundle/bundle.h"
#include "driver/arena.h"
#include "replay/device_side.h"
#include "replay/handles.h"
#include "replay/protocol.h"

namespace kjudge {

// The supervisor's memory for one region of a bundle; must outlive the rebuild.
//   input          is the region, mapped read-only at its address
//   inout_source   is copied to the region, which is the rebuild's own, before every replay
//   pristine       the same, for a region of state
// Every region of state has its pristine copy; an input without memory is of a shape that nobody
// replays.
struct SharedMemory {
  std::size_t region = 0;
  Purpose purpose = Purpose::input;
  const DeviceMemory* memory = nullptr;
};

// Which tensors of a bundle belong to one of its shapes, and where a replay's outputs go in a
// transfer buffer. Both sides of the protocol derive it from the same bundle.
struct ShapeTensors {
  struct Written {
    std::size_t tensor = 0;    // index into Bundle::tensors
    std::uint64_t offset = 0;  // in the transfer buffer
    std::uint64_t size_bytes = 0;
  };
  std::vector<std::size_t> inputs;  // and inouts; indices into Bundle::tensors
  std::vector<Written> written;     // outputs and inouts, in the order of Bundle::tensors
  std::uint64_t transfer_bytes = 0;
};
std::vector<ShapeTensors> tensors_by_shape(const Bundle& bundle);

// Index of the region that holds `address`; the bundle's validation promises that there is one.
std::size_t region_of(const Bundle& bundle, std::uint64_t address);

// The range of the arena that the bundle's addresses are of. Fault::malformed where they are of
// several: a recording of several devices, which nothing here replays.
int arena_range(const Bundle& bundle);

// The seed of output `output`'s random bytes in a replay poisoned with `poison`.
std::uint64_t poison_key(std::uint64_t poison, std::size_t output);

// A bundle rebuilt in the current context: memory at the recorded addresses, modules, graphs.
// Everything that a kernel of it can write is put back before a replay (restore), random (poison)
// or read-only (another shape's outputs), so that a replay leaves nothing to the next.
class Rebuild {
 public:
  // Fault::malformed when the bundle asks for what the driver or this device does not give: the
  // machine code, parameters or attributes are not those that were recorded. DriverError as it
  // comes.
  Rebuild(DeviceSide& device, const Bundle& bundle, const std::vector<SharedMemory>& shared);

  // All on the device's stream, but for select(), which waits.
  // Its outputs can be written, no other's. They can be read: taking the pages away and back costs
  // the host driver 45 ms for 20 MB, making them read-only and back 10 ms; and what they hold does
  // not change while another shape is replayed.
  void select(std::size_t shape);
  void restore(std::size_t shape);
  void poison(std::size_t shape, std::uint64_t poison);
  // Reads inputs and state, as a hot cache would have seen them.
  void read_memory(std::size_t shape, std::uint64_t sink);
  CUgraphExec exec(std::size_t shape) const { return execs_[shape].get(); }
  void copy_written(std::size_t shape, std::uint64_t to);
  const ShapeTensors& tensors(std::size_t shape) const { return tensors_[shape]; }

 private:
  struct Variable {
    std::uint64_t address = 0;
    Bytes bytes;  // in memory that no kernel of a GPU reaches
  };
  // Unloads with the context's other modules.
  class LoadedModule {
   public:
    LoadedModule(const Driver& driver, const Module& module);
    LoadedModule(LoadedModule&& other) noexcept
        : driver_(other.driver_), module_(std::exchange(other.module_, nullptr)) {}
    LoadedModule& operator=(LoadedModule&&) = delete;
    ~LoadedModule();
    CUmodule get() const { return module_; }

   private:
    const Driver* driver_;
    CUmodule module_ = nullptr;
  };

  void map_memory(const std::vector<SharedMemory>& shared);
  bool has_inputs(std::size_t shape) const;
  void load_modules();
  CUfunction function(const KernelNode& node);
  GraphExec build(const Graph& graph);
  CUgraphNode add_kernel(CUgraph graph, const KernelNode& node);

  DeviceSide& device_;
  const Driver& driver_;
  const Bundle& bundle_;
  CUstream stream_;
  std::vector<ShapeTensors> tensors_;
  std::vector<DeviceMemory> own_;
  std::set<std::size_t> given_;      // regions with memory of the supervisor's
  std::vector<std::size_t> hidden_;  // regions that only the selected shape's kernels may write
  std::map<std::size_t, Mapping> sources_;  // by region: inout sources and pristine copies
  std::vector<LoadedModule> modules_;
  std::vector<Variable> variables_;
  std::map<std::pair<std::uint32_t, std::string>, CUfunction> functions_;
  std::map<CUfunction, int> dynamic_shared_;  // the most that any node needs
  std::vector<GraphExec> execs_;
  std::size_t selected_ = ~std::size_t{0};
};

}  // namespace kjudge
