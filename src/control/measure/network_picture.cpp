// SPDX-License-Identifier: Apache-2.0
// Draws conclusions from the registry's links: read, derive, schedule.
#include <algorithm>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/formatted.hpp"
#include "control/measure/measuring_budget.hpp"
#include "control/measure/network_record.hpp"
#include "os/net.hpp"
#include "ssh/target.hpp"

namespace gridctl::control {

namespace {

Duration from_us(std::int64_t us) { return std::chrono::microseconds{us}; }

// Returns every round trip between the host and a landmark, from any measuring side.
std::vector<sched::LandmarkRtt> landmark_rtts(const NetworkPicture& picture, const LinkIndex& links,
                                              const std::string& host) {
  std::vector<sched::LandmarkRtt> found;
  const auto report = picture.reports.find(host);
  for (const LandmarkRow& row : picture.landmarks) {
    if (row.is_here()) {
      if (report != picture.reports.end() && report->second.rtt_min)
        found.push_back({row.mark, *report->second.rtt_min, sched::Witness::here});
    } else if (const std::string provider = row.provider(); !provider.empty()) {
      const auto link = links.find({provider, host});
      if (link != links.end() && link->second->rtt_us)
        found.push_back({row.mark, from_us(*link->second->rtt_us), sched::Witness::provider});
    } else if (report != picture.reports.end()) {
      const auto own = report->second.landmarks.find(row.mark.name);
      if (own != report->second.landmarks.end() && own->second.rtt)
        found.push_back({row.mark, *own->second.rtt, sched::Witness::itself});
    }
  }
  return found;
}

}  // namespace

std::string rate_text(double bits_per_second) {
  return bits_per_second >= 1e9 ? formatted("%.3g Gbit/s", bits_per_second / 1e9)
                                : formatted("%.3g Mbit/s", bits_per_second / 1e6);
}

std::string rtt_text(Duration rtt) {
  const double ms = std::chrono::duration<double, std::milli>(rtt).count();
  return ms < 100 ? formatted("%.3g ms", ms) : formatted("%.0f ms", ms);
}

std::vector<sched::PairLink> pair_links(std::span<const registry::HostLink> measured) {
  std::vector<sched::PairLink> links;
  for (const registry::HostLink& link : measured) {
    sched::PairLink pair{link.source, link.target, {}, link.bits_per_second};
    if (link.rtt_us) pair.rtt = from_us(*link.rtt_us);
    links.push_back(std::move(pair));
  }
  return links;
}

LinkIndex index_links(std::span<const registry::HostLink> links) {
  LinkIndex index;
  for (const registry::HostLink& link : links) index.emplace(std::pair{link.source, link.target}, &link);
  return index;
}

std::map<std::string, HostNetwork> networks_of(std::span<const registry::HostLink> links) {
  std::map<std::string, HostNetwork> found;
  const auto better = [](std::optional<double>& into, double rate) { into = std::max(into.value_or(0), rate); };
  for (const registry::HostLink& link : links) {
    const bool from_here = link.source == registry::k_here, to_here = link.target == registry::k_here;
    if (from_here && link.rtt_us) found[link.target].latency = from_us(*link.rtt_us);
    if (!link.bits_per_second) continue;
    if (!from_here) better(found[link.source].up_bits_per_second, *link.bits_per_second);
    if (!to_here) better(found[link.target].down_bits_per_second, *link.bits_per_second);
  }
  return found;
}

namespace {
// Builds the picture of these hosts alone. The answer for a host depends only on the hosts of its declared site.
Result<NetworkPicture> picture_of(registry::HostRecords& registry, const Paths& paths,
                                  std::vector<registry::Provider> providers) {
  NetworkPicture picture;
  picture.providers = std::move(providers);
  std::vector<sched::SiteHost> hosts;
  std::unordered_set<std::string_view> asked;
  for (const registry::Provider& provider : picture.providers) {
    hosts.push_back({provider.name.value, provider.site});
    asked.insert(provider.name.value);
  }
  TRY_ASSIGN(picture.links, registry.links());
  std::erase_if(picture.links, [&](const registry::HostLink& link) {
    return !asked.contains(link.source) && !asked.contains(link.target);
  });
  TRY_ASSIGN(picture.landmarks, read_landmarks(paths));
  TRY_ASSIGN(const auto reports, registry.host_reports(std::string(k_network_report)));
  for (const registry::HostReport& report : reports)
    if (asked.contains(report.provider.value))
      picture.reports[report.provider.value] = parse_network_report(report.body);
  picture.topology = sched::derive_topology(hosts, pair_links(picture.links));
  const LinkIndex index = index_links(picture.links);
  for (const registry::Provider& provider : picture.providers)
    picture.countries[provider.name.value] =
        sched::judge_country(provider.region, landmark_rtts(picture, index, provider.name.value));
  return picture;
}
}  // namespace

Result<NetworkPicture> network_picture(registry::HostRecords& registry, const Paths& paths) {
  TRY_ASSIGN(std::vector<registry::Provider> providers, registry.providers());
  return picture_of(registry, paths, std::move(providers));
}

Result<std::string> network_line(registry::HostRecords& registry, const Paths& paths, const HostName& name) {
  // A person who asks about one host does not wait for the distances between a thousand.
  TRY_ASSIGN(registry::Provider own, registry.provider(name));
  std::vector<registry::Provider> near;
  if (own.site.empty()) {
    near.push_back(std::move(own));
  } else {
    TRY_ASSIGN(near, registry.rows([&](const registry::Provider& other) { return other.site == own.site; }));
  }
  TRY_ASSIGN(const NetworkPicture picture, picture_of(registry, paths, std::move(near)));
  const auto networks = networks_of(picture.links);
  const auto found = networks.find(name.value);
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (found != networks.end()) {
    const HostNetwork& network = found->second;
    if (network.latency) add("round trip " + rtt_text(*network.latency));
    if (network.down_bits_per_second) add(rate_text(*network.down_bits_per_second) + " down");
    if (network.up_bits_per_second) add(rate_text(*network.up_bits_per_second) + " up");
  }
  for (const sched::SiteContradiction& one : picture.topology.contradictions)
    if (one.host == name.value) add(one.text);
  const auto country = picture.countries.find(name.value);
  if (country != picture.countries.end() && country->second.verdict != sched::CountryVerdict::undeclared)
    text += (text.empty() ? "" : "; ") + country->second.text;
  return text;
}

namespace {
std::optional<double> slowest_rate(const std::vector<registry::HostLink>& links, const HostName& host) {
  std::optional<double> slowest;
  for (const registry::HostLink& link : links)
    if ((link.source == host.value || link.target == host.value) && link.bits_per_second)
      slowest = std::min(slowest.value_or(*link.bits_per_second), *link.bits_per_second);
  return slowest;
}
}  // namespace

Result<std::uint64_t> measuring_bytes_left(registry::HostRecords& registry, const registry::Provider& provider,
                                           WallTime now, bool asked) {
  TRY_ASSIGN(const std::vector<registry::HostLink> links, registry.links());
  TRY_ASSIGN(const auto report, registry.host_report(provider.name, std::string(k_network_report)));
  const std::uint64_t day = measuring_day_bytes(provider, slowest_rate(links, provider.name), asked);
  const std::uint64_t spent = report ? parse_network_report(report->body).spent_today(now) : 0;
  return day - std::min(day, spent);
}

std::vector<sched::LinkTask> due_measurements(const NetworkPicture& picture, WallTime now,
                                              const std::function<bool(const std::string&)>& is_up, bool asked) {
  std::map<std::string, std::string> site_of;
  for (const sched::Site& site : picture.topology.sites)
    for (const std::string& host : site.hosts) site_of[host] = site.name;
  bool asks_hosts = false;
  std::map<std::string, bool> is_landmark;
  for (const LandmarkRow& row : picture.landmarks) {
    if (!row.provider().empty()) is_landmark[row.provider()] = true;
    asks_hosts = asks_hosts || (!row.is_here() && row.provider().empty());
  }
  const LinkIndex links = index_links(picture.links);
  const std::string here(registry::k_here);
  const auto rate_age = [&](const std::string& source, const std::string& target) -> std::optional<Duration> {
    const auto link = links.find({source, target});
    if (link == links.end() || !link->second->bits_per_second) return std::nullopt;
    return age_of(link->second->at, now);
  };
  const auto is_slow = [&](const std::string& source, const std::string& target) {
    const auto link = links.find({source, target});
    return link != links.end() && link->second->rtt_us && from_us(*link->second->rtt_us) <= sched::k_site_rtt &&
           link->second->bits_per_second && *link->second->bits_per_second < sched::k_island_bits_per_second;
  };
  std::vector<sched::LinkHost> hosts;
  std::vector<sched::LinkAge> pairs;
  for (const registry::Provider& provider : picture.providers) {
    const std::string& name = provider.name.value;
    sched::LinkHost host;
    host.name = name;
    host.site = site_of[name];
    host.up = is_up(name);
    host.is_landmark = is_landmark.contains(name);
    host.bytes_a_day = measuring_day_bytes(provider, slowest_rate(picture.links, provider.name), asked);
    if (const auto found = picture.reports.find(name); found != picture.reports.end()) {
      const NetworkReport& report = found->second;
      host.rtt_here = report.rtt_min;
      host.bytes_today = report.spent_today(now);
      host.bytes_expected = report.bytes_last;
      if (report.here_at) host.here_age = age_of(*report.here_at, now);
      if (report.landmarks_at) host.asked_age = age_of(*report.landmarks_at, now);
      for (const auto& [from, contact] : report.contacts)
        pairs.push_back({from, name, age_of(contact.at, now), !contact.reason.empty() && !contact.full, contact.full,
                         is_slow(from, name) || is_slow(name, from)});
    }
    // Transfers in both directions have shown as much as a measurement would.
    const std::optional<Duration> to_host = rate_age(here, name), from_host = rate_age(name, here);
    if (to_host && from_host)
      host.here_age = std::min(host.here_age.value_or(Duration::max()), std::max(*to_host, *from_host));
    hosts.push_back(std::move(host));
  }
  return sched::due_links(hosts, pairs, asks_hosts);
}

std::vector<wire::ReachRequest::Target> reach_targets(const std::vector<LandmarkRow>& landmarks, os::Clock& clock) {
  std::vector<wire::ReachRequest::Target> targets;
  for (const LandmarkRow& row : landmarks) {
    const auto parsed = ssh::parse_address(row.address);
    const auto found = parsed ? os::numeric_addresses(parsed->host, clock.boot() + k_resolve, clock)
                              : Result<std::vector<std::string>>(parsed.error());
    // A name that cannot be resolved keeps its place: the host will report that it is not an address.
    targets.push_back({found && !found->empty() ? found->front() : "unknown",
                       parsed && parsed->port ? *parsed->port : std::uint16_t{1}});
  }
  return targets;
}

}  // namespace gridctl::control
