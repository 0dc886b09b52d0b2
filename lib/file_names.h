// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

namespace kjudge {

struct NameLimits {
  std::size_t count = 1000;      // files and folders together
  std::size_t name_bytes = 200;  // of each part of a path; leaves room for an atomic write's suffix
  std::size_t path_bytes = 1000;  // of all parts
  std::size_t depth = 16;         // folders above a file
};

// The names of a tree of files that strangers hand in, one after the other: inside the tree, safe
// in JSON, pages and terminals, and each another file wherever the tree is copied, also where file
// systems take "A" for "a" and composed characters for decomposed ones.
class NameRules {
 public:
  explicit NameRules(const NameLimits& limits = {}) : limits_(limits) {}

  // Which rule `path`, relative and with '/', breaks, beside those added before; "": none, and it
  // is added with the folders above it. A folder may be added again.
  enum class Kind { file, folder };
  std::string add(std::string_view path, Kind kind);

 private:
  struct Name {
    std::string path;
    Kind kind;
  };
  std::string add_one(std::string_view path, Kind kind);

  NameLimits limits_;
  std::map<std::u32string, Name> names_;  // by the path without upper case
};

// Of the system's and of tools' making, not of the contestant's: names that begin with a dot,
// __pycache__ and __MACOSX. "." and ".." are not among them.
bool left_out(std::string_view name);
// Whether that holds for a part of `path`, which stays inside the folder handed in: what is
// absolute or has a ".." is not left out, for it shall be refused.
bool left_out_path(std::string_view path);

constexpr std::string_view kNeither =
    "neither a file nor a folder; devices, FIFOs and sockets may not be handed in: leave it out";
// What is said of a file with one of these bits. On folders setgid is how groups share them, and
// sticky says nothing of the files: neither is looked at, and neither copied.
constexpr std::string_view kSetId = "a setuid or setgid bit; take it away with chmod ug-s";

// True for UTF-8 that shows as one line of text: no control characters, none that turns the
// direction of the text or has no width.
bool printable_name(std::string_view name);

// Which rule a name breaks that no other may pass for; "": none. Each of its characters prints
// (unicode.h), and there is no space at either end.
std::string visible_rule(std::string_view name);
// Which rule the name of a run or a person breaks; "": none. It keeps to visible_rule(), is 1 to
// 100 bytes in composed form (NFC), without '/', and its spaces are single ones, U+0020.
std::string name_rule(std::string_view name);
// The same for names that differ in upper and lower case alone, by Unicode's simple case mappings:
// also sigma at the end of a word and the long s, but not sharp s for ss nor ligatures for their
// letters. Of what is no UTF-8 only ASCII is folded.
std::string folded_name(std::string_view name);
// Whether two names are the same then.
bool same_name(std::string_view a, std::string_view b);

}  // namespace kjudge
