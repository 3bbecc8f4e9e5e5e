// SPDX-License-Identifier: Apache-2.0
// Defines a command as data: the same text makes its parser, its --help, its man page and its completions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"

namespace gridctl::cmd {

class Context;

// Names the values that a shell offers for completion.
enum class Completion : std::uint8_t { nothing, file, directory, job, provider, checkpoint, remote, choices };

struct Example {
  std::string_view what;  // "Submit a job file and follow it until it ends"
  std::string_view line;  // "gridctl job submit train.yaml"
};

struct Option {
  std::string_view name;   // long form, without dashes
  char letter = 0;         // short form, 0 = none
  std::string_view value;  // name of its value in help; empty: a flag
  std::string_view help;
  std::string_view fallback = {};  // its default, as shown to people
  Completion offer = Completion::nothing;
  std::string_view choices = {};  // "auto|docker|podman": anything else is refused
  bool many = false;              // may be given several times
};

struct Positional {
  std::string_view name;
  Completion offer = Completion::nothing;
  bool required = true;
  std::string_view choices = {};
  bool many = false;  // the last one: may be given several times
};

// Holds the parsed command line. Names are those of the command's own options.
struct Parsed {
  std::map<std::string, std::vector<std::string>, std::less<>> options;
  std::vector<std::string> positionals;
  std::vector<std::string> command;  // after "--"
  bool has_command = false;          // "--" was given

  [[nodiscard]] bool has(std::string_view name) const { return options.contains(name); }
  // Returns the last value given, or empty.
  [[nodiscard]] std::string value(std::string_view name) const;
  [[nodiscard]] std::optional<std::string> given(std::string_view name) const {
    return has(name) ? std::optional(value(name)) : std::nullopt;
  }
  [[nodiscard]] std::vector<std::string> values(std::string_view name) const;
  [[nodiscard]] Result<std::optional<Duration>> duration(std::string_view name) const;
  [[nodiscard]] Result<std::optional<double>> number(std::string_view name) const;  // not negative
  [[nodiscard]] Result<std::optional<std::uint64_t>> whole(std::string_view name) const;
};

struct Command {
  std::string_view name;  // "job submit", or of one word: "doctor"
  std::string_view summary;
  std::initializer_list<Example> examples;
  std::string_view description;  // paragraphs divided by an empty line
  std::initializer_list<Positional> positionals = {};
  std::initializer_list<Option> options = {};
  std::string_view tail = {};            // name of what follows "--", empty: nothing may
  std::initializer_list<int> exit_codes = {};  // beyond 0 and 2
  bool waits = false;                    // has --timeout
  bool hidden = false;
  // Returns the exit code of a success (0, or what the contract says); failures are errors.
  Result<int> (*run)(Context&, const Parsed&) = nullptr;

  [[nodiscard]] std::string_view noun() const { return name.substr(0, name.find(' ')); }
  // Returns an empty text for a command of one word.
  [[nodiscard]] std::string_view verb() const { return name.substr(std::min(noun().size() + 1, name.size())); }
};

// Returns every command, in the order of help; hidden ones last.
[[nodiscard]] std::span<const Command* const> all_commands();
[[nodiscard]] const Command* find_command(std::string_view noun, std::string_view verb);

// Returns options of every command; `timeout` only for those that wait.
[[nodiscard]] std::span<const Option> global_options();
[[nodiscard]] const Option& timeout_option();
// Returns all options of the command; without one, those of every command.
[[nodiscard]] std::vector<const Option*> options_of(const Command* command);
struct NounText {
  std::string_view noun, summary;
};
[[nodiscard]] std::span<const NounText> nouns();
struct ExitText {
  int code;
  std::string_view meaning;
};
[[nodiscard]] std::span<const ExitText> exit_texts();
[[nodiscard]] std::string_view exit_meaning(int code);
[[nodiscard]] std::set<int> exit_codes_of(const Command& command);
// List exit codes beyond 0 and 2, for commands that read the state; that name a job, provider or checkpoint; that
// follow a job.
inline constexpr std::initializer_list<int> k_exits_state = {7};
inline constexpr std::initializer_list<int> k_exits_job = {3, 7};
inline constexpr std::initializer_list<int> k_exits_follow = {1, 3, 5, 7, 9, 130};
inline constexpr std::initializer_list<int> k_exits_host = {3, 5, 6, 7};
inline constexpr std::initializer_list<int> k_exits_checkpoint = {3, 7, 8};

}  // namespace gridctl::cmd
