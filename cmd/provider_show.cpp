// SPDX-License-Identifier: Apache-2.0
#include "cmd/commands.hpp"
#include "cmd/findings.hpp"
#include "cmd/follow.hpp"
#include "control/fleet/health.hpp"
#include "control/fleet/reliability.hpp"
#include "control/fleet/rescan.hpp"
#include "control/measure/bench.hpp"
#include "control/reach/ways.hpp"
#include "sched/catalogue/catalogue.hpp"
#include "ui/json.hpp"
#include "ui/provider_view.hpp"

namespace gridctl::cmd {

namespace provider_show {
namespace {
constexpr std::size_t k_history_shown = 12;  // events; --json has all

Result<int> run(Context& context, const Parsed& parsed) {
  TRY_ASSIGN(registry::Registry registry, context.open_for_reading());
  ui::ProviderView view;
  TRY_ASSIGN(view.provider, registry.provider(HostName{parsed.positionals[0]}));
  TRY(warn_unfollowed(context, registry));
  sched::name_models(view.provider.inventory.edit());  // by today's catalogue
  TRY_ASSIGN(const auto bench, control::load_bench_report(registry, view.provider.name));
  if (bench) view.measured = control::fill_measured(view.provider.inventory.edit(), *bench);
  view.provider.liveness = liveness_today(view.provider, is_followed(context), context.now());
  view.contradictions = control::contradictions(view.provider);
  TRY_ASSIGN(view.history, registry.host_events(view.provider.name, context.json ? 0 : k_history_shown));
  TRY_ASSIGN(const std::vector<registry::HostSpan> spans, registry.host_spans(view.provider.name));
  for (const Gpu& gpu : view.provider.inventory->gpus)
    view.gpus[gpu.uuid] = control::reliability_of_gpu(gpu.uuid, spans, context.now());
  TRY_ASSIGN(const auto way, registry.host_report(view.provider.name, control::k_way_report));
  if (const auto used = way ? control::parse_used_way(way->body) : std::nullopt; used) view.way_in_use = used->address;
  TRY_ASSIGN(const bool looked_at, control::was_looked_at(registry, view.provider.name));
  if (looked_at) {
    TRY_ASSIGN(view.standing, control::load_standing(registry, view.provider.name));
  }
  if (context.json) return context.print_line(ui::provider_detail_json(view));
  TRY_ASSIGN(view.jobs, registry.jobs_on(view.provider.name));
  context.print(ui::provider_view(view, context.now(), context.columns_out(), context.out_style));
  TRY(show_measured(context, registry, view.provider.name));
  show_problems(context, findings_of(view.provider));
  return 0;
}
}  // namespace
}  // namespace provider_show

const Command k_provider_show{
    .name = "provider show",
    .summary = "show everything known about a provider",
    .examples = {{"Show a host's hardware", "gridctl provider show ada"},
                 {"In a script", "gridctl provider show ada --json | jq .inventory.gpus"}},
    .description =
        "Shows the latest inventory (GPUs with clocks, power and buses, the links between them, disks, network cards, "
        "software), differences from what the owner declared, failure rates of the host and its GPUs, startup times, "
        "whether the host gets jobs, its history, and anything that prevents jobs. Values that only 'provider bench' "
        "revealed are marked as measured. Unknown values come with a reason: not_applicable, not_supported, "
        "not_reported, needs_bench, no_tool, no_driver, denied, timed_out or unreadable.\n\ngridctl names a GPU model "
        "only if name, memory and all other known facts leave no doubt. It never takes a laptop part for a desktop "
        "part.",
    .positionals = {{"NAME", Completion::provider}},
    .exit_codes = k_exits_job,
    .run = provider_show::run};

}  // namespace gridctl::cmd
