// SPDX-License-Identifier: Apache-2.0
#include "service_truth.hpp"

#include <algorithm>

#include "control/follow/limits.hpp"
#include "gateways.hpp"
#include "job/twin.hpp"
#include "registry/registry.hpp"
#include "truth.hpp"
#include "user.hpp"

namespace gridctl::sim {

namespace {
constexpr Nanos k_sees = 10 * k_s;       // until what changed has been seen: by the gateway, and by the daemon
constexpr Nanos k_acts = 90 * k_s;       // until what is due is done, when nothing hinders: a grace of 30 s, and its end
constexpr Nanos k_rests_within = 3 * 60 * k_min;  // starts that come to nothing are tried once an hour
constexpr Nanos k_look_again = 5 * k_s;
constexpr int k_tries = 30;  // of an update; each waits a minute for a host that may have to be cleaned up first

Laptop& laptop_of(World& world, const JobId& id) {
  return *world.laptops[static_cast<std::size_t>(world.jobs[static_cast<std::size_t>(world.index_of(id))].laptop)];
}
}  // namespace

void ServiceTruth::must(bool holds, const char* rule, const JobId& job, const std::string& what) const {
  ++world_.truth->rules_met[rule];
  if (!holds) throw Violation(rule, job.value + " " + what);
}

JobId ServiceTruth::replica(const JobId& service, int number) const {
  return number == 1 ? service : registry::twin_id(service, number);
}

ServiceTruth::Which ServiceTruth::which(const JobId& id) const {
  const int index = world_.index_of(id);
  if (index < 0) return {};
  const JobId& twin_of = world_.jobs[static_cast<std::size_t>(index)].spec.twin_of;
  const JobId leader = twin_of.value.empty() ? id : twin_of;
  const int at = world_.index_of(leader);
  if (at < 0 || !world_.jobs[static_cast<std::size_t>(at)].spec.service) return {};
  const job::Spec& spec = world_.jobs[static_cast<std::size_t>(at)].spec;
  for (int number = 1; number <= job::slots_of(spec); ++number)
    if (replica(leader, number) == id) return {leader, number, &spec};
  throw Violation("G1", id.value + " is one more replica than " + leader.value + " may have");
}

int ServiceTruth::wanted(Laptop& laptop, const Which& which) const {
  const auto told = laptop.gateways().told(which.service);
  return which.spec->service->replicas_min > 0 && told && told->wanted > 0 ? told->wanted : which.spec->twins;
}

bool ServiceTruth::is_believed_ready(const JobId& id) const {
  const job::State* state = world_.truth->newest(id);
  return state != nullptr && std::holds_alternative<job::Running>(state->phase) && !state->cancel &&
         state->ready.epoch == state->epoch;
}

// --- What the daemon and commands do ---------------------------------------------------------------------------------

void ServiceTruth::stepped(int laptop, const job::State& before, const job::Event& what, const job::State& after) {
  if (world_.options.services == 0) return;
  const Which one = which(after.id);
  if (one.spec == nullptr) return;
  Laptop& there = *world_.laptops[static_cast<std::size_t>(laptop)];
  Service& mine = services_[one.service.value];
  if (const auto* hung = std::get_if<job::Hung>(&what)) check_hung(there, one, before, *hung);
  if (const auto* limit = std::get_if<job::LimitReached>(&what); limit != nullptr && limit->limit == control::k_limit_scale) {
    check_dismissed(there, one, before);
    check_drained(there, one, before, one.spec->service->drain.count());
  }
  if (const auto* replaced = std::get_if<job::ServerReplaced>(&what)) {
    if (!replaced->sleeps) check_updated(there, one, before);
    check_drained(there, one, before, replaced->sleeps ? INT64_MAX : one.spec->service->drain.count());
  }
  if (std::holds_alternative<job::Placed>(what) && after.epoch > before.epoch) check_placed(there, one, after);
  if (after.ready.epoch != before.ready.epoch && after.attempt() != nullptr)
    must(world_.truth->was_ready(after.id, after.ready.epoch), "G6", after.id, "is taken for ready, and never was");
  if (mine.ready_since < 0 && after.ready.epoch.value > 0) mine.ready_since = world_.now;
  const Nanos known_for = mine.ready_since < 0 ? -1 : world_.now - std::max(mine.ready_since, there.clear_since());
  if (after.visible() == job::JobState::failed && before.visible() != job::JobState::failed &&
      (after.ready.epoch.value > 0 || known_for > k_sees))
    must(after.reason != "never_ready", "G7", after.id, "is given up as never ready, and was: " + after.reason_text);
}

void ServiceTruth::check_hung(Laptop& laptop, const Which& one, const job::State& before, const job::Hung& hung) const {
  const job::Attempt* attempt = before.attempt();
  if (attempt == nullptr || attempt->epoch != hung.epoch || world_.now - laptop.clear_since() < k_sees) return;
  must(!laptop.gateways().answered_for(one.service, one.replica, k_sees), "G6", before.id, "is taken for hung, and answers");
}

void ServiceTruth::check_dismissed(Laptop& laptop, const Which& one, const job::State& before) const {
  const int wanted = this->wanted(laptop, one);
  const auto told = laptop.gateways().told(one.service);
  if (one.replica > wanted && one.replica <= one.spec->twins) return must(true, "G2", before.id, "");
  must(one.replica > one.spec->twins, "G2", before.id, "is dismissed, and " + std::to_string(wanted) + " replicas are wanted");
  if (told && told->asleep) return;
  for (int number = 1; number <= wanted; ++number) {
    const job::State* state = world_.truth->newest(replica(one.service, number));
    if (state == nullptr || state->cancel || job::is_final(state->visible())) continue;
    must(is_believed_ready(state->id), "G2", before.id, "is dismissed, and " + state->id.value + " is not ready");
  }
}

void ServiceTruth::check_drained(Laptop& laptop, const Which& one, const job::State& before, Nanos patience) const {
  if (!std::holds_alternative<job::Running>(before.phase)) return;
  const std::optional<Nanos> since = laptop.gateways().leaves_since(one.service, one.replica);
  const bool over = since && world_.now - *since + k_s >= patience;
  must(over || !laptop.gateways().is_busy(one.service, one.replica), "G3", before.id, "is ended amid its requests");
}

// By what the user's command could know: the gateway tells it before the daemon.
void ServiceTruth::check_updated(Laptop& laptop, const Which& one, const job::State& before) const {
  if (!is_believed_ready(before.id)) return;
  const auto told = laptop.gateways().told(one.service);
  bool other = false;
  for (int number = 1; number <= job::slots_of(*one.spec); ++number) {
    const job::State* state = world_.truth->newest(replica(one.service, number));
    const auto slot = static_cast<std::size_t>(number) - 1;
    const bool ready = state != nullptr && std::holds_alternative<job::Running>(state->phase) && !state->cancel && told &&
                       slot < told->replicas.size() && told->replicas[slot].ready && told->replicas[slot].epoch == state->epoch;
    other = other || (number != one.replica && ready);
  }
  must(other || one.replica == job::slots_of(*one.spec), "G4", before.id, "is replaced, and no other replica is ready");
}

void ServiceTruth::check_placed(Laptop& laptop, const Which& one, const job::State& after) {
  const Nanos asleep = services_[one.service.value].asleep_since;
  const bool clear = world_.now - laptop.clear_since() > k_sees;
  if (one.replica == 1 && clear && after.epoch.value > 1)
    must(asleep < 0 || world_.now - asleep < k_sees, "G5", after.id, "is started while the service sleeps");
  const job::Attempt* attempt = after.attempt();
  if (attempt == nullptr) return;
  for (const SimJob& other : world_.jobs) {
    const Which its = which(other.id);
    if (its.spec == nullptr || its.service == one.service || other.laptop != laptop.index() ||
        its.spec->service->port != one.spec->service->port)
      continue;
    const job::State* state = world_.truth->newest(other.id);
    const bool there = state != nullptr && state->attempt() != nullptr && !state->cancel &&
                       state->attempt()->lead().host == attempt->lead().host;
    must(!there || std::holds_alternative<job::Collecting>(state->phase), "G1", after.id, "shares its port with " + other.id.value);
  }
}

// --- Gateways --------------------------------------------------------------------------------------------------------

void ServiceTruth::gateway_starts(int laptop, const JobId& service) {
  const job::State* state = world_.truth->newest(service);
  must(world_.laptops[static_cast<std::size_t>(laptop)]->gateways().lives_since(service) < 0, "G8", service,
       "gets a second gateway");
  // Its daemon may not have been told yet.
  Nanos& since = services_[service.value].over_since;
  const bool over = state != nullptr && job::is_final(state->visible());
  if (!over) since = -1;
  else if (since < 0) since = world_.now;
  const Nanos clear = world_.laptops[static_cast<std::size_t>(laptop)]->clear_since();
  must(since < 0 || world_.now - std::max(since, clear) < k_sees, "G8", service, "gets a gateway after its end");
}

void ServiceTruth::gateway_told(int laptop, const JobId& service) {
  const auto told = world_.laptops[static_cast<std::size_t>(laptop)]->gateways().told(service);
  Nanos& since = services_[service.value].asleep_since;
  if (!told || !told->asleep || !told->trouble.empty()) since = -1;
  else if (since < 0) since = world_.now;
}

void ServiceTruth::audit(Laptop& laptop) {
  if (world_.options.services == 0) return;
  for (std::size_t i = 0; i < world_.jobs.size(); ++i) {
    const SimJob& job = world_.jobs[i];
    if (job.laptop != laptop.index() || !job.spec.service || !job.spec.twin_of.value.empty()) continue;
    const job::State* state = world_.truth->newest(job.id);
    if (state == nullptr || job::is_final(state->visible()) || state->cancel) {
      services_[job.id.value].gone_since = -1;
      continue;
    }
    check_gateway(laptop, job.id);
    check_asleep(laptop, job.id, job.spec);
    check_needless(laptop, job.id, job.spec);
  }
}

void ServiceTruth::check_gateway(Laptop& laptop, const JobId& id) {
  Nanos& since = services_[id.value].gone_since;
  const bool may_fail = world_.options.gateway_fails > 0 && !world_.healed;
  if (laptop.gateways().lives_since(id) >= 0 || may_fail) return void(since = -1);
  if (since < 0) since = world_.now;
  const Nanos gone = world_.now - std::max(since, laptop.clear_since());
  must(gone < 2 * k_sees, "G8", id, "has no gateway");
}

void ServiceTruth::check_asleep(Laptop& laptop, const JobId& id, const job::Spec& spec) {
  const Nanos since = services_[id.value].asleep_since;
  // An update that was interrupted leaves its additional replica to the next try.
  const Service& mine = services_[id.value];
  if (since < 0 || laptop.gateways().lives_since(id) < 0 || mine.applied < mine.wished) return;
  const Nanos slept = world_.now - std::max({since, mine.applied_at, laptop.clear_since(), laptop.gateways().lives_since(id)});
  if (slept < spec.service->drain.count() + 2 * k_acts + 2 * world_.options.lost_after || !world_.healed) return;
  for (int number = 1; number <= job::slots_of(spec); ++number) {
    const job::State* state = world_.truth->newest(replica(id, number));
    const bool ends = state != nullptr && std::holds_alternative<job::Collecting>(state->phase);
    must(state == nullptr || state->attempt() == nullptr || ends, "G5", id,
         "sleeps, and replica " + std::to_string(number) + " has an attempt: " + (state == nullptr ? "" : state->reason_text));
  }
}

// In a healthy world: who is too many has left.
void ServiceTruth::check_needless(Laptop& laptop, const JobId& id, const job::Spec& spec) {
  const int wanted = this->wanted(laptop, {id, 1, &spec});
  auto& since = services_[id.value].needless_since;
  for (int number = 2; number <= spec.twins; ++number) {
    const job::State* state = world_.truth->newest(replica(id, number));
    const bool needless = number > wanted && state != nullptr && state->attempt() != nullptr && world_.healed &&
                          !std::holds_alternative<job::Collecting>(state->phase) && laptop.gateways().lives_since(id) >= 0;
    if (!needless) {
      since.erase(number);
      continue;
    }
    const Nanos began = since.try_emplace(number, world_.now).first->second;
    must(world_.now - std::max(began, laptop.clear_since()) < spec.service->drain.count() + 2 * k_acts + world_.options.lost_after,
         "G9", id, "does with " + std::to_string(wanted) + " replicas, and replica " + std::to_string(number) +
             " stays: " + state->reason_text);
  }
}

// --- Versions --------------------------------------------------------------------------------------------------------

int ServiceTruth::next_version(const JobId& service, int now) {
  Service& mine = services_[service.value];
  // One that was interrupted is wished for again.
  if (mine.applied >= mine.wished || mine.wished < now) mine.wished = std::max({mine.wished, mine.applied, now}) + 1;
  return mine.wished;
}

void ServiceTruth::applied(const JobId& service, int version) {
  services_[service.value].applied = std::max(services_[service.value].applied, version);
  services_[service.value].applied_at = world_.now;
}

// --- The end ---------------------------------------------------------------------------------------------------------

// A replica that was ended for good by its own fault is not missed, and the additional one may serve for one that finds
// no host.
std::string ServiceTruth::unrest(const SimJob& job) {
  Laptop& laptop = laptop_of(world_, job.id);
  const job::State* leader = world_.truth->newest(job.id);
  if (leader == nullptr || job::is_final(leader->visible()) || leader->cancel) return "";
  if (laptop.applies(job.id)) return "an update is under way";
  const auto told = laptop.gateways().told(job.id);
  if (!told || laptop.gateways().lives_since(job.id) < 0) return "it has no gateway";
  if (told->asleep) return laptop.gateways().load(job.id) > 0 ? "it sleeps, and is asked" : "";
  const int wanted = this->wanted(laptop, {job.id, 1, &job.spec}), slots = job::slots_of(job.spec);
  int needed = wanted, answering = 0;
  std::string missing;
  for (int number = 1; number <= slots; ++number) {
    const JobId id = replica(job.id, number);
    const job::State* state = world_.truth->newest(id);
    if (laptop.gateways().answers(job.id, number)) ++answering;
    else if (number <= wanted && number > 1 && state != nullptr && job::is_final(state->visible()) && state->limit != control::k_limit_scale) --needed;
    else if (number <= wanted)
      missing = "replica " + std::to_string(number) + " does not answer (" +
                (state == nullptr ? "it is not there" : std::string(job::state_name(state->visible())) + ", " + state->reason_text) + ")";
    if (number > job.spec.twins || state == nullptr || laptop.records() == nullptr) continue;
    const Result<registry::Job> row = laptop.records()->job(id);
    if (row && !job::is_final(row->state) && row->spec.service->version < services_[job.id.value].applied)
      return "replica " + std::to_string(number) + " has an old version";
  }
  if (answering < needed && !is_crowded(job)) return missing;
  const job::State* spare = world_.truth->newest(replica(job.id, slots));
  return missing.empty() && spare != nullptr && spare->attempt() != nullptr ? "its additional replica stays" : "";
}

// With one replica more it has no room.
bool ServiceTruth::is_crowded(const SimJob& job) const {
  int replicas = 0;
  for (const SimJob& other : world_.jobs)
    if (other.spec.service && other.spec.twin_of.value.empty() && other.spec.service->port == job.spec.service->port)
      replicas += other.spec.twins + 1;
  return replicas > world_.options.hosts;
}

void ServiceTruth::converge() {
  if (world_.options.services == 0) return;
  const auto at_rest = [&](std::string* why) {
    for (std::size_t i = 0; i < world_.jobs.size(); ++i) {
      const SimJob& job = world_.jobs[i];
      if (!job.submitted || !job.spec.service || !job.spec.twin_of.value.empty()) continue;
      const job::State* leader = world_.truth->newest(job.id);
      if (leader == nullptr || job::is_final(leader->visible()) || leader->cancel) continue;
      Laptop& laptop = laptop_of(world_, job.id);
      Service& mine = services_[job.id.value];
      if (mine.applied < mine.wished && !laptop.applies(job.id)) {
        must(++mine.tries < k_tries || is_crowded(job), "G9", job.id, "does not get its new version in a healthy world");
        if (mine.tries >= k_tries) mine.wished = mine.applied;
        else laptop.user_applies(job.id);
      }
      if (const std::string found = unrest(job); !found.empty()) return *why = job.id.value + ": " + found, false;
    }
    return true;
  };
  std::string why = "nothing";
  int quiet = 0;
  for (const Nanos end = world_.now + k_rests_within; quiet < 4; world_.run_until(world_.now + k_look_again)) {
    quiet = at_rest(&why) ? quiet + 1 : 0;
    if (world_.now > end) throw Violation("G9", "a service does not come to rest in a healthy world: " + why);
  }
  ++world_.truth->rules_met["G9"];
  for (std::size_t i = 0; i < world_.jobs.size(); ++i) {
    const JobId id = world_.jobs[i].id;
    if (!world_.jobs[i].spec.service || !world_.jobs[i].spec.twin_of.value.empty()) continue;
    for (int tries = 0; tries < 20 && world_.truth->knows(id) && !world_.truth->is_over(id); ++tries) {
      laptop_of(world_, id).user_cancels(id, i % 2 == 0);
      world_.run_until(world_.now + k_s);
    }
  }
}

void ServiceTruth::final_check() const {
  if (world_.options.services == 0) return;
  for (int tries = 0; tries < 20; ++tries) world_.run_until(world_.now + k_s);
  for (const auto& laptop : world_.laptops) must(!laptop->gateways().any_lives(), "G8", {"a service"}, "has a gateway after its end");
}

}  // namespace gridctl::sim
