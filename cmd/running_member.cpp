// SPDX-License-Identifier: Apache-2.0
#include "cmd/running_member.hpp"

#include "control/reach/pace.hpp"
#include "control/reach/ssh_network.hpp"
#include "sched/ranks.hpp"

namespace gridctl::cmd {

namespace {
struct Chosen {
  const job::Member* member = nullptr;
  std::uint32_t rank = 0;  // within the member
};

// Ranks are numbered through the members in their order.
Result<Chosen> member_of_rank(const registry::Job& job, const job::Attempt& attempt, std::uint64_t wanted) {
  std::uint64_t first = 0;
  for (const job::Member& member : attempt.members) {
    const auto gpus = static_cast<int>(member.gpu_uuids.size());
    const auto ranks = static_cast<std::uint64_t>(std::max(1, sched::ranks_on_host(job.spec, gpus)));
    if (wanted < first + ranks) return Chosen{&member, static_cast<std::uint32_t>(wanted - first)};
    first += ranks;
  }
  return make_error(Code::not_found, "job " + job.id.value + " has no rank " + std::to_string(wanted) + ", only " +
                                         ui::counted(first, "rank"));
}
}  // namespace

Result<RunningMember> running_member(registry::Registry& registry, const JobId& id, std::optional<std::uint64_t> rank,
                                     std::optional<std::uint64_t> wanted) {
  TRY_ASSIGN(const registry::Job job, registry.job(id));
  const job::Attempt* const attempt = job.machine.attempt();
  const std::string who = "job " + job.name + " (" + id.value + ")";
  if (attempt == nullptr || !attempt->all(job::Part::promised))
    return make_error(Code::not_found, who + " does not run now: it is " + std::string(job::state_name(job.state)),
                      "gridctl job explain " + id.value);
  if (wanted && *wanted != attempt->number.value)
    return make_error(Code::not_found,
                      who + " does not run attempt " + std::to_string(*wanted) + " now, but attempt " +
                          std::to_string(attempt->number.value),
                      "gridctl job show " + id.value);
  TRY_ASSIGN(const Chosen chosen, member_of_rank(job, *attempt, rank.value_or(0)));
  TRY_ASSIGN(registry::Provider provider, registry.provider(chosen.member->host));
  return RunningMember{id, job.name, attempt->number, attempt->epoch, std::move(provider), chosen.rank};
}

Result<RunningMember> running_member(Context& context, const Parsed& parsed) {
  TRY_ASSIGN(const std::optional<std::uint64_t> rank, parsed.whole("rank"));
  TRY_ASSIGN(const std::optional<std::uint64_t> attempt, parsed.whole("attempt"));
  TRY_ASSIGN(registry::Registry registry, context.open_for_reading());
  TRY_ASSIGN(const JobId id, registry.resolve(parsed.positionals[0]));
  return running_member(registry, id, rank, attempt);
}

Result<std::unique_ptr<control::AgentChannel>> enter(Context& context, os::Loop& loop,
                                                     const registry::Provider& provider,
                                                     const wire::EnterRequest& whom) {
  TRY_ASSIGN(registry::Registry registry, context.open_for_reading());
  TRY_ASSIGN(const ControllerId controller, registry.controller_id());
  control::SshNetwork network(loop, context.clock, context.paths(), controller);
  return network.stream(provider, whom, context.clock.boot() + control::k_deploy_max);
}

wire::EnterRequest whom(const RunningMember& member) { return {member.job, member.epoch}; }

}  // namespace gridctl::cmd
