// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "file.h"

namespace kjudge {

// What a contestant asks for, all but the bytes.
struct UploadRequest {
  std::string id, run, challenge, file, contact;
  bool keep = true, publish = true;
};

// Reads the JSON object of POST /api/submissions as it comes in, in pieces of any size: the text of
// "code" and the bytes of "archive" go to a file at once, and nothing else in it is long. So the
// memory that an upload takes does not depend on its size. Strict, as json.h is: valid UTF-8, no
// unknown field, none twice, nothing after the object.
class UploadReader {
 public:
  // Writes the new file `content`. `limit_bytes` is the largest that it may become.
  UploadReader(const std::filesystem::path& content, std::uint64_t limit_bytes);

  // Throws HttpProblem: 400 for what is no such object, 413 over the limit.
  void take(std::string_view bytes);
  // Once all of it is there. Throws HttpProblem 400 for what is missing, or breaks a field's rule.
  UploadRequest finish();

 private:
  enum class State {
    begin,
    first_name,  // or the end of the object
    name,
    colon,
    value,
    string,
    escape,
    unicode,
    low_surrogate_escape,  // the backslash of the second half
    low_surrogate_u,
    word,
    comma,
    end
  };
  enum class Into { name, field, code, archive };

  void step(char c);
  void begin_value(char c);
  void begin_string(Into into);
  void end_string();
  void end_word();
  void escape(char c);
  void unicode_digit(char c);
  void put(char c);  // a byte of a string's value
  void put_character(std::uint32_t character);
  void check_utf8(unsigned char c);
  void put_base64(char c);
  void write(char c);
  void flush();
  void end_archive();
  std::string& field(std::string_view name);
  [[noreturn]] void refuse(std::string_view why) const;

  const std::string content_;
  Fd fd_;
  const std::uint64_t limit_bytes_;
  std::uint64_t written_ = 0, read_ = 0;
  std::string buffer_;

  State state_ = State::begin;
  Into into_ = Into::name;
  std::string name_, text_;
  std::uint32_t code_unit_ = 0, high_surrogate_ = 0;
  int digits_ = 0;
  int utf8_left_ = 0;
  unsigned char utf8_low_ = 0x80, utf8_high_ = 0xbf;
  std::uint32_t base64_bits_ = 0;
  int base64_count_ = 0, base64_padding_ = 0;

  UploadRequest request_;
  std::array<bool, 9> seen_{};
};

}  // namespace kjudge
