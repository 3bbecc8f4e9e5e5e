// SPDX-License-Identifier: Apache-2.0
// Computes the benefit of two copies of every member. Pure.
//
// x pairs of hosts run the same work twice; the job is interrupted when both of one pair have failed. Failures strike
// all 2x hosts alike, dead ones included (theory K16; Casanova, Robert, Vivien, Zaidouni 2012):
//   expected failures until the interruption  n(x) = 1 + 4^x / binom(2x, x)      3 for one pair, about sqrt(pi x) + 1
//   mean time to interruption                 n(x) mu / (2x)                     mu: MTBF of one host
// Against the same 2x hosts used for speed, replication wins if plain checkpointing works less than half of the time
// that replicated work does (K17); with R = 0, plain falls below one half at C/M > ln 2 - 1/2.
#pragma once

#include <optional>
#include <string>

namespace gridctl::sched {

// Exact in doubles up to a million pairs. REQUIRES: pairs >= 1.
[[nodiscard]] double failures_to_interruption(int pairs);
// Returns the time in the unit of `host_mtbf`. REQUIRES: host_mtbf > 0.
[[nodiscard]] double replicated_mtti(int pairs, double host_mtbf);

// Seconds. `hosts`: the number that the job needs without replication; twice as many are considered.
struct ReplicationQuestion {
  int hosts = 1;
  double host_mtbf = 0;
  double checkpoint = 0;  // C, stall of one
  double restart = 0;     // R
};
struct ReplicationAnswer {
  double plain = 0;       // share of the time that is work, 0..1, at the best interval on `hosts`
  double replicated = 0;  // the same with two copies of each
  // Returns the work per hour and host of the replicated form divided by that of the plain one on the same 2x hosts:
  // above 1 it pays.
  [[nodiscard]] double gain() const { return plain > 0 ? replicated / (2 * plain_doubled) : 0; }
  double plain_doubled = 0;  // plain on twice the hosts, which fail twice as often
};
[[nodiscard]] ReplicationAnswer compare_replication(const ReplicationQuestion& question);

// Returns the advice, or nothing while checkpointing is good enough.
[[nodiscard]] std::optional<std::string> replication_advice(const ReplicationQuestion& question);

}  // namespace gridctl::sched
