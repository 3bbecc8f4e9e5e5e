// SPDX-License-Identifier: Apache-2.0
#include "cmd/commands.hpp"
#include "cmd/context.hpp"
#include "control/daemon/daemon.hpp"
#include "ui/json.hpp"

namespace gridctl::cmd {

namespace daemon_control {
namespace {
constexpr Example k_start_examples[] = {{"Follow jobs in the background, even after logout", "gridctl daemon start"}};
constexpr Example k_stop_examples[] = {
    {"Stop it before a shutdown; jobs continue on their hosts", "gridctl daemon stop"}};
constexpr Example k_status_examples[] = {{"Check whether it is running", "gridctl daemon status"},
                                         {"For a script", "gridctl daemon status --json | jq .running"}};

std::string quoted_or_null(const std::string& text) { return text.empty() ? "null" : ui::quoted(text); }

void show(Context& context, const control::DaemonStatus& status, std::string_view when_running,
          std::string_view when_not) {
  if (context.json) {
    context.print_line(std::string("{\"running\":") + (status.running ? "true" : "false") +
                       ",\"pid\":" + (status.pid > 0 ? std::to_string(status.pid) : "null") +
                       ",\"host\":" + quoted_or_null(status.host) + ",\"version\":" + quoted_or_null(status.version) +
                       ",\"started_at\":" + quoted_or_null(status.started_at) + "}");
    return;
  }
  if (!status.running) return context.print_line(when_not);
  std::string line(when_running);
  if (status.pid > 0) line += ", pid " + std::to_string(status.pid);
  if (!status.version.empty()) line += ", version " + status.version;
  if (!status.started_at.empty()) line += ", since " + status.started_at;
  context.print_line(line);
}

Result<int> start(Context& context, const Parsed&) {
  TRY_ASSIGN(const control::DaemonStatus status, control::ensure_daemon(context.state, false));
  show(context, status, "running", "not running");
  return 0;
}

Result<int> stop(Context& context, const Parsed&) {
  TRY_ASSIGN(const control::DaemonStatus before, control::daemon_status(context.state));
  if (before.running) {
    TRY_ASSIGN(const control::DaemonStatus after, control::stop_daemon(context.state));
    show(context, after, "still running", "stopped; jobs continue on their hosts");
    return 0;
  }
  show(context, before, "running", "not running");
  return 0;
}

Result<int> status(Context& context, const Parsed&) {
  TRY_ASSIGN(const control::DaemonStatus now, control::daemon_status(context.state));
  show(context, now, "running", "not running");
  return 0;
}
}  // namespace
}  // namespace daemon_control

const Command k_daemon_start{
    .noun = "daemon",
    .verb = "start",
    .summary = "start the supervisor in the background",
    .examples = daemon_control::k_start_examples,
    .description =
        "Starts the supervisor of this state directory, unless it is running, and returns when it is ready. It runs "
        "until 'gridctl daemon stop'. A supervisor started by 'job submit' exits when there is nothing left to follow.",
    .exit_codes = k_exits_state,
    .run = daemon_control::start};
const Command k_daemon_stop{.noun = "daemon",
                            .verb = "stop",
                            .summary = "stop the supervisor; jobs continue on their hosts",
                            .examples = daemon_control::k_stop_examples,
                            .description =
                                "Stops the supervisor and waits for its exit. Attempts continue on their hosts until "
                                "their lease ends. A supervisor started later picks them up again.",
                            .exit_codes = k_exits_state,
                            .run = daemon_control::stop};
const Command k_daemon_status{.noun = "daemon",
                              .verb = "status",
                              .summary = "check whether the supervisor is running",
                              .examples = daemon_control::k_status_examples,
                              .description =
                                  "Says whether a supervisor follows the jobs of this state directory. The exit "
                                  "code is 0 in both cases.",
                              .exit_codes = k_exits_state,
                              .run = daemon_control::status};

}  // namespace gridctl::cmd
