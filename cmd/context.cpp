// SPDX-License-Identifier: Apache-2.0
#include "cmd/context.hpp"

#include <algorithm>
#include <cctype>

#include "base/text.hpp"
#include "os/terminal.hpp"

namespace gridctl::cmd {

namespace {
constexpr int k_stdout = 1, k_stderr = 2;
}

std::size_t Context::columns_out() const {
  return terminal_out ? static_cast<std::size_t>(os::terminal_columns(k_stdout)) : 0;
}
std::size_t Context::columns_err() const {
  return terminal_err ? static_cast<std::size_t>(os::terminal_columns(k_stderr)) : 0;
}

int Context::print(std::string_view text) {
  if (reader_gone_ || broken_) return 0;
  Result<os::WriteEnd> end = os::write_stream(k_stdout, text);
  if (!end) broken_ = std::move(end).error();
  else reader_gone_ = *end == os::WriteEnd::reader_gone;
  return 0;
}

int Context::print_line(std::string_view line) { return print(std::string(line) + "\n"); }

int Context::note(std::string_view line) {
  if (!json) write_err(std::string(line) + "\n");
  return 0;
}

void Context::warn(std::string_view text) {
  if (!text.empty()) note("warning: " + sanitize(text));
}

void Context::write_err(std::string_view text) { (void)os::write_stream(k_stderr, text); }

namespace {
// A file system's "not found" does not mean "no such job" for the user.
Error state_error(Error error) {
  if (error.code == Code::not_found || error.code == Code::io) error.code = Code::state_unreadable;
  return error;
}

Result<void> check_is_directory(const os::Path& state) {
  std::error_code problem;
  if (!os::exists(state) || std::filesystem::is_directory(state, problem)) return {};
  return make_error(Code::state_unreadable, "the state directory " + state.string() + " is not a directory",
                    "gridctl --state DIR …");
}
}  // namespace

Result<registry::Registry> Context::open() const {
  TRY(check_is_directory(state));
  if (Result<void> made = os::make_directories(state); !made) return state_error(std::move(made).error());
  Result<registry::Registry> opened = registry::Registry::open(state);
  if (!opened) return state_error(std::move(opened).error());
  return opened;
}

namespace {
// In other tools, --state selects jobs by their status.
Error no_such_state(const os::Path& state) {
  std::string word = state.filename().string();
  std::transform(word.begin(), word.end(), word.begin(), [](unsigned char c) { return std::toupper(c); });
  const bool is_job_state = job::parse_state_name(word).has_value();
  return make_error(Code::state_unreadable, "--state names the state directory, and " + state.string() +
                                                " does not exist",
                    is_job_state ? "gridctl job ls --status " + word : "");
}
}  // namespace

Result<registry::Registry> Context::open_for_reading() const {
  TRY(check_is_directory(state));
  if (state_named && !os::exists(state)) return no_such_state(state);
  Result<registry::Registry> opened = registry::Registry::open_for_reading(state);
  if (!opened) return state_error(std::move(opened).error());
  return opened;
}

Result<void> Context::finish() const {
  if (broken_) return *broken_;
  return {};
}

os::Path state_directory(const std::optional<std::string>& given) {
  if (given && !given->empty()) return std::filesystem::absolute(*given);
  if (const auto chosen = os::environment("GRIDCTL_STATE"); chosen && !chosen->empty())
    return std::filesystem::absolute(*chosen);
  return os::xdg_directory("XDG_STATE_HOME", ".local/state") / "gridctl";
}

}  // namespace gridctl::cmd
