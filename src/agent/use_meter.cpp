// SPDX-License-Identifier: Apache-2.0
#include "agent/use_meter.hpp"

#include <unistd.h>

#include <algorithm>
#include <set>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "agent/attempt_dir.hpp"
#include "agent/gpu_look.hpp"
#include "agent/host_state.hpp"
#include "agent/ledger.hpp"
#include "base/numbers.hpp"
#include "base/text.hpp"
#include "os/entries.hpp"
#include "os/mutex.hpp"
#include "os/process.hpp"

namespace gridctl::agent {

namespace {
constexpr double k_ticks_a_second = 100;                          // of /proc, on every architecture
constexpr std::size_t k_parent = 1, k_first_time = 11, k_times = 4;  // in /proc/PID/stat, behind the program's name
constexpr std::size_t k_processes_most = 20'000;                  // on a host; those beyond are not looked at
constexpr std::uint64_t k_stat_bytes = 4096;
constexpr Duration k_first_gap = std::chrono::seconds{1};  // between the first two looks at processors

std::uint64_t pages_in(int pid, std::uint64_t& shared_most) {
  const auto text = os::read_file("/proc/" + std::to_string(pid) + "/statm", k_stat_bytes);
  if (!text) return 0;
  const std::vector<std::string> words = split(trim(*text), ' ');
  if (words.size() < 3) return 0;
  const auto resident = leading_number<std::uint64_t>(words[1]).value_or(0);
  const auto shared = std::min(leading_number<std::uint64_t>(words[2]).value_or(0), resident);
  shared_most = std::max(shared_most, shared);
  return resident - shared;
}

std::uint64_t memory_of(const std::vector<int>& pids) {
  std::uint64_t own = 0, shared = 0;
  for (const int pid : pids) own += pages_in(pid, shared);
  return (own + shared) * static_cast<std::uint64_t>(std::max<long>(::sysconf(_SC_PAGESIZE), 1));
}
}  // namespace

std::optional<ProcessTimes> parse_process_times(std::string_view stat) {
  const std::size_t close = stat.rfind(')');  // the name may hold anything
  if (close == std::string_view::npos) return std::nullopt;
  const std::vector<std::string> words = split(trim(stat.substr(close + 1)), ' ');
  if (words.size() < k_first_time + k_times) return std::nullopt;
  ProcessTimes times;
  times.parent = leading_number<int>(words[k_parent]).value_or(0);
  for (std::size_t i = 0; i < k_times; ++i)
    times.ticks += leading_number<std::uint64_t>(words[k_first_time + i]).value_or(0);
  return times;
}

ProcessTable ProcessTable::read(const os::Path& proc) {
  ProcessTable table;
  const auto names = os::list_directory(proc);
  if (!names) return table;
  for (const std::string& name : *names) {
    const auto pid = parse_number<int>(name);
    if (!pid || table.processes_.size() >= k_processes_most) continue;
    const auto text = os::read_file(proc / name / "stat", k_stat_bytes);
    if (const auto times = text ? parse_process_times(*text) : std::nullopt) table.add(*pid, *times);
  }
  return table;
}

ProcessTable::Sum ProcessTable::below(int pid) const {
  Sum sum;
  std::multimap<int, int> children;
  for (const auto& [child, times] : processes_) children.emplace(times.parent, child);
  std::set<int> seen;
  for (std::vector<int> open{pid}; !open.empty();) {
    const int one = open.back();
    open.pop_back();
    const auto found = processes_.find(one);
    if (found == processes_.end() || !seen.insert(one).second) continue;
    sum.ticks += found->second.ticks;
    sum.pids.push_back(one);
    const auto [first, last] = children.equal_range(one);
    for (auto child = first; child != last; ++child) open.push_back(child->second);
  }
  return sum;
}

struct UseMeter::Shared : std::enable_shared_from_this<UseMeter::Shared> {
  Shared(os::Path at, ControllerId asking, os::Clock& time)
      : folder(std::move(at) / "use"),
        controller(std::move(asking)),
        clock(time),
        ledger(lease_directory(), Machine::real(), time) {}

  using Key = std::pair<std::string, std::uint64_t>;  // job and epoch
  struct Measured {
    Use use;
    BootTime at;
    bool told = false;
  };
  struct Before {
    os::ProcessId payload;
    std::uint64_t ticks = 0;
    BootTime at;
  };

  void measure(const std::vector<AttemptKey>& attempts);
  void look_at_processors(std::map<Key, Lease>& leases, std::map<Key, Measured>& found);

  const os::Path folder;
  const ControllerId controller;
  os::Clock& clock;
  Ledger ledger;
  std::map<Key, Before> before;  // of the thread that measures: there is one at a time
  os::Mutex mutex;
  bool under_way GRIDCTL_GUARDED_BY(mutex) = false;
  std::optional<BootTime> begun GRIDCTL_GUARDED_BY(mutex);
  std::map<Key, Measured> measured GRIDCTL_GUARDED_BY(mutex);
};

// A rate needs two looks. Fewer ticks than before mean that a child's were lost with it: then no rate is reported.
void UseMeter::Shared::look_at_processors(std::map<Key, Lease>& leases, std::map<Key, Measured>& found) {
  const ProcessTable table = ProcessTable::read();
  const BootTime now = clock.boot();
  std::map<Key, Before> next;
  for (const auto& [key, lease] : leases) {
    const ProcessTable::Sum sum = table.below(lease.payload.pid);
    if (sum.pids.empty()) continue;
    Measured& one = found[key];
    one.at = now;
    one.use.memory_bytes = memory_of(sum.pids);
    const auto last = before.find(key);
    if (last != before.end() && last->second.payload == lease.payload && sum.ticks >= last->second.ticks && now > last->second.at)
      one.use.cpus = static_cast<double>(sum.ticks - last->second.ticks) / k_ticks_a_second / seconds(now - last->second.at);
    next[key] = {lease.payload, sum.ticks, now};
  }
  before = std::move(next);
}

void UseMeter::Shared::measure(const std::vector<AttemptKey>& attempts) {
  std::map<Key, Lease> leases;
  bool any_gpu = false;
  for (const AttemptKey& key : attempts) {
    const auto lease = ledger.find(controller, key.job, key.epoch);
    if (!lease || !*lease || (*lease)->boot_id != os::boot_id() || !os::is_alive((*lease)->payload)) continue;
    any_gpu = any_gpu || !(*lease)->gpus.empty();
    leases.emplace(Key{key.job.value, key.epoch.value}, **lease);
  }
  std::map<Key, Measured> found;
  if (std::ranges::any_of(leases, [&](const auto& one) { return !before.contains(one.first); })) {
    look_at_processors(leases, found);
    os::pause_for(k_first_gap);
    found.clear();
  }
  look_at_processors(leases, found);
  const GpuLook look = any_gpu ? look_at_gpus(folder, clock) : GpuLook{};
  const bool fresh = any_gpu && look.hung == 0 && clock.boot() < look.next + k_use_every;
  for (auto& [key, one] : found) {
    if (!fresh) continue;
    for (const std::string& uuid : leases[key].gpus) {
      const auto gpu = std::ranges::find(look.gpus, uuid, &GpuLook::Entry::uuid);
      if (one.use.gpus.size() < k_use_gpus_max) one.use.gpus.push_back(gpu == look.gpus.end() ? GpuUse{} : gpu->use);
    }
  }
  const os::MutexLock lock(mutex);
  measured = std::move(found);
}

UseMeter::UseMeter(os::Path home, ControllerId controller, os::Clock& clock)
    : shared_(std::make_shared<Shared>(std::move(home), std::move(controller), clock)) {}

void UseMeter::add_to(wire::PollReply& reply) {
  Shared& shared = *shared_;
  const BootTime now = shared.clock.boot();
  std::vector<AttemptKey> running;
  const os::MutexLock lock(shared.mutex);
  for (wire::AttemptStatus& status : reply.attempts) {
    if (status.phase != wire::AttemptPhase::running || status.paused_ms_ago >= 0) continue;
    running.push_back({status.job, status.epoch});
    const auto found = shared.measured.find({status.job.value, status.epoch.value});
    if (found == shared.measured.end() || std::exchange(found->second.told, true)) continue;
    status.use = found->second.use;
    status.use->age_ms = std::max<std::int64_t>(0, (now - found->second.at).count() / 1'000'000);
  }
  if (running.empty() || shared.under_way || (shared.begun && now - *shared.begun < k_use_every)) return;
  shared.under_way = true;
  shared.begun = now;
  try {
    std::thread([self = shared.shared_from_this(), attempts = std::move(running)] {
      self->measure(attempts);
      const os::MutexLock done(self->mutex);
      self->under_way = false;
    }).detach();
  } catch (const std::system_error&) {
    shared.under_way = false;  // no thread to be had: the answer counts for more
  }
}

}  // namespace gridctl::agent
