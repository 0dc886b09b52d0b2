// SPDX-License-Identifier: Apache-2.0
// Launches: kernels and host functions.
#include <cstring>

#include "driver/host/context.h"
#include "driver/host/graph.h"
#include "driver/host/guard.h"
#include "driver/host/module.h"
#include "driver/host/stream.h"

using namespace kjudge;

namespace kjudge {
namespace {

Arguments take_arguments(const CUfunc_st& function, void** parameters, void** extra) {
  Arguments arguments(function.argument_bytes);
  if (parameters != nullptr) {
    for (std::size_t i = 0; i < function.parameters.size(); ++i) {
      require(parameters[i] != nullptr);
      std::memcpy(arguments.data() + function.parameters[i].offset, parameters[i],
                  function.parameters[i].size);
    }
    return arguments;
  }
  const void* buffer = nullptr;
  std::size_t size = 0;
  for (void** option = extra; option != nullptr && *option != CU_LAUNCH_PARAM_END; option += 2) {
    if (*option == CU_LAUNCH_PARAM_BUFFER_POINTER) {
      buffer = option[1];
    } else if (*option == CU_LAUNCH_PARAM_BUFFER_SIZE) {
      require(option[1] != nullptr);
      size = *static_cast<const std::size_t*>(option[1]);
    } else {
      fail(CUDA_ERROR_INVALID_VALUE);
    }
  }
  // A caller may round its buffer up; less than the parameters need is an error.
  require(size >= function.argument_bytes && (buffer != nullptr || size == 0));
  if (function.argument_bytes > 0) {
    std::memcpy(arguments.data(), buffer, function.argument_bytes);
  }
  return arguments;
}

}  // namespace

KernelWork checked_launch(CUctx_st& context, const LaunchDescription& launch) {
  KernelWork work;
  if (launch.function != nullptr) {
    work.function = function_of(context, launch.function);
  } else {
    require(launch.kernel != nullptr, CUDA_ERROR_INVALID_HANDLE);
    work.function = function_of(context, launch.kernel);
  }
  work.kernel = work.function->kernel;
  std::uint64_t threads = 1;
  for (int i = 0; i < 3; ++i) {
    require(launch.grid[i] > 0 && launch.block[i] > 0);
    threads *= launch.block[i];
    require(threads <= kMaxThreadsPerBlock);
    work.grid[i] = launch.grid[i];
    work.block[i] = launch.block[i];
  }
  require(launch.grid[0] <= 0x7fffffff && launch.grid[1] <= 65535 && launch.grid[2] <= 65535);
  require(launch.block[2] <= 64);
  require(launch.shared_bytes <=
          static_cast<unsigned>(
              attribute_of(*work.function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)));
  work.shared_bytes = launch.shared_bytes;
  require(launch.parameters == nullptr || launch.extra == nullptr);
  work.arguments = take_arguments(*work.function, launch.parameters, launch.extra);
  work.as_buffer = launch.parameters == nullptr && launch.extra != nullptr;
  for (const CUlaunchAttribute& attribute : launch.attributes) {
    switch (attribute.id) {
      case CU_LAUNCH_ATTRIBUTE_IGNORE:
        continue;
      case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
        // Blocks run one after another on a core: none can wait for all others.
        require(attribute.value.cooperative == 0, CUDA_ERROR_NOT_SUPPORTED);
        break;
      case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION: {
        const auto& cluster = attribute.value.clusterDim;
        require(cluster.x > 0 && cluster.y > 0 && cluster.z > 0 && work.grid[0] % cluster.x == 0 &&
                    work.grid[1] % cluster.y == 0 && work.grid[2] % cluster.z == 0,
                CUDA_ERROR_INVALID_CLUSTER_SIZE);
        break;
      }
      case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
      case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
        fail(CUDA_ERROR_NOT_SUPPORTED);
      default:
        require(is_launch_attribute(attribute.id));
    }
    work.attributes[attribute.id] = attribute.value;
  }
  return work;
}

}  // namespace kjudge

CUresult CUDAAPI cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y,
                                unsigned grid_z, unsigned block_x, unsigned block_y,
                                unsigned block_z, unsigned shared_bytes, CUstream handle,
                                void** parameters, void** extra) {
  return context_call(__func__, [&](CUctx_st& context) {
    LaunchDescription launch{function,
                             nullptr,
                             {grid_x, grid_y, grid_z},
                             {block_x, block_y, block_z},
                             shared_bytes,
                             parameters,
                             extra,
                             {}};
    const auto stream = stream_of(context, handle);
    KernelWork work = checked_launch(stream->context, launch);
    check_fault_handlers();
    submit(stream, std::move(work));
  });
}

CUresult CUDAAPI cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function,
                                  void** parameters, void** extra) {
  return context_call(__func__, [&](CUctx_st& context) {
    require(config != nullptr && (config->numAttrs == 0 || config->attrs != nullptr));
    LaunchDescription launch{function,
                             nullptr,
                             {config->gridDimX, config->gridDimY, config->gridDimZ},
                             {config->blockDimX, config->blockDimY, config->blockDimZ},
                             config->sharedMemBytes,
                             parameters,
                             extra,
                             {config->attrs, config->numAttrs}};
    const auto stream = stream_of(context, config->hStream);
    KernelWork work = checked_launch(stream->context, launch);
    check_fault_handlers();
    submit(stream, std::move(work));
  });
}

CUresult CUDAAPI cuLaunchCooperativeKernel(CUfunction function, unsigned, unsigned, unsigned,
                                           unsigned, unsigned, unsigned, unsigned, CUstream,
                                           void**) {
  return context_call(__func__, [&](CUctx_st& context) {
    function_of(context, function);
    fail(CUDA_ERROR_NOT_SUPPORTED);
  });
}

CUresult CUDAAPI cuLaunchHostFunc(CUstream handle, CUhostFn function, void* argument) {
  return context_call(__func__, [&](CUctx_st& context) {
    require(function != nullptr);
    submit(stream_of(context, handle), HostWork{function, argument});
  });
}
