// SPDX-License-Identifier: Apache-2.0
#include "store/kernels_hash.h"

#include <doctest/doctest.h>

#include <cstring>
#include <functional>
#include <set>

using namespace kjudge;

namespace {

Bytes words(std::initializer_list<std::uint64_t> values) {
  Bytes bytes(values.size() * sizeof(std::uint64_t));
  std::size_t at = 0;
  for (const std::uint64_t value : values) {
    std::memcpy(bytes.data() + at, &value, sizeof value);
    at += sizeof value;
  }
  return bytes;
}

// Reads a weight and an input, writes an output; `moved`: all memory lies elsewhere.
Bundle example(std::uint64_t moved = 0) {
  const std::uint64_t state = kArenaBase + moved, input = state + kRegionGranule,
                      output = input + kRegionGranule;
  Bundle bundle;
  bundle.regions = {{state, kRegionGranule, Role::state},
                    {input, kRegionGranule, Role::input},
                    {output, kRegionGranule, Role::output}};
  bundle.modules.resize(1);
  bundle.modules[0].image = words({1, 2, 3});
  KernelNode kernel;
  kernel.name = "softmax";
  kernel.grid.x = 64;
  kernel.arguments = words({output, input, state + 256, 1000});
  kernel.launch_attributes.resize(1);
  MemsetNode set;
  set.address = state;
  MemcpyNode copy;
  copy.destination = output;
  copy.source = input;
  CapturedShape shape;
  shape.name = "64x48";
  shape.graph.nodes = {kernel, set, copy, EmptyNode{}};
  shape.graph.edges = {{0, 1}, {1, 2}, {2, 3}};
  bundle.shapes = {shape};
  return bundle;
}

}  // namespace

TEST_CASE("the same launches have one hash, wherever memory lies") {
  Bundle other = example(16 * kRegionGranule);
  other.provenance.seed = 7;
  other.provenance.device = "another";
  other.shapes[0].output_hashes = {1};
  CHECK(kernels_sha256(example()) == kernels_sha256(other));
}

TEST_CASE("whatever a launch depends on makes another hash") {
  const auto kernel = [](Bundle& bundle) -> KernelNode& {
    return std::get<KernelNode>(bundle.shapes[0].graph.nodes[0]);
  };
  const std::vector<std::function<void(Bundle&)>> changes = {
      [](Bundle&) {},
      [](Bundle& b) { b.modules[0].image[0] ^= std::byte{1}; },
      [](Bundle& b) { b.shapes[0].name = "64x49"; },
      [&](Bundle& b) { kernel(b).name = "other"; },
      [&](Bundle& b) { kernel(b).grid.x = 32; },
      [&](Bundle& b) { kernel(b).grid.z = 2; },
      [&](Bundle& b) { kernel(b).block.y = 2; },
      [&](Bundle& b) { kernel(b).shared_bytes = 4; },
      [&](Bundle& b) { kernel(b).cache_config = 1; },
      [&](Bundle& b) { kernel(b).arguments[24] ^= std::byte{1}; },  // a scalar
      [&](Bundle& b) { kernel(b).arguments[16] ^= std::byte{1}; },  // a place in a region
      [&](Bundle& b) { kernel(b).arguments.resize(28); },
      [&](Bundle& b) { kernel(b).launch_attributes[0].id = 1; },
      [&](Bundle& b) { kernel(b).launch_attributes[0].value[0] = std::byte{1}; },
      [&](Bundle& b) { kernel(b).function_attributes.resize(1); },
      [](Bundle& b) { std::get<MemsetNode>(b.shapes[0].graph.nodes[1]).value = 1; },
      [](Bundle& b) { std::get<MemcpyNode>(b.shapes[0].graph.nodes[2]).width_bytes = 1; },
      [](Bundle& b) { b.shapes[0].graph.nodes.pop_back(); },
      [](Bundle& b) { b.shapes[0].graph.edges[2].from = 1; },
      [](Bundle& b) { b.shapes[0].graph.edges[2].type = 1; },
  };
  std::set<std::string> hashes;
  for (const auto& change : changes) {
    Bundle bundle = example();
    change(bundle);
    hashes.insert(kernels_sha256(bundle));
  }
  CHECK(hashes.size() == changes.size());
}
