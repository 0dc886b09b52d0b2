// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <functional>
#include <limits>
#include <vector>

#include "bundle/bundle.h"
#include "error.h"
#include "make_bundle.h"

using namespace kjudge;

namespace {

KernelNode& kernel_of(Bundle& bundle) {
  return std::get<KernelNode>(bundle.shapes[0].graph.nodes[0]);
}
MemsetNode& memset_of(Bundle& bundle) {
  return std::get<MemsetNode>(bundle.shapes[0].graph.nodes[1]);
}
MemcpyNode& memcpy_of(Bundle& bundle) {
  return std::get<MemcpyNode>(bundle.shapes[0].graph.nodes[2]);
}
std::vector<Edge>& edges_of(Bundle& bundle) { return bundle.shapes[0].graph.edges; }

struct BrokenRule {
  const char* message;
  std::function<void(Bundle&)> change;
};

// One for each rule of validate().
const std::vector<BrokenRule>& broken_rules() {
  constexpr auto kHuge = std::numeric_limits<std::uint64_t>::max();
  static const std::vector<BrokenRule> rules = {
      {"section provenance: driver rocm is neither host nor cuda",
       [](Bundle& b) { b.provenance.driver = "rocm"; }},
      {"section provenance: arch of driver host is not x86_64",
       [](Bundle& b) { b.provenance.driver = "host"; }},
      {"section provenance: arch x86_64 of driver cuda is not sm_NN",
       [](Bundle& b) { b.provenance.arch = "x86_64"; }},
      {"section provenance: device is not UTF-8 without control characters (byte 1)",
       [](Bundle& b) { b.provenance.device = "a\x1b[31m"; }},
      {"section provenance: kjudge_version is not UTF-8 without control characters (byte 0)",
       [](Bundle& b) { b.provenance.kjudge_version = "\xed\xa0\x80"; }},
      {"section provenance: device is longer than 256 bytes",
       [](Bundle& b) { b.provenance.device = std::string(257, 'x'); }},
      {"section provenance: driver_release is longer than 256 bytes",
       [](Bundle& b) { b.provenance.driver_release = std::string(257, '5'); }},
      {"section provenance: driver_release is not UTF-8 without control characters (byte 3)",
       [](Bundle& b) { b.provenance.driver_release = std::string("580\0", 4); }},
      {"section provenance: import_s is no length of time",
       [](Bundle& b) { b.provenance.import_s = std::numeric_limits<double>::quiet_NaN(); }},
      {"section provenance: prepare_s is no length of time",
       [](Bundle& b) { b.provenance.prepare_s = std::numeric_limits<double>::infinity(); }},
      {"section provenance: capture_s is no length of time",
       [](Bundle& b) { b.provenance.capture_s = -1; }},
      {"section provenance: note is not UTF-8 without control characters (byte 2)",
       [](Bundle& b) {
         b.provenance.notes = {"ok", "no\n"};
       }},

      {"section regions: region 1: unknown role 4",
       [](Bundle& b) { b.regions[1].role = static_cast<Role>(4); }},
      {"section regions: region 4: device 16 is not below 16",
       [](Bundle& b) { b.regions[4].device = 16; }},
      {"section regions: region 0: size is 0", [](Bundle& b) { b.regions[0].size = 0; }},
      {"section regions: region 0: address is no multiple of 2 MiB",
       [](Bundle& b) { b.regions[0].address += 4096; }},
      {"section regions: region 4: size is no multiple of 2 MiB",
       [](Bundle& b) { b.regions[4].size += 1; }},
      {"section regions: region 0: address 0x2d1affe00000 or its end lies outside the arena of "
       "device 0",
       [](Bundle& b) { b.regions[0].address -= kRegionGranule; }},
      {"section regions: region 4: address 0x2f1b00000000 or its end lies outside the arena of "
       "device 0",
       [](Bundle& b) { b.regions[4].device = 0; }},
      {"section regions: region 4: address 0x2f1b00000000 or its end lies outside the arena of "
       "device 1",
       [](Bundle& b) { b.regions[4].size = kHuge - kRegionGranule + 1; }},
      {"section regions: region 1: overlaps or comes before the one before it",
       [](Bundle& b) { b.regions[0].size += kRegionGranule; }},
      {"section regions: region 1: overlaps or comes before the one before it",
       [](Bundle& b) { std::swap(b.regions[0], b.regions[1]); }},
      {"section regions: region 4: all regions so far have 2199035838464 bytes, more than the "
       "limit of 1099511627776",
       [](Bundle& b) { b.regions[4].size = kArenaSize; }},

      {"section modules: module 0: ELF image: no ELF magic",
       [](Bundle& b) { b.modules[0].image[1] = std::byte{0}; }},
      {"section modules: module 0: is for machine 62, not for driver cuda",
       [](Bundle& b) { b.modules[0].image[18] = std::byte{62}; }},
      {"section modules: module 0: variable is empty",
       [](Bundle& b) { b.modules[0].variables[0].name = ""; }},
      {"section modules: module 0: variable zero has size 0",
       [](Bundle& b) { b.modules[0].variables[0].size = 0; }},
      {"section modules: module 0: variable zero is there twice",
       [](Bundle& b) { b.modules[0].variables[1] = b.modules[0].variables[0]; }},
      {"section modules: module 0: variable zero has 16 bytes in the image, 32 in the bundle",
       [](Bundle& b) { b.modules[0].variables[0].size = 32; }},
      {"section modules: module 0: variable other is not in the image",
       [](Bundle& b) { b.modules[0].variables[0].name = "other"; }},

      {"section shapes: no shape",
       [](Bundle& b) {
         b.shapes.clear();
         b.tensors.clear();
       }},
      {"section shapes: shape 1: name is empty", [](Bundle& b) { b.shapes[1].name = ""; }},
      {"section shapes: shape 1: name 4096x4096 is there twice",
       [](Bundle& b) { b.shapes[1].name = b.shapes[0].name; }},
      {"section shapes: shape 4096x4096: 1 output_hashes for 2 tensors that are written",
       [](Bundle& b) { b.shapes[0].output_hashes.pop_back(); }},

      {"section tensors: tensor 5: shape 2 is unknown", [](Bundle& b) { b.tensors[5].shape = 2; }},
      {"section tensors: tensor 0: name is empty", [](Bundle& b) { b.tensors[0].spec.name = ""; }},
      {"section tensors: tensor 0: name is not letters, digits and _, a letter or _ first",
       [](Bundle& b) { b.tensors[0].spec.name = "2x"; }},
      {"section tensors: tensor 0: name is not letters, digits and _, a letter or _ first",
       [](Bundle& b) { b.tensors[0].spec.name = "x.y"; }},
      {"section tensors: tensor 1: shape 0 has two tensors with name x",
       [](Bundle& b) { b.tensors[1].spec.name = "x"; }},
      {"section tensors: tensor 0: unknown dtype 13",
       [](Bundle& b) { b.tensors[0].spec.dtype = static_cast<DType>(13); }},
      {"section tensors: tensor 0: unknown role 0",
       [](Bundle& b) { b.tensors[0].role = Role::state; }},
      {"section tensors: tensor 0: unknown role 9",
       [](Bundle& b) { b.tensors[0].role = static_cast<Role>(9); }},
      {"section tensors: tensor 0: has more than 16 dimensions",
       [](Bundle& b) {
         b.tensors[0].spec.dims.assign(17, 1);
         b.tensors[0].spec.strides.assign(17, 1);
       }},
      {"section tensors: tensor 0: has not one stride for each dimension",
       [](Bundle& b) { b.tensors[0].spec.strides.pop_back(); }},
      {"section tensors: tensor 0: negative dimension -1",
       [](Bundle& b) { b.tensors[0].spec.dims[0] = -1; }},
      {"section tensors: tensor 0: tensor has more than 2^63 elements",
       [](Bundle& b) {
         b.tensors[0].spec.dims = {INT64_MAX, 2};
       }},
      {"section tensors: tensor 0: stride 1 is negative",
       [](Bundle& b) { b.tensors[0].spec.strides[1] = -1; }},
      {"section tensors: tensor 0: its span does not fit 64 bits",
       [](Bundle& b) { b.tensors[0].spec.strides[0] = INT64_MAX; }},
      {"section tensors: tensor 0: x reaches past region 1",
       [](Bundle& b) { b.tensors[0].spec.strides[0] = 8256; }},
      {"section tensors: tensor 0: lies in region 2, which has another role",
       [](Bundle& b) { b.tensors[0].address = b.regions[2].address; }},
      {"section tensors: tensor 0: x at 0x2d1b00c00000 lies in no region",
       [](Bundle& b) { b.tensors[0].address = b.regions[3].address + kRegionGranule; }},
      {"section tensors: tensor 0: x at 0x0 lies in no region",
       [](Bundle& b) { b.tensors[0].address = 0; }},
      {"section tensors: tensor 0: address is no multiple of its element's size",
       [](Bundle& b) { b.tensors[0].address += 2; }},
      {"section tensors: tensor 1: overlaps tensor 0",
       [](Bundle& b) { b.tensors[1].address = b.tensors[0].address + 1024; }},

      {"section shapes: shape 4096x4096: node 0: module 1 is unknown",
       [](Bundle& b) { kernel_of(b).module = 1; }},
      {"section shapes: shape 4096x4096: node 0: kernel name is empty",
       [](Bundle& b) { kernel_of(b).name = ""; }},
      {"section shapes: shape 4096x4096: node 0: module 0 has no kernel other",
       [](Bundle& b) { kernel_of(b).name = "other"; }},
      {"section shapes: shape 4096x4096: node 0: grid.x is 0, not 1 to 2147483647",
       [](Bundle& b) { kernel_of(b).grid.x = 0; }},
      {"section shapes: shape 4096x4096: node 0: grid.y is 65536, not 1 to 65535",
       [](Bundle& b) { kernel_of(b).grid.y = 65536; }},
      {"section shapes: shape 4096x4096: node 0: grid.z is 65536, not 1 to 65535",
       [](Bundle& b) { kernel_of(b).grid.z = 65536; }},
      {"section shapes: shape 4096x4096: node 0: block.z is 65, not 1 to 64",
       [](Bundle& b) {
         kernel_of(b).block = {1, 1, 65};
       }},
      {"section shapes: shape 4096x4096: node 0: block has more than 1024 threads",
       [](Bundle& b) { kernel_of(b).block.y = 5; }},
      {"section shapes: shape 4096x4096: node 0: shared_bytes 1048577 is more than 1048576",
       [](Bundle& b) { kernel_of(b).shared_bytes = (1 << 20) + 1; }},
      {"section shapes: shape 4096x4096: node 0: arguments have more than 32764 bytes",
       [](Bundle& b) { kernel_of(b).arguments.resize(32765); }},
      {"section shapes: shape 4096x4096: node 0: arguments have not one size for each offset",
       [](Bundle& b) { kernel_of(b).argument_sizes.pop_back(); }},
      {"section shapes: shape 4096x4096: node 0: argument 1 has size 0",
       [](Bundle& b) { kernel_of(b).argument_sizes[1] = 0; }},
      {"section shapes: shape 4096x4096: node 0: argument 1 overlaps or precedes the one before it",
       [](Bundle& b) { kernel_of(b).argument_offsets[1] = 7; }},
      {"section shapes: shape 4096x4096: node 0: argument 2 reaches past the parameter buffer",
       [](Bundle& b) { kernel_of(b).argument_sizes[2] = 17; }},
      {"section shapes: shape 4096x4096: node 0: argument 2 reaches past the parameter buffer",
       [](Bundle& b) { kernel_of(b).argument_sizes[2] = UINT32_MAX; }},
      {"section shapes: shape 4096x4096: node 0: unknown launch attribute 13",
       [](Bundle& b) { kernel_of(b).launch_attributes[0].id = 13; }},
      {"section shapes: shape 4096x4096: node 0: launch attribute 4 is there twice",
       [](Bundle& b) { kernel_of(b).launch_attributes[1].id = 4; }},
      {"section shapes: shape 4096x4096: node 0: access window: neither normal nor streaming",
       [](Bundle& b) {  // CU_ACCESS_PROPERTY_PERSISTING
         kernel_of(b).launch_attributes[0] = int_attribute(1, {0, 0, 0, 0, 0, 2, 0});
       }},
      {"section shapes: shape 4096x4096: node 0: access window: ratio is not in [0, 1]",
       [](Bundle& b) {
         kernel_of(b).launch_attributes[0] = int_attribute(1, {0, 0, 0, 0, 0x7fc00000, 0, 0});
       }},
      {"section shapes: shape 4096x4096: node 0: access window at 0x1000 lies in no region",
       [](Bundle& b) {
         kernel_of(b).launch_attributes[0] = int_attribute(1, {0x1000, 0, 64, 0, 0, 0, 0});
       }},
      {"section shapes: shape 4096x4096: node 0: unknown function attribute 4",
       [](Bundle& b) { kernel_of(b).function_attributes[0].id = 4; }},
      {"section shapes: shape 4096x4096: node 0: unknown observed attribute 16",
       [](Bundle& b) { kernel_of(b).observed_attributes[0].id = 16; }},
      {"section shapes: shape 4096x4096: node 0: unknown cache_config 4",
       [](Bundle& b) { kernel_of(b).cache_config = 4; }},
      {"section shapes: shape 4096x4096: node 0: unknown cache_config -2",
       [](Bundle& b) { kernel_of(b).cache_config = -2; }},

      {"section shapes: shape 4096x4096: node 1: memset: element_size 8 is not 1, 2 or 4",
       [](Bundle& b) { memset_of(b).element_size = 8; }},
      {"section shapes: shape 4096x4096: node 1: memset: value does not fit its elements",
       [](Bundle& b) { memset_of(b).value = 0x10000; }},
      {"section shapes: shape 4096x4096: node 1: memset: nothing to set",
       [](Bundle& b) { memset_of(b).width = 0; }},
      {"section shapes: shape 4096x4096: node 1: memset: nothing to set",
       [](Bundle& b) { memset_of(b).height = 0; }},
      {"section shapes: shape 4096x4096: node 1: memset: address or pitch is no multiple of "
       "element_size",
       [](Bundle& b) { memset_of(b).address += 1; }},
      {"section shapes: shape 4096x4096: node 1: memset: address or pitch is no multiple of "
       "element_size",
       [](Bundle& b) { memset_of(b).pitch += 1; }},
      {"section shapes: shape 4096x4096: node 1: memset: pitch is less than a row",
       [](Bundle& b) { memset_of(b).pitch = 198; }},
      {"section shapes: shape 4096x4096: node 1: memset does not fit 64 bits",
       [=](Bundle& b) { memset_of(b).width = kHuge; }},
      {"section shapes: shape 4096x4096: node 1: memset does not fit 64 bits",
       [=](Bundle& b) { memset_of(b).height = kHuge; }},
      {"section shapes: shape 4096x4096: node 1: memset reaches past region 0",
       [](Bundle& b) { memset_of(b).height = 8185; }},
      {"section shapes: shape 4096x4096: node 1: memset at 0x1000 lies in no region",
       [](Bundle& b) { memset_of(b).address = 0x1000; }},
      {"section shapes: shape 4096x4096: node 1: memset writes to region 1, an input",
       [](Bundle& b) { memset_of(b).address = b.regions[1].address; }},

      {"section shapes: shape 4096x4096: node 2: memcpy: nothing to copy",
       [](Bundle& b) { memcpy_of(b).depth = 0; }},
      {"section shapes: shape 4096x4096: node 2: memcpy destination: height is less than a slice",
       [](Bundle& b) { memcpy_of(b).destination_height = 3; }},
      {"section shapes: shape 4096x4096: node 2: memcpy source: height is less than a slice",
       [](Bundle& b) { memcpy_of(b).source_height = 3; }},
      {"section shapes: shape 4096x4096: node 2: memcpy destination: pitch is less than a row",
       [](Bundle& b) { memcpy_of(b).destination_pitch = 199; }},
      {"section shapes: shape 4096x4096: node 2: memcpy source: pitch is less than a row",
       [](Bundle& b) { memcpy_of(b).source_pitch = 0; }},
      {"section shapes: shape 4096x4096: node 2: memcpy destination does not fit 64 bits",
       [=](Bundle& b) { memcpy_of(b).destination_height = kHuge; }},
      {"section shapes: shape 4096x4096: node 2: memcpy source does not fit 64 bits",
       [=](Bundle& b) { memcpy_of(b).source_pitch = kHuge / 2; }},
      {"section shapes: shape 4096x4096: node 2: memcpy destination reaches past region 2",
       [](Bundle& b) { memcpy_of(b).destination_pitch = 1 << 20; }},
      {"section shapes: shape 4096x4096: node 2: memcpy source reaches past region 1",
       [](Bundle& b) { memcpy_of(b).source_pitch = 1 << 20; }},
      {"section shapes: shape 4096x4096: node 2: memcpy destination writes to region 1, an input",
       [](Bundle& b) { memcpy_of(b).destination = b.regions[1].address; }},
      {"section shapes: shape 4096x4096: node 2: memcpy source at 0x7000 lies in no region",
       [](Bundle& b) { memcpy_of(b).source = 0x7000; }},

      {"section shapes: shape 4096x4096: edge 0: joins a node that does not exist",
       [](Bundle& b) { edges_of(b)[0].to = 5; }},
      {"section shapes: shape 4096x4096: edge 0: joins a node with itself",
       [](Bundle& b) { edges_of(b)[0].to = 0; }},
      {"section shapes: shape 4096x4096: the edge from 0 to 1 is there twice",
       [](Bundle& b) { edges_of(b)[1] = edges_of(b)[0]; }},
      {"section shapes: shape 4096x4096: edges form a cycle",
       [](Bundle& b) {
         edges_of(b).push_back({3, 1});
       }},
      {"section shapes: shape 4096x4096: edge 0: unknown from_port 3",
       [](Bundle& b) { edges_of(b)[0].from_port = 3; }},
      {"section shapes: shape 4096x4096: edge 2: unknown from_port 2",
       [](Bundle& b) { edges_of(b)[2].from_port = 2; }},
      {"section shapes: shape 4096x4096: edge 0: unknown to_port 1",
       [](Bundle& b) { edges_of(b)[0].to_port = 1; }},
      {"section shapes: shape 4096x4096: edge 0: unknown type 2",
       [](Bundle& b) { edges_of(b)[0].type = 2; }},
      {"section shapes: shape 4096x4096: edge 0: a programmatic edge that does not lead from a "
       "port "
       "of a kernel to a kernel",
       [](Bundle& b) {
         edges_of(b)[0] = {0, 1, 1, 0, 1};
       }},
      {"section shapes: shape 4096x4096: edge 5: a programmatic port without that type",
       [](Bundle& b) { edges_of(b)[5].type = 0; }},

      {"section limits: unknown limit 7", [](Bundle& b) { b.limits[0].id = 7; }},
      {"section limits: limit 0 is there twice", [](Bundle& b) { b.limits[1].id = 0; }},
  };
  return rules;
}

}  // namespace

TEST_CASE("bundle: every rule is held, by the reader too, and named") {
  CHECK_NOTHROW(validate(rich_bundle(), {}));
  for (const auto& rule : broken_rules()) {
    CAPTURE(rule.message);
    RawBundle raw{rich_bundle(), {}, ""};
    rule.change(raw.bundle);
    std::string message;
    try {
      validate(raw.bundle, {});
    } catch (const Error& error) {
      CHECK(error.fault() == Fault::malformed);
      message = error.what();
    }
    CHECK(message == rule.message);
    CHECK(failure(raw) == cat("b.kjb: ", rule.message));
  }
}
