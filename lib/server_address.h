// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace kjudge {

// Where a contest's server is asked, up to 200 bytes:
//   address = "http" ["s"] "://" host [":" port] {"/" part} ["/"]
//   host    = names with '.' between them, of letters, digits, '-' and '_'; an IPv4 address; an
//   IPv6
//             address in brackets
//   port    = 1 to 65535
//   part    = letters, digits, '.', '_', '~', '+', '-' and '%' with two hexadecimal digits, but
//             neither "." nor ".."
// No user, password, query or fragment: what stands here is packed for everyone, and paths are
// added to it. The same rule is host_of() of submit.py and SERVER of harness.py.
struct ServerAddress {
  bool tls = false;
  std::string host, port;  // host without brackets; port that of the scheme where none is named
  std::string path;        // "" or with '/' before each part
};

// Reads it into `parts`; which rule it breaks otherwise, in words that show no password; "": none.
std::string read_server_address(std::string_view address, ServerAddress& parts);

// The same of what `option` says, without '/' at its end. Fault::usage with the rule.
std::string require_server_address(const std::string& address, ServerAddress& parts,
                                   std::string_view option = "--server");

}  // namespace kjudge
