// SPDX-License-Identifier: Apache-2.0

#include "base/bytes.hpp"
#include "cmd/commands.hpp"
#include "cmd/follow.hpp"
#include "cmd/word_doubts.hpp"
#include "control/fleet/host_facts.hpp"
#include "sched/query/query.hpp"
#include "ui/json.hpp"
#include "ui/reliability.hpp"
#include "ui/table.hpp"

namespace gridctl::cmd {

namespace provider_ls {
namespace {
ui::Table table_of(const std::vector<registry::Provider>& providers, WallTime now) {
  ui::Table table({{.title = "NAME"},
                   {.title = "STATE", .width_min = 9},
                   {.title = "GPUS", .shrinks = true},
                   {.title = "CPUS", .right = true, .drop = 1},
                   {.title = "MEMORY", .right = true, .drop = 2},
                   {.title = "ENGINE", .drop = 5},
                   {.title = "REGION", .drop = 8},
                   {.title = "CLASS", .drop = 9},
                   {.title = "$/H", .right = true, .drop = 4},
                   {.title = "MTBF", .drop = 6},
                   {.title = "BENCH", .drop = 7},
                   {.title = "SEEN", .right = true, .drop = 3},
                   {.title = "ADDRESS", .whole = true}});
  for (const registry::Provider& provider : providers) {
    const std::string verdict = ui::bench_verdict(provider);
    table.add(
        {provider.name.value, provider.drained ? "drained" : provider.liveness, ui::gpus(provider.inventory),
         ui::number(provider.inventory->cpus), format_size(provider.inventory->memory_bytes), provider.engine,
         provider.region.empty() ? "-" : provider.region, provider.host_class, ui::money(provider.price_per_hour),
         ui::mtbf(provider), verdict.empty() ? "-" : verdict, ui::age(provider.last_seen_at, now), provider.address},
        {ui::Paint::bold, ui::paint_of_liveness(provider.drained ? "drained" : provider.liveness)});
  }
  return table;
}

// Notes words that can match nothing, after a query without results.
void tell_doubts(Context& context, const sched::Query& query) {
  for (const std::string& word : query.words_for("gpu_name"))
    if (const std::string doubt = gpu_doubt(word); !doubt.empty()) context.note(doubt);
  for (const std::string& word : query.words_for("region"))
    if (const std::string doubt = region_doubt(word); !doubt.empty()) context.note(doubt);
}

Result<int> run(Context& context, const Parsed& parsed) {
  TRY_ASSIGN(const sched::Query query, sched::Query::parse(parsed.positionals.empty() ? "" : parsed.positionals[0]));
  TRY_ASSIGN(const sched::Order order, sched::Order::parse(parsed.given("order").value_or("name")));
  TRY_ASSIGN(registry::Registry registry, context.open_for_reading());
  TRY(warn_unfollowed(context, registry));
  const bool by_links = query.asks(sched::FieldSource::links) || order.asks(sched::FieldSource::links);
  std::map<std::string, sched::Figures> links;
  if (by_links) {
    TRY_ASSIGN(links, control::link_figures(registry));
  }
  bool any = false;
  TRY_ASSIGN(std::vector<registry::Provider> providers, registry.rows([&](registry::Provider& p) {
    any = true;
    if (by_links) p.figures.merge(links[p.name.value]);
    return query.matches(control::subject_of(p));
  }));
  std::ranges::stable_sort(providers, [&](const registry::Provider& a, const registry::Provider& b) {
    return order.before(control::subject_of(a), control::subject_of(b));
  });
  const bool followed = is_followed(context);
  for (registry::Provider& provider : providers)
    provider.liveness = liveness_today(provider, followed, context.now());
  if (context.json) return context.print_line(ui::providers_json(providers));
  if (providers.empty()) {
    context.note(any ? "no provider matches"
                     : "no providers yet; register one: gridctl provider register NAME ssh://user@host");
    if (any) tell_doubts(context, query);
    return 0;
  }
  return context.print(table_of(providers, context.now()).render(context.columns_out(), context.out_style));
}
}  // namespace
}  // namespace provider_ls

const Command k_provider_ls{
    .name = "provider ls",
    .summary = "list providers",
    .examples = {{"All providers", "gridctl provider ls"},
                 {"Hosts with two RTX 4090 in Germany or Finland, cheapest first",
                  "gridctl provider ls 'gpu_name=RTX_4090 num_gpus>=2 region in [DE,FI]' -o price"},
                 {"In a script", "gridctl provider ls --json"}},
    .description =
        "Lists the registered providers. QUERY is a sequence of terms that must all hold, in Vast.ai's language: FIELD "
        "OPERATOR VALUE with the operators = != > >= < <= in notin, units and ranges (gpu_ram=24GB.. price<$0.5), "
        "flags (rentable, !datacenter), and dstack's GPU notation (A100:40GB..:2). gridctl-query(7) lists every field, "
        "with Vast.ai's names. Job files use the same language under `constraints`.",
    .positionals = {{"QUERY", Completion::nothing, false}},
    .options = {{"order", 'o', "FIELDS",
                "sort by these fields, such as price,num_gpus-; FIELD- sorts in descending order", "name"}},
    .exit_codes = k_exits_state,
    .run = provider_ls::run};

}  // namespace gridctl::cmd
