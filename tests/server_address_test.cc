// SPDX-License-Identifier: Apache-2.0
#include "server_address.h"

#include <doctest/doctest.h>

#include "error.h"

using namespace kjudge;

TEST_CASE("server address: host, port and path are told apart") {
  ServerAddress parts;
  CHECK(read_server_address("https://contest.example.org", parts) == "");
  CHECK(parts.tls);
  CHECK(parts.host == "contest.example.org");
  CHECK(parts.port == "443");
  CHECK(parts.path == "");
  CHECK(read_server_address("http://[2001:db8::1]:8080/a/b%2f/", parts) == "");
  CHECK_FALSE(parts.tls);
  CHECK(parts.host == "2001:db8::1");
  CHECK(parts.port == "8080");
  CHECK(parts.path == "/a/b%2f");
  CHECK(require_server_address("http://h/", parts) == "http://h");
  CHECK(parts.port == "80");
}

TEST_CASE("server address: which part breaks the rule is said, and no password is shown") {
  ServerAddress parts;
  const auto starts = [&](std::string_view address, std::string_view why) {
    CAPTURE(address);
    CHECK(read_server_address(address, parts).starts_with(why));
  };
  for (const char* address : {"http://h:", "http://h:0", "http://h:65536", "http://h:80:90",
                              "http://h:080", "http://[::1]80"}) {
    starts(address, "not a port");
  }
  for (const char* address : {"http://h/%zz", "http://h/%4", "http://h/../x", "http://h/.",
                              "http://h//", "http://h/a//b", "http://h/\"", "http://h/a:b"}) {
    starts(address, "not a path");
  }
  for (const char* address : {"http://a..b", "http://a.", "http://-a", "http://a'"}) {
    starts(address, "not a host");
  }
  for (const char* address :
       {"http://[::1", "http://[]", "http://[::1.2.3.4]", "http://[1::2::3]"}) {
    starts(address, "what stands in brackets");
  }
  for (const char* address : {"http://", "http://:80", "http:///a"})
    starts(address, "names no host");
  starts("ftp://h", "expected an http or https address");
  starts("http://h/?a", "expected an address without ? and #");
  starts("http://h/\xc3\xa9", "an address has no spaces");
  starts("http://h/" + std::string(200, 'a'), "an address is at most 200 bytes long");
  CHECK_THROWS_WITH_AS(require_server_address("http://me:sesame@h", parts),
                       "--server: an address has no user and password; the token in KERNELS_TOKEN "
                       "says who you are",
                       Error);
  CHECK_THROWS_WITH_AS(require_server_address("http://h:", parts),
                       "--server http://h:: not a port: a number from 1 to 65535, after one \":\"",
                       Error);
}
