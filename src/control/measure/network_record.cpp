// SPDX-License-Identifier: Apache-2.0
#include "control/measure/network_record.hpp"

#include <algorithm>
#include <vector>

#include "base/record.hpp"
#include "base/text.hpp"

namespace gridctl::control {

namespace {

constexpr double k_telling_share = 0.8;                        // a transfer this near to the known rate confirms it
constexpr Duration k_rtt_memory = std::chrono::hours{24 * 7};  // hosts move, if seldom

std::int64_t us(Duration time) { return std::chrono::duration_cast<std::chrono::microseconds>(time).count(); }

// Returns a new row, or keeps the older one where this one has no value.
registry::HostLink link(std::string source, std::string target, WallTime at, std::optional<Duration> rtt,
                        std::optional<double> rate) {
  registry::HostLink made{std::move(source), std::move(target), at, {}, rate};
  if (rtt) made.rtt_us = us(*rtt);
  return made;
}

}  // namespace

Result<NetworkReport> NetworkRecorder::report(const HostName& name) {
  TRY_ASSIGN(const auto stored, registry_.host_report(name, std::string(k_network_report)));
  return stored ? parse_network_report(stored->body) : NetworkReport{};
}

Result<void> NetworkRecorder::save(const HostName& name, const NetworkReport& report, WallTime now) {
  return registry_.save_host_report({name, std::string(k_network_report), now, encode(report)});
}

Result<void> NetworkRecorder::tell(const HostName& name, const std::string& kind, const std::string& text,
                                   WallTime now) {
  return registry_.add_host_event({0, name, now, kind, text});
}

Result<void> NetworkRecorder::pinged(const registry::Provider& provider, const probe::RttWindow& window,
                                     const LinkIndex& links, WallTime now) {
  if (window.count() == 0) return {};
  TRY_ASSIGN(NetworkReport kept, report(provider.name));
  const bool anew = kept.address != provider.address || !kept.rtt_at || age_of(*kept.rtt_at, now) > k_rtt_memory;
  kept.address = provider.address;
  kept.rtt_min = anew || !kept.rtt_min ? *window.smallest() : std::min(*kept.rtt_min, *window.smallest());
  kept.rtt_median = window.median();
  kept.rtt_samples = (anew ? 0 : kept.rtt_samples) + window.count();
  kept.rtt_at = now;
  TRY(save(provider.name, kept, now));
  // The row has the rate's time if there is a rate; otherwise it is as old as the round trip.
  const std::string here(registry::k_here);
  const auto known = links.find({here, provider.name.value});
  const WallTime at = known != links.end() && known->second->bits_per_second ? known->second->at : now;
  return registry_.save_link(link(here, provider.name.value, at, kept.rtt_min, {}));
}

Result<void> NetworkRecorder::here(const registry::Provider& provider, const HereMeasured& measured, WallTime now) {
  probe::RttWindow window;
  window.add(measured.rtt);
  TRY_ASSIGN(NetworkReport kept, report(provider.name));
  const bool first = !kept.rtt_at;
  kept.here_at = now;
  kept.spend(measured.bytes, now);
  kept.bytes_last = std::max<std::uint64_t>(1, measured.bytes);
  TRY(save(provider.name, kept, now));
  if (first) TRY(pinged(provider, window, {}, now));
  const std::string here_name(registry::k_here);
  TRY(registry_.save_link(link(here_name, provider.name.value, now, measured.rtt, measured.to_host)));
  return registry_.save_link(link(provider.name.value, here_name, now, {}, measured.from_host));
}

Result<void> NetworkRecorder::pair(const HostName& a, const HostName& b, const PairMeasured& measured, WallTime now) {
  const bool full = measured.rate_ab.has_value() || measured.rate_ba.has_value();
  for (const auto& [to, from, contact] : {std::tuple{b, a, measured.a_to_b}, std::tuple{a, b, measured.b_to_a}}) {
    TRY_ASSIGN(NetworkReport kept, report(to));
    const auto former = kept.contacts.find(from.value);
    const bool was_full = former != kept.contacts.end() && former->second.full;
    kept.contacts[from.value] = {now, contact.reason, contact.address, full || (contact.works && was_full)};
    kept.spend(measured.bytes, now);
    if (full) kept.bytes_last = std::max<std::uint64_t>(1, measured.bytes);
    TRY(save(to, kept, now));
  }
  if (measured.rtt_a || measured.rate_ab)
    TRY(registry_.save_link(link(a.value, b.value, now, measured.rtt_a, measured.rate_ab)));
  if (measured.rtt_b || measured.rate_ba)
    TRY(registry_.save_link(link(b.value, a.value, now, measured.rtt_b, measured.rate_ba)));
  return {};
}

Result<void> NetworkRecorder::landmarks(const HostName& name, const std::vector<LandmarkRow>& asked,
                                        const wire::ReachReply& reply, WallTime now) {
  TRY_ASSIGN(NetworkReport kept, report(name));
  kept.landmarks_at = now;
  kept.landmarks.clear();
  for (std::size_t i = 0; i < std::min(asked.size(), reply.targets.size()); ++i)
    kept.landmarks[asked[i].mark.name] = {now, reply.targets[i].rtt, reply.targets[i].problem};
  return save(name, kept, now);
}

Result<void> NetworkRecorder::transferred(const LinkMeter::Note& note, WallTime now) {
  if (note.bytes < k_telling_bytes || note.time <= Duration::zero()) return {};
  const double rate = static_cast<double>(note.bytes) * 8 / seconds(note.time);
  const std::string here_name(registry::k_here);
  const std::string source = note.to_host ? here_name : note.host.value;
  const std::string target = note.to_host ? note.host.value : here_name;
  TRY_ASSIGN(const std::vector<registry::HostLink> links, registry_.links());
  const LinkIndex index = index_links(links);
  const auto known = index.find({source, target});
  const double before = known == index.end() ? 0 : known->second->bits_per_second.value_or(0);
  if (rate < before * k_telling_share) return {};  // held up elsewhere, perhaps: no evidence
  return registry_.save_link(link(source, target, now, {}, std::max(rate, before)));
}

Result<void> apply_countries(registry::HostRecords& registry, std::vector<sched::HostFacts>& hosts) {
  TRY_ASSIGN(const auto reports, registry.host_reports(std::string(k_network_report)));
  std::map<std::string, NetworkReport> by_host;
  for (const registry::HostReport& report : reports)
    if (NetworkReport one = parse_network_report(report.body);
        one.verdict == sched::verdict_name(sched::CountryVerdict::impossible))
      by_host[report.provider.value] = std::move(one);
  for (sched::HostFacts& host : hosts)
    if (const auto found = by_host.find(host.name.value);
        found != by_host.end() && found->second.verdict_region == host.region)
      host.region_doubt = found->second.verdict_text;
  return {};
}

Result<void> NetworkRecorder::judge(WallTime now) {
  TRY_ASSIGN(const NetworkPicture picture, network_picture(registry_, paths_));
  std::map<std::string, std::string> site_texts;
  for (const sched::SiteContradiction& one : picture.topology.contradictions) site_texts[one.host] = one.text;
  for (const registry::Provider& provider : picture.providers) {
    const auto reported = picture.reports.find(provider.name.value);
    if (reported == picture.reports.end()) continue;
    NetworkReport kept = reported->second;
    const sched::CountryFinding& country = picture.countries.at(provider.name.value);
    const std::string verdict(sched::verdict_name(country.verdict));
    const std::string& site = site_texts[provider.name.value];
    const bool site_changed = site.empty() != kept.site_text.empty();
    if (verdict != kept.verdict) {
      if (sched::contradicts(country.verdict)) TRY(tell(provider.name, "country_contradicted", country.text, now));
      else if (is_one_of(kept.verdict, {sched::verdict_name(sched::CountryVerdict::far),
                                        sched::verdict_name(sched::CountryVerdict::implausible),
                                        sched::verdict_name(sched::CountryVerdict::impossible)}))
        TRY(tell(provider.name, "country_settled", country.text, now));
    }
    if (site_changed)
      TRY(tell(provider.name, site.empty() ? "site_settled" : "site_contradicted",
               site.empty() ? "no longer far from its declared site" : site, now));
    if (verdict == kept.verdict && country.text == kept.verdict_text && provider.region == kept.verdict_region &&
        !site_changed)
      continue;
    kept.verdict_region = provider.region;
    kept.verdict = verdict;
    kept.verdict_text = country.text;
    kept.site_text = site;
    TRY(save(provider.name, kept, now));
  }
  return {};
}

namespace {

constexpr std::int64_t k_day_ms = 86'400'000;

}  // namespace

template <class R>
void fields(R& r, Of<R, NetworkReport::Contact>& m) {
  r("at_ms", m.at)("reason", m.reason)("address", m.address)("full", m.full);
}

template <class R>
void fields(R& r, Of<R, NetworkReport::Landmark>& m) {
  r("at_ms", m.at).null_or("rtt_us", m.rtt)("problem", m.problem);
}

template <class R>
void fields(R& r, Of<R, NetworkReport>& m) {
  r("address", m.address).null_or("rtt_min_us", m.rtt_min).null_or("rtt_median_us", m.rtt_median);
  r("rtt_samples", m.rtt_samples).null_or("rtt_at_ms", m.rtt_at).null_or("here_at_ms", m.here_at);
  r.null_or("landmarks_at_ms", m.landmarks_at)("day", m.day)("bytes_today", m.bytes_today)("bytes_last", m.bytes_last);
  r("contacts", m.contacts)("landmarks", m.landmarks)("verdict", m.verdict)("verdict_text", m.verdict_text);
  r.added("verdict_region", m.verdict_region);
  r("site_text", m.site_text);
}

void NetworkReport::spend(std::uint64_t bytes, WallTime now) {
  bytes_today = spent_today(now) + bytes;
  day = now.ms / k_day_ms;
}

std::uint64_t NetworkReport::spent_today(WallTime now) const { return day == now.ms / k_day_ms ? bytes_today : 0; }

std::string encode(NetworkReport report) {
  std::vector<std::pair<WallTime, std::string>> newest;
  for (const auto& [name, contact] : report.contacts) newest.emplace_back(contact.at, name);
  std::sort(newest.rbegin(), newest.rend());
  for (std::size_t i = k_network_peers_max; i < newest.size(); ++i) report.contacts.erase(newest[i].second);
  return write_record(report);
}

NetworkReport parse_network_report(std::string_view text) {
  return read_record<NetworkReport>(text, "the report", k_lenient_rules, Code::state_unreadable)
      .value_or(NetworkReport{});
}

}  // namespace gridctl::control
