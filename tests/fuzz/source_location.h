// SPDX-License-Identifier: Apache-2.0
#pragma once

// Debian 12's clang 14 lacks the builtin that libstdc++'s <source_location> needs. The fuzz preset
// includes this first everywhere; nothing else does.

#ifdef __cplusplus
#include <source_location>

#if defined(__clang__) && !__has_builtin(__builtin_source_location)
namespace std {

struct source_location {
  static constexpr source_location current(const char* file = __builtin_FILE(),
                                           const char* function = __builtin_FUNCTION(),
                                           unsigned line = __builtin_LINE()) {
    source_location location;
    location.file_ = file;
    location.function_ = function;
    location.line_ = line;
    return location;
  }
  constexpr const char* file_name() const { return file_; }
  constexpr const char* function_name() const { return function_; }
  constexpr unsigned line() const { return line_; }
  constexpr unsigned column() const { return 0; }

 private:
  const char* file_ = "";
  const char* function_ = "";
  unsigned line_ = 0;
};

}  // namespace std
#endif
#endif
