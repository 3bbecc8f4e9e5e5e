// SPDX-License-Identifier: Apache-2.0
#include "sched/reach_proof.hpp"

#include <algorithm>
#include <set>

#include "base/formatted.hpp"
#include "sched/impossible.hpp"
#include "sched/physics.hpp"

namespace gridctl::sched {

namespace {
std::string bits_text(double bits_per_second) {
  if (bits_per_second >= 1e9) return formatted("%.1f Gbit/s", bits_per_second / 1e9);
  return formatted("%.0f Mbit/s", bits_per_second / 1e6);
}

std::string range_text(std::uint16_t port, int ports) {
  return std::to_string(port) + (ports > 1 ? "-" + std::to_string(port + ports - 1) : "");
}

ReachVerdict not_reached(const ReachOutcome& outcome, const ReachNeed& need) {
  ReachVerdict verdict;
  verdict.good = false;
  verdict.why = outcome.from + " does not reach " + outcome.to + " on port " + std::to_string(outcome.port) +
                (outcome.reason.empty() ? "" : ": " + outcome.reason);
  verdict.fixes.push_back("a firewall of " + outcome.to + " that admits TCP from " + outcome.from + ": ports " +
                          range_text(outcome.port, need.ports) + " and those above, which libraries choose themselves");
  verdict.fixes.emplace_back("hosts of one site, or in one private network (a VPN such as WireGuard is one)");
  return verdict;
}

// Returns the slower direction of a pair, if it was measured.
std::optional<double> slower_way(const ReachOutcome& outcome) {
  if (outcome.there && outcome.back) return std::min(*outcome.there, *outcome.back);
  return outcome.there ? outcome.there : outcome.back;
}

ReachVerdict too_slow(const ReachOutcome& outcome, double rate, double needed) {
  ReachVerdict verdict;
  verdict.good = false;
  const bool there = outcome.there && *outcome.there == rate;
  verdict.why = (there ? outcome.from + " to " + outcome.to : outcome.to + " to " + outcome.from) + " carries " +
                bits_text(rate) + ", but the job's exchanges need " + bits_text(needed);
  verdict.fixes.emplace_back("constraints: {interconnect: any}: the job runs, but waits more than it computes");
  verdict.fixes.emplace_back("workload.sync_every: 500 with class: federated (DiLoCo): members exchange every 500 steps");
  verdict.fixes.push_back("a host other than the slower of " + outcome.from + " and " + outcome.to);
  return verdict;
}
}  // namespace

std::vector<std::pair<std::size_t, std::size_t>> pairs_to_prove(std::size_t members) {
  std::set<std::pair<std::size_t, std::size_t>> pairs;
  for (std::size_t i = 1; i < members; ++i) pairs.insert({i, 0});
  if (members > 2)
    for (std::size_t i = 0; i < members; ++i) pairs.insert({i, (i + 1) % members});
  else if (members == 2)
    pairs.insert({0, 1});
  return {pairs.begin(), pairs.end()};
}

std::optional<double> needed_bits_per_second(const job::Spec& spec, std::optional<Duration> round_trip) {
  if (spec.constraints.any_interconnect) return std::nullopt;
  const SynchronousJob job = synchronous_of(spec);
  if (job.exchange.bytes <= 0 || job.exchange.compute_s <= 0 || job.members < 2) return std::nullopt;
  const auto rate = needed_rate(job.exchange, round_trip ? seconds(*round_trip) : 0, job.members, k_idle_max);
  return rate ? std::optional<double>(*rate * 8) : std::nullopt;
}

ReachVerdict judge_reach(std::span<const ReachOutcome> outcomes, const ReachNeed& need) {
  for (const ReachOutcome& outcome : outcomes)
    if (!outcome.connected) return not_reached(outcome, need);
  const ReachOutcome* slowest = nullptr;
  for (const ReachOutcome& outcome : outcomes)
    if (slower_way(outcome) && (slowest == nullptr || *slower_way(outcome) < *slower_way(*slowest))) slowest = &outcome;
  if (slowest != nullptr && need.bits_per_second && *slower_way(*slowest) < *need.bits_per_second)
    return too_slow(*slowest, *slower_way(*slowest), *need.bits_per_second);
  ReachVerdict verdict;
  std::set<std::string> told;
  for (const ReachOutcome& outcome : outcomes)
    if (outcome.ephemeral_first != 0 && outcome.ephemeral_first < outcome.port + need.ports &&
        told.insert(outcome.to).second)
      verdict.notes.push_back(outcome.to + " gives ports from " + std::to_string(outcome.ephemeral_first) +
                              " on to outgoing connections, and the gang's ports are among them: sysctl "
                              "net.ipv4.ip_local_port_range=\"32768 60999\"");
  return verdict;
}

}  // namespace gridctl::sched
