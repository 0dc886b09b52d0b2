// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "bundle/bundle.h"
#include "driver/driver.h"

namespace kjudge {

// Bytes of a module image known by its address only, as the load calls get it: an ELF image, a fat
// binary with or without its wrapper, or PTX text; nullopt for anything else.
std::optional<Bytes> copy_image(const void* image);

// What was set for a function or kernel; the driver cannot be asked whether something was set, and
// setting a default is not the same as leaving it (an unset carve-out reads 0 and costs up to 3x
// when set to 0).
struct FunctionSettings {
  std::map<int, int> attributes;  // CUfunction_attribute
  std::int32_t cache_config = -1;
};

// A module's variable whose address the submission asked for.
struct ToldVariable {
  std::string name;
  std::uint64_t address = 0, size = 0;
};

// Every module the process loaded, and what was set for its functions. Any thread.
class RecordedModules {
 public:
  // Keeps an image; the same bytes are kept once. Index into images.
  std::size_t keep(Bytes image);
  // `handle`: the CUmodule or CUlibrary that a load call gave, and its image where it is known
  // then: a fat binary's cubin is chosen later.
  void loaded(const void* handle, std::optional<std::size_t> image, bool library);
  bool is_loaded(const void* handle) const;
  // `function`: a CUfunction or CUkernel.
  void set_attribute(const void* function, int attribute, int value);
  void set_cache_config(const void* function, int config);

  void told_variable(ToldVariable variable);
  std::vector<ToldVariable> told_variables() const;

  // nullopt when nobody saw it load, or its image is not known.
  std::optional<std::size_t> image_of(const void* handle) const;
  // Handles of libraries, whose modules the driver tells.
  std::vector<const void*> libraries() const;
  const Bytes& image(std::size_t index) const;
  FunctionSettings settings(const void* function) const;
  std::vector<std::pair<const void*, std::size_t>> modules() const;

 private:
  mutable std::mutex mutex_;
  std::vector<Bytes> images_;
  std::map<std::uint64_t, std::size_t> by_hash_;
  std::map<const void*, std::size_t> handles_;
  std::set<const void*> libraries_, loaded_;
  std::map<const void*, FunctionSettings> settings_;
  std::map<std::uint64_t, ToldVariable> told_;  // by address
};

}  // namespace kjudge
