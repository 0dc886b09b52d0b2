// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "json_kinds.h"

namespace kjudge {

// Which evaluations are compared, and over which shapes: "softmax", "softmax:bfloat16",
// "softmax@2:float32:h200:4096x1024". A part that is left out, or empty, narrows nothing; without a
// version it is the newest.
struct VariantRequest {
  std::string challenge;
  int version = 0;  // 0: the newest
  std::string dtype, gpu, shape;
  bool operator==(const VariantRequest&) const = default;
};

// Fault::usage, saying what it looks like.
VariantRequest parse_request(std::string_view text);
std::string request_text(const VariantRequest& variant);
Kind<VariantRequest> request_kind();

// Whether `gpu`, as people write it, names this kind of device: its arch, or its name's first words
// without case and "NVIDIA": "sm_90", "h100", "H100 80GB HBM3", "h100-80gb-hbm3" for
// "NVIDIA H100 80GB HBM3". An empty one names all.
bool names_device(std::string_view gpu, std::string_view arch, std::string_view device_kind);
// The shortest word for it that needs no quotes: "h100-80gb-hbm3", "x86_64".
std::string device_word(std::string_view device_kind);

}  // namespace kjudge
