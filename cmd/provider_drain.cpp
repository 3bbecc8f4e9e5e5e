// SPDX-License-Identifier: Apache-2.0
#include "cmd/commands.hpp"
#include "cmd/context.hpp"
#include "ui/json.hpp"

namespace gridctl::cmd {

namespace {
constexpr Example k_drain_examples[] = {{"Give a host no new jobs", "gridctl provider drain ada"}};
constexpr Example k_undrain_examples[] = {{"Put it back", "gridctl provider undrain ada"}};
constexpr Positional k_positionals[] = {{"NAME", Offer::provider}};

Result<int> set_drained(Context& context, const Parsed& parsed, bool drained) {
  TRY_ASSIGN(registry::Registry registry, context.open());
  TRY_ASSIGN(registry::Provider provider, registry.provider(HostName{parsed.positionals[0]}));
  provider.drained = drained;
  TRY(registry.update_provider(provider));
  TRY_ASSIGN(const std::vector<JobId> jobs, registry.jobs_on(provider.name));
  context.print_line(context.json ? ui::provider_json(provider)
                     : drained    ? provider.name.value + " gets no new jobs"
                                  : provider.name.value + " gets jobs again");
  if (drained && !jobs.empty())
    context.note(std::to_string(jobs.size()) + (jobs.size() == 1 ? " job goes" : " jobs go") +
                 " on there until the end");
  return 0;
}
Result<int> drain(Context& context, const Parsed& parsed) { return set_drained(context, parsed, true); }
Result<int> undrain(Context& context, const Parsed& parsed) { return set_drained(context, parsed, false); }
}  // namespace

const Command k_provider_drain{
    .noun = "provider",
    .verb = "drain",
    .summary = "give it no new jobs",
    .examples = k_drain_examples,
    .description = "Takes a host out of the choice for new attempts. What runs there goes on.",
    .positionals = k_positionals,
    .exit_codes = k_exits_job,
    .run = drain};
const Command k_provider_undrain{.noun = "provider",
                                 .verb = "undrain",
                                 .summary = "put it back",
                                 .examples = k_undrain_examples,
                                 .description = "Undoes 'gridctl provider drain'.",
                                 .positionals = k_positionals,
                                 .exit_codes = k_exits_job,
                                 .run = undrain};

}  // namespace gridctl::cmd
