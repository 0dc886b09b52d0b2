// SPDX-License-Identifier: Apache-2.0
#include "error.h"

#include <cerrno>
#include <cstring>

namespace kjudge {

std::string_view name(Fault fault) {
  switch (fault) {
    case Fault::usage:
      return "usage";
    case Fault::package:
      return "package";
    case Fault::submission:
      return "submission";
    case Fault::malformed:
      return "malformed";
    case Fault::device:
      return "device";
    case Fault::host:
      return "host";
    case Fault::bug:
      return "bug";
  }
  return "bug";
}

Error::Error(Fault fault, const std::string& message, std::source_location where)
    : std::runtime_error(message), fault_(fault), message_(message), where_(where) {}

Error& Error::context(std::string_view context) {
  message_ = cat(context, ": ", message_);
  return *this;
}

std::string hex(std::uint64_t value) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  do {
    text.insert(text.begin(), kDigits[value & 15]);
    value >>= 4;
  } while (value != 0);
  return "0x" + text;
}

std::string described(const Error& error) { return cat(name(error.fault()), ": ", error.what()); }

void throw_errno(std::string_view what, std::source_location where) {
  const int code = errno;
  throw Error(Fault::host, cat(what, ": ", std::strerror(code)), where);
}

void check_failed(const char* expression, std::source_location where) {
  throw Error(Fault::bug,
              cat("internal check failed: ", expression, " (", where.file_name(), ":", where.line(),
                  "); please report this"),
              where);
}

}  // namespace kjudge
