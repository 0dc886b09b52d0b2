// SPDX-License-Identifier: Apache-2.0
#include "record/modules.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstring>

#include "elf_image.h"

namespace kjudge {
namespace {

constexpr std::uint32_t kFatbinWrapper = 0x466243B1, kFatbin = 0xBA55ED50;

// Of a fat binary, from the header that all of them share.
struct FatbinHeader {
  std::uint32_t magic;
  std::uint16_t version, header_bytes;
  std::uint64_t payload_bytes;
};
static_assert(sizeof(FatbinHeader) == 16);

struct FatbinWrapper {
  std::uint32_t magic, version;
  const void* fatbin;
  const void* unused;
};

Bytes copy(const void* from, std::size_t size) {
  const auto* bytes = static_cast<const std::byte*>(from);
  return Bytes(bytes, bytes + size);
}

}  // namespace

std::optional<Bytes> copy_image(const void* image) {
  std::uint32_t magic;
  std::memcpy(&magic, image, sizeof(magic));
  if (magic == kFatbinWrapper) {
    FatbinWrapper wrapper;
    std::memcpy(&wrapper, image, sizeof(wrapper));
    return copy_image(wrapper.fatbin);
  }
  if (magic == kFatbin) {
    FatbinHeader header;
    std::memcpy(&header, image, sizeof(header));
    return copy(image, header.header_bytes + header.payload_bytes);
  }
  if (is_elf(image)) return copy(image, elf_size(image));
  // PTX is text that ends with a zero byte, and starts with a comment or a directive.
  const char first = *static_cast<const char*>(image);
  if (std::strchr("/. \n\r\t", first) == nullptr || first == 0) return std::nullopt;
  return copy(image, std::strlen(static_cast<const char*>(image)) + 1);
}

void RecordedModules::loaded(const void* handle, Bytes image, bool library) {
  const std::uint64_t hash = XXH3_64bits(image.data(), image.size());
  const std::lock_guard lock(mutex_);
  auto known = by_hash_.find(hash);
  if (known == by_hash_.end() || images_[known->second] != image) {
    images_.push_back(std::move(image));
    known = by_hash_.insert_or_assign(hash, images_.size() - 1).first;
  }
  handles_[handle] = known->second;
  if (library) libraries_.insert(handle);
}

void RecordedModules::set_attribute(const void* function, int attribute, int value) {
  const std::lock_guard lock(mutex_);
  settings_[function].attributes[attribute] = value;
}

void RecordedModules::set_cache_config(const void* function, int config) {
  const std::lock_guard lock(mutex_);
  settings_[function].cache_config = config;
}

void RecordedModules::launched_with(const void* function, const CUlaunchAttribute* attributes,
                                    unsigned count) {
  if (count == 0) return;
  const std::lock_guard lock(mutex_);
  for (unsigned i = 0; i < count; ++i) {
    settings_[function].launch_attributes.insert(attributes[i].id);
  }
}

std::optional<std::size_t> RecordedModules::image_of(const void* handle) const {
  const std::lock_guard lock(mutex_);
  const auto found = handles_.find(handle);
  return found == handles_.end() ? std::nullopt : std::optional(found->second);
}

std::vector<const void*> RecordedModules::libraries() const {
  const std::lock_guard lock(mutex_);
  return {libraries_.begin(), libraries_.end()};
}

const Bytes& RecordedModules::image(std::size_t index) const {
  const std::lock_guard lock(mutex_);
  return images_.at(index);
}

FunctionSettings RecordedModules::settings(const void* function) const {
  const std::lock_guard lock(mutex_);
  const auto found = settings_.find(function);
  return found == settings_.end() ? FunctionSettings{} : found->second;
}

std::vector<std::pair<const void*, std::size_t>> RecordedModules::modules() const {
  const std::lock_guard lock(mutex_);
  return {handles_.begin(), handles_.end()};
}

}  // namespace kjudge
