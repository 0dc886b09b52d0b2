// SPDX-License-Identifier: Apache-2.0
#include "driver/host/work.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "driver/host/entry.h"
#include "driver/host/graph.h"
#include "driver/host/guard.h"
#include "driver/host/memory.h"
#include "driver/host/module.h"
#include "driver/host/pool.h"
#include "driver/host/stream.h"

namespace kjudge {
namespace {

// Copies and fills are cut into pieces for the cores; smaller ones are done at once.
constexpr std::uint64_t kPieceBytes = 1u << 20;

struct Launch {
  const KernelWork& work;
  const void* arguments;
};

void run_block(const void* context, std::uint64_t index) {
  const Launch& launch = *static_cast<const Launch*>(context);
  const KernelWork& work = launch.work;
  kj_block block;
  block.grid = {work.grid[0], work.grid[1], work.grid[2]};
  block.block = {work.block[0], work.block[1], work.block[2]};
  block.index.x = static_cast<std::uint32_t>(index % work.grid[0]);
  block.index.y = static_cast<std::uint32_t>(index / work.grid[0] % work.grid[1]);
  block.index.z = static_cast<std::uint32_t>(index / work.grid[0] / work.grid[1]);
  block.shared = nullptr;
  block.shared_bytes = work.shared_bytes;
  if (work.shared_bytes > 0) {
    block.shared = KernelThread::current()->scratch(work.shared_bytes);
  }
  work.function->run(&block, launch.arguments);
}

CUresult run(const KernelWork& work, CUctx_st& context) {
  const Launch launch{work, work.arguments.data()};
  const std::uint64_t blocks = std::uint64_t{work.grid[0]} * work.grid[1] * work.grid[2];
  return run_job({run_block, &launch, blocks, work.function->image->code(), work.shared_bytes},
                 context.error);
}

void fill_row(void* row, std::uint64_t width, unsigned element_size, unsigned value) {
  switch (element_size) {
    case 1:
      std::memset(row, static_cast<int>(value), width);
      return;
    case 2:
      std::fill_n(static_cast<std::uint16_t*>(row), width, static_cast<std::uint16_t>(value));
      return;
    default:
      std::fill_n(static_cast<std::uint32_t*>(row), width, value);
      return;
  }
}

// One row cut into pieces, or row after row.
CUresult run(const MemsetWork& work, CUctx_st& context) {
  const CUDA_MEMSET_NODE_PARAMS& p = work.params;
  if (p.width == 0 || p.height == 0) return CUDA_SUCCESS;
  if (p.height == 1) {
    const auto piece = [](const void* at, std::uint64_t index) {
      const auto& q = *static_cast<const CUDA_MEMSET_NODE_PARAMS*>(at);
      const std::uint64_t begin = index * kPieceBytes / q.elementSize;
      fill_row(reinterpret_cast<void*>(q.dst + index * kPieceBytes),
               std::min<std::uint64_t>(q.width - begin, kPieceBytes / q.elementSize), q.elementSize,
               q.value);
    };
    const std::uint64_t bytes = p.width * p.elementSize;
    return run_job({piece, &p, (bytes + kPieceBytes - 1) / kPieceBytes, {}, 0}, context.error);
  }
  const auto row = [](const void* at, std::uint64_t index) {
    const auto& q = *static_cast<const CUDA_MEMSET_NODE_PARAMS*>(at);
    fill_row(reinterpret_cast<void*>(q.dst + index * q.pitch), q.width, q.elementSize, q.value);
  };
  return run_job({row, &p, p.height, {}, 0}, context.error);
}

struct CopyPlan {
  std::byte* to;
  const std::byte* from;
  std::uint64_t to_pitch, from_pitch, to_slice, from_slice;
  std::uint64_t width, height;
};

CUresult run(const CopyWork& work, CUctx_st& context) {
  const CUDA_MEMCPY3D& p = work.params;
  if (p.WidthInBytes == 0 || p.Height == 0 || p.Depth == 0) return CUDA_SUCCESS;
  CopyPlan plan{};
  plan.to = p.dstMemoryType == CU_MEMORYTYPE_HOST ? static_cast<std::byte*>(p.dstHost)
                                                  : reinterpret_cast<std::byte*>(p.dstDevice);
  plan.from = p.srcMemoryType == CU_MEMORYTYPE_HOST ? static_cast<const std::byte*>(p.srcHost)
                                                    : reinterpret_cast<std::byte*>(p.srcDevice);
  plan.to_pitch = p.dstPitch;
  plan.from_pitch = p.srcPitch;
  plan.to_slice = p.dstPitch * p.dstHeight;
  plan.from_slice = p.srcPitch * p.srcHeight;
  plan.to += p.dstXInBytes + p.dstY * plan.to_pitch + p.dstZ * plan.to_slice;
  plan.from += p.srcXInBytes + p.srcY * plan.from_pitch + p.srcZ * plan.from_slice;
  plan.width = p.WidthInBytes;
  plan.height = p.Height;
  if (p.Height == 1 && p.Depth == 1) {
    const auto piece = [](const void* at, std::uint64_t index) {
      const auto& q = *static_cast<const CopyPlan*>(at);
      const std::uint64_t begin = index * kPieceBytes;
      std::memmove(q.to + begin, q.from + begin, std::min(kPieceBytes, q.width - begin));
    };
    return run_job({piece, &plan, (plan.width + kPieceBytes - 1) / kPieceBytes, {}, 0},
                   context.error);
  }
  const auto row = [](const void* at, std::uint64_t index) {
    const auto& q = *static_cast<const CopyPlan*>(at);
    const std::uint64_t y = index % q.height, z = index / q.height;
    std::memmove(q.to + y * q.to_pitch + z * q.to_slice,
                 q.from + y * q.from_pitch + z * q.from_slice, q.width);
  };
  return run_job({row, &plan, p.Height * p.Depth, {}, 0}, context.error);
}

CUresult run(const EmptyWork&, CUctx_st&) { return CUDA_SUCCESS; }

CUresult run(const HostWork& work, CUctx_st&) {
  work.function(work.argument);
  return CUDA_SUCCESS;
}

CUresult run(const CallbackWork& work, CUctx_st& context) {
  work.function(work.stream, context.error.load(), work.argument);
  return CUDA_SUCCESS;
}

CUresult run(const EventRecordWork& work, CUctx_st&) {
  std::shared_ptr<EventRecord> record = work.record;
  if (record == nullptr) record = std::make_shared<EventRecord>();
  record->time_ns.store(now_ns());
  if (work.record == nullptr) {
    const std::lock_guard lock(queue_mutex());
    work.event->record = record;
    work.event->captured = false;
  }
  return CUDA_SUCCESS;
}

CUresult run(const EventWaitWork& work, CUctx_st&) {
  std::shared_ptr<EventRecord> record;
  {
    const std::lock_guard lock(queue_mutex());
    record = work.event->record;
  }
  if (record != nullptr) record->ticket.wait();
  return CUDA_SUCCESS;
}

CUresult run(const AllocWork& work, CUctx_st& context) {
  Memory::get().allocate_at(&context, work.params.dptr, work.params.bytesize);
  return CUDA_SUCCESS;
}

CUresult run(const FreeWork& work, CUctx_st&) {
  if (work.if_there && !Memory::get().find(work.address).has_value()) return CUDA_SUCCESS;
  Memory::get().free(work.address, {RangeKind::device});
  return CUDA_SUCCESS;
}

// Unfolded, or refused, when the graph was instantiated.
CUresult run(const ChildGraphWork&, CUctx_st&) { return CUDA_ERROR_NOT_SUPPORTED; }
CUresult run(const ConditionalWork&, CUctx_st&) { return CUDA_ERROR_NOT_SUPPORTED; }

CUresult run(const GraphWork& work, CUctx_st& context) {
  for (const CUgraphExec_st::Step& step : work.exec->steps) {
    if (!step.enabled) continue;
    if (const CUresult result = execute(step.work, context); result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

}  // namespace

CUresult execute(const Work& work, CUctx_st& context) {
  if (const CUresult broken = context.error.load();
      broken != CUDA_SUCCESS && !std::holds_alternative<CallbackWork>(work)) {
    return broken;
  }
  return answer(
      [&] { return std::visit([&](const auto& one) { return run(one, context); }, work); });
}

}  // namespace kjudge
