// SPDX-License-Identifier: Apache-2.0
// A job's output on its way to the user: raw bytes into pipes and files, whole sanitised lines onto a terminal.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "cmd/context.hpp"
#include "cmd/log_reader.hpp"

namespace gridctl::cmd {

class LogPrinter {
 public:
  explicit LogPrinter(Context& context) : context_(&context) {}
  // Prints what is new. `before` is called once before the first byte of it.
  [[nodiscard]] Result<bool> print_new(LogReader& reader, const std::function<void()>& before = {}, bool all = false);
  // The last line, when it has no end yet.
  void flush();

 private:
  void put(AttemptNumber attempt, std::string_view bytes);
  void put_lines(std::string_view bytes);
  Context* context_;
  AttemptNumber last_{};
  std::string partial_;  // of the line not finished, only with a terminal
};

}  // namespace gridctl::cmd
