// SPDX-License-Identifier: Apache-2.0
#include "record/modules.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstring>

#include "elf_image.h"

namespace kjudge {

std::optional<Bytes> copy_image(const void* image) {
  if (!is_elf(image)) return std::nullopt;
  const auto* bytes = static_cast<const std::byte*>(image);
  return Bytes(bytes, bytes + elf_size(image));
}

std::size_t RecordedModules::keep(Bytes image) {
  const std::uint64_t hash = XXH3_64bits(image.data(), image.size());
  const std::lock_guard lock(mutex_);
  auto known = by_hash_.find(hash);
  if (known == by_hash_.end() || images_[known->second] != image) {
    images_.push_back(std::move(image));
    known = by_hash_.insert_or_assign(hash, images_.size() - 1).first;
  }
  return known->second;
}

void RecordedModules::loaded(const void* handle, std::optional<std::size_t> image, bool library) {
  const std::lock_guard lock(mutex_);
  loaded_.insert(handle);
  if (image) handles_[handle] = *image;
  if (library) libraries_.insert(handle);
}

bool RecordedModules::is_loaded(const void* handle) const {
  const std::lock_guard lock(mutex_);
  return loaded_.contains(handle);
}

void RecordedModules::set_attribute(const void* function, int attribute, int value) {
  const std::lock_guard lock(mutex_);
  settings_[function].attributes[attribute] = value;
}

void RecordedModules::set_cache_config(const void* function, int config) {
  const std::lock_guard lock(mutex_);
  settings_[function].cache_config = config;
}

void RecordedModules::told_variable(ToldVariable variable) {
  const std::lock_guard lock(mutex_);
  told_[variable.address] = std::move(variable);
}

std::vector<ToldVariable> RecordedModules::told_variables() const {
  const std::lock_guard lock(mutex_);
  std::vector<ToldVariable> all;
  for (const auto& [address, variable] : told_) all.push_back(variable);
  return all;
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
