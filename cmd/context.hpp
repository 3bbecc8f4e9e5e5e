// SPDX-License-Identifier: Apache-2.0
// Provides the surroundings of every command: the state directory, printing, the limit on waiting.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/time.hpp"
#include "control/reach/paths.hpp"
#include "os/clock.hpp"
#include "registry/registry.hpp"
#include "ui/human.hpp"
#include "ui/json_text.hpp"

namespace gridctl::cmd {

using ui::json_list;
using ui::JsonObject;

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
  // Set by a command whose error has its own exit code (124 of --timeout).
  std::optional<int> exit_code_of_error;

  [[nodiscard]] control::Paths paths() const { return {state}; }
  [[nodiscard]] WallTime now() const { return clock.wall(); }
  // Returns the width for tables: that of the terminal, 0 (unlimited) into pipes and files.
  [[nodiscard]] std::size_t columns_out() const;
  [[nodiscard]] std::size_t columns_err() const;

  // Writes to standard output: the result. Errors are kept for finish(); nothing more is written after the reader has
  // gone. These return 0, the exit code of a command that has finished.
  int print(std::string_view text);
  int print_line(std::string_view line);
  // Writes to standard error: for people, never with --json. A line without its newline; not sanitised.
  int note(std::string_view line);
  // Notes "warning: ..." in one line; nothing if the text is empty. Sanitises it.
  void warn(std::string_view text);
  void write_err(std::string_view text);
  [[nodiscard]] bool reader_gone() const { return reader_gone_; }
  // Returns the error of writing standard output (a full disk), if there was one.
  [[nodiscard]] Result<void> finish() const;

  // Creates the directory if it is missing; state_unreadable if that fails.
  [[nodiscard]] Result<registry::Registry> open() const;
  // Returns an empty registry if there is none yet.
  [[nodiscard]] Result<registry::Registry> open_for_reading() const;

 private:
  bool reader_gone_ = false;
  std::optional<Error> broken_;
};

// Returns the state directory: `given`, otherwise $GRIDCTL_STATE, otherwise $XDG_STATE_HOME/gridctl, otherwise
// ~/.local/state/gridctl.
[[nodiscard]] os::Path state_directory(const std::optional<std::string>& given);

}  // namespace gridctl::cmd
