// SPDX-License-Identifier: Apache-2.0

#include "base/bytes.hpp"
#include "base/text.hpp"
#include "cmd/commands.hpp"
#include "cmd/network.hpp"
#include "control/measure/network_watch.hpp"
#include "registry/change_provider.hpp"
#include "ui/table.hpp"

namespace gridctl::cmd {

namespace provider_links {
namespace {
std::string rtt_or_dash(const std::optional<Duration>& rtt) { return rtt ? control::rtt_text(*rtt) : "-"; }
std::string rate_or_dash(const std::optional<double>& rate) { return rate ? control::rate_text(*rate) : "-"; }

std::string site_of(const control::NetworkPicture& picture, const std::string& name) {
  for (const sched::Site& site : picture.topology.sites)
    if (std::ranges::find(site.hosts, name) != site.hosts.end()) return site.name;
  return "-";
}

ui::Table hosts_table(const control::NetworkPicture& picture, const std::string& only, WallTime now) {
  ui::Table table({{.title = "HOST", .shrinks = true},
                   {.title = "ROUND TRIP", .right = true},
                   {.title = "MEDIAN", .right = true},
                   {.title = "DOWN", .right = true},
                   {.title = "UP", .right = true},
                   {.title = "SEEN", .right = true},
                   {.title = "SPENT TODAY", .right = true},
                   {.title = "SITE", .shrinks = true},
                   {.title = "REGION"},
                   {.title = "COUNTRY"}});
  auto networks = control::networks_of(picture.links);
  for (const registry::Provider& provider : picture.providers) {
    const std::string& name = provider.name.value;
    if (!only.empty() && name != only) continue;
    const auto found = picture.reports.find(name);
    const control::NetworkReport report = found == picture.reports.end() ? control::NetworkReport{} : found->second;
    const sched::CountryFinding& country = picture.countries.at(name);
    const control::HostNetwork& network = networks[name];
    table.add({name, rtt_or_dash(report.rtt_min), rtt_or_dash(report.rtt_median),
               rate_or_dash(network.down_bits_per_second), rate_or_dash(network.up_bits_per_second),
               ui::age(report.rtt_at, now), format_size(report.spent_today(now)), site_of(picture, name),
               provider.region.empty() ? "-" : provider.region, std::string(sched::verdict_name(country.verdict))},
              {ui::Paint::bold, ui::Paint::none, ui::Paint::none, ui::Paint::none, ui::Paint::none, ui::Paint::none,
               ui::Paint::none, ui::Paint::none, ui::Paint::none,
               sched::contradicts(country.verdict) ? ui::Paint::red : ui::Paint::none});
  }
  return table;
}

ui::Table links_table(const control::NetworkPicture& picture, const std::string& only, WallTime now) {
  ui::Table table({{.title = "FROM", .shrinks = true},
                   {.title = "TO", .shrinks = true},
                   {.title = "ROUND TRIP", .right = true},
                   {.title = "RATE", .right = true},
                   {.title = "AGE", .right = true},
                   {.title = "CONNECTS", .shrinks = true}});
  struct LinkRow {
    const registry::HostLink* link = nullptr;
    const control::NetworkReport::Contact* contact = nullptr;
  };
  std::map<std::pair<std::string, std::string>, LinkRow> rows;
  for (const registry::HostLink& link : picture.links) rows[{link.source, link.target}].link = &link;
  for (const auto& [to, report] : picture.reports)
    for (const auto& [from, contact] : report.contacts) rows[{from, to}].contact = &contact;
  for (const auto& [ends, row] : rows) {
    if (!only.empty() && ends.first != only && ends.second != only) continue;
    std::optional<Duration> rtt;
    if (row.link != nullptr && row.link->rtt_us) rtt = std::chrono::microseconds{*row.link->rtt_us};
    const std::optional<WallTime> at = row.contact != nullptr ? std::optional(row.contact->at)
                                       : row.link != nullptr  ? std::optional(row.link->at)
                                                              : std::nullopt;
    table.add({ends.first == registry::k_here ? "here" : ends.first,
               ends.second == registry::k_here ? "here" : ends.second, rtt_or_dash(rtt),
               rate_or_dash(row.link == nullptr ? std::nullopt : row.link->bits_per_second), ui::age(at, now),
               row.contact == nullptr        ? "-"
               : row.contact->reason.empty() ? "yes, at " + row.contact->address
                                             : "no: " + row.contact->reason});
  }
  return table;
}

void show(Context& context, const control::NetworkPicture& picture, const std::string& only) {
  const WallTime now = context.now();
  context.print(hosts_table(picture, only, now).render(context.columns_out(), context.out_style));
  const ui::Table links = links_table(picture, only, now);
  if (!links.empty()) context.print("\n" + links.render(context.columns_out(), context.out_style));
  ui::Facts facts;
  const auto concerns = [&](const std::vector<std::string>& hosts) {
    return only.empty() || std::ranges::find(hosts, only) != hosts.end();
  };
  for (const sched::Site& site : picture.topology.sites)
    if (site.hosts.size() > 1 && concerns(site.hosts)) facts.add("site " + site.name, join(site.hosts, ", "));
  for (const std::vector<std::string>& island : picture.topology.islands)
    if (concerns(island)) facts.add("island", join(island, ", "));
  for (const sched::SiteContradiction& one : picture.topology.contradictions)
    if (concerns({one.host})) facts.add(one.host, one.text);
  for (const auto& [name, country] : picture.countries)
    if (concerns({name}) && (sched::contradicts(country.verdict) || !only.empty())) facts.add(name, country.text);
  if (const std::string text = facts.render(context.out_style); !text.empty()) context.print("\n" + text);
}

std::string title_of(const sched::LinkTask& task) {
  using Kind = sched::LinkTask::Kind;
  switch (task.kind) {
    case Kind::here: return "between here and " + task.a;
    case Kind::landmarks: return "from " + task.a + " to the landmarks";
    case Kind::pair: return "between " + task.a + " and " + task.b;
    case Kind::round_trip: return "between " + task.a + " and " + task.b + " (round trips)";
  }
  return task.a;
}

Result<void> set_budget(registry::HostRecords& registry, const std::string& name, const std::string& budget) {
  if (name.empty()) return make_error(Code::usage, "--budget needs the NAME of a host", "gridctl provider links --help");
  if (budget != "off" && !parse_size(budget))
    return make_error(Code::usage, "--budget is a size such as 200MB, or off, not '" + sanitize(budget) + "'");
  TRY(registry::change_provider(registry, HostName{name}, [&](registry::Provider& row) -> Result<void> {
    row.labels["measure"] = budget;
    return {};
  }));
  return {};
}

Result<int> run(Context& context, const Parsed& parsed) {
  const std::string only = parsed.positionals.empty() ? "" : parsed.positionals[0];
  TRY_ASSIGN(registry::Registry registry, parsed.has("measure") || parsed.has("budget") ? context.open() : context.open_for_reading());
  if (!only.empty()) TRY(registry.provider(HostName{only}));
  if (parsed.has("budget")) TRY(set_budget(registry, only, parsed.value("budget")));
  if (parsed.has("measure")) {
    control::MeasureAll wanted{only, parsed.has("all"), {}};
    wanted.told = [&](const sched::LinkTask& task, const Result<void>* outcome) {
      if (outcome == nullptr) context.note("measuring " + title_of(task));
      else if (!*outcome) context.note("  not measured: " + sanitize(outcome->error().one_line()));
    };
    TRY_ASSIGN(control::SshNetwork net, network_of(context, registry));
    TRY(control::measure_now(registry, context.paths(), net, context.clock, wanted));
  }
  TRY_ASSIGN(const control::NetworkPicture picture, control::network_picture(registry, context.paths()));
  if (context.json) context.print_line(control::to_json(picture, only, context.now()));
  else if (picture.providers.empty())
    context.note("no providers yet; register one: gridctl provider register NAME ssh://user@host");
  else show(context, picture, only);
  return 0;
}
}  // namespace
}  // namespace provider_links

const Command k_provider_links{
    .name = "provider links",
    .summary = "network speed between here and the hosts",
    .examples = {{"Show the network between here and the hosts", "gridctl provider links"},
                 {"Measure the links that are due, without waiting for the daemon", "gridctl provider links --measure"},
                 {"List islands in a script", "gridctl provider links --json | jq .islands"}},
    .description =
        "Shows the measurements of the network: round trip and rate between here and every host and between hosts, "
        "how "
        "old each figure is, and why one host cannot connect to another. From these follow sites (hosts within 5 ms of "
        "each other, or declared so and not contradicted) and islands (every pair joined by 10 Gbit/s and 2 ms, both "
        "ways, at least).\n\n"
        "The daemon keeps the figures fresh: round trips with the heartbeats, rates once a day from here and once a "
        "week "
        "between hosts, never while a checkpoint moves. By itself it moves at most 64 MiB a day and host, and nothing "
        "over a link of less than 10 Mbit/s or to a host with the label metered. --budget sets another limit for a "
        "host, or off. With --measure you spend up to 512 MiB. Transfers of trees and checkpoints count as "
        "measurements.\n\n"
        "COUNTRY tells whether a host can be where its region says, by round trips to landmarks (gridctl provider "
        "landmark): plausible; far (unusually far from every landmark there); implausible (nearer to a landmark abroad "
        "than cables allow); impossible (nearer than light allows). A host can add delay and look farther away; it "
        "cannot look nearer unless something near answers in its place.",
    .positionals = {{"NAME", Completion::provider, false}},
    .options = {{"measure", 0, "", "first measure the links that are due"},
                {"budget", 0, "SIZE", "from now on measure NAME for at most so much a day, or off"},
                {"all", 0, "", "with --measure: also links measured recently, within the day's bytes"}},
    .exit_codes = k_exits_host,
    .run = provider_links::run};

}  // namespace gridctl::cmd
