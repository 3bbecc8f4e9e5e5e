// SPDX-License-Identifier: Apache-2.0
// Computes the limits of a link: how long members of a synchronous job exchange, and how long their GPUs idle
// meanwhile.
// Pure.
//
// A ring all-reduce of V bytes over n members takes 2(n-1) alpha + 2 (n-1)/n V/beta: alpha is the latency one way, beta
// the rate that a collective gets. Nothing overlaps: overlap hides at most one step of computing, which changes no
// verdict far from the threshold.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace gridctl::sched {

struct Exchange {
  double bytes = 0;      // that each member exchanges
  double compute_s = 0;  // of one step; 0 = not known
  int sync_every = 1;    // steps between two exchanges
};
struct Wire {
  double bytes_per_s = 0;   // measured or declared, of the slowest link between two members
  double round_trip_s = 0;  // of the longest
};
struct Step {  // from one exchange to the next
  double compute_s = 0, exchange_s = 0;
  double idle_share = 0;  // 0..1
};

// Sets the share of a link's rate that collectives reach, the lower end of measured values (0.70 to 0.75; badly tuned
// ones reach 0.04).
inline constexpr double k_collective_share = 0.7;
// Above this share, more than half of the cost is wasted, and half of the hosts or fewer would be as fast.
inline constexpr double k_idle_max = 0.5;
// The idle share up to which a placement is recommended.
inline constexpr double k_idle_good = 0.2;
// Longer pauses between exchanges are known to reduce quality (DiLoCo used 500).
inline constexpr int k_sync_every_good = 500;
// Sets the share of a model's parameters that LoRA adapters hold.
inline constexpr double k_adapter_share = 0.01;

// REQUIRES: bytes_per_s > 0. A single member exchanges nothing.
[[nodiscard]] Step synchronous_step(const Exchange& exchange, const Wire& wire, int members);
// Returns the least rate of the links at which GPUs idle at most `idle`; nullopt if latency alone is too much.
[[nodiscard]] std::optional<double> needed_rate(const Exchange& exchange, double round_trip_s, int members,
                                                double idle);

struct SynchronousJob {
  Exchange exchange;
  int members = 1;          // hosts
  int gpus_per_member = 0;  // 0 = CPUs alone
};
struct LinkVerdict {
  enum class Answer { fits, unknown, refused } answer = Answer::fits;
  Step step;
  std::string arithmetic;            // "80 GB of gradients a step over 0.1 GB/s: …"
  std::vector<std::string> instead;  // when refused: what would work, each with its number
};
// Refuses above k_idle_max. Unknown: there is nothing to compare with, so only the exchange's own time is given.
[[nodiscard]] LinkVerdict judge_link(const SynchronousJob& job, const Wire& wire);

// Holds a GPU's figures from a datasheet or a measurement.
struct CardFigures {
  std::string name;
  double memory_bytes = 0;
  double memory_bytes_per_s = 0;
};
// Returns why its memory is not mirrored on another host, with the numbers, and what to do instead.
[[nodiscard]] std::string replicate_memory_answer(const CardFigures& card, const Wire& wire);
// Returns why two such GPUs at the ends of that link are not one of twice the size.
[[nodiscard]] std::string join_cards_answer(const CardFigures& card, const Wire& wire);

// Formats for people: "80 GB", "1.5 MB" (powers of 1000); "0.1 GB/s"; "1.5 s", "19 min", "9.3 h", "12 days"; "99.8 %".
[[nodiscard]] std::string bytes_text(double bytes);
[[nodiscard]] std::string rate_text(double bytes_per_s);
[[nodiscard]] std::string time_text(double seconds);
[[nodiscard]] std::string share_text(double share);  // never "0 %" nor "100 %" of what is neither

}  // namespace gridctl::sched
