// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <nlohmann/json.hpp>

#include "control/measure/network_record.hpp"

namespace gridctl::control {

using nlohmann::json;

namespace {

json ms_of(const std::optional<Duration>& time) {
  if (!time) return nullptr;
  return std::chrono::duration<double, std::milli>(*time).count();
}
json time_of(const std::optional<WallTime>& time) { return time ? json(format_rfc3339(*time)) : json(nullptr); }
json number_of(const std::optional<double>& value) { return value ? json(*value) : json(nullptr); }

json host_json(const NetworkPicture& picture, const registry::Provider& provider, const HostNetwork& network,
               WallTime now) {
  const std::string& name = provider.name.value;
  const auto found = picture.reports.find(name);
  const NetworkReport report = found == picture.reports.end() ? NetworkReport{} : found->second;
  const sched::CountryFinding& country = picture.countries.at(name);
  json landmarks = json::array();
  for (const auto& [mark, one] : report.landmarks)
    landmarks.push_back({{"name", mark},
                         {"rtt_ms", ms_of(one.rtt)},
                         {"problem", one.problem.empty() ? json(nullptr) : json(one.problem)},
                         {"measured_at", format_rfc3339(one.at)}});
  json value{{"name", name},
             {"rtt_ms", ms_of(report.rtt_min)},
             {"rtt_median_ms", ms_of(report.rtt_median)},
             {"rtt_samples", report.rtt_samples},
             {"rtt_measured_at", time_of(report.rtt_at)},
             {"down_bits_per_second", number_of(network.down_bits_per_second)},
             {"up_bits_per_second", number_of(network.up_bits_per_second)},
             {"declared_site", provider.site.empty() ? json(nullptr) : json(provider.site)},
             {"site", nullptr},
             {"site_problem", nullptr},
             {"region", provider.region.empty() ? json(nullptr) : json(provider.region)},
             {"country_verdict", std::string(sched::verdict_name(country.verdict))},
             {"country_reason", country.text},
             {"landmarks", std::move(landmarks)},
             {"measuring_bytes_today", report.spent_today(now)}};
  for (const sched::Site& site : picture.topology.sites)
    if (std::find(site.hosts.begin(), site.hosts.end(), name) != site.hosts.end()) value["site"] = site.name;
  for (const sched::SiteContradiction& one : picture.topology.contradictions)
    if (one.host == name) value["site_problem"] = one.text;
  return value;
}

}  // namespace

std::string to_json(const NetworkPicture& picture, const std::string& only, WallTime now) {
  const auto wanted = [&](const std::string& name) { return only.empty() || name == only; };
  json hosts = json::array(), links = json::array(), contacts = json::array(), sites = json::array(),
       landmarks = json::array();
  auto networks = networks_of(picture.links);
  for (const registry::Provider& provider : picture.providers) {
    const std::string& to = provider.name.value;
    if (wanted(to)) hosts.push_back(host_json(picture, provider, networks[to], now));
    const auto report = picture.reports.find(to);
    if (report == picture.reports.end()) continue;
    for (const auto& [from, contact] : report->second.contacts)
      if (wanted(from) || wanted(to))
        contacts.push_back({{"from", from},
                            {"to", to},
                            {"connects", contact.reason.empty()},
                            {"address", contact.address.empty() ? json(nullptr) : json(contact.address)},
                            {"reason", contact.reason.empty() ? json(nullptr) : json(contact.reason)},
                            {"measured_at", format_rfc3339(contact.at)}});
  }
  for (const registry::HostLink& link : picture.links)
    if (wanted(link.source) || wanted(link.target))
      links.push_back({{"source", link.source},
                       {"target", link.target},
                       {"rtt_ms", link.rtt_us ? json(static_cast<double>(*link.rtt_us) / 1000) : json(nullptr)},
                       {"bits_per_second", number_of(link.bits_per_second)},
                       {"measured_at", format_rfc3339(link.at)}});
  for (const sched::Site& site : picture.topology.sites)
    sites.push_back({{"name", site.name}, {"declared", site.declared}, {"hosts", site.hosts}});
  for (const LandmarkRow& row : picture.landmarks)
    landmarks.push_back({{"name", row.mark.name},
                         {"latitude", row.mark.at.latitude},
                         {"longitude", row.mark.at.longitude},
                         {"address", row.address},
                         {"country", row.mark.country.empty() ? json(nullptr) : json(row.mark.country)}});
  const json value{{"hosts", std::move(hosts)},           {"links", std::move(links)},
                   {"contacts", std::move(contacts)},     {"sites", std::move(sites)},
                   {"islands", picture.topology.islands}, {"landmarks", std::move(landmarks)}};
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace gridctl::control
