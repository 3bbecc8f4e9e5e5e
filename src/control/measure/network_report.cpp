// SPDX-License-Identifier: Apache-2.0
#include "control/measure/network_report.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

namespace gridctl::control {

using nlohmann::json;

namespace {

constexpr std::int64_t k_day_ms = 86'400'000;

json us_or_null(const std::optional<Duration>& time) {
  if (!time) return nullptr;
  return std::chrono::duration_cast<std::chrono::microseconds>(*time).count();
}
json ms_or_null(const std::optional<WallTime>& time) { return time ? json(time->ms) : json(nullptr); }

std::optional<Duration> read_us(const json& value, const char* key) {
  if (!value.contains(key) || value[key].is_null()) return std::nullopt;
  return std::chrono::microseconds{value[key].get<std::int64_t>()};
}
std::optional<WallTime> read_ms(const json& value, const char* key) {
  if (!value.contains(key) || value[key].is_null()) return std::nullopt;
  return WallTime{value[key].get<std::int64_t>()};
}

NetworkReport read(const json& value) {
  NetworkReport report;
  report.address = value.value("address", "");
  report.rtt_min = read_us(value, "rtt_min_us");
  report.rtt_median = read_us(value, "rtt_median_us");
  report.rtt_samples = value.value("rtt_samples", std::uint64_t{0});
  report.rtt_at = read_ms(value, "rtt_at_ms");
  report.here_at = read_ms(value, "here_at_ms");
  report.landmarks_at = read_ms(value, "landmarks_at_ms");
  report.day = value.value("day", std::int64_t{0});
  report.bytes_today = value.value("bytes_today", std::uint64_t{0});
  report.bytes_last = value.value("bytes_last", std::uint64_t{0});
  const json contacts = value.value("contacts", json::object()), landmarks = value.value("landmarks", json::object());
  for (const auto& [name, one] : contacts.items())
    report.contacts[name] = {WallTime{one.value("at_ms", std::int64_t{0})}, one.value("reason", ""),
                             one.value("address", ""), one.value("full", false)};
  for (const auto& [name, one] : landmarks.items())
    report.landmarks[name] = {WallTime{one.value("at_ms", std::int64_t{0})}, read_us(one, "rtt_us"),
                              one.value("problem", "")};
  report.verdict = value.value("verdict", "");
  report.verdict_text = value.value("verdict_text", "");
  report.site_text = value.value("site_text", "");
  return report;
}

}  // namespace

void NetworkReport::spend(std::uint64_t bytes, WallTime now) {
  bytes_today = spent_today(now) + bytes;
  day = now.ms / k_day_ms;
}

std::uint64_t NetworkReport::spent_today(WallTime now) const { return day == now.ms / k_day_ms ? bytes_today : 0; }

std::string encode(const NetworkReport& report) {
  std::vector<std::pair<WallTime, std::string>> newest;
  for (const auto& [name, contact] : report.contacts) newest.emplace_back(contact.at, name);
  std::sort(newest.rbegin(), newest.rend());
  if (newest.size() > k_network_peers_max) newest.resize(k_network_peers_max);
  json contacts = json::object(), landmarks = json::object();
  for (const auto& [at, name] : newest) {
    const NetworkReport::Contact& contact = report.contacts.at(name);
    contacts[name] = {
        {"at_ms", at.ms}, {"reason", contact.reason}, {"address", contact.address}, {"full", contact.full}};
  }
  for (const auto& [name, one] : report.landmarks)
    landmarks[name] = {{"at_ms", one.at.ms}, {"rtt_us", us_or_null(one.rtt)}, {"problem", one.problem}};
  const json value{{"address", report.address},
                   {"rtt_min_us", us_or_null(report.rtt_min)},
                   {"rtt_median_us", us_or_null(report.rtt_median)},
                   {"rtt_samples", report.rtt_samples},
                   {"rtt_at_ms", ms_or_null(report.rtt_at)},
                   {"here_at_ms", ms_or_null(report.here_at)},
                   {"landmarks_at_ms", ms_or_null(report.landmarks_at)},
                   {"day", report.day},
                   {"bytes_today", report.bytes_today},
                   {"bytes_last", report.bytes_last},
                   {"contacts", std::move(contacts)},
                   {"landmarks", std::move(landmarks)},
                   {"verdict", report.verdict},
                   {"verdict_text", report.verdict_text},
                   {"site_text", report.site_text}};
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

NetworkReport parse_network_report(std::string_view text) {
  try {
    return read(json::parse(text));
  } catch (const json::exception&) {
    return {};
  }
}

}  // namespace gridctl::control
