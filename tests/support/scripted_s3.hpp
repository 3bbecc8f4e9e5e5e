// SPDX-License-Identifier: Apache-2.0
// Enough of S3 in memory to see what a client does when the server misbehaves: the test says how. It checks no
// signatures; whether these are right is shown with a real server.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support/http_server.hpp"

namespace gridctl::testing {

struct S3Fault {
  HttpReply reply;
  bool carried_out = false;  // the request is, though its own answer never leaves
};

class ScriptedS3 {
 public:
  using Script = std::function<std::optional<S3Fault>(const HttpCall& call, std::size_t number)>;  // from 1
  explicit ScriptedS3(Script script = {})
      : script_(std::move(script)), server_([this](const HttpCall& call) { return answer(call); }) {}

  [[nodiscard]] std::string url() const { return server_.url(); }
  [[nodiscard]] std::vector<HttpCall> calls() const { return server_.calls(); }
  [[nodiscard]] std::size_t count(const std::string& method) const;

  // For scripts, and for tests while no request is under way. Keys are without the bucket.
  std::map<std::string, std::string> objects;
  std::map<std::string, std::string> writers;  // x-amz-meta-gridctl-writer of those that had one
  std::map<std::string, std::map<int, std::string>> uploads;
  std::size_t page = 1000;

  static HttpReply error(int status, const std::string& code, const std::string& message = "scripted");
  static std::map<std::string, std::string> query(const HttpCall& call);
  static std::string key(const HttpCall& call);

 private:
  HttpReply answer(const HttpCall& call);
  HttpReply carry_out(const HttpCall& call);
  HttpReply get(const HttpCall& call);
  HttpReply put(const HttpCall& call);
  HttpReply post(const HttpCall& call);
  HttpReply list(const HttpCall& call);

  Script script_;
  std::size_t number_ = 0;
  int last_upload_ = 0;
  HttpServer server_;
};

}  // namespace gridctl::testing
