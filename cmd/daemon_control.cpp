// SPDX-License-Identifier: Apache-2.0
#include "cmd/commands.hpp"
#include "control/daemon/daemon.hpp"
#include "control/daemon/user_unit.hpp"

namespace gridctl::cmd {

namespace daemon_control {
namespace {
constexpr int k_not_running = 3;  // as init scripts say it

int show(Context& context, const control::DaemonStatus& status, std::string_view when_running,
         std::string_view when_not) {
  if (context.json) {
    JsonObject json;
    json("running", status.running).raw("pid", status.pid > 0 ? std::to_string(status.pid) : "null");
    json.text_or_null("host", status.host).text_or_null("version", status.version);
    return context.print_line(json.text_or_null("started_at", status.started_at).text());
  }
  if (!status.running) return context.print_line(when_not);
  std::string line(when_running);
  if (status.pid > 0) line += ", pid " + std::to_string(status.pid);
  if (!status.version.empty()) line += ", version " + status.version;
  if (!status.started_at.empty()) line += ", since " + status.started_at;
  return context.print_line(line);
}

Result<int> start(Context& context, const Parsed&) {
  TRY_ASSIGN(const control::DaemonStatus status, control::ensure_daemon(context.state, false));
  return show(context, status, "running", "not running");
}

Result<int> stop(Context& context, const Parsed&) {
  TRY_ASSIGN(const control::DaemonStatus before, control::daemon_status(context.state));
  if (!before.running) return show(context, before, "running", "not running");
  TRY_ASSIGN(const control::DaemonStatus after, control::stop_daemon(context.state));
  return show(context, after, "still running", "stopped; jobs continue on their hosts");
}

Result<int> status(Context& context, const Parsed&) {
  TRY_ASSIGN(const control::DaemonStatus now, control::daemon_status(context.state));
  show(context, now, "running", "not running");
  return now.running ? 0 : k_not_running;
}

Result<int> install(Context& context, const Parsed&) {
  TRY_ASSIGN(const control::Installed installed, control::install_unit(context.state));
  const bool runs = installed.not_started.empty();
  const std::string linger = "sudo loginctl enable-linger $USER";
  if (context.json) {
    JsonObject json;
    json("unit", installed.unit.name)("file", installed.unit.file.string());
    context.print_line(json("running", runs)("lingers", installed.lingers).text());
  } else {
    context.print_line("installed " + installed.unit.file.string());
    if (runs) context.print_line("running; it starts again when you log in");
    if (runs && !installed.lingers)
      context.note("the daemon ends with your last session; to keep it running after logout and start it at boot: " +
                   linger);
  }
  if (runs) return 0;
  return make_error(Code::unsupported, "the service is installed, but could not be started: " + installed.not_started,
                    "systemctl --user enable --now " + installed.unit.name);
}

Result<int> uninstall(Context& context, const Parsed&) {
  TRY_ASSIGN(const bool removed, control::remove_unit(context.state));
  if (context.json) context.print_line(JsonObject()("removed", removed).text());
  else context.print_line(removed ? "removed; start it by hand with 'gridctl daemon start'" : "was not installed");
  return 0;
}
}  // namespace
}  // namespace daemon_control

const Command k_daemon_start{
    .name = "daemon start",
    .summary = "start the daemon in the background",
    .examples = {{"Follow jobs, also after you log out", "gridctl daemon start"}},
    .description =
        "Starts the daemon of this state directory, unless it is running, and returns when it is ready. It runs "
        "until 'gridctl daemon stop'. A daemon started by 'job submit' exits when there is nothing left to follow.\n\n"
        "Keys in ssh-agent: the daemon asks the agent of the shell that started it; if that agent cannot open a host, "
        "it asks the agent of the newest command that needed the daemon.",
    .exit_codes = k_exits_state,
    .run = daemon_control::start};
const Command k_daemon_stop{
    .name = "daemon stop",
    .summary = "stop the daemon; jobs continue on their hosts",
    .examples = {{"Before shutting down; jobs keep running on their hosts", "gridctl daemon stop"}},
    .description =
        "Stops the daemon and waits for its exit. Attempts continue on their hosts until "
        "their lease ends. A daemon started later picks them up again.",
    .exit_codes = k_exits_state,
    .run = daemon_control::stop};
const Command k_daemon_status{.name = "daemon status",
                              .summary = "check whether the daemon is running",
                              .examples = {{"Is a daemon running?", "gridctl daemon status"},
                                           {"For a script", "gridctl daemon status --json | jq .running"}},
                              .description =
                                  "Says whether a daemon follows the jobs of this state directory. The exit "
                                  "code is 3 when none does.",
                              .exit_codes = {3, 7},
                              .run = daemon_control::status};
const Command k_daemon_install{
    .name = "daemon install",
    .summary = "start the daemon with your session",
    .examples = {{"Follow jobs whenever you are logged in", "gridctl daemon install"}},
    .description =
        "Writes a systemd user unit for this state directory, enables it and starts it. From then on, gridctl follows "
        "jobs whenever you are logged in, also after a reboot. On a machine where you linger (loginctl enable-linger), "
        "it follows them from boot on and after you log out.",
    .exit_codes = {7},
    .run = daemon_control::install};
const Command k_daemon_uninstall{
    .name = "daemon uninstall",
    .summary = "remove that service again",
    .examples = {{"Follow jobs only when asked to", "gridctl daemon uninstall"}},
    .description = "Stops the systemd user unit of this state directory and removes it. Jobs continue on their hosts.",
    .exit_codes = k_exits_state,
    .run = daemon_control::uninstall};

}  // namespace gridctl::cmd
