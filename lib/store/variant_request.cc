// SPDX-License-Identifier: Apache-2.0
#include "store/variant_request.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

#include "error.h"

namespace kjudge {
namespace {

constexpr std::string_view kForm = "CHALLENGE[@VERSION][:dtype[:gpu[:shape]]]";

std::vector<std::string_view> split_at_colons(std::string_view text) {
  std::vector<std::string_view> parts;
  for (;;) {
    const auto end = text.find(':');
    parts.push_back(text.substr(0, end));
    if (end == text.npos) return parts;
    text.remove_prefix(end + 1);
  }
}

}  // namespace

VariantRequest parse_request(std::string_view text) {
  const auto fail = [&](const std::string& what) {
    return Error(Fault::usage, cat("\"", text, "\": ", what, "; expected ", kForm,
                                   ", as in softmax:bfloat16:h200"));
  };
  const auto parts = split_at_colons(text);
  if (parts.size() > 4) throw fail("more than four parts");
  VariantRequest variant;
  const auto at = parts[0].find('@');
  variant.challenge = parts[0].substr(0, at);
  if (variant.challenge.empty()) throw fail("names no challenge");
  if (at != parts[0].npos) {
    const std::string_view number = parts[0].substr(at + 1);
    const auto [end, error] =
        std::from_chars(number.data(), number.data() + number.size(), variant.version);
    if (error != std::errc() || end != number.data() + number.size() || variant.version < 1) {
      throw fail("the version is no number from 1");
    }
  }
  const std::array<std::string*, 3> rest = {&variant.dtype, &variant.gpu, &variant.shape};
  for (std::size_t i = 1; i < parts.size(); ++i) *rest[i - 1] = parts[i];
  return variant;
}

std::string request_text(const VariantRequest& variant) {
  std::string text = variant.challenge;
  if (variant.version != 0) text += cat("@", variant.version);
  text += cat(":", variant.dtype, ":", variant.gpu, ":", variant.shape);
  while (text.ends_with(':')) text.pop_back();
  return text;
}

Kind<VariantRequest> request_kind() {
  const auto line = line_kind(1, 300);
  return {cat("a variant, ", kForm),
          [line](const JsonCursor& at) {
            try {
              return parse_request(line.read(at));
            } catch (const Error& error) {
              if (error.fault() != Fault::usage) throw;
              at.fail(error.what());
            }
          },
          [line](const VariantRequest& variant) { return line.write(request_text(variant)); },
          line.schema};
}

std::string device_word(std::string_view device_kind) {
  std::string word;
  for (const char c : device_kind) {
    word += c == ' ' ? '-' : (c >= 'A' && c <= 'Z') ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return word.starts_with("nvidia-") ? word.substr(7) : word;
}

bool names_device(std::string_view gpu, std::string_view arch, std::string_view device_kind) {
  if (gpu.empty() || gpu == arch) return true;
  const std::string wanted = device_word(gpu), word = device_word(device_kind);
  return word == wanted || word.starts_with(wanted + "-");
}

}  // namespace kjudge
