// SPDX-License-Identifier: Apache-2.0
#include "sched/physics.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "base/formatted.hpp"
#include "base/time.hpp"
#include "sched/topology.hpp"

namespace gridctl::sched {

namespace {
// Lists kinds of networks within a site, slowest first, in bytes a second one way.
struct NetworkKind {
  double bytes_per_s;
  std::string_view name;
};
constexpr std::array<NetworkKind, 7> k_networks{{{1.25e9, "10 Gbit/s Ethernet"},
                                                 {3.125e9, "25 Gbit/s Ethernet"},
                                                 {12.5e9, "100 Gbit/s Ethernet or InfiniBand"},
                                                 {25e9, "200 Gbit/s InfiniBand or RoCE"},
                                                 {50e9, "400 Gbit/s InfiniBand or RoCE"},
                                                 {100e9, "800 Gbit/s InfiniBand or RoCE"},
                                                 {450e9, "NVLink between hosts (NVL72)"}}};

std::string digits(double value) { return formatted(value >= 100 ? "%.0f" : "%.3g", value); }

double latency_s(double round_trip_s, int members) { return (members - 1) * round_trip_s; }  // 2(n-1) half round trips

double ring_bytes(double bytes, int members) { return 2.0 * (members - 1) / members * bytes; }

// Returns the least number of steps between exchanges so that GPUs idle at most k_idle_good: u = H c / (H c + T).
double needed_sync_every(const Step& one, double compute_s) {
  return std::ceil(one.exchange_s * (1 - k_idle_good) / k_idle_good / compute_s);
}

// Returns the step of this job with another exchange, made once every step.
Step with(const SynchronousJob& job, const Wire& wire, double bytes, int members, int sync_every = 1) {
  return synchronous_step({bytes, job.exchange.compute_s, sync_every}, wire, members);
}

std::string idle(const Step& step) { return "GPUs idle " + share_text(step.idle_share); }

using Lines = std::vector<std::string>;

void offer_site(const SynchronousJob& job, Lines& lines) {
  const std::optional<double> rate = needed_rate(job.exchange, seconds(k_island_rtt), job.members, k_idle_good);
  if (!rate) return;
  const auto network =
      std::ranges::find_if(k_networks, [&](const NetworkKind& kind) { return kind.bytes_per_s >= *rate; });
  if (network == k_networks.end()) return;  // nothing that fast is sold
  lines.push_back("one site with at least " + rate_text(*rate) + " between its hosts, as " +
                  std::string(network->name) + " has: GPUs idle " + share_text(k_idle_good));
}

void offer_fewer(const SynchronousJob& job, const Wire& wire, Lines& lines) {
  for (int members = job.members - 1; members > 1; --members) {
    const Step step = with(job, wire, job.exchange.bytes, members, job.exchange.sync_every);
    if (step.idle_share > k_idle_max) continue;
    lines.push_back("num_nodes: " + std::to_string(members) + ": " + idle(step));
    return;
  }
}

void offer_one_host(const SynchronousJob& job, Lines& lines) {
  const int gpus = job.members * job.gpus_per_member;
  lines.push_back(gpus > 1 && gpus <= 16 ? "one host with " + std::to_string(gpus) + " GPUs: nothing crosses the link"
                                         : "one host: nothing crosses the link");
}

void offer_rare(const SynchronousJob& job, const Wire& wire, Lines& lines) {
  const Step one = with(job, wire, job.exchange.bytes, job.members);
  const double every = needed_sync_every(one, job.exchange.compute_s);
  if (every > k_sync_every_good) return;
  const Step step = with(job, wire, job.exchange.bytes, job.members, static_cast<int>(every));
  lines.push_back("workload.sync_every: " + digits(every) + " (DiLoCo: exchange every " + digits(every) +
                  " steps): " + idle(step));
}

void offer_adapters(const SynchronousJob& job, const Wire& wire, Lines& lines) {
  const double bytes = job.exchange.bytes * k_adapter_share;
  const std::string head = "LoRA (adapters of about 1 % of the parameters, " + bytes_text(bytes) + " a step)";
  const Step one = with(job, wire, bytes, job.members);
  if (one.idle_share <= k_idle_max) return lines.push_back(head + ": " + idle(one));
  const double every = needed_sync_every(one, job.exchange.compute_s);
  if (every > k_sync_every_good) return;
  const Step step = with(job, wire, bytes, job.members, static_cast<int>(every));
  lines.push_back(head + " with workload.sync_every: " + digits(every) + ": " + idle(step));
}

std::string exchange_text(const SynchronousJob& job, const Wire& wire, const Step& step) {
  const std::string when =
      job.exchange.sync_every > 1 ? "every " + std::to_string(job.exchange.sync_every) + " steps" : "a step";
  return bytes_text(job.exchange.bytes) + " of gradients " + when + " over " + rate_text(wire.bytes_per_s) + " take " +
         time_text(step.exchange_s) + " between " + std::to_string(job.members) + " hosts";
}
}  // namespace

Step synchronous_step(const Exchange& exchange, const Wire& wire, int members) {
  Step step;
  step.compute_s = exchange.compute_s * exchange.sync_every;
  if (members > 1)
    step.exchange_s = latency_s(wire.round_trip_s, members) +
                      ring_bytes(exchange.bytes, members) / (wire.bytes_per_s * k_collective_share);
  const double whole = step.compute_s + step.exchange_s;
  step.idle_share = whole > 0 ? step.exchange_s / whole : 0;
  return step;
}

std::optional<double> needed_rate(const Exchange& exchange, double round_trip_s, int members, double idle_share) {
  if (members < 2) return 0;
  const double allowed = exchange.compute_s * exchange.sync_every * idle_share / (1 - idle_share);
  const double left = allowed - latency_s(round_trip_s, members);
  if (left <= 0) return std::nullopt;
  return ring_bytes(exchange.bytes, members) / left / k_collective_share;
}

LinkVerdict judge_link(const SynchronousJob& job, const Wire& wire) {
  LinkVerdict verdict;
  if (job.members < 2 || job.exchange.bytes <= 0) return verdict;
  verdict.step = synchronous_step(job.exchange, wire, job.members);
  const std::string head = exchange_text(job, wire, verdict.step);
  if (job.exchange.compute_s <= 0) {
    verdict.answer = LinkVerdict::Answer::unknown;
    verdict.arithmetic = head + "; the compute time of a step is unknown (workload.step)";
    return verdict;
  }
  verdict.arithmetic = head + ", computing " + time_text(verdict.step.compute_s) + ": " + idle(verdict.step);
  if (verdict.step.idle_share <= k_idle_max) return verdict;
  verdict.answer = LinkVerdict::Answer::refused;
  offer_site(job, verdict.instead);
  offer_fewer(job, wire, verdict.instead);
  offer_rare(job, wire, verdict.instead);
  offer_adapters(job, wire, verdict.instead);
  offer_one_host(job, verdict.instead);
  return verdict;
}

std::string replicate_memory_answer(const CardFigures& card, const Wire& wire) {
  return "the memory of a GPU is not replicated: " + card.name + " writes up to " + rate_text(card.memory_bytes_per_s) +
         ", the link carries " + rate_text(wire.bytes_per_s) + ", " +
         digits(std::round(card.memory_bytes_per_s / wire.bytes_per_s)) + " times less; a copy of its " +
         bytes_text(card.memory_bytes) + " would be " + time_text(card.memory_bytes / wire.bytes_per_s) +
         " old when it arrives. Instead, use checkpoints, and checkpoint.standby to keep the newest one ready on "
         "another host";
}

std::string join_cards_answer(const CardFigures& card, const Wire& wire) {
  constexpr double k_piece = 1e9;  // bytes
  return "GPUs of two hosts cannot act as one: the data that " + card.name + " reads from its own memory in " +
         time_text(k_piece / card.memory_bytes_per_s) + " (1 GB at " + rate_text(card.memory_bytes_per_s) + ") takes " +
         time_text(k_piece / wire.bytes_per_s + wire.round_trip_s / 2) + " over a link of " +
         rate_text(wire.bytes_per_s) +
         ". Instead, use one host whose GPUs together have the memory, or a replica of the model on each GPU with rare "
         "synchronisation, or independent tasks";
}

std::string bytes_text(double bytes) {
  static constexpr std::array<std::string_view, 7> k_units{"B", "kB", "MB", "GB", "TB", "PB", "EB"};
  std::size_t unit = 0;
  while (bytes >= 999.5 && unit + 1 < k_units.size()) bytes /= 1000, ++unit;
  return digits(bytes) + " " + std::string(k_units[unit]);
}

std::string rate_text(double bytes_per_s) { return digits(bytes_per_s / 1e9) + " GB/s"; }

std::string time_text(double value) {
  if (value < 1) return digits(value * 1000) + " ms";
  if (value < 120) return digits(value) + " s";
  if (value < 7200) return digits(value / 60) + " min";
  if (value < 48 * 3600) return digits(value / 3600) + " h";
  return digits(value / 86400) + " days";
}

std::string share_text(double share) {
  if (share > 0.9995 && share < 1) return "over 99.9 %";
  if (share < 0.0005 && share > 0) return "under 0.1 %";
  std::string shown = formatted("%.1f %%", share * 100);
  if (shown.ends_with(".0 %")) shown.replace(shown.size() - 4, 2, "");
  return shown;
}

}  // namespace gridctl::sched
