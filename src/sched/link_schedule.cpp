// SPDX-License-Identifier: Apache-2.0
#include "sched/link_schedule.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace gridctl::sched {

namespace {

constexpr std::uint64_t k_unknown_bytes = 4ull << 20;  // the least that is worth a measurement, when none was made yet

using Pair = std::pair<std::string, std::string>;
Pair ordered(const std::string& a, const std::string& b) { return a < b ? Pair{a, b} : Pair{b, a}; }

bool affords(const LinkHost& host) {
  // A measurement that needs more than a day's bytes is cut off there.
  const std::uint64_t least = std::min(host.bytes_expected == 0 ? k_unknown_bytes : host.bytes_expected, host.bytes_a_day);
  return host.bytes_a_day > 0 && host.bytes_today + least <= host.bytes_a_day;
}

// Reserves the other half for what was never measured.
bool has_half_spent(const LinkHost& host) { return 2 * host.bytes_today > host.bytes_a_day; }

// Neighbours in this order are about equally far from here: hosts at different distances are not near each other.
void sort_by_distance(std::vector<const LinkHost*>& hosts) {
  std::ranges::sort(hosts, [](const LinkHost* a, const LinkHost* b) {
    return std::tie(a->rtt_here, a->name) < std::tie(b->rtt_here, b->name);
  });
}

bool is_fresh(const LinkAge& pair) {
  return pair.age < (pair.failed ? k_failed_stale : pair.slow ? k_slow_stale : k_pair_stale);
}

class Schedule {
 public:
  Schedule(std::span<const LinkHost> hosts, std::span<const LinkAge> pairs) {
    for (const LinkAge& pair : pairs) known_[ordered(pair.a, pair.b)] = &pair;
    for (const LinkHost& host : hosts)
      if (host.up) sites_[host.site].push_back(&host);
    for (auto& [site, members] : sites_) sort_by_distance(members);
  }

  // In a site with at most k + 1 hosts, these are all pairs.
  void within_sites() {
    for (const auto& [site, members] : sites_) offer_next(members, k_pairs_near_max);
  }
  void among_sites() {
    std::vector<const LinkHost*> heads;
    for (const auto& [site, members] : sites_) heads.push_back(members.front());
    sort_by_distance(heads);
    offer_next(heads, k_pairs_far_max);
  }

  // Landmarks that are hosts measure the others; a pair whose rates are known also has its round trips.
  void from_landmarks(const std::vector<const LinkHost*>& hosts) {
    std::size_t landmarks = 0;
    for (const LinkHost* mark : hosts) {
      if (!mark->is_landmark || ++landmarks > k_landmark_hosts_max) continue;
      for (const LinkHost* host : hosts) {
        const Pair pair = ordered(mark->name, host->name);
        const auto known = known_.find(pair);
        const bool fresh = known != known_.end() && is_fresh(*known->second);
        if (mark != host && !fresh && asked_.insert(pair).second)
          add({LinkTask::Kind::round_trip, pair.first, pair.second});
      }
    }
  }
  void add(LinkTask task) { due_.push_back(std::move(task)); }

  [[nodiscard]] std::vector<LinkTask> take() && { return std::move(due_); }

 private:
  // Pairs each host with the next `count` after it.
  void offer_next(const std::vector<const LinkHost*>& hosts, std::size_t count) {
    for (std::size_t i = 0; i < hosts.size(); ++i)
      for (std::size_t j = i + 1; j < hosts.size() && j - i <= count; ++j) offer(*hosts[i], *hosts[j]);
  }
  void offer(const LinkHost& a, const LinkHost& b) {
    const Pair pair = ordered(a.name, b.name);
    if (!offered_.insert(pair).second) return;
    const auto known = known_.find(pair);
    const bool told = known != known_.end() && (known->second->full || known->second->failed);
    const bool fresh = told && is_fresh(*known->second);
    if (fresh || !affords(a) || !affords(b)) return;
    if (told && known->second->slow && (has_half_spent(a) || has_half_spent(b))) return;
    due_.push_back({LinkTask::Kind::pair, pair.first, pair.second});
  }

  std::map<Pair, const LinkAge*> known_;
  std::map<std::string, std::vector<const LinkHost*>> sites_;
  std::set<Pair> offered_, asked_;
  std::vector<LinkTask> due_;
};

}  // namespace

std::vector<LinkTask> due_links(std::span<const LinkHost> hosts, std::span<const LinkAge> pairs, bool has_landmarks) {
  std::vector<const LinkHost*> sorted;
  for (const LinkHost& host : hosts)
    if (host.up) sorted.push_back(&host);
  std::ranges::sort(sorted, [](const LinkHost* a, const LinkHost* b) { return a->name < b->name; });
  Schedule schedule(hosts, pairs);
  // A few bytes that may expose a liar come first, then what transfers from here need, then what gangs need.
  for (const LinkHost* host : sorted)
    if (has_landmarks && (!host->asked_age || *host->asked_age >= k_here_stale))
      schedule.add({LinkTask::Kind::landmarks, host->name, {}});
  schedule.from_landmarks(sorted);
  for (const LinkHost* host : sorted)
    if ((!host->here_age || *host->here_age >= k_here_stale) && affords(*host))
      schedule.add({LinkTask::Kind::here, host->name, {}});
  schedule.within_sites();
  schedule.among_sites();
  return std::move(schedule).take();
}

}  // namespace gridctl::sched
