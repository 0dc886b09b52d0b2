// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the tests of the host driver share: its functions by exported name, a context of one's own
// (some tests break it), a module of tests/host_kernels, an array in device memory.

#include <cuda.h>
#include <dlfcn.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "driver/driver.h"
#include "file.h"

#define KJ_TEXT_(name) #name
#define KJ_TEXT(name) KJ_TEXT_(name)
// CU(cuMemAlloc)(&address, bytes): cuda.h's macro makes it cuMemAlloc_v2, type and name alike.
#define CU(name) (*reinterpret_cast<decltype(&name)>(kjudge::host_symbol(KJ_TEXT(name))))

namespace kjudge {

inline void* host_symbol(const char* name) {
  static void* const library =
      dlopen(Driver::open(DriverKind::host).library.c_str(), RTLD_NOW | RTLD_NOLOAD);
  REQUIRE(library != nullptr);
  void* found = dlsym(library, name);
  REQUIRE_MESSAGE(found != nullptr, name);
  return found;
}

class HostContext {
 public:
  HostContext() { REQUIRE(CU(cuCtxCreate)(&context_, nullptr, 0, 0) == CUDA_SUCCESS); }
  ~HostContext() { CU(cuCtxDestroy)(context_); }
  HostContext(const HostContext&) = delete;
  HostContext& operator=(const HostContext&) = delete;

  CUcontext handle() const { return context_; }

 private:
  CUcontext context_ = nullptr;
};

// Runs a test case that is skipped otherwise in a process of its own, with `environment` set and
// `fd` as descriptor 3; its exit status, 128 + the signal that ended it. For what the driver reads
// once, and for what only another process can show.
inline int run_this_test_in_a_child(const std::string& test_case,
                                    const std::map<std::string, std::string>& environment,
                                    int fd = -1, bool quiet = false) {
  const std::string filter = "--test-case=" + test_case;
  const pid_t pid = ::fork();
  REQUIRE(pid >= 0);
  if (pid == 0) {
    for (const auto& [key, value] : environment) ::setenv(key.c_str(), value.c_str(), 1);
    if (fd >= 0) ::dup2(fd, 3);
    if (quiet) {
      ::dup2(::open("/dev/null", O_WRONLY), STDOUT_FILENO);
      ::dup2(STDOUT_FILENO, STDERR_FILENO);
    }
    ::execl("/proc/self/exe", "tests", filter.c_str(), "--no-skip", "--minimal=true",
            static_cast<char*>(nullptr));
    ::_exit(127);
  }
  int status = 0;
  REQUIRE(::waitpid(pid, &status, 0) == pid);
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

inline std::string module_bytes(const std::string& name) {
  return read_file(std::string(KJUDGE_HOST_KERNELS) + "/" + name + ".so");
}

class HostModule {
 public:
  explicit HostModule(const std::string& name) {
    const std::string image = module_bytes(name);
    REQUIRE(CU(cuModuleLoadData)(&module_, image.data()) == CUDA_SUCCESS);
  }
  ~HostModule() { CU(cuModuleUnload)(module_); }
  HostModule(const HostModule&) = delete;
  HostModule& operator=(const HostModule&) = delete;

  CUmodule handle() const { return module_; }
  CUfunction function(const char* name) const {
    CUfunction found = nullptr;
    REQUIRE(CU(cuModuleGetFunction)(&found, module_, name) == CUDA_SUCCESS);
    return found;
  }

  struct Dim {
    unsigned x = 1, y = 1, z = 1;
  };
  struct Where {
    CUstream stream = nullptr;
    unsigned shared_bytes = 0;
  };
  template <class... Arguments>
  CUresult try_launch(const char* name, Dim grid, Dim block, Where where,
                      Arguments... arguments) const {
    void* parameters[] = {&arguments..., nullptr};
    return CU(cuLaunchKernel)(function(name), grid.x, grid.y, grid.z, block.x, block.y, block.z,
                              where.shared_bytes, where.stream, parameters, nullptr);
  }
  template <class... Arguments>
  void launch(const char* name, Dim grid, Dim block, Arguments... arguments) const {
    REQUIRE(try_launch(name, grid, block, Where{}, arguments...) == CUDA_SUCCESS);
  }
  template <class... Arguments>
  void launch_in(CUstream stream, const char* name, Dim grid, Arguments... arguments) const {
    REQUIRE(try_launch(name, grid, Dim{}, Where{stream, 0}, arguments...) == CUDA_SUCCESS);
  }

 private:
  CUmodule module_ = nullptr;
};

template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(std::size_t count) : count_(count) {
    REQUIRE(CU(cuMemAlloc)(&pointer_, count * sizeof(T)) == CUDA_SUCCESS);
  }
  ~DeviceArray() { CU(cuMemFree)(pointer_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  CUdeviceptr pointer() const { return pointer_; }
  CUdeviceptr at(std::size_t index) const { return pointer_ + index * sizeof(T); }
  std::vector<T> read() const {
    std::vector<T> values(count_);
    REQUIRE(CU(cuMemcpyDtoH)(values.data(), pointer_, count_ * sizeof(T)) == CUDA_SUCCESS);
    return values;
  }
  void write(const std::vector<T>& values) const {
    REQUIRE(CU(cuMemcpyHtoD)(pointer_, values.data(), values.size() * sizeof(T)) == CUDA_SUCCESS);
  }
  void fill(unsigned char byte) const {
    REQUIRE(CU(cuMemsetD8)(pointer_, byte, count_ * sizeof(T)) == CUDA_SUCCESS);
  }

 private:
  CUdeviceptr pointer_ = 0;
  std::size_t count_;
};

class HostStream {
 public:
  explicit HostStream(unsigned flags = CU_STREAM_NON_BLOCKING, int priority = 0) {
    REQUIRE(CU(cuStreamCreateWithPriority)(&stream_, flags, priority) == CUDA_SUCCESS);
  }
  ~HostStream() { CU(cuStreamDestroy)(stream_); }
  HostStream(const HostStream&) = delete;
  HostStream& operator=(const HostStream&) = delete;
  operator CUstream() const { return stream_; }

 private:
  CUstream stream_ = nullptr;
};

class HostEvent {
 public:
  explicit HostEvent(unsigned flags = 0) {
    REQUIRE(CU(cuEventCreate)(&event_, flags) == CUDA_SUCCESS);
  }
  ~HostEvent() { CU(cuEventDestroy)(event_); }
  HostEvent(const HostEvent&) = delete;
  HostEvent& operator=(const HostEvent&) = delete;
  operator CUevent() const { return event_; }

 private:
  CUevent event_ = nullptr;
};

// Holds a stream until told to go on.
class HostGate {
 public:
  HostGate() {
    REQUIRE(CU(cuMemHostAlloc)(&flag_, 4, CU_MEMHOSTALLOC_DEVICEMAP) == CUDA_SUCCESS);
    *static_cast<volatile int*>(flag_) = 0;
  }
  ~HostGate() {
    open();
    CU(cuMemFreeHost)(flag_);
  }
  void block(const HostModule& module, CUstream stream) const {
    module.launch_in(stream, "spin", {}, flag_);
  }
  void open() const { *static_cast<volatile int*>(flag_) = 1; }

 private:
  void* flag_ = nullptr;
};

struct HostGraph {
  CUgraph graph = nullptr;
  ~HostGraph() {
    if (graph != nullptr) CU(cuGraphDestroy)(graph);
  }
};

inline std::vector<CUgraphNode> nodes_of(CUgraph graph) {
  std::size_t count = 0;
  REQUIRE(CU(cuGraphGetNodes)(graph, nullptr, &count) == CUDA_SUCCESS);
  std::vector<CUgraphNode> nodes(count);
  if (count > 0) REQUIRE(CU(cuGraphGetNodes)(graph, nodes.data(), &count) == CUDA_SUCCESS);
  return nodes;
}

struct HostEdges {
  std::vector<CUgraphNode> from, to;
  std::vector<CUgraphEdgeData> data;
};
inline HostEdges edges_of(CUgraph graph) {
  std::size_t count = 0;
  REQUIRE(CU(cuGraphGetEdges)(graph, nullptr, nullptr, nullptr, &count) == CUDA_SUCCESS);
  HostEdges edges{std::vector<CUgraphNode>(count), std::vector<CUgraphNode>(count),
                  std::vector<CUgraphEdgeData>(count)};
  if (count > 0) {
    REQUIRE(CU(cuGraphGetEdges)(graph, edges.from.data(), edges.to.data(), edges.data.data(),
                                &count) == CUDA_SUCCESS);
  }
  return edges;
}

inline void launch_and_wait(CUgraph graph, CUstream stream) {
  CUgraphExec exec = nullptr;
  REQUIRE(CU(cuGraphInstantiateWithFlags)(&exec, graph, 0) == CUDA_SUCCESS);
  CHECK(CU(cuGraphLaunch)(exec, stream) == CUDA_SUCCESS);
  CHECK(CU(cuStreamSynchronize)(stream) == CUDA_SUCCESS);
  CHECK(CU(cuGraphExecDestroy)(exec) == CUDA_SUCCESS);
}

}  // namespace kjudge
