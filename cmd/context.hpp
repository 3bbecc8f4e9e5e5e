// SPDX-License-Identifier: Apache-2.0
// The surroundings of every command: the state directory, the way of printing, the limit on waiting.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "control/reach/paths.hpp"
#include "os/clock.hpp"
#include "registry/registry.hpp"
#include "ui/style.hpp"

namespace gridctl::cmd {

class Context {
 public:
  os::Path state;  // the state directory; may not exist yet
  bool state_named = false;  // by --state: a command that only reads expects it to exist
  bool json = false;
  bool verbose = false;
  std::optional<Duration> timeout;
  bool terminal_in = false, terminal_out = false, terminal_err = false;
  bool redraws = false;  // standard error is a terminal that understands escape sequences (TERM is not dumb)
  ui::Style out_style, err_style;
  os::Clock& clock = os::system_clock();
  // Set by a command whose error has an exit code of its own (124 of --timeout).
  std::optional<int> exit_code_of_error;

  [[nodiscard]] control::Paths paths() const { return {state}; }
  [[nodiscard]] WallTime now() const { return clock.wall(); }
  // Width for tables: of the terminal, 0 (unlimited) into pipes and files.
  [[nodiscard]] std::size_t columns_out() const;
  [[nodiscard]] std::size_t columns_err() const;

  // Standard output: the result. Errors are kept for finish(); after the reader has gone nothing more is written. These
  // give 0, the exit code of a command that has no more to say.
  int print(std::string_view text);
  int print_line(std::string_view line);
  // Standard error: for people, never with --json. A line without its newline; not sanitised.
  int note(std::string_view line);
  void write_err(std::string_view text);
  [[nodiscard]] bool reader_gone() const { return reader_gone_; }
  // The error of writing standard output (a full disk), if there was one.
  [[nodiscard]] Result<void> finish() const;

  // Makes the directory when it is missing; state_unreadable when it cannot be made.
  [[nodiscard]] Result<registry::Registry> open() const;
  // An empty registry when there is none yet.
  [[nodiscard]] Result<registry::Registry> open_for_reading() const;

 private:
  bool reader_gone_ = false;
  std::optional<Error> broken_;
};

// The state directory: `given`, else $GRIDCTL_STATE, else $XDG_STATE_HOME/gridctl, else ~/.local/state/gridctl.
[[nodiscard]] Result<os::Path> state_directory(const std::optional<std::string>& given);

}  // namespace gridctl::cmd
