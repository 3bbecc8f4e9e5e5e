// SPDX-License-Identifier: Apache-2.0

#include "base/host_words.hpp"
#include "base/text.hpp"
#include "cmd/commands.hpp"
#include "cmd/host_words.hpp"
#include "control/reach/ways.hpp"
#include "registry/change_provider.hpp"
#include "sched/geo/residency.hpp"
#include "ui/json.hpp"

namespace gridctl::cmd {

namespace provider_set {
namespace {
const std::initializer_list<Option> k_options = {
    {"gpu", 0, "SPEC", "GPUs according to the owner, such as RTX_4090:2; '' for none said"},
    {"price", 0, "USD", "hourly price of the whole host"},
    {"region", 0, "REGION", "country or region, such as DE"},
    {"site", 0, "NAME", "hosts at the same site are near each other"},
    {"class", 0, "CLASS", "kind of host, which sets the expected reliability", "", Completion::choices, k_host_classes},
    {"label", 'l', "K=V", "label that jobs can match; K= removes it", "", Completion::nothing, "", true},
    {"address", 0, "[USER@]HOST[:PORT]", "where the host is now; replaces its first address"},
    {"host-key", 0, "SHA256:...", "with --address: expected fingerprint of the host key there"},
    {"until", 0, "TIME", "the host ends then: 18:00, +4h, an RFC 3339 time, or none"}};

constexpr std::string_view k_lent_label = "lent";

// An invited host is a stranger's until the user says that it is his own: by class home, or by its label. Another class
// only tells how reliable it is.
void keep_owner(const Parsed& parsed, const registry::Provider& before, registry::Provider& after) {
  const bool said = std::ranges::any_of(parsed.values("label"), [](const std::string& one) { return one.starts_with(std::string(k_lent_label) + "="); });
  if (said || !control::is_lent(before) || !parsed.has("class")) return;
  if (after.host_class == k_class_home) after.labels.erase(std::string(k_lent_label));
  else if (sched::is_lent(before.host_class, before.labels)) after.labels[std::string(k_lent_label)] = "true";
}

void warn_of_trust(Context& context, const registry::Provider& before, const registry::Provider& after) {
  if (!sched::is_lent(before.host_class, before.labels) || sched::is_lent(after.host_class, after.labels)) return;
  context.note("warning: " + after.name.value + " counts as a machine of your own from now on: it may run private jobs, jobs without checkpoints and "
               "members of gangs that exchange data unencrypted, and its checkpoints may be loaded outside of containers on your other machines\n"
               "hint: if somebody else owns it: gridctl provider set " + after.name.value + " --label lent=true");
}

std::string labels_of(const registry::Provider& provider) {
  std::vector<std::string> words;
  for (const auto& [key, value] : provider.labels) words.push_back(sanitize(key + "=" + value));
  return join(words, ", ");
}

// Returns a part for each word that differs: "region DE (was FI)".
std::vector<std::string> changes(const registry::Provider& before, const registry::Provider& after) {
  std::vector<std::string> told;
  const auto tell = [&](const std::string& what, const std::string& old, const std::string& now) {
    if (old != now) told.push_back(what + " " + (now.empty() ? "none" : now) + " (was " + (old.empty() ? "none" : old) + ")");
  };
  tell("gpu", sanitize(before.declared_gpus), sanitize(after.declared_gpus));
  tell("price", ui::money(before.price_per_hour, false), ui::money(after.price_per_hour, false));
  tell("region", sanitize(before.region), sanitize(after.region));
  tell("site", sanitize(before.site), sanitize(after.site));
  tell("class", before.host_class, after.host_class);
  tell("labels", labels_of(before), labels_of(after));
  tell("address", sanitize(before.address), sanitize(after.address));
  const auto end = [](const registry::Provider& one) { return one.until ? format_rfc3339(*one.until) : std::string(); };
  tell("until", end(before), end(after));
  return told;
}

Result<int> run(Context& context, const Parsed& parsed) {
  bool any = false;
  for (const Option& option : k_options) any = any || parsed.has(option.name);
  if (!any) return make_error(Code::usage, "nothing to set is given", "gridctl provider set --help");
  TRY_ASSIGN(registry::Registry registry, context.open());
  TRY_ASSIGN(const registry::Provider before, registry.provider(HostName{parsed.positionals[0]}));
  std::optional<registry::Way> moved;
  if (parsed.has("address") && parsed.value("address") != before.address) {
    const std::string address = parsed.value("address");
    TRY_ASSIGN(registry::Way typed, way_typed(parsed, before, address));
    typed.jump = before.jump;
    TRY_ASSIGN(moved,
               new_way(context, registry, before, std::move(typed), parsed.value("host-key"),
                       "gridctl provider set " + before.name.value + " --address " + shell_quote(address)));
  }
  std::vector<std::string> told;
  registry::Provider former;
  const auto edit = [&](registry::Provider& row) -> Result<void> {
    former = row;
    TRY(describe(parsed, row));
    keep_owner(parsed, former, row);
    if (moved) static_cast<registry::Way&>(row) = *moved;
    if (parsed.has("until")) {
      TRY_ASSIGN(row.until, moment_typed("until", parsed.value("until"), context.now()));
    }
    told = changes(former, row);
    if (told.empty()) return {};
    return registry.add_host_event({0, row.name, context.now(), "set", join(told, ", ")});
  };
  TRY_ASSIGN(const registry::Provider after, registry::change_provider(registry, before.name, edit));
  warn_of_trust(context, former, after);
  if (context.json) return context.print_line(ui::provider_json(after));
  return context.print_line(after.name.value + (told.empty() ? " is unchanged" : ": " + join(told, ", ")));
}
}  // namespace
}  // namespace provider_set

const Command k_provider_set{
    .name = "provider set",
    .summary = "change what you have declared about a host",
    .examples = {
        {"Say where a host is, and what it costs", "gridctl provider set ada --region DE --site lab --price 0.35"},
        {"Add a label, and remove another", "gridctl provider set ada --label disk=nvme --label old="},
        {"A host has moved", "gridctl provider set ada --address me@203.0.113.9"},
        {"Say that a host is there until the evening", "gridctl provider set ada --until 18:00"}},
    .description =
        "Changes what `provider register` was told about a host: region, site, class, price, labels, GPUs. Placement "
        "follows at once. Running jobs stay where they are and pay a new price from now on. What gridctl measured "
        "itself cannot be set.\n\nAn invited host is its owner's. It counts as your own, with a warning, once you set the class home, or "
        "the label lent=false; with another class it gets the label lent=true.\n\n--address logs in at the new address and pins the host key there; another machine is refused. "
        "'gridctl provider way' adds another address.\n\nA host with --until ends at a known time, as an allocation does. It gets no job that "
        "needs longer. Jobs there save before the end and move on, or wait when no other host is suitable. That the host "
        "is gone then does not count as a failure. A lent host tells the end of its owner's hours itself.",
    .positionals = {{"NAME", Completion::provider}},
    .options = provider_set::k_options,
    .exit_codes = {3, 5, 6, 7},
    .waits = true,
    .run = provider_set::run};

}  // namespace gridctl::cmd
