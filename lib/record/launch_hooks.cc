// SPDX-License-Identifier: Apache-2.0

// Hooks of what gives a stream work to do, and of captures.

#include <type_traits>

#include "record/hooked.h"

namespace kjudge {
namespace {

std::string kernel_text(const Driver& driver, CUfunction function) {
  const char* kernel = nullptr;
  if (driver.cuFuncGetName(&kernel, function) != CUDA_SUCCESS) {
    CUfunction of_library = nullptr;  // launches also take a CUkernel
    if (driver.cuKernelGetFunction(&of_library, reinterpret_cast<CUkernel>(function)) ==
        CUDA_SUCCESS) {
      driver.cuFuncGetName(&kernel, of_library);
    }
  }
  return kernel != nullptr ? cat("kernel ", readable_name(kernel)) : "a kernel without a name";
}

// A call that gives `stream` work to do, which a replay does only if it is captured.
template <class Call>
CUresult work(Observed& observed, CUstream stream, const std::function<std::string()>& what,
              Call call) {
  const bool outside = observed.watch.outside(stream, what);
  const CUresult result = call();
  if (outside && result != CUDA_SUCCESS) observed.watch.not_done();
  return result;
}

template <class Entry, class Call>
CUresult launch(Entry HookedEntries::*entry, CUstream stream, CUfunction function, Call call) {
  return hooked(entry, [&](const Watched& watched, Observed& observed, auto real) {
    return work(
        observed, stream, [&] { return kernel_text(watched.driver, function); },
        [&] { return call(real); });
  });
}

template <class Entry>
CUresult launch_graph(Entry HookedEntries::*entry, CUgraphExec graph, CUstream stream,
                      bool per_thread) {
  return hooked(entry, [&](const Watched&, Observed& observed, auto real) {
    return work(
        observed, resolve(stream, per_thread), [] { return std::string("a graph"); },
        [&] { return real(graph, stream); });
  });
}

template <class Entry, class Call>
CUresult own_capture(Entry HookedEntries::*entry, Call call) {
  return hooked(entry, [&](const Watched&, Observed& observed, auto real) {
    observed.watch.own_capture();
    return call(real);
  });
}

}  // namespace
}  // namespace kjudge

using namespace kjudge;
using Real = HookedEntries;

KJ_HOOK cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                       unsigned by, unsigned bz, unsigned shared, CUstream stream, void** params,
                       void** extra) {
  return launch(&Real::cuLaunchKernel, stream, function, [&](auto real) {
    return real(function, gx, gy, gz, bx, by, bz, shared, stream, params, extra);
  });
}

KJ_HOOK cuLaunchKernel_ptsz(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                            unsigned by, unsigned bz, unsigned shared, CUstream stream,
                            void** params, void** extra) {
  return launch(&Real::cuLaunchKernel_ptsz, resolve(stream, true), function, [&](auto real) {
    return real(function, gx, gy, gz, bx, by, bz, shared, stream, params, extra);
  });
}

KJ_HOOK cuLaunchCooperativeKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz,
                                  unsigned bx, unsigned by, unsigned bz, unsigned shared,
                                  CUstream stream, void** params) {
  return launch(&Real::cuLaunchCooperativeKernel, stream, function, [&](auto real) {
    return real(function, gx, gy, gz, bx, by, bz, shared, stream, params);
  });
}

KJ_HOOK cuLaunchCooperativeKernel_ptsz(CUfunction function, unsigned gx, unsigned gy, unsigned gz,
                                       unsigned bx, unsigned by, unsigned bz, unsigned shared,
                                       CUstream stream, void** params) {
  return launch(
      &Real::cuLaunchCooperativeKernel_ptsz, resolve(stream, true), function,
      [&](auto real) { return real(function, gx, gy, gz, bx, by, bz, shared, stream, params); });
}

namespace {

template <class Entry>
CUresult launch_with_config(Entry HookedEntries::*entry, const CUlaunchConfig* config,
                            CUfunction function, void** params, void** extra, bool per_thread) {
  return hooked(entry, [&](const Watched& watched, Observed& observed, auto real) {
    if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const CUstream stream = resolve(config->hStream, per_thread);
    const CUresult result = work(
        observed, stream, [&] { return kernel_text(watched.driver, function); },
        [&] { return real(config, function, params, extra); });
    if (result == CUDA_SUCCESS) observed.watch.launched(stream, {config->attrs, config->numAttrs});
    return result;
  });
}

}  // namespace

KJ_HOOK cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** params,
                         void** extra) {
  return launch_with_config(&Real::cuLaunchKernelEx, config, function, params, extra, false);
}

KJ_HOOK cuLaunchKernelEx_ptsz(const CUlaunchConfig* config, CUfunction function, void** params,
                              void** extra) {
  return launch_with_config(&Real::cuLaunchKernelEx_ptsz, config, function, params, extra, true);
}

KJ_HOOK cuGraphLaunch(CUgraphExec graph, CUstream stream) {
  return launch_graph(&Real::cuGraphLaunch, graph, stream, false);
}

KJ_HOOK cuGraphLaunch_ptsz(CUgraphExec graph, CUstream stream) {
  return launch_graph(&Real::cuGraphLaunch_ptsz, graph, stream, true);
}

KJ_HOOK cuStreamBeginCapture(CUstream stream) {
  return own_capture(&Real::cuStreamBeginCapture, [&](auto real) { return real(stream); });
}

KJ_HOOK cuStreamBeginCapture_ptsz(CUstream stream) {
  return own_capture(&Real::cuStreamBeginCapture_ptsz, [&](auto real) { return real(stream); });
}

KJ_HOOK cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
  return own_capture(&Real::cuStreamBeginCapture_v2, [&](auto real) { return real(stream, mode); });
}

KJ_HOOK cuStreamBeginCapture_v2_ptsz(CUstream stream, CUstreamCaptureMode mode) {
  return own_capture(&Real::cuStreamBeginCapture_v2_ptsz,
                     [&](auto real) { return real(stream, mode); });
}

KJ_HOOK cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const CUgraphNode* nodes,
                                    const CUgraphEdgeData* edges, size_t count,
                                    CUstreamCaptureMode mode) {
  return own_capture(&Real::cuStreamBeginCaptureToGraph,
                     [&](auto real) { return real(stream, graph, nodes, edges, count, mode); });
}

KJ_HOOK cuStreamBeginCaptureToGraph_ptsz(CUstream stream, CUgraph graph, const CUgraphNode* nodes,
                                         const CUgraphEdgeData* edges, size_t count,
                                         CUstreamCaptureMode mode) {
  return own_capture(&Real::cuStreamBeginCaptureToGraph_ptsz,
                     [&](auto real) { return real(stream, graph, nodes, edges, count, mode); });
}

KJ_HOOK cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  return own_capture(&Real::cuStreamEndCapture, [&](auto real) { return real(stream, graph); });
}

KJ_HOOK cuStreamEndCapture_ptsz(CUstream stream, CUgraph* graph) {
  return own_capture(&Real::cuStreamEndCapture_ptsz,
                     [&](auto real) { return real(stream, graph); });
}

// Copies, fills and the like. Their hooks differ in nothing but the arguments that they pass on, so
// one template is all of them; what is exported under each one's name is a jump there.

namespace {

template <class Signature>
struct WorkHook;

template <class... Arguments>
struct WorkHook<CUresult(Arguments...)> {
  template <auto Entry, class Name, bool per_thread>
  static CUresult CUDAAPI call(Arguments... arguments) {
    return hooked(Entry, [&](const Watched&, Observed& observed, auto real) {
      return work(
          observed, resolve(stream_of(arguments...), per_thread),
          [] { return std::string(Name::text); }, [&] { return real(arguments...); });
    });
  }

  // The one argument that is a stream; calls without one use the default stream.
  static CUstream stream_of(const Arguments&... arguments) {
    CUstream stream = nullptr;
    const auto take = [&](const auto& argument) {
      if constexpr (std::is_same_v<decltype(argument), const CUstream&>) stream = argument;
    };
    (take(arguments), ...);
    return stream;
  }
};

}  // namespace

#define KJ_WORK_HOOK(entry, base, version, per_thread)                                        \
  struct entry##_name {                                                                       \
    static constexpr const char* text = base;                                                 \
  };                                                                                          \
  extern "C" {                                                                                \
  __attribute__((used, visibility("hidden"))) decltype(&::entry) kjudge_hook_##entry =        \
      &WorkHook<decltype(::entry)>::call<&Real::entry, entry##_name, per_thread>;             \
  }                                                                                           \
  asm("       .text\n        .globl " #entry "\n        .type " #entry ", @function\n" #entry \
      ":\n        endbr64\n        jmp *kjudge_hook_" #entry "(%rip)\n        .size " #entry  \
      ", .-" #entry "\n");
KJ_WORK_HOOKS(KJ_WORK_HOOK)
