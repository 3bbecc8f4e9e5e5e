// SPDX-License-Identifier: Apache-2.0
// An HTTP server on loopback that does what the test says, and what no real server would.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/time.hpp"
#include "os/files.hpp"

namespace gridctl::testing {

struct HttpCall {
  std::string method, target;                  // "GET", "/bucket/key?x=1"
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
};

struct HttpReply {
  int status = 200;
  std::vector<std::pair<std::string, std::string>> headers = {};
  std::string body = {};
  bool told_length = true;                 // a Content-Length of the body is added
  std::size_t cut_at = std::string::npos;  // so many bytes of the reply are sent, and the connection is closed
  std::string raw = {};                    // sent instead of all this, and the connection is closed
  bool hang = false;                       // nothing is sent, nor closed, before the server ends
  Duration drip = Duration::zero();        // pause after each byte of the body, or of `raw`
};

class HttpServer {
 public:
  using Handler = std::function<HttpReply(const HttpCall&)>;  // by several threads, one at a time
  explicit HttpServer(Handler handler);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  [[nodiscard]] std::string url() const;  // "http://127.0.0.1:PORT"
  [[nodiscard]] std::vector<HttpCall> calls() const;
  [[nodiscard]] std::size_t connections() const;

 private:
  void accept_all();
  void converse(int fd);
  bool answer(int fd, const HttpReply& reply, bool head);

  Handler handler_;
  os::Fd listener_;
  std::uint16_t port_ = 0;
  mutable std::mutex mutex_;
  std::condition_variable ended_;
  bool ending_ = false;
  std::vector<HttpCall> calls_;
  std::list<os::Fd> open_;
  std::vector<std::thread> threads_;
  std::thread acceptor_;
};

}  // namespace gridctl::testing
