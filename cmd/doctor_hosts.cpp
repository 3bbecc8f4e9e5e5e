// SPDX-License-Identifier: Apache-2.0
// Examines every provider, all at once.
#include <algorithm>

#include "base/text.hpp"
#include "cmd/doctor.hpp"
#include "cmd/findings.hpp"
#include "cmd/network.hpp"
#include "control/fleet/health.hpp"
#include "probe/gather.hpp"
#include "ui/human.hpp"

namespace gridctl::cmd {

namespace {
constexpr Duration k_seen_max = std::chrono::hours{24};  // a provider not seen for longer is worth a look
constexpr std::size_t k_at_once = 64;                    // logins: each takes a thread and a connection
constexpr std::int64_t k_pin_old_days = 3 * 365;         // a host key this old has met more than one administrator
constexpr std::int64_t k_clock_off_ms = 5'000;

using Seen = Result<control::SeenHealth>;

std::string check_command(const registry::Provider& provider) {
  return "gridctl provider check " + provider.name.value;
}

Diagnosis unreachable(const registry::Provider& provider, const Error& error) {
  Diagnosis one{provider.name.value,  "reach", Severity::error, error.one_line(), check_command(provider),
                exit_code(error.code)};
  if (!error.hint.empty()) one.fix = error.hint;
  if (one.exit_code != 6) one.exit_code = 5;
  return one;
}

void examine_seen(const registry::Provider& provider, const control::SeenHealth& seen,
                  std::optional<std::int64_t> clock_offset, WallTime now, Diagnoses& all) {
  const std::string& name = provider.name.value;
  all.push_back({name, "reach", Severity::ok, "answers", "", 0});
  sched::HostStanding blank;
  blank.boot_id = seen.report.boot_id;
  control::HealthContext context;
  context.now = now;
  context.clock_offset_ms = clock_offset;
  const sched::Look look = control::look_of(seen.report, provider.inventory, blank, context);
  for (const sched::Sign& sign : look.signs) {
    const bool here = sign.lasting;
    if (!here && now.ms - sign.at.ms > 7 * k_day_ms) continue;
    const Severity severity = sign.weight >= sched::Weight::bad && here ? Severity::error
                              : sign.weight == sched::Weight::note      ? Severity::note
                                                                        : Severity::warning;
    const std::string fix = sign.code.starts_with("clock") ? "sudo timedatectl set-ntp true" : check_command(provider);
    const bool listed = std::ranges::any_of(all, [&](const Diagnosis& known) {
      return known.provider == name && known.point == sign.code && known.detail == sign.text;
    });
    if (!listed) all.push_back({name, sign.code, severity, sign.text, fix, 5});
  }
  for (const auto& [gpu, who] : look.busy)
    all.push_back({name, "gpu", Severity::note, gpu + ": " + who, "gridctl provider show " + name, 0});
  if (!seen.report.log_gap.empty())
    all.push_back({name, "kernel log", Severity::note, seen.report.log_gap,
                   "sudo usermod -aG systemd-journal " + shell_quote(provider.user.empty() ? "$USER" : provider.user),
                   0});
  for (Diagnosis& one : examine_packages(name, seen.report.packages)) all.push_back(std::move(one));
}

// Compares our own clock with all of theirs.
void examine_own_clock(const std::map<std::string, std::int64_t>& offsets, Diagnoses& all) {
  if (offsets.size() == 1 && std::abs(offsets.begin()->second) > k_clock_off_ms)
    all.push_back({"", "clock", Severity::warning,
                   "the clocks of this machine and of " + offsets.begin()->first + " differ by " +
                       format_duration(std::chrono::milliseconds{std::abs(offsets.begin()->second)}) +
                       ": one of them is wrong",
                   "sudo timedatectl set-ntp true", 0});
  if (offsets.size() < 2) return;
  std::vector<std::int64_t> values;
  for (const auto& [name, offset] : offsets) values.push_back(offset);
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (std::abs(*middle) <= k_clock_off_ms) return;
  all.push_back({"", "clock", Severity::warning,
                 "this machine's clock is " + format_duration(std::chrono::milliseconds{std::abs(*middle)}) +
                     (*middle > 0 ? " behind" : " ahead of") + (*middle > 0 ? " those of most hosts" : " most hosts"),
                 "sudo timedatectl set-ntp true", 0});
}
}  // namespace

Diagnoses examine_record(registry::HostRecords& registry, const registry::Provider& provider, WallTime now) {
  Diagnoses all;
  const std::string& name = provider.name.value;
  const std::string seen = "last seen " + ui::age(provider.last_seen_at, now);
  const bool stale =
      !provider.last_seen_at || now.ms - provider.last_seen_at->ms > k_seen_max / std::chrono::milliseconds{1};
  if (provider.liveness == "lost" || provider.liveness == "unreachable")
    all.push_back({name, "seen", Severity::warning, provider.liveness + ", " + seen, check_command(provider), 0});
  else if (stale) all.push_back({name, "seen", Severity::warning, seen, check_command(provider), 0});
  else all.push_back({name, "seen", Severity::ok, seen, "", 0});
  for (const probe::Finding& finding : findings_of(provider))
    if (!finding.ok)
      all.push_back({name, finding.point, finding.required ? Severity::error : Severity::warning, finding.detail,
                     finding.fix, 5});
  const std::int64_t days = (now.ms - provider.registered_at.ms) / k_day_ms;
  if (days > k_pin_old_days)
    all.push_back({name, "host key", Severity::note, "pinned " + std::to_string(days / 365) + " years ago",
                   check_command(provider), 0});
  if (const auto standing = control::load_standing(registry, provider.name))
    for (const auto& [unit, state] : standing->units)
      if (state.state != sched::UnitState::ok)
        all.push_back(
            {name, "standing", state.state == sched::UnitState::quarantined ? Severity::warning : Severity::note,
             (unit.empty() ? "" : unit + " is ") + std::string(sched::unit_state_name(state.state)) + ": " + state.text,
             check_command(provider), 0});
  return all;
}

Diagnoses examine_hosts(const Context& context, const std::vector<registry::Provider>& providers,
                        const ControllerId& controller, Duration patience) {
  os::Clock& clock = context.clock;
  const BootTime deadline = clock.boot() + patience;
  // The network is shared with threads that may still wait for a host after the command has stopped waiting for them.
  const auto net = std::make_shared<control::SshNetwork>(clock, context.paths(), controller);
  std::vector<std::optional<Seen>> seen;
  for (std::size_t from = 0; from < providers.size(); from += k_at_once) {
    std::vector<std::function<Seen()>> works;
    for (std::size_t i = from; i < std::min(from + k_at_once, providers.size()); ++i)
      works.push_back([provider = providers[i], net, deadline, &clock] {
        return control::see_health(*net, provider, deadline, clock);
      });
    const Duration left = std::max(Duration::zero(), deadline - clock.boot());
    for (auto& one : probe::gather<Seen>(std::move(works), left)) seen.push_back(std::move(one));
  }
  std::map<std::string, std::int64_t> offsets;
  for (std::size_t i = 0; i < providers.size(); ++i)
    if (seen[i] && *seen[i]) offsets[providers[i].name.value] = (*seen[i])->clock_offset_ms;
  Diagnoses all;
  examine_own_clock(offsets, all);
  for (std::size_t i = 0; i < providers.size(); ++i) {
    const std::string& name = providers[i].name.value;
    if (!seen[i])
      all.push_back({name, "reach", Severity::error, "no answer within " + format_duration(patience),
                     check_command(providers[i]), 5});
    else if (!*seen[i]) all.push_back(unreachable(providers[i], seen[i]->error()));
    else examine_seen(providers[i], **seen[i], control::clock_offset(offsets, name), context.now(), all);
  }
  return all;
}

}  // namespace gridctl::cmd
