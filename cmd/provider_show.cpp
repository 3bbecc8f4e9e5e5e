// SPDX-License-Identifier: Apache-2.0
#include "base/bytes.hpp"
#include "cmd/commands.hpp"
#include "cmd/context.hpp"
#include "cmd/findings.hpp"
#include "ui/human.hpp"
#include "ui/json.hpp"
#include "ui/table.hpp"

namespace gridctl::cmd {

namespace {
constexpr Example k_examples[] = {{"What a host has", "gridctl provider show ada"},
                                  {"For a script", "gridctl provider show ada --json | jq .gpus"}};
constexpr Positional k_positionals[] = {{"NAME", Offer::provider}};

std::string joined(const std::map<std::string, std::string>& labels) {
  std::string text;
  for (const auto& [key, value] : labels) text += (text.empty() ? "" : ", ") + key + "=" + value;
  return text;
}

void add_hardware(ui::Facts& facts, const Inventory& inventory) {
  facts.add("hostname", inventory.hostname);
  facts.add("system", inventory.os + (inventory.kernel.empty() ? "" : ", kernel " + inventory.kernel) +
                          (inventory.arch.empty() ? "" : ", " + inventory.arch));
  facts.add("cpus", ui::number(inventory.cpus) + (inventory.cpu_model.empty() ? "" : "  " + inventory.cpu_model));
  facts.add("memory", format_size(inventory.memory_bytes));
  facts.add("disk", format_size(inventory.disk_free_bytes) + " free of " + format_size(inventory.disk_total_bytes));
  for (const Gpu& gpu : inventory.gpus)
    facts.add("gpu", gpu.name + ", " + format_size(gpu.memory_bytes) + ", driver " + gpu.driver + ", " + gpu.uuid);
  facts.add("cuda", inventory.cuda);
  facts.add("rocm", inventory.rocm);
  facts.add("oneapi", inventory.oneapi);
  for (const Engine& engine : inventory.engines) {
    std::string text(engine_name(engine.kind));
    if (!engine.version.empty()) text += " " + engine.version;
    if (engine.rootless) text += ", rootless";
    if (engine.limits_enforced) text += ", limits hold";
    if (!engine.problem.empty()) text += ": " + engine.problem;
    facts.add("engine", text);
  }
  facts.add("machine", inventory.machine_id);
  facts.add("boot", inventory.boot_id);
  for (const std::string& note : inventory.notes) facts.add("note", note);
}

Result<int> run(Context& context, const Parsed& parsed) {
  TRY_ASSIGN(registry::Registry registry, context.open_for_reading());
  TRY_ASSIGN(const registry::Provider provider, registry.provider(HostName{parsed.positionals[0]}));
  if (context.json) {
    context.print_line(ui::provider_json(provider));
    return 0;
  }
  TRY_ASSIGN(const std::vector<JobId> jobs, registry.jobs_on(provider.name));
  const WallTime now = context.now();
  ui::Facts facts;
  facts.add("name", provider.name.value);
  facts.add("address", provider.address);
  facts.add("jump", provider.jump);
  facts.add("transport", provider.transport);
  facts.add("state", provider.drained ? "drained" : provider.liveness);
  facts.add("seen", ui::age(provider.last_seen_at, now));
  facts.add("registered", ui::moment(provider.registered_at) + " UTC");
  facts.add("runs with", provider.engine);
  facts.add("class", provider.host_class);
  facts.add("region", provider.region);
  facts.add("site", provider.site);
  facts.add("price", provider.price_per_hour == 0 ? "" : ui::money(provider.price_per_hour) + " an hour");
  facts.add("labels", joined(provider.labels));
  add_hardware(facts, provider.inventory);
  for (const JobId& job : jobs) facts.add("job", job.value);
  context.print(facts.render(context.out_style));
  show_problems(context, findings_of(provider));
  return 0;
}
}  // namespace

const Command k_provider_show{.noun = "provider",
                              .verb = "show",
                              .summary = "facts of one provider",
                              .examples = k_examples,
                              .description =
                                  "Shows what was found on a host when it was last checked, what its owner said "
                                  "of it, and what stands in the way of jobs.",
                              .positionals = k_positionals,
                              .exit_codes = k_exits_job,
                              .run = run};

}  // namespace gridctl::cmd
