// SPDX-License-Identifier: Apache-2.0
#include "cmd/host_words.hpp"

#include <filesystem>

#include "base/numbers.hpp"
#include "base/text.hpp"
#include "sched/catalogue/gpu_spec.hpp"

namespace gridctl::cmd {

namespace {
constexpr int k_minutes_an_hour = 60, k_hours_a_day = 24;
constexpr std::int64_t k_minute_ms = 60'000;

WallTime after(WallTime now, std::int64_t ms) { return WallTime{now.ms + ms}; }

// Returns the next moment at which this machine's clock shows that time.
std::optional<WallTime> time_of_day(std::string_view text, WallTime now) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos || colon == 0 || text.size() > 5) return std::nullopt;
  const auto hour = parse_number<int>(text.substr(0, colon)), minute = parse_number<int>(text.substr(colon + 1));
  if (!hour || !minute || *hour < 0 || *hour >= k_hours_a_day || *minute < 0 || *minute >= k_minutes_an_hour)
    return std::nullopt;
  const os::LocalTime local = os::local_time(now);
  int ahead = (*hour - local.hour) * k_minutes_an_hour + *minute - local.minute;
  if (ahead <= 0) ahead += k_hours_a_day * k_minutes_an_hour;
  return after(now, ahead * k_minute_ms - now.ms % k_minute_ms);
}
}  // namespace

Result<registry::Provider> provider_to_reach(const Parsed& parsed, WallTime now) {
  TRY(check_name("provider", parsed.positionals[0]));
  registry::Provider provider;
  provider.name = HostName{parsed.positionals[0]};
  for (const std::string& key : parsed.values("identity"))
    provider.identities.push_back(std::filesystem::absolute(key).string());
  provider.jump = parsed.value("jump");
  provider.registered_at = now;
  return provider;
}

Result<void> describe(const Parsed& parsed, registry::Provider& provider) {
  TRY_ASSIGN(const std::optional<double> price, parsed.number("price"));
  if (price) provider.price_per_hour = *price;
  if (parsed.has("gpu")) {
    if (!parsed.value("gpu").empty()) TRY(sched::parse_gpu_spec(parsed.value("gpu")));
    provider.declared_gpus = parsed.value("gpu");
  }
  if (parsed.has("region")) provider.region = parsed.value("region");
  if (parsed.has("site")) provider.site = parsed.value("site");
  if (parsed.has("class")) provider.host_class = parsed.value("class");
  for (const std::string& label : parsed.values("label")) {
    const std::size_t equals = label.find('=');
    if (equals == std::string::npos || equals == 0)
      return make_error(Code::usage, "--label " + sanitize(label) + " is not of the form KEY=VALUE");
    const std::string key = label.substr(0, equals), value = label.substr(equals + 1);
    if (value.empty()) provider.labels.erase(key);
    else provider.labels[key] = value;
  }
  return {};
}

Result<std::optional<WallTime>> moment_typed(std::string_view option, const std::string& text, WallTime now) {
  if (text == "none") return std::optional<WallTime>();
  if (const auto at = time_of_day(text, now)) return at;
  if (text.starts_with('+'))
    if (const auto ahead = parse_duration(text.substr(1)); ahead && *ahead > Duration{})
      return std::optional(after(now, std::chrono::duration_cast<std::chrono::milliseconds>(*ahead).count()));
  const auto at = parse_rfc3339(text);
  if (at && *at > now) return std::optional(*at);
  if (at) return make_error(Code::usage, "--" + std::string(option) + " " + sanitize(text, 60) + " has passed");
  return make_error(Code::usage, "--" + std::string(option) + " takes a time of the day such as 18:00, a time from now "
                                     "such as +4h, an instant such as 2026-11-28T18:00:00Z, or none");
}

}  // namespace gridctl::cmd
