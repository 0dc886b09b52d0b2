// SPDX-License-Identifier: Apache-2.0
#include "server_address.h"

#include <arpa/inet.h>

#include <algorithm>

#include "error.h"

namespace kjudge {
namespace {

constexpr std::size_t kMost = 200, kMostOfName = 63;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_hexadecimal(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}
bool is_word(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool is_name(std::string_view name) {
  return !name.empty() && name.size() <= kMostOfName && is_word(name.front()) &&
         is_word(name.back()) &&
         std::all_of(name.begin(), name.end(), [](char c) { return is_word(c) || c == '-'; });
}

bool is_ipv6(const std::string& text) {
  in6_addr ignored;
  return text.find('.') == text.npos && ::inet_pton(AF_INET6, text.c_str(), &ignored) == 1;
}

// Takes what stands before the first `end` off `text`, and `end` with it.
std::string_view take_until(std::string_view& text, char end) {
  const std::size_t at = std::min(text.find(end), text.size());
  const std::string_view taken = text.substr(0, at);
  text.remove_prefix(std::min(at + 1, text.size()));
  return taken;
}

bool is_host(std::string_view host) {
  if (host.ends_with('.')) return false;
  while (!host.empty()) {
    if (!is_name(take_until(host, '.'))) return false;
  }
  return true;
}

bool is_port(std::string_view port) {
  if (port.empty() || port.size() > 5 || port.front() == '0' ||
      !std::all_of(port.begin(), port.end(), is_digit)) {
    return false;
  }
  return std::stoi(std::string(port)) <= 65535;
}

bool is_part(std::string_view part) {
  if (part.empty() || part == "." || part == "..") return false;
  for (std::size_t i = 0; i < part.size(); ++i) {
    if (part[i] == '%') {
      if (part.size() - i < 3 || !is_hexadecimal(part[i + 1]) || !is_hexadecimal(part[i + 2])) {
        return false;
      }
    } else if (!is_word(part[i]) &&
               std::string_view(".~+-").find(part[i]) == std::string_view::npos) {
      return false;
    }
  }
  return true;
}

std::string read_place(std::string_view place, ServerAddress& parts) {
  std::string_view after;
  if (place.starts_with('[')) {
    const std::size_t end = std::min(place.find(']'), place.size());
    parts.host = place.substr(1, end - 1);
    if (end == place.size() || !is_ipv6(parts.host)) {
      return "what stands in brackets is no IPv6 address such as [::1]";
    }
    after = place.substr(end + 1);
  } else {
    const std::size_t colon = std::min(place.find(':'), place.size());
    parts.host = place.substr(0, colon);
    if (parts.host.empty()) return "names no host";
    if (!is_host(parts.host)) {
      return "not a host: names of letters, digits, \"-\" and \"_\" with \".\" between them, or an "
             "IPv6 address in brackets";
    }
    after = place.substr(colon);
  }
  if (after.empty()) return "";
  if (after.front() != ':' || !is_port(after.substr(1))) {
    return "not a port: a number from 1 to 65535, after one \":\"";
  }
  parts.port = after.substr(1);
  return "";
}

}  // namespace

std::string read_server_address(std::string_view address, ServerAddress& parts) {
  parts = {};
  parts.tls = address.starts_with("https://");
  const std::size_t scheme = address.find("://");
  std::string_view rest = address.substr(scheme == address.npos ? 0 : scheme + 3);
  if (rest.substr(0, rest.find_first_of("/?#")).find('@') != rest.npos) {
    return "an address has no user and password; the token in KERNELS_TOKEN says who you are";
  }
  if (!parts.tls && !address.starts_with("http://")) return "expected an http or https address";
  if (!std::all_of(address.begin(), address.end(), [](char c) { return c > ' ' && c < 127; })) {
    return "an address has no spaces and only ASCII characters";
  }
  if (address.find_first_of("?#") != address.npos) {
    return "expected an address without ? and #, which paths are added to";
  }
  if (address.size() > kMost) return cat("an address is at most ", kMost, " bytes long");
  parts.port = parts.tls ? "443" : "80";
  const std::string_view place = rest.substr(0, rest.find('/'));
  if (std::string broken = read_place(place, parts); !broken.empty()) return broken;
  rest.remove_prefix(place.size());
  if (rest.ends_with('/')) rest.remove_suffix(1);
  parts.path = rest;
  if (!rest.empty()) rest.remove_prefix(1);
  for (bool more = !parts.path.empty(); more;) {
    more = rest.find('/') != rest.npos;
    if (!is_part(take_until(rest, '/'))) {
      return "not a path: parts of letters, digits, \".\", \"_\", \"~\", \"+\", \"-\" and % with "
             "two "
             "hexadecimal digits, none of them empty, \".\" or \"..\"";
    }
  }
  return "";
}

std::string require_server_address(const std::string& address, ServerAddress& parts,
                                   std::string_view option) {
  const std::string broken = read_server_address(address, parts);
  if (broken.empty())
    return address.ends_with('/') ? address.substr(0, address.size() - 1) : address;
  // Not shown where a password may be in it, nor what could drive a terminal.
  const bool shown = address.find('@') == address.npos &&
                     std::all_of(address.begin(), address.end(),
                                 [](unsigned char c) { return c >= ' ' && c != 127; });
  throw Error(Fault::usage, cat(option, shown ? " " + address : "", ": ", broken));
}

}  // namespace kjudge
