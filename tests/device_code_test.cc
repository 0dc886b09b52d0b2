// SPDX-License-Identifier: Apache-2.0
#include "record/device_code.h"

#include <doctest/doctest.h>

#include <string>

#include "file.h"
#include "make_elf.h"

using namespace kjudge;

namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// "RULE SYMBOL", or "".
std::string forbidden_in(const std::string& image) {
  const auto call = forbidden_call(Elf(bytes_of(image)));
  return call ? cat(row(call->rule).name, " ", call->symbol) : "";
}

std::string forbidden_in_case(const char* name) {
  return forbidden_in(read_file(cat(KJUDGE_CUBINS "/", name, ".cubin"), std::size_t{1} << 24));
}

}  // namespace

TEST_CASE("device code: what nvcc leaves to the driver is told from what it calls") {
  CHECK(forbidden_in_case("plain") == "");  // calls vprintf and __assertfail
  CHECK(forbidden_in_case("heap") == "device_heap malloc");
  CHECK(forbidden_in_case("new") == "device_heap malloc");
  CHECK(forbidden_in_case("aligned") == "device_heap __cuda_syscall_aligned_malloc");
  CHECK(forbidden_in_case("launch") == "device_launch __cuda_syscall_cnpv2LaunchDeviceV2");
  CHECK(forbidden_in_case("graph") == "device_launch cudaGraphLaunch");
}

TEST_CASE("device code: managed variables are told from others") {
  const auto managed_in = [](const char* name) {
    const std::string image =
        read_file(cat(KJUDGE_CUBINS "/", name, ".cubin"), std::size_t{1} << 24);
    const auto found = managed_variable(Elf(bytes_of(image)));
    return found ? std::string(*found) : "";
  };
  CHECK(managed_in("managed") == "shared_value");
  CHECK(managed_in("plain") == "");
  CHECK(managed_in("heap") == "");
}

TEST_CASE("device code: only what a cubin leaves undefined counts") {
  CHECK(forbidden_in(make_elf(kElfCuda, {{".text.malloc"}}, {{"malloc", 1}})) == "");
  CHECK(forbidden_in(make_elf(kElfCuda, {{".text.k"}}, {{"free", 0}})) == "device_heap free");
  CHECK(forbidden_in(make_elf(kElfX86_64, {{".text"}}, {{"malloc", 0}})) == "");
}

TEST_CASE("device code: NCCL's kernels are known by their names") {
  CHECK(is_nccl_kernel(
      "_Z39ncclDevKernel_AllReduce_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE"));
  CHECK(is_nccl_kernel("ncclDevKernel_Generic"));
  CHECK(is_nccl_kernel("_Z34ncclSymDevKernel_AllGather_LLMC_v15ncclSymKernArgs"));
  CHECK(is_nccl_kernel("_Z28ncclKernel_SendRecv_RING_LL_"));
  CHECK_FALSE(is_nccl_kernel("softmax"));
  CHECK_FALSE(is_nccl_kernel("_Z7softmaxPf"));
  CHECK_FALSE(is_nccl_kernel("my_ncclDevKernel"));
  CHECK_FALSE(is_nccl_kernel("_Z123"));
  CHECK_FALSE(is_nccl_kernel(""));
}
