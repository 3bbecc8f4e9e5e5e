// SPDX-License-Identifier: Apache-2.0
#include "cmd/commands.hpp"
#include "control/daemon/daemon.hpp"

namespace gridctl::cmd {

namespace daemon_run {
namespace {
Result<int> run(Context& context, const Parsed& parsed) {
  TRY(context.open());  // says what is wrong with the state directory, before the lock is asked for
  TRY(control::run_daemon(context.state, parsed.has("exit-when-idle")));
  return 0;
}
}  // namespace
}  // namespace daemon_run

const Command k_daemon_run{.name = "daemon run",
                           .summary = "run the daemon in the foreground",
                           .examples = {{"Run it under systemd or in its own terminal", "gridctl daemon run"}},
                           .description =
                               "Follows the jobs of this state directory until SIGTERM or SIGINT. Exits with 7 if "
                               "another daemon uses the state directory.\n\nIt asks every host for its health once "
                               "a minute. The setting health.every changes that: gridctl config.",
                           .options = {{"exit-when-idle", 0, "", "exit when there is nothing left to follow"}},
                           .exit_codes = k_exits_state,
                           .run = daemon_run::run};

}  // namespace gridctl::cmd
