// SPDX-License-Identifier: Apache-2.0
// Makes a gang's members prove, before it starts, that they reach each other on the ports of their epoch, and at what
// rate.
#include <algorithm>

#include "base/formatted.hpp"
#include "control/follow/attempts.hpp"
#include "job/rank_start.hpp"
#include "os/random.hpp"
#include "sched/reach_proof.hpp"

namespace gridctl::control {

struct GangProof {
  std::vector<sched::ReachOutcome> outcomes;
  std::vector<std::string> addresses;  // of the members, as others reached them
  std::string port_taken;              // somebody listens there already
  std::optional<Error> error;          // a member could not be asked
  int blamed = 0;                      // rank of that member
};

namespace {

constexpr std::uint64_t k_proof_bytes = 4 << 20;  // each way, between neighbours: enough to tell 1 from 10 Gbit/s
constexpr std::size_t k_token_bytes = 32;
// A host says "busy" when the ports are in use and while it measures another link: other ports are tried at once, then
// again later.
constexpr int k_ports_tries = 12, k_ports_tries_at_once = 3;
constexpr Duration k_ports_pause = std::chrono::seconds{3};

sched::ReachOutcome outcome_of(const HostReach& from, const HostReach& to, std::uint16_t port, const PortProof& proof) {
  sched::ReachOutcome one;
  one.from = from.provider.name.value;
  one.to = to.provider.name.value;
  one.port = port;
  one.connected = proof.contact.works;
  one.address = proof.contact.address;
  one.reason = proof.contact.reason;
  one.rtt = proof.rtt;
  one.there = proof.rate_there;
  one.back = proof.rate_back;
  one.ephemeral_first = proof.ephemeral_first;
  return one;
}

// Runs on its own thread.
GangProof prove(const World& world, const std::vector<HostReach>& members, std::uint16_t port) {
  GangProof proven;
  proven.addresses.resize(members.size());
  for (const auto& [from, to] : sched::pairs_to_prove(members.size())) {
    const bool neighbours = (from + 1) % members.size() == to;
    const Result<PortProof> proof =
        world.freight.prove_port(members[from], members[to], port, neighbours ? k_proof_bytes : 0);
    if (!proof && proof.error().code == Code::busy) {
      proven.port_taken = proof.error().one_line();
      return proven;
    }
    if (!proof) {
      proven.error = proof.error();
      proven.blamed = static_cast<int>(to);
      return proven;
    }
    proven.outcomes.push_back(outcome_of(members[from], members[to], port, *proof));
    if (proof->contact.works) proven.addresses[to] = proof->contact.address;
  }
  return proven;
}

std::string slowest_in_words(const std::vector<sched::ReachOutcome>& outcomes) {
  const sched::ReachOutcome* slowest = nullptr;
  for (const sched::ReachOutcome& one : outcomes)
    if (one.there && (slowest == nullptr || *one.there < *slowest->there)) slowest = &one;
  if (slowest == nullptr) return "the members reach each other";
  return "the members reach each other; the slowest link is " + slowest->from + " to " + slowest->to + " with " +
         formatted("%.2f Gbit/s", *slowest->there / 1e9);
}

}  // namespace

void Attempts::carry_out(TrackedJob& job, const job::Connect& effect) {
  std::vector<HostReach> members;
  for (const job::Member& member : job.state().attempt()->members) {
    const std::optional<HostReach> reach = fleet_.reach(member.host);
    if (!reach) return book_.apply(job.id(), job::HostForgotten{member.host});
    members.push_back(*reach);
  }
  const int skipped = work(job.id()).ports_skipped[effect.epoch.value];
  const auto port = static_cast<std::uint16_t>(job::gang_port(job.id(), effect.epoch, skipped));
  in_background(
      job.id(), job::effect_name(job::Effect{effect}), {os::Lane::Kind::urgent, {}},
      [world = world_, members, port] { return prove(world, members, port); },
      [this, epoch = effect.epoch, port](TrackedJob& mine, const GangProof& proven) {
        connected(mine, epoch, port, proven);
      });
}

void Attempts::connected(TrackedJob& job, Epoch epoch, std::uint16_t port, const GangProof& proven) {
  const JobId id = job.id();
  if (job.state().epoch != epoch || job.in<job::Launching>() == nullptr) return;
  job::LaunchFailed failed;
  failed.epoch = epoch;
  failed.host_fault = false;
  if (!proven.port_taken.empty()) {
    const int tries = ++work(id).ports_skipped[epoch.value];
    if (tries < k_ports_tries)
      return try_later(id, job::effect_name(job::Effect{job::Connect{epoch}}),
                       tries <= k_ports_tries_at_once ? Duration{} : k_ports_pause);
    failed.detail = proven.port_taken;
    failed.refused = true;
    return book_.apply(id, std::move(failed));
  }
  if (proven.error) {
    failed.detail = proven.error->one_line();
    failed.rank = proven.blamed;
    return book_.apply(id, std::move(failed));
  }
  sched::ReachNeed need{std::nullopt, job::k_gang_ports};
  std::optional<Duration> farthest;
  for (const sched::ReachOutcome& one : proven.outcomes)
    if (one.rtt) farthest = std::max(farthest.value_or(*one.rtt), *one.rtt);
  need.bits_per_second = sched::needed_bits_per_second(job.spec(), farthest);
  const sched::ReachVerdict verdict = sched::judge_reach(proven.outcomes, need);
  if (verdict.good) {
    const std::string token = to_hex(os::random_bytes(k_token_bytes));
    return book_.apply(id,
                       job::MembersConnected{epoch, slowest_in_words(proven.outcomes), proven.addresses, port, token});
  }
  failed.detail = verdict.why;
  failed.host_fault = true;
  for (const std::string& fix : verdict.fixes) failed.detail += "; " + fix;
  for (const sched::ReachOutcome& one : proven.outcomes)
    if (!one.connected)
      if (const job::Member* member = job.state().attempt()->on({one.to})) failed.rank = member->rank;
  book_.apply(id, std::move(failed));
}

}  // namespace gridctl::control
