// SPDX-License-Identifier: Apache-2.0
#include "challenge/variant_request.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <set>

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

std::string joined(const std::set<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += cat(text.empty() ? "" : ", ", word);
  return text;
}

bool is_gpu(const std::string& arch) { return arch.starts_with("sm_"); }

// Whether a shape for `arch` can run on what `gpu` names; of a name such as "h200" nobody knows
// more than that it is a GPU.
bool may_run(const std::string& arch, const std::string& gpu) {
  if (gpu.empty() || gpu == arch) return true;
  return is_gpu(arch) && gpu != "x86_64" && (arch == "sm_*" || !is_gpu(gpu));
}

}  // namespace

bool VariantRequest::takes(const Shape& one) const {
  return (dtype.empty() || one.dtype == dtype) && (shape.empty() || one.name == shape);
}

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

std::vector<std::string> timed_shapes(const Challenge& challenge, const VariantRequest& variant) {
  const std::string who = cat("challenge ", challenge.name, " version ", challenge.version);
  std::vector<std::string> shapes;
  std::set<std::string> dtypes, names;
  for (const Shape& shape : challenge.shapes) {
    if (!shape.timed) continue;
    dtypes.insert(shape.dtype);
    if (!variant.dtype.empty() && shape.dtype != variant.dtype) continue;
    names.insert(shape.name);
    if (variant.takes(shape)) shapes.push_back(shape.name);
  }
  if (names.empty()) {
    throw Error(Fault::usage, cat(who, " has no shape of dtype \"", variant.dtype, "\"; it has ",
                                  joined(dtypes)));
  }
  if (shapes.empty()) {
    throw Error(Fault::usage,
                cat(who, " has no shape \"", variant.shape, "\" here; it has ", joined(names)));
  }
  return shapes;
}

VariantRequest without_needless(VariantRequest variant, const std::vector<Shape>& shapes) {
  if (std::all_of(shapes.begin(), shapes.end(),
                  [&](const Shape& shape) { return variant.takes(shape); })) {
    variant.dtype.clear();
    variant.shape.clear();
  }
  return variant;
}

VariantRequest as_judged(VariantRequest variant, const std::vector<Shape>& shapes) {
  std::vector<Shape> timed = shapes;
  std::erase_if(timed, [](const Shape& shape) { return !shape.timed; });
  return without_needless(std::move(variant), timed);
}

VariantRequest wanted_of(const Challenge& challenge, VariantRequest variant) {
  if (variant.version != 0 && variant.version != challenge.version) {
    throw Error(Fault::usage, cat("challenge ", challenge.name, " is judged in version ",
                                  challenge.version, ", not ", variant.version));
  }
  Challenge there = challenge;
  std::erase_if(there.shapes,
                [&](const Shape& shape) { return !may_run(shape.arch, variant.gpu); });
  if (there.shapes.empty()) {
    std::set<std::string> arches;
    for (const Shape& shape : challenge.shapes) arches.insert(shape.arch);
    throw Error(Fault::usage, cat("challenge ", challenge.name, " has no shape for \"", variant.gpu,
                                  "\"; it has shapes for ", joined(arches)));
  }
  timed_shapes(there, variant);  // there is one
  variant = as_judged(std::move(variant), there.shapes);
  if (variant.all_shapes() && variant.gpu.empty()) return {};
  variant.challenge = challenge.name;
  variant.version = 0;
  variant.gpu = device_word(variant.gpu);
  return variant;
}

NamedVariant split_name(const std::string& text) {
  if (std::filesystem::exists(text)) return {text, ""};
  const auto end = std::min(text.find_first_of("@:"), text.size());
  return {text.substr(0, end), text.substr(end)};
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
