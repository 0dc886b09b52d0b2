// SPDX-License-Identifier: Apache-2.0
#include "web/server/http_server.h"

#include <algorithm>
#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <ctime>
#include <list>
#include <map>
#include <optional>

#include <sys/resource.h>
#include <unistd.h>

#include "error.h"
#include "file_names.h"
#include "json.h"

namespace kjudge {

HttpAnswer answer_of(const HttpProblem& problem) {
  HttpAnswer answer;
  answer.status = problem.status();
  answer.content_type = "application/json";
  answer.body =
      print_flat_json(Json{Json::Object{{"error", Json{std::string(problem.what())}}}}) + "\n";
  answer.cache_control = "no-store";
  if (problem.retry_after_s() > 0) {
    answer.headers.emplace_back("Retry-After", std::to_string(problem.retry_after_s()));
  }
  if (!problem.allowed().empty()) answer.headers.emplace_back("Allow", problem.allowed());
  if (problem.status() == 401) answer.headers.emplace_back("WWW-Authenticate", "Bearer");
  return answer;
}

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;
using Clock = std::chrono::steady_clock;
using ErrorCode = boost::system::error_code;

constexpr std::size_t kBlockBytes = 1 << 16;
constexpr std::uint64_t kLingerBytes = std::uint64_t{1} << 30;

tcp::endpoint parse_listen(const std::string& listen) {
  const auto refuse = [&](std::string_view why) {
    throw Error(Fault::usage, cat("--listen ", listen, ": ", why,
                                  "; expected ADDRESS:PORT, as 127.0.0.1:8080 or [::1]:8080"));
  };
  const auto colon = listen.rfind(':');
  if (colon == listen.npos) refuse("no port");
  std::string host = listen.substr(0, colon);
  const std::string port = listen.substr(colon + 1);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != host.npos) {
    refuse("an IPv6 address without brackets");
  }
  unsigned short number = 0;
  const auto [end, problem] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (problem != std::errc() || end != port.data() + port.size()) refuse("not a port");
  ErrorCode error;
  const auto address = asio::ip::make_address(host == "localhost" ? "127.0.0.1" : host, error);
  if (error) refuse("not an IP address");
  return {address, number};
}

std::string text_of(const tcp::endpoint& endpoint) {
  const std::string address = endpoint.address().to_string();
  return endpoint.address().is_v6() ? cat("[", address, "]:", endpoint.port())
                                    : cat(address, ":", endpoint.port());
}

std::string http_date() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  std::array<char, 64> text{};
  std::strftime(text.data(), text.size(), "%a, %d %b %Y %H:%M:%S GMT", &parts);
  return text.data();
}

// One word of a log: what could be taken for more is escaped.
std::string log_word(std::string_view text, std::size_t most = 200) {
  std::string word;
  for (const char c : text.substr(0, most)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte > ' ' && byte < 127 && c != '"' && c != '\\') {
      word += c;
    } else {
      std::array<char, 5> escaped{};
      std::snprintf(escaped.data(), escaped.size(), "\\x%02x", byte);
      word += escaped.data();
    }
  }
  if (text.size() > most) word += "...";
  return word.empty() ? "-" : word;
}

// More descriptors, where the system lets us: few are usual, and without one nothing can be read.
void want_descriptors(std::size_t count) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= count) return;
  limit.rlim_cur = std::min<rlim_t>(count, limit.rlim_max);
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

struct LoggedRequest {
  std::string client = "-", who, method = "-", target = "-";
  Clock::time_point begun = Clock::now();
};

using Parser = http::request_parser<http::buffer_body>;

HttpRequest request_of(const Parser::value_type& message) {
  HttpRequest request;
  const auto text = [](beast::string_view view) { return std::string(view.data(), view.size()); };
  request.method = text(message.method_string());
  request.path = text(message.target());
  // Nothing here takes a query; what is in one may be secret, and goes no further.
  request.path = request.path.substr(0, request.path.find_first_of("?#"));
  request.authorization = text(message[http::field::authorization]);
  request.if_none_match = text(message[http::field::if_none_match]);
  request.content_type = text(message[http::field::content_type]);
  return request;
}

}  // namespace

class HttpServer::Loop {
 public:
  Loop(HttpService& service, const std::string& listen, Logs&& logs, const HttpLimits& limits)
      : service_(service),
        logs_(std::move(logs)),
        limits_(limits),
        pool_(limits.threads),
        acceptor_(io_) {
    const tcp::endpoint endpoint = parse_listen(listen);
    // As many again are turned away at the same time, and an upload or a page has files.
    want_descriptors(4 * limits_.connections);
    try {
      acceptor_.open(endpoint.protocol());
      acceptor_.set_option(tcp::acceptor::reuse_address(true));
      acceptor_.bind(endpoint);
      acceptor_.listen(1024);
    } catch (const boost::system::system_error& error) {
      throw Error(Fault::host, cat("--listen ", listen, ": ", error.code().message()));
    }
  }

  ~Loop() {
    // What still waits for an answer holds references to all of this.
    pool_.join();
  }

  std::string address() const { return text_of(acceptor_.local_endpoint()); }

  void run(const std::function<bool()>& stop) {
    constexpr auto kTick = std::chrono::milliseconds(50);
    asio::co_spawn(io_, accept(), asio::detached);
    while (!stop()) io_.run_for(kTick);
    stopping_ = true;
    ErrorCode ignored;
    acceptor_.close(ignored);
    for (Session* session : sessions_) {
      if (session->idle) session->stream.close();
    }
    const auto deadline = Clock::now() + limits_.ending;
    while (!sessions_.empty() && Clock::now() < deadline) io_.run_for(kTick);
    for (Session* session : sessions_) session->stream.close();
    while (!sessions_.empty() && Clock::now() < deadline + std::chrono::seconds(5)) {
      io_.run_for(kTick);
    }
  }

 private:
  template <class T = void>
  using Task = asio::awaitable<T>;

  struct Session {
    explicit Session(tcp::socket&& socket) : stream(std::move(socket)) {}
    beast::tcp_stream stream;
    beast::flat_buffer buffer{kBlockBytes};
    bool idle = true;
    std::string client;
  };
  // A session that is on the list for as long as this is there.
  struct Listed {
    Listed(std::list<Session*>& all, Session& one) : list(all), at(all.insert(all.end(), &one)) {}
    ~Listed() { list.erase(at); }
    Listed(const Listed&) = delete;
    Listed& operator=(const Listed&) = delete;
    std::list<Session*>& list;
    std::list<Session*>::iterator at;
  };
  struct Counted {
    explicit Counted(std::size_t& counter) : count(counter) { ++count; }
    ~Counted() { --count; }
    Counted(const Counted&) = delete;
    Counted& operator=(const Counted&) = delete;
    std::size_t& count;
  };

  Task<> accept() {
    for (;;) {
      auto [error, socket] = co_await acceptor_.async_accept(asio::as_tuple(asio::use_awaitable));
      if (stopping_) co_return;
      if (error) {
        // Out of descriptors, mostly: others will end.
        asio::steady_timer timer(io_, std::chrono::milliseconds(100));
        co_await timer.async_wait(asio::as_tuple(asio::use_awaitable));
        continue;
      }
      if (sessions_.size() >= limits_.connections) {
        asio::co_spawn(io_, turn_away(std::move(socket)), asio::detached);
      } else {
        asio::co_spawn(io_, serve(std::move(socket)), asio::detached);
      }
    }
  }

  Task<> turn_away(tcp::socket socket) {
    static const std::string body = "{\"error\": \"too many connections; try again later\"}\n";
    static const std::string text =
        cat("HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 2\r\n"
            "Content-Type: application/json\r\nContent-Length: ",
            body.size(), "\r\n\r\n", body);
    if (turned_away_ > limits_.connections) co_return;
    const Counted counted(turned_away_);
    beast::tcp_stream stream(std::move(socket));
    stream.expires_after(std::chrono::seconds(1));
    co_await asio::async_write(stream, asio::buffer(text), asio::as_tuple(asio::use_awaitable));
    ErrorCode ignored;
    stream.socket().shutdown(tcp::socket::shutdown_both, ignored);
  }

  Task<> serve(tcp::socket socket) {
    Session session(std::move(socket));
    const Listed listed(sessions_, session);
    ErrorCode ignored;
    session.stream.socket().set_option(tcp::no_delay(true), ignored);
    // Else the kernel takes megabytes at once, and says nothing for as long as a slow client reads.
    session.stream.socket().set_option(tcp::socket::send_buffer_size(2 * kBlockBytes), ignored);
    const auto peer = session.stream.socket().remote_endpoint(ignored);
    session.client = peer.address().to_string();
    try {
      bool again = true;
      while (again && !stopping_) again = co_await serve_one(session, peer.address().is_loopback());
    } catch (const std::exception& error) {
      logs_.trouble(cat("a connection ended: ", error.what()));
    }
    session.stream.socket().shutdown(tcp::socket::shutdown_both, ignored);
  }

  // One request and its answer; false: it was the last one.
  Task<bool> serve_one(Session& session, bool from_proxy) {
    session.idle = true;
    if (session.buffer.size() == 0) {
      session.stream.expires_after(limits_.idle);
      const auto [error, bytes] = co_await session.stream.async_read_some(
          session.buffer.prepare(4096), asio::as_tuple(asio::use_awaitable));
      if (error || bytes == 0) co_return false;
      session.buffer.commit(bytes);
    }
    session.idle = false;
    LoggedRequest logged;
    logged.client = session.client;
    Parser parser;
    parser.header_limit(static_cast<std::uint32_t>(limits_.header_bytes));
    parser.body_limit(boost::none);
    session.stream.expires_after(limits_.header);
    ErrorCode error;
    co_await http::async_read_header(session.stream, session.buffer, parser,
                                     asio::redirect_error(asio::use_awaitable, error));
    if (error) {
      const std::optional<HttpProblem> problem = header_problem(error);
      if (problem) {
        HttpAnswer answer = answer_of(*problem);
        co_await send(session, answer, Sent{11, false, false}, logged);
        co_await linger(session);
      }
      co_return false;
    }
    const Parser::value_type& message = parser.get();
    HttpRequest request = request_of(message);
    logged.method = request.method;
    logged.target = request.path;
    if (from_proxy) note_forwarded(message, logged);
    HttpAnswer answer = co_await answer_to(session, parser, request);
    logged.who = request.who;
    const Sent sent{message.version(), message.keep_alive() && parser.is_done() && !stopping_,
                    message.method() == http::verb::head};
    const bool whole = co_await send(session, answer, sent, logged);
    if (whole && !parser.is_done()) co_await linger(session);
    const bool again = whole && sent.keep_alive;
    co_return again;
  }

  // For the log: the connection has been closed when time is up.
  static HttpProblem too_slow() { return HttpProblem(408, "the request came too slowly"); }

  static std::optional<HttpProblem> header_problem(const ErrorCode& error) {
    if (error == http::error::header_limit || error == http::error::buffer_overflow) {
      return HttpProblem(431, "the request's header is too long");
    }
    if (error == beast::error::timeout) return too_slow();
    if (error == http::error::end_of_stream || error == http::error::partial_message) return {};
    if (error.category() == make_error_code(http::error::bad_method).category()) {
      return HttpProblem(400, cat("not an HTTP/1.1 request: ", error.message()));
    }
    return {};
  }

  // What a reverse proxy on this machine says of its client; the last word is the proxy's own.
  static void note_forwarded(const Parser::value_type& message, LoggedRequest& logged) {
    const auto header = message["X-Forwarded-For"];
    std::string_view chain(header.data(), header.size());
    if (const auto comma = chain.rfind(','); comma != chain.npos) chain.remove_prefix(comma + 1);
    while (chain.starts_with(' ')) chain.remove_prefix(1);
    if (!chain.empty()) logged.client = chain;
  }

  // One more body of its kind, for as long as this is there. Throws HttpProblem.
  class Place {
   public:
    Place(Loop& loop, const HttpRequest& request, const HttpBody& body)
        : loop_(loop),
          who_(body.is_anonymous() ? "" : request.who),
          all_(body.is_anonymous() ? loop.anonymous_bodies_ : loop.bodies_) {
      const bool anonymous = body.is_anonymous();
      if (all_ >= (anonymous ? loop.limits_.anonymous : loop.limits_.bodies)) {
        throw HttpProblem(
            503, cat("too many ", anonymous ? "at once" : "uploads", "; try again later"), 1);
      }
      if (!who_.empty() && loop.bodies_of_[who_] >= loop.limits_.bodies_each) {
        throw HttpProblem(429, "too many uploads with this token at the same time", 1);
      }
      ++all_;
      if (!who_.empty()) ++loop.bodies_of_[who_];
    }
    ~Place() {
      --all_;
      if (!who_.empty() && --loop_.bodies_of_[who_] == 0) loop_.bodies_of_.erase(who_);
    }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

   private:
    Loop& loop_;
    const std::string who_;
    std::size_t& all_;
  };

  // Never fails: what goes wrong becomes an answer.
  Task<HttpAnswer> answer_to(Session& session, Parser& parser, HttpRequest& request) {
    try {
      HttpService::Begun begun = co_await on_pool<HttpService::Begun>(
          [this, &request] { return service_.begin(request); });
      if (auto* answer = std::get_if<HttpAnswer>(&begun)) co_return std::move(*answer);
      HttpBody& body = *std::get<std::unique_ptr<HttpBody>>(begun);
      const Place place(*this, request, body);
      co_await take_body(session, parser, body);
      co_return co_await on_pool<HttpAnswer>([&body] { return body.finish(); });
    } catch (const HttpProblem& problem) {
      co_return answer_of(problem);
    } catch (const std::exception& error) {
      logs_.trouble(cat(request.method, " ", log_word(request.path), ": ", error.what()));
    }
    co_return answer_of(
        HttpProblem(503, "the server could not do it; the organizer can see why", 10));
  }

  template <class T, class Work>
  Task<T> on_pool(Work work) {
    co_return co_await asio::co_spawn(
        pool_, [&work]() -> Task<T> { co_return work(); }, asio::use_awaitable);
  }

  Task<> take_body(Session& session, Parser& parser, HttpBody& body) {
    const std::uint64_t limit = service_.limit_bytes();
    const auto length = parser.content_length();
    const HttpProblem too_large(413, cat("the request is larger than ", limit, " bytes"));
    if (length && *length > limit) throw too_large;
    if (parser.get()[http::field::expect] == "100-continue") {
      static const std::string go_on = "HTTP/1.1 100 Continue\r\n\r\n";
      session.stream.expires_after(limits_.pause);
      co_await asio::async_write(session.stream, asio::buffer(go_on), asio::use_awaitable);
    }
    std::vector<char> block(kBlockBytes);
    std::uint64_t taken = 0;
    const auto deadline = Clock::now() + (body.is_anonymous() ? limits_.header : limits_.body);
    while (!parser.is_done()) {
      parser.get().body().data = block.data();
      parser.get().body().size = block.size();
      session.stream.expires_at(std::min(Clock::now() + limits_.pause, deadline));
      ErrorCode error;
      // Some: whoever is slow need not fill the block, whoever is greedy is noticed at once.
      co_await http::async_read_some(session.stream, session.buffer, parser,
                                     asio::redirect_error(asio::use_awaitable, error));
      if (error == http::error::need_buffer) error = {};
      if (error == beast::error::timeout) throw too_slow();
      if (error) throw HttpProblem(400, cat("the request's body: ", error.message()));
      const std::size_t bytes = block.size() - parser.get().body().size;
      taken += bytes;
      if (taken > limit) throw too_large;
      body.take({block.data(), bytes});
    }
  }

  struct Sent {
    unsigned version;
    bool keep_alive;
    bool head;  // without its body
  };

  // False when the client did not take all of it.
  Task<bool> send(Session& session, HttpAnswer& answer, Sent how, const LoggedRequest& logged) {
    http::response<http::empty_body> head(static_cast<http::status>(answer.status), how.version);
    head.set(http::field::date, http_date());
    head.set(http::field::server, "kjudge");
    set_safety(head);
    if (!answer.content_type.empty()) head.set(http::field::content_type, answer.content_type);
    if (!answer.etag.empty()) head.set(http::field::etag, answer.etag);
    if (!answer.cache_control.empty()) head.set(http::field::cache_control, answer.cache_control);
    for (const auto& [name, value] : answer.headers) head.set(name, value);
    head.keep_alive(how.keep_alive);
    const std::uint64_t bytes = answer.file.valid() ? answer.file_bytes : answer.body.size();
    // The answers that never have a body, so that none may be announced.
    const bool may_have_body = answer.status != 304 && answer.status != 204;
    if (may_have_body) head.content_length(bytes);
    http::response_serializer<http::empty_body> serializer(head);
    session.stream.expires_after(limits_.answer);
    ErrorCode error;
    co_await http::async_write_header(session.stream, serializer,
                                      asio::redirect_error(asio::use_awaitable, error));
    std::uint64_t sent = 0;
    if (!error && !how.head && may_have_body) {
      sent = co_await send_body(session, answer, bytes, error);
    }
    const double ms =
        std::chrono::duration<double, std::milli>(Clock::now() - logged.begun).count();
    std::array<char, 32> time{};
    std::snprintf(time.data(), time.size(), "%.1f", ms);
    logs_.access(cat(log_word(logged.client, 60), " ", log_word(logged.who), " ",
                     log_word(logged.method, 20), " ", log_word(logged.target), " ", answer.status,
                     " ", sent, " ", time.data()));
    co_return !error;
  }

  Task<std::uint64_t> send_body(Session& session, HttpAnswer& answer, std::uint64_t bytes,
                                ErrorCode& error) {
    std::string block;
    std::uint64_t sent = 0;
    while (sent < bytes && !error) {
      std::string_view part;
      if (answer.file.valid()) {
        block.resize(std::min<std::uint64_t>(kBlockBytes, bytes - sent));
        const ssize_t n =
            ::pread(answer.file.get(), block.data(), block.size(), static_cast<off_t>(sent));
        if (n <= 0) {  // it was cut, and so is the answer
          error = asio::error::eof;
          break;
        }
        part = std::string_view(block).substr(0, static_cast<std::size_t>(n));
      } else {
        part = std::string_view(answer.body).substr(sent, kBlockBytes);
      }
      session.stream.expires_after(limits_.answer);
      co_await asio::async_write(session.stream, asio::buffer(part.data(), part.size()),
                                 asio::redirect_error(asio::use_awaitable, error));
      if (!error) sent += part.size();
    }
    co_return sent;
  }

  static void set_safety(http::response<http::empty_body>& head) {
    head.set("Content-Security-Policy",
             "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src "
             "'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
    head.set("X-Content-Type-Options", "nosniff");
    head.set("X-Frame-Options", "DENY");
    head.set("Referrer-Policy", "no-referrer");
    head.set("Cross-Origin-Opener-Policy", "same-origin");
    head.set("Cross-Origin-Resource-Policy", "same-origin");
    head.set("Permissions-Policy", "camera=(), geolocation=(), microphone=()");
  }

  // A client that is still writing would see a reset connection instead of the answer.
  Task<> linger(Session& session) {
    ErrorCode ignored;
    session.stream.socket().shutdown(tcp::socket::shutdown_send, ignored);
    session.stream.expires_after(limits_.linger);
    std::vector<char> block(kBlockBytes);
    for (std::uint64_t read = 0; read < kLingerBytes;) {
      const auto [error, bytes] = co_await session.stream.async_read_some(
          asio::buffer(block), asio::as_tuple(asio::use_awaitable));
      if (error || bytes == 0) co_return;
      read += bytes;
    }
  }

  HttpService& service_;
  const Logs logs_;
  const HttpLimits limits_;
  std::list<Session*> sessions_;
  std::size_t bodies_ = 0, anonymous_bodies_ = 0, turned_away_ = 0;
  std::map<std::string, std::size_t> bodies_of_;  // by HttpRequest::who
  bool stopping_ = false;
  asio::io_context io_{1};  // after what the sessions in it refer to
  asio::thread_pool pool_;
  tcp::acceptor acceptor_;
};

HttpServer::HttpServer(HttpService& service, const std::string& listen, Logs logs,
                       const HttpLimits& limits)
    : loop_(std::make_unique<Loop>(service, listen, std::move(logs), limits)) {}
HttpServer::~HttpServer() = default;
std::string HttpServer::address() const { return loop_->address(); }
void HttpServer::run(const std::function<bool()>& stop) { loop_->run(stop); }

}  // namespace kjudge
