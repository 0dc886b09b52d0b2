// SPDX-License-Identifier: Apache-2.0
#include "web/server/upload.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "archive.h"
#include "error.h"
#include "file_names.h"
#include "web/server/http.h"

namespace kjudge {
namespace {

constexpr std::size_t kBufferBytes = 1 << 16;
constexpr std::size_t kFieldBytes = 1000;
constexpr std::array<std::string_view, 9> kFields = {
    "id", "run", "challenge", "file", "contact", "keep", "publish", "code", "archive"};
enum FieldIndex { id, run, challenge, file, contact, keep, publish, code, archive };

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

int base64_value(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '+') return 62;
  return c == '/' ? 63 : -1;
}

bool is_uuid(std::string_view text) {
  if (text.size() != 36) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    if (dash ? c != '-' : !((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))) return false;
  }
  return true;
}

}  // namespace

UploadReader::UploadReader(const std::filesystem::path& content, std::uint64_t limit_bytes)
    : content_(content.string()),
      fd_(::open(content.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600)),
      limit_bytes_(limit_bytes) {
  if (!fd_.valid()) throw_errno(content_);
}

void UploadReader::refuse(std::string_view why) const {
  throw HttpProblem(400, cat("the request's body, byte ", read_, ": ", why));
}

void UploadReader::take(std::string_view bytes) {
  for (const char c : bytes) {
    ++read_;
    step(c);
  }
}

void UploadReader::step(char c) {
  switch (state_) {
    case State::string:
      if (c == '"') return end_string();
      if (c == '\\') {
        if (utf8_left_ != 0) refuse("not UTF-8");
        state_ = State::escape;
        return;
      }
      if (static_cast<unsigned char>(c) < ' ') refuse("a control character in a string");
      check_utf8(static_cast<unsigned char>(c));
      return put(c);
    case State::escape:
      return escape(c);
    case State::unicode:
      return unicode_digit(c);
    case State::low_surrogate_escape:
      if (c != '\\') refuse("half of a surrogate pair");
      state_ = State::low_surrogate_u;
      return;
    case State::low_surrogate_u:
      if (c != 'u') refuse("half of a surrogate pair");
      state_ = State::unicode;
      return;
    case State::word:
      if (c >= 'a' && c <= 'z') {
        if (text_.size() == 5) refuse("expected true or false");
        text_.push_back(c);
        return;
      }
      end_word();
      return step(c);
    default:
      break;
  }
  if (is_space(c)) return;
  switch (state_) {
    case State::begin:
      if (c != '{') refuse("expected a JSON object");
      state_ = State::first_name;
      return;
    case State::first_name:
    case State::name:
      if (c == '}' && state_ == State::first_name) {
        state_ = State::end;
        return;
      }
      if (c != '"') refuse("expected the name of a field");
      return begin_string(Into::name);
    case State::colon:
      if (c != ':') refuse("expected \":\"");
      state_ = State::value;
      return;
    case State::value:
      return begin_value(c);
    case State::comma:
      if (c != ',' && c != '}') refuse("expected \",\" or \"}\"");
      state_ = c == ',' ? State::name : State::end;
      return;
    default:
      refuse("expected nothing after the object");
  }
}

void UploadReader::begin_value(char c) {
  const auto at = std::find(kFields.begin(), kFields.end(), name_);
  if (at == kFields.end())
    refuse(cat("there is no field \"", printable_name(name_) ? name_ : "?", "\""));
  const auto index = static_cast<std::size_t>(at - kFields.begin());
  if (seen_[index]) refuse(cat("the field \"", name_, "\" is there twice"));
  seen_[index] = true;
  if (index == keep || index == publish) {
    if (c != 't' && c != 'f') refuse(cat(name_, ": expected true or false"));
    text_.assign(1, c);
    state_ = State::word;
    return;
  }
  if (c != '"') refuse(cat(name_, ": expected a string"));
  if (index == code || index == archive) {
    if (seen_[code] && seen_[archive]) refuse("code and archive: expected one of them");
    return begin_string(index == code ? Into::code : Into::archive);
  }
  begin_string(Into::field);
}

void UploadReader::begin_string(Into into) {
  into_ = into;
  text_.clear();
  state_ = State::string;
}

void UploadReader::end_string() {
  if (utf8_left_ != 0) refuse("not UTF-8");
  state_ = State::comma;
  switch (into_) {
    case Into::name:
      name_ = text_;
      state_ = State::colon;
      return;
    case Into::field:
      field(name_) = text_;
      return;
    case Into::archive:
      end_archive();
      [[fallthrough]];
    case Into::code:
      return flush();
  }
}

void UploadReader::end_word() {
  if (text_ != "true" && text_ != "false") refuse(cat(name_, ": expected true or false"));
  (name_ == kFields[keep] ? request_.keep : request_.publish) = text_ == "true";
  state_ = State::comma;
}

std::string& UploadReader::field(std::string_view name) {
  if (name == kFields[id]) return request_.id;
  if (name == kFields[run]) return request_.run;
  if (name == kFields[challenge]) return request_.challenge;
  return name == kFields[file] ? request_.file : request_.contact;
}

void UploadReader::escape(char c) {
  constexpr std::string_view kFrom = "\"\\/bfnrt", kTo = "\"\\/\b\f\n\r\t";
  if (c == 'u') {
    code_unit_ = 0;
    digits_ = 0;
    state_ = State::unicode;
    return;
  }
  const auto at = kFrom.find(c);
  if (at == kFrom.npos) refuse("an escape that JSON has not");
  state_ = State::string;
  put(kTo[at]);
}

void UploadReader::unicode_digit(char c) {
  const int value = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;
  if (value < 0) refuse("expected four hexadecimal digits");
  code_unit_ = code_unit_ << 4 | static_cast<std::uint32_t>(value);
  if (++digits_ < 4) return;
  const std::uint32_t unit = code_unit_;
  code_unit_ = 0;
  digits_ = 0;
  const bool high = unit >= 0xd800 && unit < 0xdc00, low = unit >= 0xdc00 && unit < 0xe000;
  if (low != (high_surrogate_ != 0)) refuse("half of a surrogate pair");
  if (high) {
    high_surrogate_ = unit;
    state_ = State::low_surrogate_escape;
    return;
  }
  state_ = State::string;
  put_character(low ? 0x10000 + ((high_surrogate_ - 0xd800) << 10) + (unit - 0xdc00) : unit);
  high_surrogate_ = 0;
}

void UploadReader::put_character(std::uint32_t c) {
  const auto byte = [&](std::uint32_t value) { put(static_cast<char>(value)); };
  if (c < 0x80) return byte(c);
  if (c < 0x800) {
    byte(0xc0 | c >> 6);
  } else if (c < 0x10000) {
    byte(0xe0 | c >> 12);
    byte(0x80 | (c >> 6 & 0x3f));
  } else {
    byte(0xf0 | c >> 18);
    byte(0x80 | (c >> 12 & 0x3f));
    byte(0x80 | (c >> 6 & 0x3f));
  }
  byte(0x80 | (c & 0x3f));
}

// The second byte's bounds keep out overlong forms, surrogates and what is past U+10FFFF.
void UploadReader::check_utf8(unsigned char c) {
  if (utf8_left_ > 0) {
    if (c < utf8_low_ || c > utf8_high_) refuse("not UTF-8");
    --utf8_left_;
    utf8_low_ = 0x80;
    utf8_high_ = 0xbf;
    return;
  }
  if (c < 0x80) return;
  if (c < 0xc2 || c > 0xf4) refuse("not UTF-8");
  utf8_left_ = c < 0xe0 ? 1 : c < 0xf0 ? 2 : 3;
  if (c == 0xe0) utf8_low_ = 0xa0;
  if (c == 0xed) utf8_high_ = 0x9f;
  if (c == 0xf0) utf8_low_ = 0x90;
  if (c == 0xf4) utf8_high_ = 0x8f;
}

void UploadReader::put(char c) {
  if (into_ == Into::code) return write(c);
  if (into_ == Into::archive) return put_base64(c);
  if (text_.size() == kFieldBytes) {
    refuse(into_ == Into::name ? "the name of a field is too long"
                               : cat(name_, ": longer than ", kFieldBytes, " bytes"));
  }
  text_.push_back(c);
}

void UploadReader::put_base64(char c) {
  if (c == '=') {
    if (++base64_padding_ > 2) refuse("archive: not base64");
    return;
  }
  const int value = base64_value(c);
  if (value < 0 || base64_padding_ > 0) refuse("archive: not base64");
  base64_bits_ = base64_bits_ << 6 | static_cast<std::uint32_t>(value);
  if (++base64_count_ < 4) return;
  for (const int shift : {16, 8, 0}) write(static_cast<char>(base64_bits_ >> shift & 0xff));
  base64_bits_ = 0;
  base64_count_ = 0;
}

void UploadReader::end_archive() {
  const bool whole = base64_count_ == 0
                         ? base64_padding_ == 0
                         : base64_count_ >= 2 && base64_count_ + base64_padding_ == 4;
  if (!whole) refuse("archive: its base64 ends too early");
  if (base64_count_ == 2) write(static_cast<char>(base64_bits_ >> 4 & 0xff));
  if (base64_count_ == 3) {
    write(static_cast<char>(base64_bits_ >> 10 & 0xff));
    write(static_cast<char>(base64_bits_ >> 2 & 0xff));
  }
}

void UploadReader::write(char c) {
  if (++written_ > limit_bytes_) {
    throw HttpProblem(413, cat("the submission is larger than ", limit_bytes_, " bytes"));
  }
  buffer_.push_back(c);
  if (buffer_.size() == kBufferBytes) flush();
}

void UploadReader::flush() {
  for (std::string_view rest = buffer_; !rest.empty();) {
    const ssize_t n = ::write(fd_.get(), rest.data(), rest.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw_errno(content_);
    rest.remove_prefix(static_cast<std::size_t>(n));
  }
  buffer_.clear();
}

UploadRequest UploadReader::finish() {
  if (state_ != State::end) refuse("ends too early");
  for (const FieldIndex needed : {id, run, challenge, file}) {
    if (!seen_[needed])
      throw HttpProblem(400, cat("the field \"", kFields[needed], "\" is missing"));
  }
  if (!seen_[code] && !seen_[archive]) {
    throw HttpProblem(400, "code or archive: expected one of them");
  }
  if (!is_uuid(request_.id)) {
    throw HttpProblem(400,
                      "id: expected a UUID in lower case, such as "
                      "\"0f8fad5b-d9cb-469f-a165-70867728950e\"");
  }
  const bool source = request_.file.ends_with(".py") || request_.file.ends_with(".cu");
  if (seen_[code] ? !source : !is_archive(request_.file)) {
    throw HttpProblem(
        400, cat("file: expected ", seen_[code] ? "a name in .py or .cu"
                                                : "a name in .tar, .tar.gz, .tgz, .tar.zst "
                                                  "or .zip"));
  }
  if (!printable_name(request_.file) || request_.file.find('/') != std::string::npos ||
      request_.file.size() > 200 || request_.file.front() == '.') {
    throw HttpProblem(400,
                      "file: expected the name of a file, without folders, of at most 200 "
                      "bytes that print");
  }
  if (!printable_name(request_.contact) || request_.contact.size() > 200) {
    throw HttpProblem(400, "contact: expected one line of at most 200 bytes that print");
  }
  return request_;
}

}  // namespace kjudge
