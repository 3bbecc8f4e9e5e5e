// SPDX-License-Identifier: Apache-2.0
#include "control/daemon/user_unit.hpp"

#include <vector>

#include "base/bytes.hpp"
#include "base/text.hpp"
#include "control/daemon/daemon.hpp"
#include "crypto/sha256.hpp"
#include "os/entries.hpp"
#include "os/process.hpp"
#include "os/systemd.hpp"

namespace gridctl::control {

namespace {
constexpr Duration k_patience = std::chrono::seconds{20};  // for systemd to answer
constexpr std::size_t k_mark = 8;                          // characters that tell one state directory from another

Result<std::string> ask(const std::vector<std::string>& argv) {
  os::RunOptions options;
  options.timeout = k_patience;
  TRY_ASSIGN(const os::RunOutcome outcome, os::run(argv, options));
  if (outcome.status.success()) return outcome.out;
  const std::string said(trim(outcome.err.empty() ? outcome.out : outcome.err));
  return make_error(Code::unsupported, join(argv, " ") + ": " + (said.empty() ? "failed" : sanitize(said)));
}

bool lingers() {
  const auto user = os::environment("USER");
  if (!user) return false;
  const Result<std::string> told = ask({"loginctl", "show-user", "--property=Linger", *user});
  return told && told->find("Linger=yes") != std::string::npos;
}
}  // namespace

bool has_systemd() { return os::exists("/run/systemd/system"); }

Result<UserUnit> unit_of(const os::Path& state_directory) {
  const os::Path state = std::filesystem::absolute(state_directory).lexically_normal();
  if (state.string().find('\n') != std::string::npos)
    return make_error(Code::usage, "the name of the state directory has a line break");
  std::string name = "gridctl";
  if (state != os::xdg_directory("XDG_STATE_HOME", ".local/state") / "gridctl")
    name += "-" + to_hex(crypto::sha256(as_bytes(state.string()))).substr(0, k_mark);
  name += ".service";
  return UserUnit{name, os::xdg_directory("XDG_CONFIG_HOME", ".config") / "systemd" / "user" / name};
}

std::string unit_text(const os::Path& program, const os::Path& state_directory) {
  const os::Path state = std::filesystem::absolute(state_directory).lexically_normal();
  return "[Unit]\n"
         "Description=gridctl follows the jobs of " +
         state.string() +
         "\n"
         "Documentation=man:gridctl-daemon(1)\n"
         "\n"
         "[Service]\n"
         "ExecStart=" +
         os::systemd_word(program.string()) + " daemon run --state " + os::systemd_word(state.string()) +
         "\n"
         "Restart=on-failure\n"
         "RestartSec=5\n"
         "KillMode=process\n"  // gateways of services go on
         "\n"
         "[Install]\n"
         "WantedBy=default.target\n";
}

Result<Installed> install_unit(const os::Path& state_directory) {
  Installed installed;
  TRY_ASSIGN(installed.unit, unit_of(state_directory));
  TRY_ASSIGN(const os::Path program, os::executable_path());
  TRY(os::make_directories(state_directory));
  TRY(os::make_directories(installed.unit.file.parent_path(), 0755));
  TRY(os::write_file_atomically(installed.unit.file, unit_text(program, state_directory), 0644));
  const auto start = [&]() -> Result<void> {
    TRY(ask({"systemctl", "--user", "daemon-reload"}));
    TRY(ask({"systemctl", "--user", "enable", installed.unit.name}));
    TRY(stop_daemon(state_directory));  // jobs go on; the service takes them up
    TRY(ask({"systemctl", "--user", "restart", installed.unit.name}));
    return {};
  };
  if (const Result<void> started = start(); !started) installed.not_started = started.error().one_line();
  installed.lingers = lingers();
  return installed;
}

Result<bool> remove_unit(const os::Path& state_directory) {
  TRY_ASSIGN(const UserUnit unit, unit_of(state_directory));
  if (!os::exists(unit.file)) return false;
  const auto disabled = ask({"systemctl", "--user", "disable", "--now", unit.name});
  TRY(os::remove_file(unit.file));
  if (disabled) TRY(ask({"systemctl", "--user", "daemon-reload"}));
  return true;
}

bool is_installed(const os::Path& state_directory) {
  const Result<UserUnit> unit = unit_of(state_directory);
  return unit && os::exists(unit->file);
}

}  // namespace gridctl::control
