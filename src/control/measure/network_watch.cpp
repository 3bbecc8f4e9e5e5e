// SPDX-License-Identifier: Apache-2.0
#include "control/measure/network_watch.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/host_words.hpp"
#include "control/measure/measuring_budget.hpp"
#include "control/reach/report.hpp"
#include "os/log.hpp"

namespace gridctl::control {

namespace {

constexpr Duration k_plan_pause = std::chrono::seconds{5};      // between looks for what is due
constexpr Duration k_pings_pause = std::chrono::seconds{20};    // between writing down round trips
constexpr Duration k_failure_pause = std::chrono::minutes{10};  // a task that failed is not tried again before
constexpr int k_judge_share = 50;  // judging takes at most so large a part of the loop's time
constexpr Duration k_lock_patience = std::chrono::seconds{60};  // of a command, for a measurement of the daemon's

// Allows one measurement at a time in a state directory, across processes.
os::Path measuring_lock(const Paths& paths) { return paths.root / "network.lock"; }

std::string name_of(const sched::LinkTask& task) {
  const std::string kind = task.kind == sched::LinkTask::Kind::landmarks ? "landmarks" : "link";
  return kind + " of " + task.a + (task.b.empty() ? "" : " and " + task.b);
}

// Returns the bytes each way. Unknown counts as zero.
std::uint64_t bytes_for(registry::HostRecords& registry, const sched::LinkTask& task, const registry::Provider& a,
                        const registry::Provider* b, WallTime now, bool asked) {
  using Kind = sched::LinkTask::Kind;
  if (task.kind != Kind::pair && task.kind != Kind::here) return 0;
  const std::uint64_t left = measuring_bytes_left(registry, a, now, asked).value_or(0);
  return exchange_bytes({left, b == nullptr ? left : measuring_bytes_left(registry, *b, now, asked).value_or(0)});
}

std::vector<LandmarkRow> asked_of_hosts(const Paths& paths) {
  std::vector<LandmarkRow> asked;
  if (auto rows = read_landmarks(paths))
    for (LandmarkRow& row : *rows)
      if (!row.is_here() && row.provider().empty() && asked.size() < wire::k_link_targets_max)
        asked.push_back(std::move(row));
  return asked;
}

}  // namespace

NetworkWatch::NetworkWatch(os::Loop& loop, os::Clock& clock, registry::HostRecords& registry, Paths paths,
                           LinkMeter& meter, std::function<std::optional<HostAccess>(const HostName&)> work_place,
                           std::function<bool(const std::string&)> is_up)
    : loop_(loop),
      clock_(clock),
      registry_(registry),
      paths_(std::move(paths)),
      meter_(meter),
      work_place_(std::move(work_place)),
      is_up_(std::move(is_up)),
      recorder_(registry, paths_) {}

void NetworkWatch::pinged(const HostName& host, Duration rtt) { pings_[host].add(rtt); }

void NetworkWatch::tick(BootTime now) {
  for (const LinkMeter::Note& one : meter_.take()) {
    report(recorder_.transferred(one, clock_.wall()), "while recording the speed of a transfer");
    changed_ = true;
  }
  if (now >= next_pings_) {
    next_pings_ = now + k_pings_pause;
    save_pings();
  }
  if (changed_ && now >= next_judge_) {
    changed_ = false;
    const BootTime began = clock_.boot();
    report(registry_.together([this] { return recorder_.judge(clock_.wall()); }),
           "while judging the measurements of links");
    next_judge_ = clock_.boot() + std::max<Duration>(k_plan_pause / 5, (clock_.boot() - began) * k_judge_share);
  }
  if (!under_way_ && now >= next_plan_) {
    plan(now);
    const BootTime planned = clock_.boot();
    next_plan_ = planned + std::max<Duration>(k_plan_pause, (planned - now) * k_judge_share);
  }
}

void NetworkWatch::save_pings() {
  if (pings_.empty()) return;
  const Result<std::vector<registry::HostLink>> links = registry_.links();
  if (!links) return;
  const LinkIndex index = index_links(*links);
  const Result<void> saved = registry_.together([&]() -> Result<void> {
    for (const auto& [host, window] : std::exchange(pings_, {})) {
      const std::optional<HostAccess> place = work_place_(host);
      if (place) TRY(recorder_.pinged(place->provider, window, index, clock_.wall()));  // else removed meanwhile
    }
    return {};
  });
  report(saved, "while recording round trips");
  changed_ = true;
}

void NetworkWatch::plan(BootTime now) {
  if (meter_.is_busy()) return;
  const Result<NetworkPicture> picture = network_picture(registry_, paths_);
  if (!picture) return report(picture.error(), "while looking at links");
  std::erase_if(not_before_, [&](const auto& entry) { return entry.second <= now; });
  for (const sched::LinkTask& task : due_measurements(*picture, clock_.wall(), is_up_))
    if (!not_before_.contains(name_of(task))) return begin(task);
}

template <class Measure, class Record>
void NetworkWatch::run(const sched::LinkTask& task, Measure measure, Record record) {
  auto lock = os::FileLock::try_acquire(measuring_lock(paths_));
  if (!lock || !*lock) return;  // a command measures
  auto held = std::make_shared<os::FileLock>(*std::move(*lock));
  under_way_ = true;
  pool_.submit([this, task, held, measure = std::move(measure), record = std::move(record)] {
    auto outcome = std::make_shared<decltype(measure())>(measure());
    loop_.post([this, task, held, outcome, record] {
      ended(task, *outcome ? record(**outcome) : Result<void>(std::move(*outcome).error()));
    });
  });
}

void NetworkWatch::begin(const sched::LinkTask& task) {
  const std::optional<HostAccess> a = work_place_({task.a});
  if (!a) return;
  using Kind = sched::LinkTask::Kind;
  if (task.kind == Kind::here)
    return run(
        task,
        [place = *a, &meter = meter_,
         bytes = bytes_for(registry_, task, a->provider, nullptr, clock_.wall(), false)] {
          return measure_here(place, [&meter] { return meter.is_busy(); }, bytes);
        },
        [this, provider = a->provider](const HereMeasured& measured) {
          return recorder_.here(provider, measured, clock_.wall());
        });
  if (task.kind == Kind::landmarks) {
    const auto asked = std::make_shared<std::vector<LandmarkRow>>(asked_of_hosts(paths_));
    return run(
        task, [place = *a, asked] { return measure_landmarks(place, reach_targets(*asked, *place.clock)); },
        [this, name = a->provider.name, asked](const wire::ReachReply& reply) {
          return recorder_.landmarks(name, *asked, reply, clock_.wall());
        });
  }
  const std::optional<HostAccess> b = work_place_({task.b});
  if (!b) return;
  run(
      task, [a = *a, b = *b, bytes = bytes_for(registry_, task, a->provider, &b->provider, clock_.wall(), false)] { return measure_pair(a, b, bytes); },
      [this, a = a->provider.name, b = b->provider.name](const PairMeasured& measured) {
        return recorder_.pair(a, b, measured, clock_.wall());
      });
}

void NetworkWatch::ended(const sched::LinkTask& task, const Result<void>& outcome) {
  under_way_ = false;
  changed_ = true;
  next_plan_ = clock_.boot();
  if (outcome) return;
  const bool gave_way = outcome.error().code == Code::cancelled;
  os::log(os::LogLevel::info, name_of(task) + " not measured: " + outcome.error().one_line());
  if (!gave_way) not_before_[name_of(task)] = clock_.boot() + k_failure_pause;
}

namespace {

Result<void> measure_one(registry::HostRecords& registry, NetworkRecorder& recorder, const sched::LinkTask& task,
                         const Paths& paths, const HostAccess& a, const HostAccess* b) {
  os::Clock& clock = *a.clock;
  const std::uint64_t bytes =
      bytes_for(registry, task, a.provider, b == nullptr ? nullptr : &b->provider, clock.wall(), true);
  using Kind = sched::LinkTask::Kind;
  if (task.kind == Kind::here) {
    TRY_ASSIGN(const HereMeasured measured, measure_here(a, [] { return false; }, bytes));
    return recorder.here(a.provider, measured, clock.wall());
  }
  if (task.kind == Kind::landmarks) {
    const std::vector<LandmarkRow> asked = asked_of_hosts(paths);
    TRY_ASSIGN(const wire::ReachReply reply, measure_landmarks(a, reach_targets(asked, clock)));
    return recorder.landmarks(a.provider.name, asked, reply, clock.wall());
  }
  TRY_ASSIGN(const PairMeasured measured, measure_pair(a, *b, bytes));
  return recorder.pair(a.provider.name, b->provider.name, measured, clock.wall());
}

Result<os::FileLock> await_lock(const Paths& paths, os::Clock& clock, std::optional<BootTime> until) {
  const Duration patience = until ? *until - clock.boot() : k_lock_patience;
  TRY_ASSIGN(std::optional<os::FileLock> lock, os::FileLock::acquire_within(measuring_lock(paths), patience));
  if (lock) return *std::move(lock);
  return make_error(Code::state_in_use, "another gridctl is measuring links");
}

// Treats everything as never measured; the bytes spent today stay spent.
void forget_ages(NetworkPicture& picture) {
  picture.links.clear();
  for (auto& [name, report] : picture.reports) {
    report.here_at.reset();
    report.landmarks_at.reset();
    report.contacts.clear();
  }
}

}  // namespace

Result<void> measure_now(registry::HostRecords& registry, const Paths& paths, AgentNetwork& net, os::Clock& clock,
                         const MeasureAll& wanted) {
  NetworkRecorder recorder(registry, paths);
  TRY_ASSIGN(NetworkPicture picture, network_picture(registry, paths));
  if (wanted.even_fresh) forget_ages(picture);
  std::map<std::string, HostAccess> places;
  for (const registry::Provider& provider : picture.providers)
    places[provider.name.value] = HostAccess{provider, &net, &clock};
  const auto is_up = [&](const std::string& name) { return !is_absent_state(places.at(name).provider.liveness); };
  for (const sched::LinkTask& task : due_measurements(picture, clock.wall(), is_up, true)) {
    if (!wanted.only.empty() && task.a != wanted.only && task.b != wanted.only) continue;
    if (!wanted.among.empty() && !(wanted.among.contains(task.a) && wanted.among.contains(task.b))) continue;
    if (wanted.until && clock.boot() >= *wanted.until) break;
    if (wanted.told) wanted.told(task, nullptr);
    TRY_ASSIGN(const os::FileLock lock, await_lock(paths, clock, wanted.until));
    const Result<void> outcome =
        measure_one(registry, recorder, task, paths, places.at(task.a), task.b.empty() ? nullptr : &places.at(task.b));
    if (wanted.told) wanted.told(task, &outcome);
  }
  return recorder.judge(clock.wall());
}

}  // namespace gridctl::control
