// SPDX-License-Identifier: Apache-2.0
// Short challenges between jobs, at times that no host can foresee: a GPU that was proven once may be another today.
#include <algorithm>

#include "control/follow/following.hpp"
#include "control/follow/supervisor.hpp"
#include "control/measure/bench.hpp"
#include "os/log.hpp"
#include "os/random.hpp"

namespace gridctl::control {

namespace {
constexpr Duration k_recheck_every = std::chrono::hours{12};
constexpr Duration k_recheck_min = std::chrono::seconds{1};
constexpr Duration k_look_again = std::chrono::minutes{2};  // at a host that was busy
constexpr int k_sooner = 8;                                 // a host that failed may prove itself so much sooner

// Anywhere in 0.5 to 1.5 of the mean.
Duration drawn(Duration mean) {
  const double part = 0.5 + static_cast<double>(os::random_u64() >> 11) / static_cast<double>(1ull << 53);
  return Duration{static_cast<std::int64_t>(static_cast<double>(mean.count()) * part)};
}
}  // namespace

Duration recheck_period() {
  const auto said = os::environment("GRIDCTL_RECHECK");
  if (!said || said->empty()) return k_recheck_every;
  if (*said == "off") return Duration::zero();
  const Result<Duration> period = parse_duration(*said);
  if (period) return std::max(*period, k_recheck_min);
  os::log(os::LogLevel::warn, "GRIDCTL_RECHECK is no duration: " + period.error().message);
  return k_recheck_every;
}

// No lease on any GPU of it, as far as the host has told and we know.
bool Supervisor::is_idle_for_bench(const Host& host) const {
  if (!host.monitor->is_up() || host.provider.inventory.gpus.empty()) return false;
  if (host.held)
    for (const wire::HeldShare& share : *host.held)
      if (!share.gpu_uuids.empty()) return false;
  return std::none_of(jobs_.begin(), jobs_.end(), [&](const auto& entry) {
    const job::Attempt* attempt = entry.second->state.attempt();
    return attempt != nullptr && attempt->host() == host.provider.name;
  });
}

void Supervisor::recheck_gpus(BootTime now) {
  if (recheck_every_ <= Duration::zero() || rechecking_) return;
  for (auto& [name, host] : hosts_) {
    if (host->next_recheck == BootTime{}) host->next_recheck = now + drawn(recheck_every_);
    if (now < host->next_recheck || !is_idle_for_bench(*host)) continue;
    const Result<std::optional<BenchReport>> before = load_bench_report(registry_, host->provider.name);
    if (!before) return report(before.error(), "while reading what a host was measured at");
    host->next_recheck = now + drawn(recheck_every_);
    if (!*before) continue;  // what nobody has measured cannot be measured again
    recheck(*host, **before);
    return;  // one host at a time: it costs us a few seconds of a processor
  }
}

void Supervisor::recheck(Host& host, const BenchReport& before) {
  const std::optional<HostAccess> place = work_place(host.provider.name);
  if (!place) return;
  rechecking_ = true;
  auto former = std::make_shared<BenchReport>(before);
  work_pool_->submit([this, place = *place, former] {
    BenchOptions options;
    options.challenges_only = true;
    auto found = std::make_shared<Result<BenchReport>>(bench_host(place, options, *former));
    loop_.post([this, name = place.provider.name, former, found] { on_rechecked(name, *former, *found); });
  });
}

void Supervisor::on_rechecked(const HostName& name, const BenchReport& before, const Result<BenchReport>& found) {
  rechecking_ = false;
  const auto host = hosts_.find(name.value);
  if (host == hosts_.end()) return;
  if (!found || !found->problems.empty()) {
    host->second->next_recheck = clock_.boot() + drawn(std::min(k_look_again, recheck_every_));
    const std::string why = found ? found->problems.front() : found.error().one_line();
    return os::log(os::LogLevel::info, name.value + ": not measured again: " + why);
  }
  const Result<void> saved = save_bench_report(registry_, name, *found, before);
  if (!saved) return report(saved.error(), "while recording what a host was measured at");
  os::log(os::LogLevel::info, name.value + ": measured again: " + found->summary());
  if (!found->mismatch().empty()) host->second->next_recheck = clock_.boot() + drawn(recheck_every_ / k_sooner);
  if (found->mismatch().empty() && !before.mismatch().empty()) capacity_freed();
}

}  // namespace gridctl::control
