// SPDX-License-Identifier: Apache-2.0
#include "control/daemon/gateways.hpp"

#include <vector>

#include "control/fleet/fleet.hpp"
#include "control/follow/limits.hpp"
#include "job/twin.hpp"

namespace gridctl::control {

namespace {
constexpr Duration k_gateway_look = std::chrono::milliseconds{500};
constexpr Duration k_gateway_again = std::chrono::seconds{2};  // after a start, which may have come to nothing
}  // namespace

Gateways::Gateways(os::Executor& run, os::Clock& clock, JobBook& jobs, GatewayAccess& access)
    : clock_(clock), jobs_(jobs), access_(access) {
  timer_ = run.every(k_gateway_look, [this] { tick(); });
}

void Gateways::tick() {
  std::vector<JobId> services;
  for (const auto& [id, job] : jobs_.all())
    if (job->spec().service && job->spec().twin_of.value.empty() && job->in<job::Done>() == nullptr)
      services.push_back(job->id());
  for (const JobId& id : services) {
    if (!access_.lives(id)) start(id);
    else if (const TrackedJob* leader = jobs_.find(id)) tell(id, job::Spec(leader->spec()));
  }
}

void Gateways::tell(const JobId& service, const job::Spec& spec) {
  const std::optional<GatewayInfo> info = access_.told(service);
  if (!info) return;
  std::vector<JobId> replicas;
  bool proven = false;
  for (int number = 1; number <= static_cast<int>(info->replicas.size()); ++number) {
    const JobId id = number == 1 ? service : registry::twin_id(service, number);
    const ReplicaTold& told = info->replicas[static_cast<std::size_t>(number) - 1];
    const TrackedJob* const replica = jobs_.find(id);
    if (replica == nullptr || !replica->goes_on()) continue;
    if (told.ready && replica->in<job::Running>() != nullptr && replica->state().epoch == told.epoch &&
        replica->state().ready.epoch != told.epoch)
      jobs_.apply(id, job::ServerReady{told.epoch});
    if (told.late && replica->state().epoch == told.epoch && replica->in<job::Running>() != nullptr)
      jobs_.apply(id, job::Hung{told.epoch, "its server did not pass its probe for " +
                                                format_duration(patience_with_server(*spec.service, told.ready))});
    if (const TrackedJob* const after = jobs_.find(id)) proven = proven || after->state().ready.proven;
    replicas.push_back(id);
  }
  if (TrackedJob* const leader = jobs_.find(service);
      leader != nullptr && spec.service->replicas_min > 0 && info->wanted > 0)
    note_wanted(*leader, info->wanted);
  dismiss(service, spec, *info);
  if (spec.service->sleeps) sleep_or_wake(service, *info);
  if (!proven) return;
  for (const JobId& id : replicas)
    if (const TrackedJob* const one = jobs_.find(id); one != nullptr && !one->state().ready.proven)
      jobs_.apply(id, job::ServerReady{});
}

void Gateways::note_wanted(TrackedJob& leader, int wanted) {
  if (leader.replicas_wanted == wanted) return;
  if (leader.replicas_wanted != 0)
    jobs_.note(leader.id(),
               {"scaled", "the requests under way need " + std::to_string(wanted) + (wanted == 1 ? " replica" : " replicas"), {}, {}});
  leader.replicas_wanted = wanted;
}

// Returns true if every replica that the service should have is ready, so that no stand-in is needed. A replica that
// was ended counts too: it does not return.
bool Gateways::is_settled(const JobId& service, int wanted, int version) const {
  if (!jobs_.is_certain()) return false;  // a replica that could not be read is no replica that was ended
  const TrackedJob* const leader = jobs_.find(service);
  if (leader == nullptr || leader->in_doubt || leader->spec().service->version != version) return false;
  for (int number = 1; number <= wanted; ++number) {
    const TrackedJob* const one = number == 1 ? leader : jobs_.find(registry::twin_id(service, number));
    if (one == nullptr || !one->goes_on()) continue;
    if (one->in<job::Running>() == nullptr || one->state().ready.epoch != one->state().epoch) return false;
  }
  return true;
}

// Returns true if the additional replica of this version is not needed: the others serve, or the service sleeps.
bool Gateways::is_needless(const JobId& service, int wanted, int version, const GatewayInfo& info) const {
  const TrackedJob* const leader = jobs_.find(service);
  const bool sleeps = leader != nullptr && leader->spec().service->sleeps && info.asleep && info.trouble.empty();
  return (sleeps && leader->spec().service->version == version) || is_settled(service, wanted, version);
}

// The last replica has answered its requests. A gateway that does not work is no reason to sleep.
void Gateways::sleep_or_wake(const JobId& service, const GatewayInfo& info) {
  TrackedJob* const leader = jobs_.find(service);
  if (leader == nullptr) return;
  leader->awake = !info.asleep || !info.trouble.empty();
  const bool is_up = leader->in<job::Running>() != nullptr || leader->in<job::Launching>() != nullptr;
  if (!leader->awake && leader->goes_on() && is_up && !info.replicas.empty() && info.replicas.front().drained)
    jobs_.apply(service, job::ServerReplaced{leader->state().epoch, true});
}

// Dismisses surplus replicas: they finish their requests and end.
void Gateways::dismiss(const JobId& service, const job::Spec& spec, const GatewayInfo& info) {
  const int wanted = spec.service->replicas_min > 0 && info.wanted > 0 ? info.wanted : spec.twins;
  for (int number = 2; number <= job::slots_of(spec); ++number) {
    const JobId id = registry::twin_id(service, number);
    const TrackedJob* const replica = jobs_.find(id);
    const bool stands_in = number > spec.twins;
    if (number <= wanted || replica == nullptr || !replica->goes_on() ||
        (stands_in && !is_needless(service, wanted, replica->spec().service->version, info))) {
      leaving_.erase(id.value);
      continue;
    }
    if (const Result<void> told = access_.let_leave(service, number, clock_.wall()); !told)
      return report(told.error(), "while removing a replica");
    const BootTime now = clock_.boot(), since = leaving_.try_emplace(id.value, now).first->second;
    const auto slot = static_cast<std::size_t>(number) - 1;
    const bool runs = replica->in<job::Running>() != nullptr;
    const bool is_drained = slot < info.replicas.size() && info.replicas[slot].drained;
    if (runs && !is_drained && now - since < spec.service->drain) continue;
    jobs_.apply(id, job::LimitReached{std::string(k_limit_scale),
                                      stands_in ? "all other replicas are ready" : "fewer replicas are enough",
                                      job::k_limit_grace});
  }
}

void Gateways::start(const JobId& service) {
  const BootTime now = clock_.boot();
  const auto [last, first] = started_.try_emplace(service.value, now);
  if (!first && now - last->second < k_gateway_again) return;
  last->second = now;
  report(access_.start(service), "while starting the gateway of a service");
}

}  // namespace gridctl::control
