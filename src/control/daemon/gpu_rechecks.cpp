// SPDX-License-Identifier: Apache-2.0
#include "control/daemon/gpu_rechecks.hpp"

#include <algorithm>

#include "os/log.hpp"
#include "os/random.hpp"

namespace gridctl::control {

namespace {
constexpr Duration k_look_again = std::chrono::minutes{2};  // at a host that was busy
constexpr int k_sooner = 8;                                 // a host that failed may prove itself so much sooner

// Returns a random duration between 0.5 and 1.5 times the mean.
Duration drawn(Duration mean) {
  const double part = 0.5 + static_cast<double>(os::random_u64() >> 11) / static_cast<double>(1ull << 53);
  return Duration{static_cast<std::int64_t>(static_cast<double>(mean.count()) * part)};
}
}  // namespace

// Returns true if no GPU of the host is leased, as far as the host has reported and we know.
bool GpuRechecks::is_idle(const FleetHost& host) const {
  if (!host.is_up() || host.provider.inventory->gpus.empty()) return false;
  if (host.held)
    for (const wire::HeldShare& share : *host.held)
      if (!share.gpu_uuids.empty()) return false;
  return std::none_of(book_.placed().begin(), book_.placed().end(), [&](const auto& entry) {
    return entry.second->state().attempt()->on(host.provider.name) != nullptr;
  });
}

void GpuRechecks::tick(BootTime now) {
  if (every_ <= Duration::zero() || under_way_) return;
  for (const auto& [name, host] : fleet_.hosts()) {
    BootTime& next = next_[name];
    if (next == BootTime{}) next = now + drawn(every_);
    if (now < next || !is_idle(*host)) continue;
    const Result<std::optional<BenchReport>> before = load_bench_report(registry_, host->provider.name);
    if (!before) return report(before.error(), "while reading a host's measurements");
    next = now + drawn(every_);
    if (!*before) continue;  // what nobody has measured cannot be measured again
    recheck(*host, **before);
    return;  // one host at a time: it costs us a few seconds of a processor
  }
}

void GpuRechecks::recheck(const FleetHost& host, const BenchReport& before) {
  under_way_ = true;
  auto former = std::make_shared<BenchReport>(before);
  const os::Lane lane{os::Lane::Kind::bulk, host.provider.name.value};
  run_.run(lane, [this, place = access_(host), former] {
    BenchOptions options;
    options.challenges_only = true;
    auto found = std::make_shared<Result<BenchReport>>(bench_host(place, options, *former));
    run_.post([this, name = place.provider.name, former, found] { rechecked(name, *former, *found); });
  });
}

void GpuRechecks::rechecked(const HostName& name, const BenchReport& before, const Result<BenchReport>& found) {
  under_way_ = false;
  if (fleet_.find(name) == nullptr) return;
  BootTime& next = next_[name.value];
  if (!found || !found->problems.empty()) {
    next = clock_.boot() + drawn(std::min(k_look_again, every_));
    const std::string why = found ? found->problems.front() : found.error().one_line();
    return os::log(os::LogLevel::info, name.value + ": not measured again: " + why);
  }
  const Result<void> saved = save_bench_report(registry_, name, *found, before);
  if (!saved) return report(saved.error(), "while recording a host's measurements");
  os::log(os::LogLevel::info, name.value + ": measured again: " + found->summary());
  if (!found->mismatch().empty()) next = clock_.boot() + drawn(every_ / k_sooner);
  if (found->mismatch().empty() && !before.mismatch().empty()) fleet_.capacity_freed();
}

}  // namespace gridctl::control
