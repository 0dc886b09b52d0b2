// SPDX-License-Identifier: Apache-2.0
#include "web/server/upload.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "error.h"
#include "file.h"
#include "json.h"
#include "web/server/http.h"

using namespace kjudge;
namespace fs = std::filesystem;

namespace {

constexpr const char* kId = "0f8fad5b-d9cb-469f-a165-70867728950e";

struct Taken {
  UploadRequest request;
  std::string content;
  int status = 200;
  std::string why;
};

// Fed in pieces of `piece` bytes.
Taken take(const std::string& body, std::size_t piece = 1 << 20, std::uint64_t limit = 1 << 20) {
  const TempDir folder;
  Taken taken;
  try {
    UploadReader reader(folder.path() / "content", limit);
    for (std::size_t at = 0; at < body.size(); at += piece) reader.take(body.substr(at, piece));
    taken.request = reader.finish();
    taken.content = read_file(folder.path() / "content");
  } catch (const HttpProblem& problem) {
    taken.status = problem.status();
    taken.why = problem.what();
  }
  return taken;
}

std::string with(const std::string& more) {
  return cat("{\"id\": \"", kId, "\", \"run\": \"r\", \"challenge\": \"c\", ", more, "}");
}
std::string code(const std::string& text) {
  return with("\"file\": \"submission.py\", \"code\": \"" + text + "\"");
}
std::string archive(const std::string& text) {
  return with("\"file\": \"a.zip\", \"archive\": \"" + text + "\"");
}

}  // namespace

TEST_CASE("an upload is the same in pieces of any size") {
  const std::string body = with(
      "\"code\": \"a\\n\\\"\\\\\\u00e9\\ud83d\\ude00\\u0000\u00e9\U0001f600\", \"keep\" : false ,"
      "\"publish\":false,\"contact\":\"me\\/you\", \"file\":\"x.cu\"");
  for (std::size_t piece = 1; piece < body.size() + 2; ++piece) {
    const Taken taken = take(body, piece);
    REQUIRE(taken.why == "");
    CHECK(taken.content == std::string("a\n\"\\\u00e9\U0001f600\0\u00e9\U0001f600", 17));
    CHECK(taken.request.contact == "me/you");
    CHECK(taken.request.file == "x.cu");
    CHECK(taken.request.id == kId);
    CHECK_FALSE(taken.request.keep);
    CHECK_FALSE(taken.request.publish);
  }
}

TEST_CASE("an upload's text is what another reader of JSON finds in it") {
  for (const char* text :
       {"", "plain", "\\b\\f\\n\\r\\t", "\\u20AC", "\\ud800\\udc00", "\\udbff\\udfff", "\u2028"}) {
    const Json json = parse_json(cat("\"", text, "\""), "text", Fault::bug);
    CHECK(take(code(text)).content == std::get<std::string>(json.value));
  }
  for (const char* text : {"\x01",
                           "\x1f",
                           "\\x",
                           "\\u12g4",
                           "\\ud800",
                           "\\ud800x",
                           "\\ud800\\n",
                           "\\udc00",
                           "\\ud800\\ud800",
                           "\x80",
                           "\xc0\xaf",
                           "\xc1\x81",
                           "\xe0\x80\x80",
                           "\xed\xa0\x80",
                           "\xf0\x80\x80\x80",
                           "\xf4\x90\x80\x80",
                           "\xf5\x80\x80\x80",
                           "\xc3",
                           "\xe2\x82",
                           "\xc3\\n",
                           "\xff"}) {
    CHECK_THROWS_AS(parse_json(cat("\"", text, "\""), "text", Fault::usage), Error);
    CHECK(take(code(text)).status == 400);
  }
}

TEST_CASE("an upload's archive is base64, whole") {
  for (const auto& [text, bytes] :
       {std::pair("", ""), std::pair("Zg==", "f"), std::pair("Zm8=", "fo"),
        std::pair("Zm9v", "foo"), std::pair("Zm9vYg==", "foob"), std::pair("+/8A", "\xfb\xff"),
        std::pair("Zm9v\\u0059g==", "foob")}) {
    const Taken taken = take(archive(text));
    CHECK(taken.why == "");
    CHECK(std::string(taken.content.c_str()) == bytes);
  }
  for (const char* text : {"Z", "Zg", "Zg=", "Zg===", "=", "====", "Zg==Zg==", "Zm9v=", "Zm 9v",
                           "Zm9v\\n", "Zm-_", "Z=g="}) {
    CHECK(take(archive(text)).status == 400);
  }
}

TEST_CASE("an upload larger than the limit is refused when the limit is passed") {
  CHECK(take(code("12345"), 1, 5).status == 200);
  const Taken taken = take(code("123456"), 1, 5);
  CHECK(taken.status == 413);
  CHECK(taken.why == "the submission is larger than 5 bytes");
  CHECK(take(archive("Zm9vYg=="), 1, 4).status == 200);
  CHECK(take(archive("Zm9vYg=="), 1, 3).status == 413);
  CHECK(take(code("123456") + "...", 1, 5).status == 413);  // before the rest is looked at
}

TEST_CASE("uploads that are no such object") {
  const std::string right = code("1");
  REQUIRE(take(right).status == 200);
  CHECK(take(" \n" + right + "\r\n\t").status == 200);
  for (std::size_t size = 0; size < right.size(); ++size) {
    CHECK(take(right.substr(0, size)).status == 400);
  }
  for (const std::string& wrong : {right + "x",
                                   right + right,
                                   "[" + right + "]",
                                   "x" + right,
                                   std::string("{}"),
                                   std::string("{,}"),
                                   with("\"file\": \"x.py\", \"code\": \"1\","),
                                   with("\"file\": \"x.py\" \"code\": \"1\""),
                                   with("\"file\" \"x.py\", \"code\": \"1\""),
                                   with("file: \"x.py\", \"code\": \"1\""),
                                   with("\"file\": \"x.py\", \"code\": [\"1\"]"),
                                   with("\"file\": \"x.py\", \"code\": null"),
                                   with("\"file\": \"x.py\", \"code\": \"1\", \"code\": \"1\""),
                                   with("\"file\": \"x.py\", \"code\": \"1\", \"keep\": tru"),
                                   with("\"file\": \"x.py\", \"code\": \"1\", \"publish\": 0"),
                                   with("\"file\": \"x.py\", \"code\": \"1\", \"keep\": truest"),
                                   with("\"file\": \"x.py\", \"code\": \"1\", \"keep\": \"true\""),
                                   with("\"file\": \"x.py\", \"code\": \"1\", \"archive\": \"\""),
                                   with("\"file\": \"x.py\", \"code\": \"1\", \"extra\": \"1\""),
                                   with("\"file\": \"x.zip\", \"code\": \"1\""),
                                   with("\"file\": \"x.py\", \"archive\": \"\""),
                                   with("\"file\": \"\", \"code\": \"1\""),
                                   with("\"file\": \".py\", \"code\": \"1\""),
                                   with("\"file\": \"a/x.py\", \"code\": \"1\""),
                                   with("\"file\": \"a\\u0000.py\", \"code\": \"1\""),
                                   with("\"file\": \"\\u202ex.py\", \"code\": \"1\""),
                                   with("\"code\": \"1\""),
                                   with("\"file\": \"x.py\"")}) {
    const Taken taken = take(wrong);
    CHECK_MESSAGE(taken.status == 400, wrong);
    CHECK(taken.why != "");
  }
  for (const char* id :
       {"", "1", "0F8FAD5B-D9CB-469F-A165-70867728950E", "0f8fad5bxd9cb-469f-a165-70867728950e",
        "0f8fad5b-d9cb-469f-a165-70867728950e0"}) {
    std::string other = right;
    CHECK(take(other.replace(other.find(kId), 36, id)).why.starts_with("id: expected a UUID"));
  }
}

TEST_CASE("an upload's fields are short, whatever they are") {
  CHECK(take(with("\"file\": \"x.py\", \"code\": \"1\", \"contact\": \"" + std::string(200, 'x') +
                  "\""))
            .status == 200);
  for (const std::size_t size : {201u, 1000u, 1001u, 1000000u}) {
    CHECK(take(with("\"file\": \"x.py\", \"code\": \"1\", \"contact\": \"" +
                    std::string(size, 'x') + "\""))
              .status == 400);
    CHECK(take("{\"" + std::string(size, 'x') + "\": \"1\"}").status == 400);
  }
}
