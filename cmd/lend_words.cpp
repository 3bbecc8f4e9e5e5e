// SPDX-License-Identifier: Apache-2.0
#include "cmd/lend_words.hpp"

#include "base/bytes.hpp"
#include "base/formatted.hpp"
#include "base/numbers.hpp"
#include "base/text.hpp"
#include "control/reach/relay.hpp"
#include "lend/gpu_power.hpp"
#include "lend/lent.hpp"
#include "lend/presence.hpp"
#include "lend/sensors.hpp"
#include "os/address.hpp"
#include "os/net.hpp"
#include "os/process.hpp"
#include "os/shaping.hpp"
#include "plan/device.hpp"
#include "probe/preflight.hpp"

namespace gridctl::cmd {

namespace {
constexpr int k_hour = 60, k_hours = 24;

std::optional<int> minute_of(std::string_view text) {
  const std::size_t colon = text.find(':');
  const auto hour = parse_number<int>(trim(text.substr(0, colon)));
  const auto minute = colon == std::string_view::npos ? std::optional{0} : parse_number<int>(trim(text.substr(colon + 1)));
  if (!hour || !minute || *hour < 0 || *hour > k_hours || *minute < 0 || *minute >= k_hour) return std::nullopt;
  const int all = *hour * k_hour + *minute;
  if (all > k_hours * k_hour) return std::nullopt;
  return all % (k_hours * k_hour);
}

std::string clock_text(int minute) {
  const auto two = [](int number) { return (number < 10 ? "0" : "") + std::to_string(number); };
  return two(minute / k_hour) + ":" + two(minute % k_hour);
}
}  // namespace

Result<std::optional<Hours>> hours_of(const Parsed& parsed) {
  if (!parsed.has("hours")) return std::optional<Hours>{};
  const std::string text = parsed.value("hours");
  if (text == "always") return std::optional<Hours>{Hours{}};
  const std::size_t dash = text.find('-');
  const auto from = minute_of(std::string_view(text).substr(0, dash));
  const auto to = dash == std::string::npos ? std::nullopt : minute_of(std::string_view(text).substr(dash + 1));
  if (!from || !to) return make_error(Code::usage, "--hours takes FROM-TO, such as 23:00-07:00, or 'always'");
  return std::optional<Hours>{Hours{*from, *to}};
}

namespace {
constexpr std::string_view k_all = "all", k_unlimited = "unlimited", k_public = "public", k_limits_point = "limits";
constexpr Duration k_address_wait = std::chrono::seconds{5};
constexpr Duration k_max_job_least = std::chrono::seconds{10};
constexpr std::uint64_t k_memory_least = 64u << 20, k_disk_least = 2ull << 30;  // bytes: with less free, no host gets jobs
constexpr std::size_t k_registries_most = 100;
constexpr Duration k_idle_usual = std::chrono::minutes{10}, k_idle_least = std::chrono::seconds{10}, k_idle_most = std::chrono::hours{24};
constexpr double k_up_least = 1e6, k_up_most = 30e9;  // bits a second: less is not enough for heartbeats and checkpoints
constexpr int k_watts_least = 20, k_watts_most = 5000, k_celsius_least = 40, k_celsius_most = 110;
constexpr std::string_view k_when_always = "always", k_when_idle = "idle", k_up_usual = "20Mbps";

Result<void> describe_size(const Parsed& parsed, const Option& option, std::uint64_t least, std::optional<std::uint64_t>& into) {
  if (!parsed.has(option.name)) return {};
  const std::string text = parsed.value(option.name);
  into.reset();
  if (text == k_all) return {};
  const auto bytes = parse_size(text);
  if (!bytes || *bytes < least)
    return make_error(Code::usage, "--" + std::string(option.name) + " takes a size of at least " + format_size(least) + ", such as 50GB, or 'all'");
  into = *bytes;
  return {};
}

Result<void> describe_shares(const Parsed& parsed, wire::GuestTerms& terms) {
  TRY(describe_size(parsed, k_disk_option, k_disk_least, terms.disk_bytes));
  TRY(describe_size(parsed, k_memory_option, k_memory_least, terms.memory_bytes));
  if (parsed.has(k_cpus_option.name)) {
    const std::string text = parsed.value(k_cpus_option.name);
    const auto cpus = parse_number<double>(text);
    if (text != k_all && (!cpus || !(*cpus >= 0.1) || *cpus > 1e6)) return make_error(Code::usage, "--cpus takes a number, such as 4, or 'all'");
    terms.cpus = text == k_all ? std::nullopt : cpus;
  }
  if (!parsed.has(k_max_job_option.name)) return {};
  terms.max_job_ms.reset();
  if (parsed.value(k_max_job_option.name) == k_unlimited) return {};
  TRY_ASSIGN(const auto most, parsed.duration(k_max_job_option.name));
  if (!most || *most < k_max_job_least) return make_error(Code::usage, "--max-job takes a time of at least 10s, such as 12h, or 'unlimited'");
  terms.max_job_ms = std::chrono::duration_cast<std::chrono::milliseconds>(*most).count();
  return {};
}

// "280W" and "280", or "unlimited".
Result<void> describe_whole(const Parsed& parsed, const Option& option, char unit, int least, int most, std::optional<int>& into) {
  if (!parsed.has(option.name)) return {};
  std::string text = parsed.value(option.name);
  into.reset();
  if (text == k_unlimited) return {};
  if (!text.empty() && lower(text).back() == lower(std::string(1, unit)).front()) text.pop_back();
  into = parse_number<int>(trim(text));
  if (into && *into >= least && *into <= most) return {};
  return make_error(Code::usage, "--" + std::string(option.name) + " takes a whole number from " + std::to_string(least) + unit + " to " +
                                     std::to_string(most) + unit + ", or 'unlimited'");
}

Result<void> describe_when(const Parsed& parsed, wire::GuestTerms& terms) {
  if (!parsed.has(k_when_option.name)) return {};
  const std::string text = parsed.value(k_when_option.name);
  terms.idle_ms.reset();
  if (text == k_when_always) return {};
  Result<Duration> idle = k_idle_usual;
  if (text.starts_with(k_when_idle) && text.size() > k_when_idle.size() + 1) idle = parse_duration(text.substr(k_when_idle.size() + 1));
  if (!text.starts_with(k_when_idle) || !idle || *idle < k_idle_least || *idle > k_idle_most)
    return make_error(Code::usage, "--when takes 'always', 'idle', or 'idle:' and a time from 10s to 24h, such as idle:30m");
  terms.idle_ms = std::chrono::duration_cast<std::chrono::milliseconds>(*idle).count();
  return {};
}

// Reads the options that the machine's own state decides by.
Result<void> describe_state(const Parsed& parsed, wire::GuestTerms& terms) {
  TRY(describe_when(parsed, terms));
  TRY(describe_whole(parsed, k_gpu_power_option, 'W', k_watts_least, k_watts_most, terms.gpu_watts));
  TRY(describe_whole(parsed, k_max_heat_option, 'C', k_celsius_least, k_celsius_most, terms.heat_celsius));
  if (parsed.has(k_on_battery_option.name)) terms.on_battery = parsed.value(k_on_battery_option.name) == "yes";
  if (!parsed.has(k_up_option.name)) return {};
  const std::string text = parsed.value(k_up_option.name);
  terms.up_bits.reset();
  if (text == k_unlimited) return {};
  const auto bytes = plan::bytes_per_second_of(text);
  const double bits = bytes.value_or(0) * 8;
  if (!(bits >= k_up_least) || bits > k_up_most)
    return make_error(Code::usage, "--up takes a rate from 1Mbps to 30Gbps, such as " + std::string(k_up_usual) + ", or 'unlimited'");
  terms.up_bits = static_cast<std::uint64_t>(bits);
  return {};
}

Result<void> describe_registries(const Parsed& parsed, wire::GuestTerms& terms) {
  if (!parsed.has(k_registries_option.name)) return {};
  terms.registries.clear();
  if (parsed.value(k_registries_option.name) == k_public) return {};
  for (const std::string& one : split(parsed.value(k_registries_option.name), ',')) {
    const std::string registry = lower(trim(one));
    TRY(wire::check_registry(registry));
    terms.registries.push_back(registry);
  }
  if (terms.registries.size() > k_registries_most) return make_error(Code::usage, "--registries takes at most 100 registries");
  return {};
}
}  // namespace

Result<void> describe_terms(const Parsed& parsed, wire::GuestTerms& terms) {
  TRY_ASSIGN(const auto hours, hours_of(parsed));
  if (hours) {
    terms.from_minute = hours->from;
    terms.to_minute = hours->to;
  }
  if (parsed.has("reclaim")) terms.reclaim = parsed.value("reclaim") == "yes";
  TRY(describe_shares(parsed, terms));
  TRY(describe_state(parsed, terms));
  TRY(describe_registries(parsed, terms));
  if (parsed.has(k_price_option.name)) {
    Result<Rates> rates = parse_rates(parsed.value(k_price_option.name));
    if (!rates) return make_error(Code::usage, "--price: " + rates.error().message);
    terms.rates = *rates;
  }
  if (!parsed.has("egress")) return {};
  TRY_ASSIGN(terms.egress, wire::parse_egress(parsed.value("egress")));
  return {};
}

namespace {
std::string why_no_limits(const wire::GuestTerms& terms, const Inventory& inventory) {
  const bool podman = terms.egress == wire::Egress::filtered;
  const Engine* engine = probe::choose_engine(inventory, podman ? std::optional{EngineKind::podman} : std::nullopt);
  if (engine == nullptr || engine->limits_enforced) return {};
  for (const probe::Finding& finding : probe::preflight(inventory, engine->kind))
    if (finding.point == k_limits_point && !finding.ok) return sanitize(finding.detail, 200);
  return sanitize(std::string(engine_name(engine->kind)), 40) + " does not enforce them";
}

// Containers send through slirp4netns, and through a queue of the kernel's in their own network.
std::string why_no_up(const wire::GuestTerms& terms, const Inventory& inventory) {
  if (terms.egress == wire::Egress::none) return {};  // only what gridctl itself sends
  const Engine* podman = probe::choose_engine(inventory, EngineKind::podman);
  if (podman == nullptr || !podman->problem.empty()) return "what docker's containers send cannot be held, and podman does not work here";
  if (!os::find_program("slirp4netns")) return "slirp4netns is missing";
  const Result<void> tried = os::try_shaping();
  return tried ? "" : tried.error().message;
}
}  // namespace

std::vector<Unheld> unheld_limits(const wire::GuestTerms& terms, const Inventory& inventory) {
  std::vector<Unheld> all;
  const auto add = [&](std::string options, std::string why) {
    if (!why.empty()) all.push_back({std::move(options), std::move(why)});
  };
  add("--cpus and --memory do", why_no_limits(terms, inventory));
  add("--up does", why_no_up(terms, inventory));
  const auto power = lend::try_power_limits();
  add("--gpu-power does", power ? "" : power.error().message);
  add("--max-heat does", lend::hottest() ? "" : "no sensor tells how hot a GPU or processor is");
  return all;
}

std::string unseen_use(Context& context, const wire::GuestTerms& terms) {
  return terms.idle_ms ? lend::PresenceLook(context.clock).unseen() : "";
}

std::string when_text(const wire::GuestTerms& terms) {
  return terms.idle_ms ? "idle for " + format_duration(std::chrono::milliseconds{*terms.idle_ms}) : std::string(k_when_always);
}

namespace {
// The driver refuses watts that a GPU cannot have.
Result<void> check_watts(int watts) {
  TRY_ASSIGN(const std::vector<lend::PowerLimit> gpus, lend::try_power_limits());
  for (const lend::PowerLimit& one : gpus)
    if (watts < one.least || watts > one.most)
      return make_error(Code::usage, "--gpu-power: " + one.gpu + " takes from " + formatted("%g", one.least) + " to " + formatted("%g", one.most) + " W");
  return {};
}
}  // namespace

Result<void> check_limits(Context& context, const Parsed& parsed, const wire::GuestTerms& terms, const Inventory& inventory) {
  for (const std::string& registry : terms.registries) {
    if (!parsed.has(k_registries_option.name) || registry == wire::k_local_images) continue;
    const std::string host = registry.substr(0, registry.find(':'));
    const auto found = os::numeric_addresses(host, context.clock.boot() + k_address_wait, context.clock);
    if (!found) continue;  // the machine looks once more before it pulls
    for (const std::string& address : *found)
      if (os::address_kind(address) != os::AddressKind::internet)
        return make_error(Code::usage, "--registries: " + registry + " is at " + address + ", an address of your own network: guests get images from public registries only",
                          "gridctl lend limits --registries public");
  }
  const std::pair<const Option*, bool> wanted[] = {{&k_cpus_option, terms.cpus.has_value()}, {&k_memory_option, terms.memory_bytes.has_value()},
                                                   {&k_up_option, terms.up_bits.has_value()}, {&k_gpu_power_option, terms.gpu_watts.has_value()},
                                                   {&k_max_heat_option, terms.heat_celsius.has_value()}};
  for (const auto& [option, set] : wanted) {
    if (!set || !parsed.has(option->name)) continue;
    for (const Unheld& one : unheld_limits(terms, inventory))
      if (one.options.find("--" + std::string(option->name) + " ") != std::string::npos)
        return make_error(Code::unsupported, one.options + " not hold on this machine: " + one.why, "gridctl doctor");
  }
  return terms.gpu_watts && parsed.has(k_gpu_power_option.name) ? check_watts(*terms.gpu_watts) : Result<void>{};
}

std::string limits_text(const wire::GuestTerms& terms) {
  std::string text = "hours " + hours_text(terms) + "; egress " + std::string(wire::egress_name(terms.egress)) + "; reclaim " +
                     (terms.reclaim ? "yes" : "no");
  if (terms.disk_bytes) text += "; disk " + format_size(*terms.disk_bytes);
  if (terms.max_job_ms) text += "; jobs end after " + format_duration(std::chrono::milliseconds{*terms.max_job_ms});
  if (terms.cpus) text += "; CPUs " + formatted("%g", *terms.cpus);
  if (terms.memory_bytes) text += "; memory " + format_size(*terms.memory_bytes);
  if (terms.up_bits) text += "; up " + formatted("%g", static_cast<double>(*terms.up_bits) / 1e6) + " Mbit/s";
  if (terms.idle_ms) text += "; when " + when_text(terms);
  if (terms.gpu_watts) text += "; GPU power " + std::to_string(*terms.gpu_watts) + " W";
  if (terms.heat_celsius) text += "; heat " + std::to_string(*terms.heat_celsius) + " C";
  if (terms.on_battery) text += "; on battery too";
  if (terms.rates != Rates{}) text += "; price " + rates_text(terms.rates) + " (USD)";
  return text + "; images from " + (terms.registries.empty() ? "public registries" : sanitize(join(terms.registries, ", "), 1000));
}

Result<os::Path> own_agent(Context& context, const ControllerId& controller, BootTime deadline) {
  TRY_ASSIGN(const std::string build, control::place_agent_here(controller, deadline, context.clock));
  return lend::agent_home() / "bin" / build / "gridctl-agent";
}

std::string hours_text(const wire::GuestTerms& terms) {
  if (!terms.from_minute || !terms.to_minute || *terms.from_minute == *terms.to_minute) return "always";
  return clock_text(*terms.from_minute) + "-" + clock_text(*terms.to_minute);
}

}  // namespace gridctl::cmd
