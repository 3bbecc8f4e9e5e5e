// SPDX-License-Identifier: Apache-2.0
#include "sched/link_schedule.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace gridctl::sched {

namespace {

constexpr std::uint64_t k_unknown_bytes = 64ull << 20;  // what a measurement may cost when none was made yet

using Pair = std::pair<std::string, std::string>;
Pair ordered(const std::string& a, const std::string& b) { return a < b ? Pair{a, b} : Pair{b, a}; }

bool affords(const LinkHost& host) {
  return host.bytes_today + (host.bytes_expected == 0 ? k_unknown_bytes : host.bytes_expected) <= k_link_day_bytes;
}

// Neighbours in this order are about equally far from here: those at different distances are not near each other.
void sort_by_distance(std::vector<const LinkHost*>& hosts) {
  std::sort(hosts.begin(), hosts.end(), [](const LinkHost* a, const LinkHost* b) {
    return std::tie(a->rtt_here, a->name) < std::tie(b->rtt_here, b->name);
  });
}

class Schedule {
 public:
  Schedule(std::span<const LinkHost> hosts, std::span<const LinkAge> pairs) {
    for (const LinkAge& pair : pairs) known_[ordered(pair.a, pair.b)] = &pair;
    for (const LinkHost& host : hosts)
      if (host.up) sites_[host.site].push_back(&host);
    for (auto& [site, members] : sites_) sort_by_distance(members);
  }

  // In a site of at most k + 1 hosts these are all pairs.
  void within_sites() {
    for (const auto& [site, members] : sites_) offer_next(members, k_pairs_near_max);
  }
  void among_sites() {
    std::vector<const LinkHost*> heads;
    for (const auto& [site, members] : sites_) heads.push_back(members.front());
    sort_by_distance(heads);
    offer_next(heads, k_pairs_far_max);
  }

  [[nodiscard]] std::vector<LinkTask> take() && { return std::move(due_); }

 private:
  // Each with the next `count` after it.
  void offer_next(const std::vector<const LinkHost*>& hosts, std::size_t count) {
    for (std::size_t i = 0; i < hosts.size(); ++i)
      for (std::size_t j = i + 1; j < hosts.size() && j - i <= count; ++j) offer(*hosts[i], *hosts[j]);
  }
  void offer(const LinkHost& a, const LinkHost& b) {
    const Pair pair = ordered(a.name, b.name);
    if (!offered_.insert(pair).second) return;
    const auto known = known_.find(pair);
    const bool fresh =
        known != known_.end() && known->second->age < (known->second->failed ? k_failed_stale : k_pair_stale);
    if (fresh || !affords(a) || !affords(b)) return;
    due_.push_back({LinkTask::Kind::pair, pair.first, pair.second});
  }

  std::map<Pair, const LinkAge*> known_;
  std::map<std::string, std::vector<const LinkHost*>> sites_;
  std::set<Pair> offered_;
  std::vector<LinkTask> due_;
};

}  // namespace

std::vector<LinkTask> due_links(std::span<const LinkHost> hosts, std::span<const LinkAge> pairs, bool has_landmarks) {
  std::vector<LinkTask> due;
  std::vector<const LinkHost*> sorted;
  for (const LinkHost& host : hosts)
    if (host.up) sorted.push_back(&host);
  std::sort(sorted.begin(), sorted.end(), [](const LinkHost* a, const LinkHost* b) { return a->name < b->name; });
  // A few bytes that may convict a liar come first, then what transfers from here need, then what gangs need.
  for (const LinkHost* host : sorted)
    if (has_landmarks && (!host->asked_age || *host->asked_age >= k_here_stale))
      due.push_back({LinkTask::Kind::landmarks, host->name, {}});
  for (const LinkHost* host : sorted)
    if ((!host->here_age || *host->here_age >= k_here_stale) && affords(*host))
      due.push_back({LinkTask::Kind::here, host->name, {}});
  Schedule schedule(hosts, pairs);
  schedule.within_sites();
  schedule.among_sites();
  for (LinkTask& task : std::move(schedule).take()) due.push_back(std::move(task));
  return due;
}

}  // namespace gridctl::sched
