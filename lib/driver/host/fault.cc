// SPDX-License-Identifier: Apache-2.0
#include "driver/host/fault.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "driver/host/entry.h"

namespace kjudge {
namespace {

// What KJUDGE_HOST_PROCESS can be; the processes of an evaluation.
constexpr std::array<std::string_view, 9> kProcesses = {"supervisor",
                                                        "worker-baseline",
                                                        "worker-submission",
                                                        "capture-baseline",
                                                        "capture-submission",
                                                        "capture-reference",
                                                        "reference",
                                                        "inputs",
                                                        "check"};

struct Rule {
  std::string call;
  std::uint64_t n = 0;
  CUresult result = CUDA_SUCCESS;
  std::atomic<std::uint64_t> calls{0};
};

struct Asked {
  std::vector<Rule*> rules;
  int trace = -1;
  std::string process;
};

// "cuMemAlloc_v2" and "cuMemAlloc" are one call.
std::string_view without_version(std::string_view call) {
  const std::size_t end = call.rfind("_v");
  return end == std::string_view::npos ? call : call.substr(0, end);
}

// "worker" means both workers.
bool means(std::string_view wanted, std::string_view process) {
  return process.starts_with(wanted) &&
         (process.size() == wanted.size() || process[wanted.size()] == '-');
}

[[noreturn]] void bad_rule(std::string_view rule, const char* why) {
  std::fprintf(stderr,
               "kjudge: KJUDGE_HOST_FAULT: \"%.*s\": %s; expected [process/]call:n:ERROR, such as "
               "worker-submission/cuMemCreate:3:OUT_OF_MEMORY\n",
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

// The rule if it is for this process; checked whole in any case.
Rule* read_rule(std::string_view rule, std::string_view process) {
  std::string_view call = rule;
  bool ours = true;
  if (const std::size_t slash = rule.find('/'); slash != std::string_view::npos) {
    const std::string_view wanted = rule.substr(0, slash);
    bool known = false;
    for (const std::string_view one : kProcesses) known = known || means(wanted, one);
    if (!known || wanted.empty()) {
      bad_rule(
          rule,
          "no such process; there are supervisor, worker-ARM, capture-ROLE, reference, inputs");
    }
    ours = means(wanted, process);
    call = rule.substr(slash + 1);
  }
  const std::size_t first = call.find(':'), last = call.rfind(':');
  if (first == std::string_view::npos || first == last) bad_rule(rule, "two colons wanted");
  auto* parsed = new Rule;
  parsed->call = without_version(call.substr(0, first));
  if (!is_entry(parsed->call)) bad_rule(rule, "no such call in this driver");
  const char* end = call.data() + last;
  const auto number = std::from_chars(call.data() + first + 1, end, parsed->n);
  if (number.ec != std::errc() || number.ptr != end || parsed->n == 0) {
    bad_rule(rule, "n counts from 1");
  }
  parsed->result = error_named(call.substr(last + 1));
  if (parsed->result == CUDA_SUCCESS) bad_rule(rule, "no such error");
  return ours ? parsed : nullptr;
}

const Asked& asked() {
  static const Asked& all = *[] {
    auto* read = new Asked;
    const char* process = std::getenv("KJUDGE_HOST_PROCESS");
    read->process = process == nullptr ? "supervisor" : process;
    const char* faults = std::getenv("KJUDGE_HOST_FAULT");
    for (std::string_view rest(faults == nullptr ? "" : faults); !rest.empty();) {
      const std::string_view rule = rest.substr(0, rest.find(','));
      rest.remove_prefix(std::min(rest.size(), rule.size() + 1));
      if (Rule* parsed = read_rule(rule, read->process)) read->rules.push_back(parsed);
    }
    if (const char* path = std::getenv("KJUDGE_HOST_TRACE")) {
      read->trace = ::open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
      if (read->trace < 0) {
        std::fprintf(stderr, "kjudge: KJUDGE_HOST_TRACE: %s cannot be written\n", path);
        std::_Exit(2);
      }
    }
    return read;
  }();
  return all;
}

// One write of one line: those of other threads and processes do not mix with it, and a process
// that is killed has said what it called.
void trace(const Asked& all, std::string_view call, CUresult result) {
  std::string line = all.process + " " + std::to_string(::getpid()) + " " + std::string(call);
  if (result != CUDA_SUCCESS) line += std::string(" ") + error_name(result);
  line += '\n';
  if (::write(all.trace, line.data(), line.size()) < 0) return;
}

}  // namespace

CUresult injected_fault(const char* call) {
  const Asked& all = asked();
  if (all.rules.empty() && all.trace < 0) [[likely]]
    return CUDA_SUCCESS;
  const std::string_view name = without_version(call);
  CUresult result = CUDA_SUCCESS;
  for (Rule* rule : all.rules) {
    if (rule->call == name && rule->calls.fetch_add(1) + 1 == rule->n) result = rule->result;
  }
  if (all.trace >= 0) trace(all, name, result);
  return result;
}

}  // namespace kjudge
