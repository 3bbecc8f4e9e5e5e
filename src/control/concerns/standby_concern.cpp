// SPDX-License-Identifier: Apache-2.0
// Keeps a warm standby: the newest checkpoint of a job lies ready as files on the host that would get the job next, so
// that a failover waits neither for the transfer nor for the restore. A gang with spares gets that many hosts, with its
// inputs. A standby is only an optimisation: a missing file is restored as usual. No host is reserved for it, because
// an idle host would cost others more than a transfer costs the gang.
#include <algorithm>
#include <utility>

#include "control/concerns/table.hpp"

namespace gridctl::control {

namespace {

constexpr Duration k_look_again = std::chrono::seconds{5};     // at a job where nothing was to do
constexpr Duration k_failed_pause = std::chrono::seconds{60};  // after a host could not take it
constexpr Duration k_name_again = std::chrono::hours{6};       // a host forgets it after 24
constexpr int k_rest_factor = 4;                               // at most a fifth of the time goes into it
constexpr int k_spare_tries = 16;                              // hosts that are looked at for a gang
constexpr const char* k_name = "standby";

// Returns the number of standby hosts.
int wanted_of(const job::Spec& spec) {
  const int one = spec.checkpoint.standby ? 1 : 0;
  return spec.num_nodes > 1 ? std::max(spec.gang.spares, one) : one;
}

// Returns true if the member ended by our order or by its own program, so that its host is sound.
bool is_sound(const job::Member& member) {
  return member.end && (member.end->kind == job::EndKind::stopped || member.end->kind == job::EndKind::exited ||
                        member.end->kind == job::EndKind::signalled);
}

class StandbyConcern : public Concern {
 public:
  explicit StandbyConcern(const Controls& controls) : controls_(controls) {}

  void tick(BootTime now) override {
    controls_.book.each_placed([&](TrackedJob& job) {
      if (wanted_of(job.spec()) == 0 || job.unsure || job.in<job::Running>() == nullptr) return;
      if (job.state().start().value == 0 || now < standby_[job.id().value].next) return;
      if (!controls_.attempts.is_under_way(job.id(), k_name)) keep(job, now);
    });
  }

  void changed(const TrackedJob& job, const job::State& before) override {
    if (job::is_final(job.state().visible())) return drop_all(job.id());
    const job::Attempt* attempt = before.attempt();
    const auto found = standby_.find(job.id().value);
    if (found == standby_.end()) return;
    if (found->second.is_idle && job.state().start() != before.start()) found->second.next = {};  // a newer checkpoint
    if (attempt == nullptr || !attempt->is_gang() || job.in<job::Waiting>() == nullptr) return;
    found->second.sound.clear();
    for (const job::Member& member : attempt->members)
      if (is_sound(member)) found->second.sound.push_back(member.host);
  }
  void forgotten(const JobId& id) override { standby_.erase(id.value); }

  // Prefers the host where the newest checkpoint lies ready, if that host was chosen as if the lost host were gone and
  // would be chosen so again. A host that returns after a reboot looks as good as before, but everything would have to
  // be sent there again.
  void shape(const TrackedJob& asking, Question& question) const override {
    const auto* waiting = asking.in<job::Waiting>();
    const auto found = standby_.find(asking.id().value);
    if (waiting == nullptr || found == standby_.end()) return;
    if (waiting->why == job::k_restart_requested) return;  // the host was sound
    // A host that has failed the job is no better for what lies there: it would be preferred for ever.
    const auto is_avoided = [&](const Ready& one) {
      return std::ranges::any_of(asking.state().avoided, [&](const job::Avoided& other) { return other.host == one.host; });
    };
    std::vector<const Ready*> ready;
    for (const Ready& one : found->second.ready)
      if (one.head == asking.state().start() && !is_avoided(one)) ready.push_back(&one);
    const bool is_newest = !ready.empty();
    // All members wait for the one that starts last; sending the changes since an earlier checkpoint takes less time
    // than sending everything.
    if (!is_newest && asking.spec().num_nodes > 1)
      for (const Ready& one : found->second.ready)
        if (!is_avoided(one)) ready.push_back(&one);
    if (ready.empty()) return;
    if (asking.spec().num_nodes == 1) {
      question.preference = {ready.front()->host, ready.front()->instead_of, "its newest checkpoint lies ready there"};
      return;
    }
    if (found->second.sound.empty()) return;
    Question::Preference spares{{},
                                {},
                                std::string("a spare takes the place of a member: ") +
                                    (is_newest ? "its newest" : "an earlier") + " checkpoint lies ready there",
                                found->second.sound};
    for (const Ready* one : ready) spares.members.push_back(one->host);
    question.preference = std::move(spares);
  }

 private:
  struct Ready {  // `head` lies ready on `host`
    HostName host;
    HostName instead_of;  // chosen as if this one were gone
    CheckpointSeq head;
    BootTime named{};  // when that host was last told
  };
  struct Standby {
    std::vector<Ready> ready;
    std::vector<HostName> sound;  // members of the last attempt of a gang whose hosts are not to blame
    BootTime next{};              // when to look again
    bool is_idle = false;         // nothing was to do when it last looked
  };

  [[nodiscard]] static Ready* find(Standby& standby, const HostName& host) {
    const auto found = std::ranges::find(standby.ready, host, &Ready::host);
    return found == standby.ready.end() ? nullptr : &*found;
  }

  // Returns the hosts where the job would go next.
  [[nodiscard]] std::vector<HostName> next_hosts(const TrackedJob& job) {
    if (job.spec().num_nodes > 1) return spares_of(job);
    const FleetHost* host = controls_.fleet.find(job.state().attempt()->lead().host);
    if (host == nullptr) return {};
    const sched::Decision decision = controls_.placement.decide(job, controls_.placement.question(job), host);
    return decision.placement ? std::vector{decision.placement->host} : std::vector<HostName>{};
  }

  // Returns hosts, best first, that could replace a member; members themselves are excluded.
  [[nodiscard]] std::vector<HostName> spares_of(const TrackedJob& job) {
    const job::Attempt& attempt = *job.state().attempt();
    Question others = controls_.placement.question(job);
    others.spec.num_nodes = 1;
    others.spec.gang.nodes_min = 0;
    std::erase_if(others.hosts, [&](const sched::HostFacts& host) { return attempt.on(host.name) != nullptr; });
    Question gang = controls_.placement.question(job, {job.id().value});
    gang.spec.num_nodes = static_cast<int>(attempt.members.size());
    gang.spec.gang.nodes_min = 0;
    std::vector<HostName> spares;
    for (int tries = 0; tries < k_spare_tries && static_cast<int>(spares.size()) < wanted_of(job.spec()); ++tries) {
      const sched::Decision decision = sched::place(others.spec, others.hosts, job.state().avoided, others.known);
      if (!decision.placement) break;
      const HostName& host = decision.placement->host;
      if (could_replace(job, gang, host)) spares.push_back(host);
      std::erase_if(others.hosts, [&](const sched::HostFacts& one) { return one.name == host; });
    }
    return spares;
  }

  // Leaves out one member: the one that does not answer, otherwise the last.
  [[nodiscard]] bool could_replace(const TrackedJob& job, const Question& gang, const HostName& host) const {
    const job::Attempt& attempt = *job.state().attempt();
    const auto silent = std::find_if(gang.hosts.begin(), gang.hosts.end(), [&](const sched::HostFacts& one) {
      return !one.reachable && attempt.on(one.name) != nullptr;
    });
    const HostName leaving = silent == gang.hosts.end() ? attempt.members.back().host : silent->name;
    Question question = gang;
    std::erase_if(question.hosts, [&](const sched::HostFacts& one) {
      return one.name != host && (one.name == leaving || attempt.on(one.name) == nullptr);
    });
    const Result<GangOffer> offer = controls_.placement.offer(job, question);
    return offer && offer->decision.plan;
  }

  void keep(TrackedJob& job, BootTime now) {
    Standby& mine = standby_[job.id().value];
    mine.next = now + k_look_again;
    mine.is_idle = true;
    const job::Attempt& attempt = *job.state().attempt();
    // The attempt has used the standby up, unless the standby became ready only after the attempt had started there.
    for (const job::Member& member : attempt.members)
      if (find(mine, member.host) != nullptr) drop(job.id(), member.host);
    const std::vector<HostName> next = next_hosts(job);
    if (next.empty()) return;
    for (std::size_t i = mine.ready.size(); i-- > 0;)
      if (std::find(next.begin(), next.end(), mine.ready[i].host) == next.end()) drop(job.id(), mine.ready[i].host);
    for (const HostName& host : next) {
      Ready* ready = find(mine, host);
      const bool is_there = ready != nullptr && ready->head == job.state().start();
      if (is_there) ready->instead_of = attempt.lead().host;
      if (is_there && now < ready->named + k_name_again) continue;
      const Result<registry::Checkpoint> newest = controls_.world.records.checkpoint(job.id(), job.state().start());
      if (!newest) return report(newest.error(), "while looking for a standby");
      return make(job, *newest, host);  // the others have their turn afterwards
    }
  }

  // A gang's spare also gets the inputs, because members wait for the one that starts last.
  [[nodiscard]] std::vector<Digest> inputs_of(const TrackedJob& job) const {
    std::vector<Digest> roots;
    if (job.spec().num_nodes == 1) return roots;
    const Result<std::vector<registry::Input>> inputs = controls_.world.records.inputs(job.id());
    if (!inputs) report(inputs.error(), "while looking for a standby");
    else
      for (const registry::Input& input : *inputs) roots.push_back(input.root);
    return roots;
  }

  void make(TrackedJob& job, const registry::Checkpoint& newest, const HostName& where) {
    const std::optional<HostReach> reach = controls_.fleet.reach(where);
    if (!reach) return;
    const BootTime began = controls_.world.clock.boot();
    standby_[job.id().value].is_idle = false;
    controls_.attempts.in_background(
        job.id(), k_name, {os::Lane::Kind::bulk, where.value},
        [world = controls_.world, reach = *reach, id = job.id(), root = newest.root, inputs = inputs_of(job)] {
          return make_standby(world, reach, id, root, inputs);
        },
        [this, where, began, seq = newest.seq, instead_of = job.state().attempt()->lead().host](
            TrackedJob& its, const Result<std::uint64_t>& bytes) { made(its, where, instead_of, seq, began, bytes); });
  }

  void made(TrackedJob& job, const HostName& where, const HostName& instead_of, CheckpointSeq seq, BootTime began,
            const Result<std::uint64_t>& bytes) {
    const BootTime now = controls_.world.clock.boot();
    Standby& mine = standby_[job.id().value];
    if (!bytes) {
      report(bytes.error(), "while keeping a checkpoint of job " + job.id().value + " ready on " + where.value);
      mine.next = now + k_failed_pause;
      if (is_uncertain(bytes.error().code)) drop(job.id(), where);  // it may lie there all the same
      return;
    }
    Ready* known = find(mine, where);
    const Ready ready{where, instead_of, seq, now};
    if (known != nullptr) *known = ready;
    else mine.ready.push_back(ready);
    mine.next = now + (wanted_of(job.spec()) > 1 ? Duration{} : (now - began) * k_rest_factor);
    if (job::is_final(job.state().visible())) return drop_all(job.id());
    if (known != nullptr) return;
    const std::string text = where.value + " keeps the newest checkpoint ready, now " + std::to_string(seq.value) +
                             " (" + format_size(*bytes) + ", " + format_duration(now - began) + ")";
    controls_.book.note(job.id(), {"standby", text, job.state().epoch, where});
  }

  void drop_all(const JobId& id) {
    const auto found = standby_.find(id.value);
    if (found == standby_.end()) return;
    while (!found->second.ready.empty()) drop(id, HostName{found->second.ready.back().host});
  }

  // Tries once; the host forgets a standby automatically.
  void drop(const JobId& id, const HostName& from) {
    const auto found = standby_.find(id.value);
    if (found == standby_.end()) return;
    const HostName host = from;
    std::erase_if(found->second.ready, [&](const Ready& one) { return one.host == host; });
    const std::optional<HostReach> reach = controls_.fleet.reach(host);
    if (!reach) return;
    controls_.attempts.in_background(
        id, "no " + std::string(k_name) + " on " + host.value, {os::Lane::Kind::bulk, host.value},
        [world = controls_.world, reach = *reach, id] { return drop_standby(world, reach, id); },
        [host](TrackedJob&, const Result<void>& dropped) {
          if (!dropped) report(dropped.error(), "while removing a standby from " + host.value);
        });
  }

  const Controls controls_;
  std::map<std::string, Standby> standby_;  // by job
};

}  // namespace

std::unique_ptr<Concern> make_standby_concern(const Controls& controls) { return std::make_unique<StandbyConcern>(controls); }

}  // namespace gridctl::control
