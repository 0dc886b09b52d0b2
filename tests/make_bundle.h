// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <functional>
#include <string>

#include "bundle/format.h"
#include "file.h"
#include "make_elf.h"

// Bundles for tests.

namespace kjudge {

inline Bytes bytes_from(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  return {bytes.begin(), bytes.end()};
}

inline Attribute int_attribute(std::uint32_t id, std::initializer_list<std::int32_t> values) {
  Attribute attribute;
  attribute.id = id;
  std::size_t at = 0;
  for (const std::int32_t value : values) {
    std::memcpy(attribute.value.data() + at, &value, sizeof(value));
    at += sizeof(value);
  }
  return attribute;
}

// Some of everything a bundle can hold. Node 0 to 4 of shape 4096x4096: kernel, memset, memcpy,
// empty, kernel. Regions: state, input, output, inout, and state of device 1.
inline Bundle rich_bundle() {
  constexpr std::uint64_t kStep = kRegionGranule;
  const std::uint64_t state = kArenaBase, input = state + 2 * kStep, output = input + 2 * kStep,
                      inout = output + kStep, other = kArenaBase + kArenaSize;
  Bundle bundle;
  bundle.provenance = {"sm_90",       "cuda",  13000, "580.159.04",
                       "NVIDIA H200", "0.1.0", 42,    11 * kStep,
                       3.5,           1.25,    0.5,   {"left out: contents of inputs and outputs"}};
  bundle.modules = {{bytes_from(make_cubin()), {{"zero", 16}, {"init", 8}, {"bank", 3}}}};
  bundle.regions = {{state, 2 * kStep, Role::state, 0},
                    {input, 2 * kStep, Role::input, 0},
                    {output, kStep, Role::output, 0},
                    {inout, kStep, Role::inout, 0},
                    {other, kStep, Role::state, 1}};

  KernelNode kernel;
  kernel.module = 0;
  kernel.name = "_Z1kPi";
  kernel.grid = {132, 2, 1};
  kernel.block = {256, 1, 1};
  kernel.shared_bytes = 49152;
  kernel.argument_offsets = {0, 8, 16};
  kernel.argument_sizes = {8, 4, 16};
  for (int i = 0; i < 32; ++i) kernel.arguments.push_back(static_cast<std::byte>(i));
  kernel.launch_attributes = {int_attribute(4, {2, 1, 1}), int_attribute(8, {-5})};
  kernel.function_attributes = {int_attribute(8, {65536}), int_attribute(14, {1})};
  kernel.observed_attributes = {int_attribute(4, {64}), int_attribute(3, {0})};
  kernel.cache_config = 1;

  CapturedShape large{"4096x4096", {}, {0x0123456789abcdef, 7}};
  large.graph.nodes = {kernel, MemsetNode{state + 4096, 512, 0x1234, 2, 100, 8},
                       MemcpyNode{output, input, 256, 512, 8, 4, 200, 4, 3}, EmptyNode{}, kernel};
  large.graph.edges = {{0, 1}, {0, 2}, {1, 3}, {2, 3}, {3, 4}, {0, 4, 1, 0, 1}};
  CapturedShape small{"small rows ü", {}, {9}};
  small.graph.nodes = {MemsetNode{output, 0, 0, 4, 16, 1}};
  bundle.shapes = {large, small};

  bundle.tensors = {
      {0, Role::input, {"x", DType::float32, {128, 256}, {512, 1}}, input},
      {0, Role::input, {"scale", DType::float64, {}, {}}, input + kStep},
      {0, Role::output, {"out", DType::bfloat16, {128, 256}, {256, 1}}, output},
      {0, Role::inout, {"cache", DType::float4_e2m1, {33}, {1}}, inout},
      {1, Role::input, {"x", DType::int8, {0, 5}, {5, 1}}, input},
      {1, Role::output, {"out", DType::float32, {16}, {1}}, output},
  };
  bundle.limits = {{0, 4096}, {6, 0}};
  return bundle;
}

// Contents for a test: pages of 64 KiB that are zero, repeat, or do not compress, by their number.
inline void fill_contents(std::uint64_t offset, std::span<std::byte> out) {
  for (std::size_t i = 0; i < out.size(); i += 8) {
    const std::uint64_t at = offset + i, page = at / kBundlePage;
    std::uint64_t value = 0;
    if (page % 4 == 1) value = page;
    if (page % 4 == 2) {
      value = (at + 1) * 0x9e3779b97f4a7c15;
      value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9;
      value = (value ^ value >> 27) * 0x94d049bb133111eb;
      value ^= value >> 31;
    }
    std::memcpy(out.data() + i, &value, sizeof(value));
  }
}

// One page that repeats, in each region of state.
inline void fill_one_page(std::uint64_t offset, std::span<std::byte> out) {
  std::fill(out.begin(), out.end(), std::byte{0});
  if (offset == 0) std::fill_n(out.begin() + kBundlePage, 5000, std::byte{42});
}

// The records of every section, to compare bundles by.
inline Bytes all_records(const Bundle& bundle) {
  BundleEncoder encoder;
  for (std::uint32_t kind = 3; kind <= kBundleSections; ++kind) {
    section(encoder, static_cast<BundleSection>(kind), bundle, {});
  }
  return encoder.bytes();
}

// A file that no writer would write: sections stored as they are, right hashes over wrong contents.
struct RawBundle {
  Bundle bundle;
  std::vector<BundleBlock> blocks;
  std::string payload;
  std::function<void(BundleSection, std::string&)> change_section = [](auto, auto&) {};
  std::function<void(BundleHeader&)> change_header = [](auto&) {};

  std::string file() const {
    BundleHeader header;
    std::string bytes(sizeof(header), '\0');
    for (std::uint32_t i = 0; i < kBundleSections; ++i) {
      const auto kind = static_cast<BundleSection>(i + 1);
      BundleEncoder encoder;
      section(encoder, kind, bundle, blocks);
      std::string record(reinterpret_cast<const char*>(encoder.bytes().data()),
                         encoder.bytes().size());
      if (kind == BundleSection::memory) record = payload;
      change_section(kind, record);
      const std::uint64_t hash =
          kind == BundleSection::memory ? 0 : xxh3(std::as_bytes(std::span(record)));
      header.table[i] = {kind,          BundleCodec::stored, bytes.size(),
                         record.size(), record.size(),       hash};
      bytes += record;
    }
    header.file_size = bytes.size();
    change_header(header);
    const auto head = std::as_bytes(std::span(&header, 1));
    header.hash = xxh3(head.first(sizeof(header) - sizeof(header.hash)));
    std::memcpy(bytes.data(), &header, sizeof(header));
    return bytes;
  }
};

// A file in memory whose bytes a test changes.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view bytes) : fd_(::memfd_create("bundle", MFD_CLOEXEC)) {
    REQUIRE(fd_.valid());
    write(0, bytes);
  }
  void write(std::size_t offset, std::string_view bytes) {
    REQUIRE(::pwrite(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset)) ==
            static_cast<ssize_t>(bytes.size()));
  }
  void truncate(std::size_t size) {
    REQUIRE(::ftruncate(fd_.get(), static_cast<off_t>(size)) == 0);
  }
  int fd() const { return fd_.get(); }

 private:
  Fd fd_;
};

// Reads all of it, memory too. The message of the error; "" when there is none.
inline std::string failure(int fd, const BundleLimits& limits = {}) {
  try {
    const BundleReader reader(fd, "b.kjb", limits);
    for (std::size_t i = 0; i < reader.bundle().regions.size(); ++i) {
      reader.read_memory(i, [](std::uint64_t, std::span<const std::byte>) {});
    }
    dump(reader);
  } catch (const Error& error) {
    CHECK(error.fault() == Fault::malformed);
    return error.what();
  }
  return "";
}

inline std::string failure(const std::string& file, const BundleLimits& limits = {}) {
  return failure(MemoryFile(file).fd(), limits);
}

inline std::string failure(const RawBundle& raw) { return failure(raw.file()); }

}  // namespace kjudge
