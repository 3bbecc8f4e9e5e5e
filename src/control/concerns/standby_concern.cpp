// SPDX-License-Identifier: Apache-2.0
// Warm standby: the newest checkpoint of a job lies ready as files on the host that would get the job next, so that a
// failover waits neither for the transfer nor for the restore. Only a help: whatever is not there is restored as ever.
#include <utility>

#include "control/concerns/table.hpp"

namespace gridctl::control {

namespace {

constexpr Duration k_look_again = std::chrono::seconds{5};     // at a job where nothing was to do
constexpr Duration k_failed_pause = std::chrono::seconds{60};  // after a host could not take it
constexpr Duration k_name_again = std::chrono::hours{6};       // a host forgets it after 24
constexpr int k_rest_factor = 4;                               // at most a fifth of the time goes into it
constexpr const char* k_name = "standby";

class StandbyConcern : public Concern {
 public:
  explicit StandbyConcern(const Rooms& rooms) : rooms_(rooms) {}

  void tick(BootTime now) override {
    rooms_.book.each([&](TrackedJob& job) {
      if (!job.spec().checkpoint.standby || job.unsure || job.in<job::Running>() == nullptr) return;
      if (job.state().start().value == 0 || now < standby_[job.id().value].next) return;
      if (!rooms_.attempts.is_under_way(job.id(), k_name)) keep(job, now);
    });
  }

  void changed(const TrackedJob& job, const job::State&) override {
    if (job::is_final(job.state().visible())) drop(job.id());
  }
  void forgotten(const JobId& id) override { standby_.erase(id.value); }

  // Where its newest checkpoint lies ready, if that was chosen as if the host that it has lost were gone, and would be
  // so again. A host that is back after a reboot looks as good as before it; but all would have to be sent there again.
  void shape(const TrackedJob& asking, Question& question) const override {
    const auto* waiting = asking.in<job::Waiting>();
    const auto found = standby_.find(asking.id().value);
    if (waiting == nullptr || found == standby_.end()) return;
    const Standby& ready = found->second;
    const bool own_wish = waiting->why == "restart_requested";  // the host was sound
    if (own_wish || ready.host.value.empty() || ready.head != asking.state().start()) return;
    question.preference = {ready.host, ready.instead_of, "its newest checkpoint lies ready there"};
  }

 private:
  struct Standby {
    HostName host;        // where `head` lies ready; empty: nowhere, as far as we know
    HostName instead_of;  // chosen as if this one were gone
    CheckpointSeq head;
    BootTime named{};  // when that host was last told
    BootTime next{};   // when to look again
  };

  void keep(TrackedJob& job, BootTime now) {
    Standby& mine = standby_[job.id().value];
    mine.next = now + k_look_again;
    const HostName here = job.state().attempt()->lead().host;
    const FleetHost* host = rooms_.fleet.find(here);
    if (host == nullptr) return;
    if (mine.host == here) mine.host = {};  // it has begun from there
    const sched::Decision decision = rooms_.placement.decide(job, rooms_.placement.question(job), host);
    if (!decision.placement) return;
    const HostName& next = decision.placement->host;
    const bool is_there = mine.host == next && mine.head == job.state().start();
    if (is_there) mine.instead_of = here;
    if (is_there && now < mine.named + k_name_again) return;
    const Result<registry::Checkpoint> newest = rooms_.world.records.checkpoint(job.id(), job.state().start());
    if (!newest) return report(newest.error(), "while looking for a standby");
    if (!mine.host.value.empty() && mine.host != next) drop(job.id());
    make(job, *newest, next);
  }

  void make(TrackedJob& job, const registry::Checkpoint& newest, const HostName& where) {
    const std::optional<HostReach> reach = rooms_.fleet.reach(where);
    if (!reach) return;
    const BootTime began = rooms_.world.clock.boot();
    rooms_.attempts.in_background(
        job.id(), k_name, {os::Lane::Kind::bulk, where.value},
        [world = rooms_.world, reach = *reach, id = job.id(), root = newest.root] {
          return make_standby(world, reach, id, root);
        },
        [this, where, began, seq = newest.seq, instead_of = job.state().attempt()->lead().host](
            TrackedJob& its, const Result<std::uint64_t>& bytes) { made(its, where, instead_of, seq, began, bytes); });
  }

  void made(TrackedJob& job, const HostName& where, const HostName& instead_of, CheckpointSeq seq, BootTime began,
            const Result<std::uint64_t>& bytes) {
    const BootTime now = rooms_.world.clock.boot();
    Standby& mine = standby_[job.id().value];
    if (!bytes) {
      report(bytes.error(), "while keeping a checkpoint of job " + job.id().value + " ready on " + where.value);
      mine.next = now + k_failed_pause;
      return;
    }
    const bool news = mine.host != where;
    mine = {where, instead_of, seq, now, now + (now - began) * k_rest_factor};
    if (job::is_final(job.state().visible())) return drop(job.id());
    if (!news) return;
    const std::string text = where.value + " keeps the newest checkpoint ready, now " + std::to_string(seq.value) +
                             " (" + format_size(*bytes) + ", " + format_duration(now - began) + ")";
    rooms_.book.note(job.id(), {"standby", text, job.state().epoch, where});
  }

  // Tried once: a host forgets it by itself.
  void drop(const JobId& id) {
    const auto found = standby_.find(id.value);
    if (found == standby_.end()) return;
    const HostName from = std::exchange(found->second.host, {});
    const std::optional<HostReach> reach = from.value.empty() ? std::nullopt : rooms_.fleet.reach(from);
    if (!reach) return;
    rooms_.attempts.in_background(
        id, "no " + std::string(k_name) + " on " + from.value, {os::Lane::Kind::bulk, from.value},
        [world = rooms_.world, reach = *reach, id] { return drop_standby(world, reach, id); },
        [from](TrackedJob&, const Result<void>& dropped) {
          if (!dropped) report(dropped.error(), "while removing a standby from " + from.value);
        });
  }

  const Rooms rooms_;
  std::map<std::string, Standby> standby_;  // by job
};

}  // namespace

std::unique_ptr<Concern> make_standby_concern(const Rooms& rooms) { return std::make_unique<StandbyConcern>(rooms); }

}  // namespace gridctl::control
