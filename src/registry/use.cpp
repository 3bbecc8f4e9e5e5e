// SPDX-License-Identifier: Apache-2.0
#include "registry/use.hpp"

#include <algorithm>
#include <cmath>

#include "base/use_record.hpp"

namespace gridctl::registry {

namespace {
constexpr std::uint64_t k_use_bytes_max = 16ull << 20;

os::Path use_file(const os::Path& state_directory) { return state_directory / "use.json"; }

bool is_stale(WallTime at, WallTime now) { return std::abs(now.ms - at.ms) > k_use_stale_ms; }
}  // namespace

template <class R>
void fields(R& r, Of<R, MemberUse>& m) {
  r("rank", m.rank)("host", m.host)("at_ms", m.at)("cpus_given", m.cpus_given)("use", m.use)("history", m.history, k_use_history);
}
template <class R>
void fields(R& r, Of<R, JobUse>& m) {
  r("job", m.job)("epoch", m.epoch)("members", m.members);
}
template <class R>
void fields(R& r, Of<R, HostLoad>& m) {
  r("host", m.host)("at_ms", m.at)("load1", m.load1)("disk_free_bytes", m.disk_free_bytes)("gpus_held", m.gpus_held);
}
template <class R>
void fields(R& r, Of<R, UseNow>& m) {
  r("at_ms", m.at)("jobs", m.jobs)("hosts", m.hosts);
}

const JobUse* UseNow::of(const JobId& job) const {
  const auto found = std::ranges::find(jobs, job, &JobUse::job);
  return found == jobs.end() ? nullptr : &*found;
}

const HostLoad* UseNow::of(const HostName& host) const {
  const auto found = std::ranges::find(hosts, host, &HostLoad::host);
  return found == hosts.end() ? nullptr : &*found;
}

std::optional<int> busy_percent(const MemberUse& member) {
  if (!member.use.gpus.empty()) return gpu_percent(member.use);
  if (!member.use.cpus) return std::nullopt;
  const double given = member.cpus_given > 0 ? member.cpus_given : 1;
  return static_cast<int>(std::lround(std::clamp(*member.use.cpus / given, 0.0, 1.0) * 100));
}

Result<void> write_use(const os::Path& state_directory, const UseNow& use) {
  return os::write_file_atomically(use_file(state_directory), write_record(use));
}

UseNow read_use(const os::Path& state_directory, WallTime now) {
  const Result<std::string> text = os::read_file(use_file(state_directory), k_use_bytes_max);
  if (!text) return {};
  Result<UseNow> read = read_record<UseNow>(*text, "the use of hosts", k_lenient_rules, Code::state_unreadable);
  if (!read) return {};
  for (JobUse& job : read->jobs)
    std::erase_if(job.members, [&](const MemberUse& member) { return is_stale(member.at, now); });
  std::erase_if(read->jobs, [](const JobUse& job) { return job.members.empty(); });
  std::erase_if(read->hosts, [&](const HostLoad& host) { return is_stale(host.at, now); });
  return *std::move(read);
}

}  // namespace gridctl::registry
