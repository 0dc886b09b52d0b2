// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace kjudge {

// One thing that is not as it should be in a results directory.
struct StoreFinding {
  enum class Kind {
    damage,    // a file does not say what it said: for a person to look at
    left_over  // of a judge that was killed; costs nothing, and goes when the next one comes by
  };
  Kind kind = Kind::damage;
  std::filesystem::path path;
  std::string what;    // happened, and what follows from it
  std::string advice;  // what to do
};

struct StoreCheck {
  std::size_t submissions = 0, evaluations = 0;
  std::vector<StoreFinding> findings;
};

// Reads every file and computes every hash anew, then writes the index anew. Changes nothing else,
// so it may run while judges work. Fault::usage when there is no such directory; Fault::malformed
// when it is of a version that this kjudge does not know.
struct StoreCheckOptions {
  std::function<void()> tick;  // for each submission
  // Throws Error for what is no profile, of which the store knows the name only.
  std::function<void(const std::filesystem::path&)> read_profile;
};
StoreCheck check_store(const std::filesystem::path& results, const StoreCheckOptions& options);

}  // namespace kjudge
