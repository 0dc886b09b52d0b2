// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "challenge/challenge.h"
#include "json_kinds.h"

namespace kjudge {

// What of a challenge is compared, or judged: "softmax", "softmax:bfloat16",
// "softmax@2:float32:h200:4096x1024". A part that is left out, or empty, narrows nothing; without a
// version it is the newest.
struct VariantRequest {
  std::string challenge;
  int version = 0;  // 0: the newest
  std::string dtype, gpu, shape;
  bool operator==(const VariantRequest&) const = default;
  // Whether it has this shape or test, by dtype and name.
  bool takes(const Shape& shape) const;
  bool all_shapes() const { return dtype.empty() && shape.empty(); }
};

// Fault::usage, saying what it looks like.
VariantRequest parse_request(std::string_view text);
std::string request_text(const VariantRequest& variant);
Kind<VariantRequest> request_kind();

// Names of the timed shapes of the challenge that it takes, at least one. Fault::usage, with what
// there is instead, where there is no such dtype or shape.
std::vector<std::string> timed_shapes(const Challenge& challenge, const VariantRequest& variant);

// Without dtype and shape where it takes all of these.
VariantRequest without_needless(VariantRequest variant, const std::vector<Shape>& shapes);
// What is judged of a submission that asks for it: all of these where it takes all that are timed,
// for what is ranked among the whole must pass all tests.
VariantRequest as_judged(VariantRequest variant, const std::vector<Shape>& shapes);

// What somebody asks to have judged of the challenge, without its version; {} where that is all of
// it on any device. Fault::usage, with what there is instead,
// where the challenge has no such version, dtype or shape, or nothing for that GPU.
VariantRequest wanted_of(const Challenge& challenge, VariantRequest variant);
// The same with the name as `text` has it, and the challenge known: "packages/softmax:float32".
struct NamedVariant {
  std::string name;   // of the challenge, or its folder
  std::string parts;  // with the character before it, "" or "@1:float32"
};
NamedVariant split_name(const std::string& text);

// Whether `gpu`, as people write it, names this kind of device: its arch, or its name's first words
// without case and "NVIDIA": "sm_90", "h100", "H100 80GB HBM3", "h100-80gb-hbm3" for
// "NVIDIA H100 80GB HBM3". An empty one names all.
bool names_device(std::string_view gpu, std::string_view arch, std::string_view device_kind);
// The shortest word for it that needs no quotes: "h100-80gb-hbm3", "x86_64".
std::string device_word(std::string_view device_kind);

}  // namespace kjudge
