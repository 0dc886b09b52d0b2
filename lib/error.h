// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <source_location>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

namespace kjudge {

// Whose fault a failure is. Verdicts about a submission are values (see replay/evaluation.h);
// an Error says that kjudge could not do what it was asked, and why.
enum class Fault {
  usage,       // the command line or the configuration
  package,     // the challenge, its author
  submission,  // the contestant's files
  malformed,   // bytes that are no bundle, result, ... of ours
  device,      // the driver or the machine
  host,        // files, processes, the operating system
  bug,         // kjudge itself
};

std::string_view name(Fault fault);

// The one error type. The message is lower case, without a full stop: path, then what, then what to
// do. Context is added while unwinding, outermost first when printed.
class Error : public std::runtime_error {
 public:
  Error(Fault fault, const std::string& message,
        std::source_location where = std::source_location::current());

  Fault fault() const { return fault_; }
  const std::source_location& where() const { return where_; }
  // Prepends "`context`: " to the message.
  Error& context(std::string_view context);
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  Fault fault_;
  std::string message_;
  std::source_location where_;
};

// As it is told: "malformed: results/...: expected a number", whose fault it is and what.
std::string described(const Error& error);

// Joins its arguments: cat("rows ", 3) is "rows 3". g++ 12 has no <format>.
template <class... Parts>
std::string cat(const Parts&... parts) {
  auto text = [](const auto& part) -> std::string {
    if constexpr (std::is_convertible_v<decltype(part), std::string_view>) {
      return std::string(std::string_view(part));
    } else {
      return std::to_string(part);
    }
  };
  std::string joined;
  ((joined += text(parts)), ...);
  return joined;
}

// "0x2f00", for addresses in messages.
std::string hex(std::uint64_t value);

// "errno text" for a failed system call: Error(Fault::host, "`what`: No such file or directory").
[[noreturn]] void throw_errno(std::string_view what,
                              std::source_location where = std::source_location::current());

[[noreturn]] void check_failed(const char* expression, std::source_location where);

}  // namespace kjudge

// An invariant of kjudge's own; stays in release builds and throws Fault::bug.
#define KJ_CHECK(expression)           \
  ((expression) ? static_cast<void>(0) \
                : ::kjudge::check_failed(#expression, std::source_location::current()))
