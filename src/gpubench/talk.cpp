// SPDX-License-Identifier: Apache-2.0
#include "gpubench/talk.hpp"

#include <array>
#include <charconv>
#include <cstdio>

#include "gpubench/device.hpp"
#include "probe/bench_challenge.hpp"

namespace gridctl::gpubench {
namespace {

constexpr std::size_t k_text_max = 1000;  // bytes of one fact

}  // namespace

void say(std::string_view word) {
  std::printf("%.*s\n", static_cast<int>(word.size()), word.data());
  std::fflush(stdout);
}

void say_number(std::string_view name, double value) {
  std::printf("number %.*s %.17g\n", static_cast<int>(name.size()), name.data(), value);
}

void say_text(std::string_view name, std::string_view value) {
  std::string line(value.substr(0, k_text_max));
  for (char& c : line)
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') c = ' ';
  std::printf("text %.*s %s\n", static_cast<int>(name.size()), name.data(), line.c_str());
}

void say_words(std::string_view name, std::span<const std::uint32_t> words) {
  std::printf("words %.*s %s\n", static_cast<int>(name.size()), name.data(), probe::words_to_hex(words).c_str());
}

void say_facts(const DeviceFacts& facts) {
  say_text("backend", facts.backend);
  say_text("kind", facts.kind);
  say_text("name", facts.name);
  say_text("vendor", facts.vendor);
  say_text("driver", facts.driver);
  say_text("uuid", facts.uuid);
  say_text("pci", facts.pci);
  say_text("pci_device", facts.pci_device);
  say_text("isa", facts.isa);
  say_number("memory_bytes", static_cast<double>(facts.memory_bytes));
  say_number("units", facts.units);
  say_number("clock_mhz", facts.clock_mhz);
  say_number("memory_bus_bits", facts.memory_bus_bits);
}

void say_error(const Error& error) { say("error " + std::string(code_name(error.code)) + " " + error.one_line()); }

Result<std::uint64_t> hear_seed() {
  say("ready");
  std::array<char, 64> line{};
  if (std::fgets(line.data(), line.size(), stdin) == nullptr)
    return make_error(Code::cancelled, "the agent disconnected before the test began");
  const std::string_view text(line.data());
  constexpr std::string_view k_word = "seed ";
  std::uint64_t seed = 0;
  if (!text.starts_with(k_word) ||
      std::from_chars(text.data() + k_word.size(), text.data() + text.size(), seed, 16).ec != std::errc{})
    return make_error(Code::protocol_violation, "the agent did not send a seed");
  return seed;
}

Result<Parameters> Parameters::parse(std::span<char* const> words) {
  Parameters parameters;
  for (const char* word : words) {
    const std::string_view text(word);
    const std::size_t equals = text.find('=');
    std::uint64_t value = 0;
    const char* end = text.data() + text.size();
    if (equals == std::string_view::npos || std::from_chars(text.data() + equals + 1, end, value).ptr != end)
      return make_error(Code::usage, "'" + std::string(text) + "' is not NAME=NUMBER");
    parameters.values_[std::string(text.substr(0, equals))] = value;
  }
  return parameters;
}

std::uint64_t Parameters::number(const std::string& name, std::uint64_t fallback) const {
  const auto found = values_.find(name);
  return found == values_.end() ? fallback : found->second;
}

}  // namespace gridctl::gpubench
