// SPDX-License-Identifier: Apache-2.0
#include "control/serve/gateway_rules.hpp"

#include "job/twin.hpp"
#include "registry/registry.hpp"

namespace gridctl::control {

namespace {
Result<ReplicaSeen> replica_seen(const FindProvider& find, const registry::Job& job) {
  ReplicaSeen seen;
  const job::Attempt* const attempt = job.machine.attempt();
  seen.leaves = job.machine.cancel.has_value() || std::holds_alternative<job::Stopping>(job.machine.phase);
  if (!job.spec.service || attempt == nullptr || !attempt->all(job::Part::running) || attempt->all(job::Part::ended))
    return seen;
  TRY_ASSIGN(registry::Provider provider, find(attempt->lead().host));
  seen.place = ReplicaPlace{job.id, attempt->epoch, std::move(provider), job.spec.service->port};
  return seen;
}
}  // namespace

Result<ServiceSeen> service_seen(registry::JobRecords& records, const FindProvider& find, const JobId& id) {
  ServiceSeen seen;
  TRY_ASSIGN(const registry::Job leader, records.job(id));
  seen.over = job::is_final(leader.state);
  seen.stops = leader.machine.cancel.has_value();
  for (int number = 1; number <= job::slots_of(leader.spec); ++number) {
    const Result<registry::Job> replica = number == 1 ? leader : records.job(registry::twin_id(id, number));
    if (!replica && replica.error().code != Code::not_found) return replica.error();
    Result<ReplicaSeen> one = replica ? replica_seen(find, *replica) : ReplicaSeen{};
    seen.replicas.push_back(one ? *std::move(one) : ReplicaSeen{});  // its host is not registered any more
  }
  return seen;
}

GatewayRules::GatewayRules(const job::Service& service, int replicas_max, int slots, const GatewayInfo& before)
    : service_(service),
      scaler_(service, replicas_max, before.wanted, before.asleep),
      leaves_(static_cast<std::size_t>(slots)),
      clocks_(static_cast<std::size_t>(slots)) {}

void GatewayRules::take(const ServiceSeen& seen) {
  stops_ = seen.stops;
  for (std::size_t slot = 0; slot < leaves_.size() && slot < seen.replicas.size(); ++slot)
    leaves_[slot] = seen.replicas[slot].leaves || seen.stops;
}

ServerState GatewayRules::see(std::size_t slot, const ReplicaSight& sight, Duration passed) {
  // While the service sleeps, an additional replica may have to prove a new version.
  const bool sleeps = scaler_.is_asleep() && slot + 1 < leaves_.size();
  const bool leaves = leaves_[slot] || sleeps || sight.dismissed;
  clocks_[slot].drained(leaves && sight.idle);
  clocks_[slot].see(sight.epoch, sight.reachable && !leaves, sight.up && sight.unfit.empty(), passed, service_);
  clocks_[slot].unfit(sight.unfit);
  return !sight.reachable                      ? ServerState::out
         : leaves || !sight.unfit.empty() ? ServerState::drain
                                          : ServerState::ready;
}

void GatewayRules::tell(GatewayInfo& info) const {
  info.wanted = scaler_.wanted();
  info.asleep = scaler_.is_asleep();
  info.replicas.clear();
  for (const ReadyClock& one : clocks_) info.replicas.push_back(one.told());
}

}  // namespace gridctl::control
