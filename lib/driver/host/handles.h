// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <vector>

#include "driver/host/entry.h"

namespace kjudge {

// The live objects of one handle type, so that a handle that was destroyed, or never was one, is an
// error and not a crash. Objects live on while a call or queued work holds them.
template <class Object>
class Handles {
 public:
  Object* add(std::shared_ptr<Object> object) {
    Object* handle = object.get();
    const std::unique_lock lock(mutex_);
    live_.emplace(handle, std::move(object));
    return handle;
  }

  std::shared_ptr<Object> find(Object* handle) const {
    const std::shared_lock lock(mutex_);
    const auto found = live_.find(handle);
    return found == live_.end() ? nullptr : found->second;
  }

  std::shared_ptr<Object> get(Object* handle,
                              CUresult otherwise = CUDA_ERROR_INVALID_HANDLE) const {
    auto object = find(handle);
    require(object != nullptr, otherwise);
    return object;
  }

  std::shared_ptr<Object> remove(Object* handle, CUresult otherwise = CUDA_ERROR_INVALID_HANDLE) {
    const std::unique_lock lock(mutex_);
    const auto found = live_.find(handle);
    require(found != live_.end(), otherwise);
    auto object = std::move(found->second);
    live_.erase(found);
    return object;
  }

  std::vector<std::shared_ptr<Object>> all() const {
    std::vector<std::shared_ptr<Object>> list;
    const std::shared_lock lock(mutex_);
    for (const auto& [handle, object] : live_) list.push_back(object);
    return list;
  }

 private:
  mutable std::shared_mutex mutex_;
  std::unordered_map<Object*, std::shared_ptr<Object>> live_;
};

// One registry a type; never destroyed, since calls may come while the process exits.
template <class Object>
Handles<Object>& handles() {
  static auto& registry = *new Handles<Object>;
  return registry;
}

}  // namespace kjudge
