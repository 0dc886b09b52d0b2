// SPDX-License-Identifier: Apache-2.0
#include "driver/host/entry.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "driver/host/context.h"
#include "driver/host/guard.h"

namespace kjudge {
namespace {

std::atomic<bool> started{false};
std::atomic<bool> forked{false};

struct Rule {
  std::string call;
  std::uint64_t n = 0;
  CUresult result = CUDA_SUCCESS;
  std::atomic<std::uint64_t> calls{0};
};

// "cuMemAlloc_v2" and "cuMemAlloc" are one call.
std::string_view without_version(std::string_view call) {
  const std::size_t end = call.rfind("_v");
  return end == std::string_view::npos ? call : call.substr(0, end);
}

[[noreturn]] void bad_rule(std::string_view rule, const char* why) {
  std::fprintf(stderr, "kjudge: KJUDGE_HOST_FAULT: \"%.*s\": %s; expected call:n:ERROR\n",
               static_cast<int>(rule.size()), rule.data(), why);
  std::_Exit(2);
}

CUresult error_named(std::string_view name) {
  for (int code = 1; code < 1000; ++code) {
    const char* known = error_name(static_cast<CUresult>(code));
    if (known == nullptr) continue;
    const std::string_view text(known);
    if (text == name || (text.starts_with("CUDA_ERROR_") && text.substr(11) == name)) {
      return static_cast<CUresult>(code);
    }
  }
  return CUDA_SUCCESS;
}

std::vector<Rule*> read_rules() {
  std::vector<Rule*> rules;
  const char* text = std::getenv("KJUDGE_HOST_FAULT");
  if (text == nullptr) return rules;
  for (std::string_view rest(text); !rest.empty();) {
    const std::string_view rule = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), rule.size() + 1));
    const std::size_t first = rule.find(':'), last = rule.rfind(':');
    if (first == std::string_view::npos || first == last) bad_rule(rule, "two colons wanted");
    auto* parsed = new Rule;
    parsed->call = without_version(rule.substr(0, first));
    if (!is_entry(parsed->call)) bad_rule(rule, "no such call in this driver");
    const std::string number(rule.substr(first + 1, last - first - 1));
    char* end = nullptr;
    parsed->n = std::strtoull(number.c_str(), &end, 10);
    if (number.empty() || *end != '\0' || parsed->n == 0) bad_rule(rule, "n counts from 1");
    parsed->result = error_named(rule.substr(last + 1));
    if (parsed->result == CUDA_SUCCESS) bad_rule(rule, "no such error");
    rules.push_back(parsed);
  }
  return rules;
}

}  // namespace

void log_line(const std::string& text) {
  static const bool asked = [] {
    const char* value = std::getenv("KJUDGE_HOST_LOG");
    return value != nullptr && std::strcmp(value, "1") == 0;
  }();
  if (asked) std::fprintf(stderr, "kjudge host driver: %s\n", text.c_str());
}

CUresult injected_fault(const char* call) {
  static const auto& rules = *new std::vector<Rule*>(read_rules());
  if (rules.empty()) [[likely]]
    return CUDA_SUCCESS;
  const std::string_view name = without_version(call);
  for (Rule* rule : rules) {
    if (rule->call == name && rule->calls.fetch_add(1) + 1 == rule->n) return rule->result;
  }
  return CUDA_SUCCESS;
}

bool initialized() { return started.load(std::memory_order_relaxed) && !forked.load(); }

void start() {
  require(!forked.load(), CUDA_ERROR_NOT_INITIALIZED);
  if (started.exchange(true)) return;
  pthread_atfork(nullptr, nullptr, [] { forked.store(true); });
  install_fault_handlers();
}

}  // namespace kjudge
