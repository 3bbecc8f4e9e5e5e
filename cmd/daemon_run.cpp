// SPDX-License-Identifier: Apache-2.0
#include "cmd/commands.hpp"
#include "cmd/context.hpp"
#include "control/daemon/daemon.hpp"

namespace gridctl::cmd {

namespace daemon_run {
namespace {
constexpr Example k_examples[] = {{"Under systemd or in a terminal of its own", "gridctl daemon run"}};
constexpr Option k_options[] = {{"exit-when-idle", 0, "", "end when nothing is left to follow"}};

Result<int> run(Context& context, const Parsed& parsed) {
  TRY(context.open());  // says what is wrong with the state directory, before the lock is asked for
  TRY(control::run_daemon(context.state, parsed.has("exit-when-idle")));
  return 0;
}
}  // namespace
}  // namespace daemon_run

const Command k_daemon_run{.noun = "daemon",
                           .verb = "run",
                           .summary = "be the supervisor, in the foreground",
                           .examples = daemon_run::k_examples,
                           .description =
                               "Follows the jobs of this state directory until SIGTERM or SIGINT. Exits with 7 "
                               "when another supervisor has the state directory.\n\n"
                               "Every host is asked for its health once a minute; GRIDCTL_HEALTH_EVERY sets another "
                               "period (\"30s\", \"5m\"), or \"off\".",
                           .options = daemon_run::k_options,
                           .exit_codes = k_exits_state,
                           .run = daemon_run::run};

}  // namespace gridctl::cmd
