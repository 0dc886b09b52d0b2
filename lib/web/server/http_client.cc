// SPDX-License-Identifier: Apache-2.0
#include "web/server/http_client.h"

#include <openssl/ssl.h>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>
#include <exception>
#include <filesystem>
#include <optional>

#include "error.h"
#include "judge/interrupt.h"
#include "server_address.h"

namespace kjudge {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;
using Message = http::request<http::string_body>;

// A packed kjudge brings a libssl that looks for certificates where Debian has them.
void trust_system(asio::ssl::context& context) {
  context.set_default_verify_paths();
  for (const char* file : {"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt",
                           "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"}) {
    boost::system::error_code ignored;
    if (std::filesystem::exists(file)) context.load_verify_file(file, ignored);
  }
}

template <class Stream>
asio::awaitable<HttpReply> converse(Stream& stream, beast::tcp_stream& bottom,
                                    const Message& message, const HttpClient& client) {
  // A line of 20 kB/s is slow enough.
  bottom.expires_after(client.patience + std::chrono::seconds(message.body().size() / 20'000));
  // A server that refuses a large body may answer and close before all of it is written.
  boost::system::error_code unwritten;
  co_await http::async_write(stream, message, asio::redirect_error(asio::use_awaitable, unwritten));
  bottom.expires_after(client.patience);
  beast::flat_buffer buffer;
  http::response_parser<http::string_body> parser;
  parser.body_limit(client.limit_bytes);
  boost::system::error_code unread;
  co_await http::async_read(stream, buffer, parser,
                            asio::redirect_error(asio::use_awaitable, unread));
  if (unread) throw boost::system::system_error(unwritten ? unwritten : unread);
  const auto& answer = parser.get();
  const auto header = [&](http::field field) {
    const auto value = answer[field];
    return std::string(value.data(), value.size());
  };
  co_return HttpReply{static_cast<int>(answer.result_int()), header(http::field::location),
                      header(http::field::retry_after), answer.body()};
}

struct Place {
  std::string host, port;
  bool tls;
};

asio::awaitable<HttpReply> exchange(const Place& place, const Message& message,
                                    const HttpClient& client) {
  const auto executor = co_await asio::this_coro::executor;
  tcp::resolver resolver(executor);
  const auto found = co_await resolver.async_resolve(place.host, place.port, asio::use_awaitable);
  if (!place.tls) {
    beast::tcp_stream stream(executor);
    stream.expires_after(client.patience);
    co_await stream.async_connect(found, asio::use_awaitable);
    co_return co_await converse(stream, stream, message, client);
  }
  asio::ssl::context context(asio::ssl::context::tls_client);
  trust_system(context);
  context.set_verify_mode(asio::ssl::verify_peer);
  beast::ssl_stream<beast::tcp_stream> stream(executor, context);
  stream.set_verify_callback(asio::ssl::host_name_verification(place.host));
  // Servers with several names need to hear which; an address is none.
  boost::system::error_code no_address;
  asio::ip::make_address(place.host, no_address);
  if (no_address) SSL_set_tlsext_host_name(stream.native_handle(), place.host.c_str());
  auto& bottom = beast::get_lowest_layer(stream);
  bottom.expires_after(client.patience);
  co_await bottom.async_connect(found, asio::use_awaitable);
  try {
    co_await stream.async_handshake(asio::ssl::stream_base::client, asio::use_awaitable);
  } catch (const boost::system::system_error&) {
    const long verified = SSL_get_verify_result(stream.native_handle());
    if (verified == X509_V_OK) throw;
    throw Error(Fault::host, cat(client.address(), ": its certificate is not to be trusted: ",
                                 X509_verify_cert_error_string(verified)));
  }
  co_return co_await converse(stream, bottom, message, client);
}

}  // namespace

HttpClient::HttpClient(const std::string& address) {
  ServerAddress parts;
  address_ = require_server_address(address, parts);
  tls_ = parts.tls;
  host_ = parts.host;
  port_ = parts.port;
  prefix_ = parts.path;
}

bool HttpClient::is_private() const {
  return tls_ || host_ == "localhost" || host_ == "127.0.0.1" || host_ == "::1";
}

HttpReply HttpClient::ask(const Request& request) const {
  Message message(http::string_to_verb(request.method), prefix_ + request.path, 11);
  const bool v6 = host_.find(':') != std::string::npos;
  const bool usual = port_ == (tls_ ? "443" : "80");
  message.set(http::field::host,
              cat(v6 ? "[" : "", host_, v6 ? "]" : "", usual ? "" : ":", usual ? "" : port_));
  message.set(http::field::authorization, "Bearer " + request.token);
  message.set(http::field::accept, "application/json");
  message.set(http::field::user_agent, "kjudge-submit/1");
  message.set(http::field::connection, "close");
  if (!request.body.empty()) {
    message.set(http::field::content_type, "application/json");
    message.body() = request.body;
    message.prepare_payload();
  }
  const Place place{host_, port_, tls_};
  std::optional<HttpReply> reply;
  std::exception_ptr failed;
  asio::io_context io;
  asio::co_spawn(io, exchange(place, message, *this),
                 [&](std::exception_ptr problem, HttpReply got) {
                   failed = problem;
                   if (!problem) reply = std::move(got);
                 });
  while (!reply && !failed) {
    io.run_for(std::chrono::milliseconds(50));
    check_interrupt();
  }
  if (failed) {
    try {
      std::rethrow_exception(failed);
    } catch (const boost::system::system_error& error) {
      throw NoReply(cat(address_, " does not answer (", error.code().message(), ")"));
    }
  }
  return std::move(*reply);
}

}  // namespace kjudge
