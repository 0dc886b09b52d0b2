// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "driver/host/api.h"

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <variant>
#include <vector>

namespace kjudge {

// What a stream executes and a graph node holds: the same types, so that a call that is captured
// and one that is not differ in where their work goes and in nothing else.

// A parameter buffer, aligned for any parameter.
class Arguments {
 public:
  Arguments() = default;
  explicit Arguments(std::size_t size)
      : lines_((size + sizeof(Line) - 1) / sizeof(Line)), size_(size) {}
  std::byte* data() { return reinterpret_cast<std::byte*>(lines_.data()); }
  const std::byte* data() const { return reinterpret_cast<const std::byte*>(lines_.data()); }
  std::size_t size() const { return size_; }

 private:
  struct alignas(128) Line {
    std::byte bytes[128];
  };
  std::vector<Line> lines_;
  std::size_t size_ = 0;
};

struct KernelWork {
  std::shared_ptr<CUfunc_st> function;
  CUkernel kernel = nullptr;  // when it was named by one
  unsigned grid[3] = {1, 1, 1}, block[3] = {1, 1, 1};
  unsigned shared_bytes = 0;
  Arguments arguments;
  bool as_buffer = false;  // given through `extra`, not kernelParams
  std::map<CUlaunchAttributeID, CUlaunchAttributeValue> attributes;  // those that were set
};

struct MemsetWork {
  CUDA_MEMSET_NODE_PARAMS params{};
};

struct CopyWork {
  CUDA_MEMCPY3D params{};
  std::shared_ptr<std::byte[]> staged;  // the source, when it was taken at the call
};

struct HostWork {
  CUhostFn function = nullptr;
  void* argument = nullptr;
};

struct CallbackWork {  // of cuStreamAddCallback, which also learns of errors
  CUstream stream = nullptr;
  CUstreamCallback function = nullptr;
  void* argument = nullptr;
};

struct EmptyWork {};

struct ChildGraphWork {
  std::shared_ptr<CUgraph_st> graph;
};

struct EventRecord;
struct EventRecordWork {
  std::shared_ptr<CUevent_st> event;
  std::shared_ptr<EventRecord> record;  // null in a graph: each run records anew
};

struct EventWaitWork {
  std::shared_ptr<CUevent_st> event;
};

struct AllocWork {
  CUDA_MEM_ALLOC_NODE_PARAMS params{};
  std::shared_ptr<void> reservation;  // keeps the address
};

struct FreeWork {
  CUdeviceptr address = 0;
  bool if_there = false;  // false: freeing nothing is an error
};

struct ConditionalWork {
  CUDA_CONDITIONAL_NODE_PARAMS params{};
  std::vector<std::shared_ptr<CUgraph_st>> bodies;
  std::shared_ptr<CUgraph[]> handles;  // what params.phGraph_out points to
};

struct GraphWork {
  std::shared_ptr<CUgraphExec_st> exec;
};

using Work = std::variant<EmptyWork, KernelWork, MemsetWork, CopyWork, HostWork, CallbackWork,
                          ChildGraphWork, EventRecordWork, EventWaitWork, AllocWork, FreeWork,
                          ConditionalWork, GraphWork>;

// Does it, on the calling thread, which must be a KernelThread, and the pool. In a broken context
// only a CallbackWork, which is told so, still runs.
CUresult execute(const Work& work, CUctx_st& context);

}  // namespace kjudge
