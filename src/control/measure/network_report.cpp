// SPDX-License-Identifier: Apache-2.0
#include "control/measure/network_report.hpp"

#include <algorithm>
#include <vector>

#include "base/record.hpp"

namespace gridctl::control {

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
