// SPDX-License-Identifier: Apache-2.0
#include "support/http_server.hpp"

#include <sys/socket.h>

#include <optional>

#include "base/text.hpp"
#include "os/clock.hpp"
#include "os/net.hpp"
#include "support/loopback.hpp"

namespace gridctl::testing {
namespace {

bool send_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

class Reader {
 public:
  explicit Reader(int fd) : fd_(fd) {}
  std::optional<std::string> line() {
    for (;;) {
      if (const std::size_t end = buffer_.find("\r\n"); end != std::string::npos) {
        std::string found = buffer_.substr(0, end);
        buffer_.erase(0, end + 2);
        return found;
      }
      if (!more()) return std::nullopt;
    }
  }
  std::optional<std::string> bytes(std::size_t count) {
    while (buffer_.size() < count)
      if (!more()) return std::nullopt;
    std::string found = buffer_.substr(0, count);
    buffer_.erase(0, count);
    return found;
  }

 private:
  bool more() {
    char chunk[65536];
    const ssize_t got = ::recv(fd_, chunk, sizeof chunk, 0);
    if (got <= 0) return false;
    buffer_.append(chunk, static_cast<std::size_t>(got));
    return true;
  }
  int fd_;
  std::string buffer_;
};

std::optional<HttpCall> read_call(Reader& reader, int fd) {
  const auto first = reader.line();
  if (!first) return std::nullopt;
  const std::vector<std::string> words = split(*first, ' ');
  if (words.size() != 3) return std::nullopt;
  HttpCall call{words[0], words[1], {}, {}};
  for (;;) {
    const auto line = reader.line();
    if (!line) return std::nullopt;
    if (line->empty()) break;
    const std::size_t colon = line->find(':');
    if (colon == std::string::npos) return std::nullopt;
    call.headers[lower(line->substr(0, colon))] = std::string(trim(line->substr(colon + 1)));
  }
  if (const auto expect = call.headers.find("expect"); expect != call.headers.end() && expect->second == "100-continue")
    send_all(fd, "HTTP/1.1 100 Continue\r\n\r\n");
  if (const auto length = call.headers.find("content-length"); length != call.headers.end()) {
    auto body = reader.bytes(std::stoull(length->second));
    if (!body) return std::nullopt;
    call.body = *std::move(body);
  }
  return call;
}

}  // namespace

HttpServer::HttpServer(Handler handler) : handler_(std::move(handler)) {
  auto listening = os::listen_loopback();
  GRIDCTL_CHECK(listening.has_value());
  listener_ = std::move(listening->first);
  port_ = listening->second;
  acceptor_ = std::thread([this] { accept_all(); });
}

HttpServer::~HttpServer() {
  {
    const std::lock_guard lock{mutex_};
    ending_ = true;
    for (const os::Fd& fd : open_) os::shut_down(fd.get());
  }
  ended_.notify_all();
  os::shut_down(listener_.get());
  acceptor_.join();
  for (std::thread& thread : threads_) thread.join();
}

std::string HttpServer::url() const { return "http://127.0.0.1:" + std::to_string(port_); }

std::vector<HttpCall> HttpServer::calls() const {
  const std::lock_guard lock{mutex_};
  return calls_;
}

std::size_t HttpServer::connections() const {
  const std::lock_guard lock{mutex_};
  return open_.size();
}

void HttpServer::accept_all() {
  for (;;) {
    os::Fd fd{::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)};
    const std::lock_guard lock{mutex_};
    if (ending_ || !fd.valid()) return;
    const int number = fd.get();
    open_.push_back(std::move(fd));
    threads_.emplace_back([this, number] {
      converse(number);
      os::shut_down(number);  // closed at the end: its number must not be given to another meanwhile
    });
  }
}

void HttpServer::converse(int fd) {
  Reader reader(fd);
  while (const auto call = read_call(reader, fd)) {
    HttpReply reply;
    {
      const std::lock_guard lock{mutex_};
      calls_.push_back(*call);
      reply = handler_(*call);
    }
    if (!answer(fd, reply, call->method == "HEAD")) return;
  }
}

bool HttpServer::answer(int fd, const HttpReply& reply, bool head) {
  if (reply.hang) {
    std::unique_lock lock{mutex_};
    ended_.wait(lock, [this] { return ending_; });
    return false;
  }
  if (!reply.raw.empty() && reply.drip > Duration::zero()) {
    for (const char c : reply.raw) {
      if (!send_all(fd, {&c, 1})) return false;
      os::pause_for(reply.drip);
    }
    return false;
  }
  if (!reply.raw.empty()) return send_all(fd, reply.raw) && false;
  std::string text = "HTTP/1.1 " + std::to_string(reply.status) + " So\r\n";
  for (const auto& [name, value] : reply.headers) text += name + ": " + value + "\r\n";
  if (reply.told_length) text += "Content-Length: " + std::to_string(reply.body.size()) + "\r\n";
  text += "\r\n";
  if (reply.drip > Duration::zero()) {
    if (!send_all(fd, text)) return false;
    for (const char c : reply.body) {
      if (!send_all(fd, {&c, 1})) return false;
      os::pause_for(reply.drip);
    }
    return true;
  }
  if (!head) text += reply.body;
  const bool cut = reply.cut_at < text.size();
  if (cut) text.resize(reply.cut_at);
  return send_all(fd, text) && !cut && reply.told_length;
}

}  // namespace gridctl::testing
