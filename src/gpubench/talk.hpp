// SPDX-License-Identifier: Apache-2.0
// Holds the conversation with the agent: facts and results as lines on standard output, seeds on standard input. The
// lines are described in gridctl-agent(7), The GPU helper.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace gridctl::gpubench {

struct DeviceFacts;

void say_number(std::string_view name, double value);
void say_text(std::string_view name, std::string_view value);  // on one line, at most 1000 bytes of it
void say_words(std::string_view name, std::span<const std::uint32_t> words);
void say_facts(const DeviceFacts& facts);
void say_error(const Error& error);
void say(std::string_view word);  // "ready", "device", "done"

// Waits for "seed HEX" after a "ready".
[[nodiscard]] Result<std::uint64_t> hear_seed();

// Holds the test's parameters, "name=number" words of the command line; a missing one is `fallback`.
class Parameters {
 public:
  [[nodiscard]] static Result<Parameters> parse(std::span<char* const> words);
  [[nodiscard]] std::uint64_t number(const std::string& name, std::uint64_t fallback) const;
  void set(const std::string& name, std::uint64_t value) { values_[name] = value; }

 private:
  std::map<std::string, std::uint64_t> values_;
};

}  // namespace gridctl::gpubench
