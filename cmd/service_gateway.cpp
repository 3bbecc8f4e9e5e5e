// SPDX-License-Identifier: Apache-2.0
#include "cmd/commands.hpp"
#include "control/serve/gateway.hpp"

namespace gridctl::cmd {

namespace service_gateway {
namespace {
Result<int> run(Context& context, const Parsed& parsed) {
  TRY(control::run_gateway(context.state, JobId{parsed.positionals[0]}));
  return 0;
}
}  // namespace
}  // namespace service_gateway

const Command k_gateway{.name = "__gateway",
                        .summary = "serve the address of a service",
                        .examples = {{"As the daemon starts it", "gridctl __gateway 7k2m9x4q"}},
                        .description = "The daemon starts it for each service, and again when it has ended.",
                        .positionals = {{"ID", Completion::job}},
                        .exit_codes = k_exits_job,
                        .hidden = true,
                        .run = service_gateway::run};

}  // namespace gridctl::cmd
