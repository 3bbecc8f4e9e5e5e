// SPDX-License-Identifier: Apache-2.0
#include "sched/topology.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace gridctl::sched {

namespace {

using Index = std::size_t;
using IndexPair = std::pair<Index, Index>;  // first < second

struct Direction {
  std::optional<Duration> rtt;
  std::optional<double> rate;
};
struct Measured {
  Direction there, back;  // from the first of the pair, from the second
  // Delay only adds: the smaller of two round trips is closer to the truth.
  [[nodiscard]] std::optional<Duration> rtt() const {
    if (!there.rtt || !back.rtt) return there.rtt ? there.rtt : back.rtt;
    return std::min(*there.rtt, *back.rtt);
  }
  [[nodiscard]] bool is_fast() const {
    return there.rtt && back.rtt && there.rate && back.rate && std::max(*there.rtt, *back.rtt) <= k_island_rtt &&
           std::min(*there.rate, *back.rate) >= k_island_bits_per_second;
  }
};
using Matrix = std::map<IndexPair, Measured>;

Matrix matrix_of(const std::map<std::string, Index>& index, std::span<const PairLink> links) {
  Matrix matrix;
  for (const PairLink& link : links) {
    const auto from = index.find(link.source), to = index.find(link.target);
    if (from == index.end() || to == index.end() || from == to) continue;
    Measured& pair = matrix[std::minmax(from->second, to->second)];
    (from->second < to->second ? pair.there : pair.back) = {link.rtt, link.bits_per_second};
  }
  return matrix;
}

std::optional<Duration> rtt_between(const Matrix& matrix, Index a, Index b) {
  const auto found = matrix.find(std::minmax(a, b));
  return found == matrix.end() ? std::nullopt : found->second.rtt();
}

// Merges groups along the given edges, strongest first, if `may_join` allows it for the two complete groups.
class Groups {
 public:
  explicit Groups(Index count) : group_of_(count) {
    for (Index i = 0; i < count; ++i) members_[i] = {i}, group_of_[i] = i;
  }
  [[nodiscard]] const std::vector<Index>& members(Index host) const { return members_.at(group_of_[host]); }
  [[nodiscard]] bool together(Index a, Index b) const { return group_of_[a] == group_of_[b]; }
  void join(Index a, Index b) {
    const Index keep = std::min(group_of_[a], group_of_[b]), gone = std::max(group_of_[a], group_of_[b]);
    if (keep == gone) return;
    for (const Index host : members_[gone]) group_of_[host] = keep, members_[keep].push_back(host);
    members_.erase(gone);
    std::ranges::sort(members_[keep]);
  }
  [[nodiscard]] const std::map<Index, std::vector<Index>>& all() const { return members_; }

 private:
  std::vector<Index> group_of_;
  std::map<Index, std::vector<Index>> members_;  // by their first host
};

template <class Holds>
bool every_pair(const std::vector<Index>& a, const std::vector<Index>& b, Holds holds) {
  return std::ranges::all_of(a, [&](Index one) {
    return std::ranges::all_of(b, [&](Index other) { return holds(std::minmax(one, other)); });
  });
}

std::vector<std::vector<std::string>> islands_of(std::span<const SiteHost> hosts, const Matrix& matrix) {
  std::vector<std::tuple<double, IndexPair>> edges;  // fastest first
  for (const auto& [pair, measured] : matrix)
    if (measured.is_fast()) edges.emplace_back(-std::min(*measured.there.rate, *measured.back.rate), pair);
  std::ranges::sort(edges);
  Groups groups(hosts.size());
  const auto fast = [&](const IndexPair& pair) {
    const auto found = matrix.find(pair);
    return found != matrix.end() && found->second.is_fast();
  };
  for (const auto& [rate, pair] : edges)
    if (!groups.together(pair.first, pair.second) &&
        every_pair(groups.members(pair.first), groups.members(pair.second), fast))
      groups.join(pair.first, pair.second);
  std::vector<std::vector<std::string>> islands;
  for (const auto& [first, members] : groups.all()) {
    if (members.size() < 2) continue;
    islands.emplace_back();
    for (const Index host : members) islands.back().push_back(hosts[host].name);
  }
  return islands;
}

struct Distances {
  int far = 0;
  std::vector<Duration> rtts;
  [[nodiscard]] Duration median() const {
    std::vector<Duration> sorted = rtts;
    std::ranges::sort(sorted);
    return sorted.empty() ? Duration{} : sorted[sorted.size() / 2];
  }
};

Distances distances(const Matrix& matrix, Index host, const std::vector<Index>& others) {
  Distances found;
  for (const Index other : others) {
    if (other == host) continue;
    const std::optional<Duration> rtt = rtt_between(matrix, host, other);
    if (!rtt) continue;
    found.rtts.push_back(*rtt);
    if (*rtt > k_far_rtt) ++found.far;
  }
  return found;
}

// Removes from a declared site, one at a time, hosts that are far from most of the others; if two are far from each
// other, it is unknown which is wrong: both are removed.
void sift(std::span<const SiteHost> hosts, const Matrix& matrix, std::vector<Index>& members, Topology& topology) {
  for (;;) {
    Index worst = hosts.size();
    Distances of_worst;
    for (const Index host : members) {
      Distances mine = distances(matrix, host, members);
      if (mine.far == 0) continue;
      if (std::tuple(mine.far, mine.median()) >= std::tuple(of_worst.far, of_worst.median()))
        worst = host, of_worst = std::move(mine);
    }
    if (worst == hosts.size()) return;
    std::set<Index> gone{worst};
    if (of_worst.far == 1)
      for (const Index host : members)
        if (const auto rtt = rtt_between(matrix, worst, host); host != worst && rtt && *rtt > k_far_rtt)
          if (distances(matrix, host, members).rtts.size() <= of_worst.rtts.size()) gone.insert(host);
    for (const Index host : gone) {
      const auto ms = std::chrono::round<std::chrono::milliseconds>(distances(matrix, host, members).median());
      topology.contradictions.push_back(
          {hosts[host].name, "declared site " + hosts[host].site + ", but " + std::to_string(ms.count()) + " ms from " +
                                 (members.size() == 2 ? "its other host" : "its other hosts")});
    }
    std::erase_if(members, [&](Index host) { return gone.contains(host); });
  }
}

void add_sites(std::span<const SiteHost> hosts, const Matrix& matrix, Topology& topology) {
  std::map<std::string, std::vector<Index>> declared;
  for (Index i = 0; i < hosts.size(); ++i)
    if (!hosts[i].site.empty()) declared[hosts[i].site].push_back(i);
  Groups groups(hosts.size());
  std::vector<std::string> name_of(hosts.size());  // the declared site a host is believed to be at
  for (auto& [site, members] : declared) {
    sift(hosts, matrix, members, topology);
    for (const Index host : members) groups.join(members.front(), host), name_of[host] = site;
  }
  std::vector<std::tuple<Duration, IndexPair>> edges;  // nearest first
  for (const auto& [pair, measured] : matrix)
    if (const auto rtt = measured.rtt(); rtt && *rtt <= k_site_rtt) edges.emplace_back(*rtt, pair);
  std::ranges::sort(edges);
  const auto name_in = [&](Index host) {
    for (const Index member : groups.members(host))
      if (!name_of[member].empty()) return name_of[member];
    return std::string();
  };
  const auto not_far = [&](const IndexPair& pair) {
    const auto rtt = rtt_between(matrix, pair.first, pair.second);
    return !rtt || *rtt <= k_far_rtt;
  };
  for (const auto& [rtt, pair] : edges) {
    if (groups.together(pair.first, pair.second)) continue;
    const std::string a = name_in(pair.first), b = name_in(pair.second);
    if (!a.empty() && !b.empty() && a != b) continue;  // two names for neighbours: the user wants them apart
    if (every_pair(groups.members(pair.first), groups.members(pair.second), not_far))
      groups.join(pair.first, pair.second);
  }
  for (const auto& [first, members] : groups.all()) {
    const std::string name = name_in(first);
    Site site{name.empty() ? "near-" + hosts[first].name : name, !name.empty(), {}};
    for (const Index host : members) site.hosts.push_back(hosts[host].name);
    topology.sites.push_back(std::move(site));
  }
}

}  // namespace

Topology derive_topology(std::span<const SiteHost> hosts, std::span<const PairLink> links) {
  std::vector<SiteHost> sorted(hosts.begin(), hosts.end());
  std::ranges::sort(sorted, {}, &SiteHost::name);
  std::map<std::string, Index> index;
  for (Index i = 0; i < sorted.size(); ++i) index.emplace(sorted[i].name, i);
  const Matrix matrix = matrix_of(index, links);
  Topology topology;
  topology.islands = islands_of(sorted, matrix);
  add_sites(sorted, matrix, topology);
  std::ranges::sort(topology.contradictions, {}, &SiteContradiction::host);
  return topology;
}

}  // namespace gridctl::sched
