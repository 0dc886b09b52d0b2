// SPDX-License-Identifier: Apache-2.0
#include "store/submission_notes.h"

#include <fcntl.h>
#include <unistd.h>

#include <string_view>

#include "file.h"
#include "file_names.h"

namespace kjudge {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kHeadBytes = 4096;
constexpr std::size_t kMostNoteBytes = 100;  // of a note

std::string head_of(const fs::path& file) {
  const Fd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  std::string head(kHeadBytes, '\0');
  const ssize_t size = fd.valid() ? ::read(fd.get(), head.data(), head.size()) : 0;
  head.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
  return head;
}

std::string_view trimmed(std::string_view text) {
  const auto from = text.find_first_not_of(" \t\r");
  if (from == text.npos) return {};
  return text.substr(from, text.find_last_not_of(" \t\r") + 1 - from);
}

// A line's text behind `key`, when it is a comment that begins with it.
std::string note_in(std::string_view line, std::string_view key) {
  line = trimmed(line);
  const auto mark = line.find_first_not_of("#/");
  if (mark == 0 || mark == line.npos) return {};
  line = trimmed(line.substr(mark));
  if (!line.starts_with(key)) return {};
  const std::string_view note = trimmed(line.substr(key.size()));
  return note.size() <= kMostNoteBytes && printable_name(note) ? std::string(note) : "";
}

}  // namespace

SubmissionNotes read_submission_notes(const fs::path& files) {
  std::string head = head_of(files / "submission.py");
  if (head.empty()) head = head_of(files / "submission.cu");
  SubmissionNotes notes;
  for (std::string_view rest = head; !rest.empty();) {
    const auto end = rest.find('\n');
    if (end == rest.npos && head.size() == kHeadBytes) break;  // the line may go on
    const std::string_view line = rest.substr(0, end);
    if (notes.label.empty()) notes.label = note_in(line, "kjudge_label:");
    if (notes.license.empty()) notes.license = note_in(line, "kjudge_license:");
    if (end == rest.npos) break;
    rest.remove_prefix(end + 1);
  }
  return notes;
}

}  // namespace kjudge
