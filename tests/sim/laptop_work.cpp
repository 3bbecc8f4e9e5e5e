// SPDX-License-Identifier: Apache-2.0
// Conversations with hosts, each over a connection of its own, as control/work.cpp holds them.
#include <utility>

#include "control/follow/interpret_status.hpp"
#include "laptop.hpp"
#include "wire_path.hpp"

namespace gridctl::sim {

namespace {
constexpr Duration k_reach = std::chrono::seconds{20};
constexpr Nanos k_held_up = 6 * k_s;
constexpr Duration k_stop_look = std::chrono::milliseconds{200};

Error broken() { return make_error(Code::host_unreachable, "the connection broke"); }
Error late() { return make_error(Code::timed_out, "no answer in time"); }

}  // namespace

// Calls `then` once: with the answer, or with the error that came first. An answer shows that the host lives.
template <class Value>
std::function<void(Result<Value>)> Laptop::once(int host, std::function<void(Result<Value>)> then) {
  auto open = std::make_shared<bool>(true);
  return [this, host, open, then = std::move(then)](Result<Value> value) {
    if (!std::exchange(*open, false)) return;
    if (value || !control::is_uncertain(value.error().code)) heard(host);
    then(std::move(value));
  };
}

void Laptop::reach(int host, Reached then) {
  const Reached answer = once<Session>(host, std::move(then));
  world_.send(index_, host, [this, life = node().life, host, answer] {
    const Host::Hello hello = world_.hosts[static_cast<std::size_t>(host)]->greet(index_);
    world_.answer(index_, host, life, [this, host, answer, hello] { answer(Session{host, hello.connection}); });
  });
  after(k_reach, [answer] { answer(late()); });
}

void Laptop::ask(const Session& session, control::Request question, Answered then) {
  const Answered answer = once<control::Answer>(session.host, std::move(then));
  const int host = session.host;
  Nanos held = 0;
  if (const auto* start = std::get_if<wire::StartRequest>(&question); start != nullptr && !world_.healed) {
    if (world_.rng.chance(world_.options.late_start)) held = world_.rng.between(0, k_held_up);
    if (world_.rng.chance(world_.options.cancel_start))
      after(Duration{world_.rng.between(0, k_s)},
            [this, job = world_.truth->index(start->spec.job)] { user_cancels(job, true); });
  }
  auto deliver = [this, life = node().life, session, host, question = std::move(question), answer] {
    Host& there = *world_.hosts[static_cast<std::size_t>(host)];
    Result<control::Answer> reply = broken();
    if (there.serves(session.connection)) {
      try {
        reply = serve_by_wire(world_, there, index_, question);
      } catch (const Killed&) {
        there.kill_agents();
      }
    }
    world_.answer(index_, host, life, [this, host, answer, reply = std::move(reply)] { answer(reply); });
  };
  if (held == 0) world_.send(index_, host, std::move(deliver));
  else after(Duration{held}, [this, host, deliver = std::move(deliver)] { world_.send(index_, host, deliver); });
  after(control::k_work_answer, [answer] { answer(late()); });
}

void Laptop::pull(const JobPtr& job, int host, Epoch epoch, wire::HostCheckpoint wanted, Fetched then) {
  reach(host, [=, this](Result<Session> session) {
    if (!session) return then(session.error());
    const Fetched answer = once<std::optional<wire::HostCheckpoint>>(host, then);
    world_.send(index_, host, [=, this, life = node().life, connection = session->connection] {
      Host& there = *world_.hosts[static_cast<std::size_t>(host)];
      if (!there.serves(connection)) return;
      const Result<Digest> read = there.read_snapshot(index_, {job->state.id, epoch, wanted.number});
      const bool torn = !world_.healed && world_.rng.chance(world_.options.torn_transfer);
      const Nanos time = world_.rng.between(k_ms, world_.options.transfer_time);
      world_.after(time, world_.host_node(host), [=, this] {
        world_.answer(index_, host, life, [=, this] {
          if (torn) return answer(broken());
          if (!read) return answer(read.error());
          if (*read != wanted.root) return answer(make_error(Code::checkpoint_damaged, "it hashes to something else"));
          if (disk_full) return answer(make_error(Code::no_space, "the laptop's disk is full"));
          world_.truth->stored(index_, wanted.root);
          answer(std::optional{wanted});
        });
      });
    });
    after(k_reach + Duration{world_.options.transfer_time}, [answer] { answer(late()); });
  });
}

void Laptop::collect(const JobPtr& job, int host, Epoch epoch, std::uint64_t known, Fetched then) {
  reach(host, [=, this](Result<Session> session) {
    if (!session) return then(session.error());
    ask(*session, control::Request{control::look_request(job->state.id, epoch)},
        [=, this](Result<control::Answer> answer) {
          if (!answer) return then(answer.error());
          const Result<wire::AttemptStatus> status = control::look_answer(*answer, job->state.id, epoch);
          if (!status) return then(status.error());
          const wire::HostCheckpoint* newest = control::newest_beyond(*status, known);
          if (newest == nullptr) return then(std::optional<wire::HostCheckpoint>{});
          pull(job, host, epoch, *newest, [then](Result<std::optional<wire::HostCheckpoint>> pulled) {
            // What cannot be had at all is told and left; what a broken link or our full disk took is asked for again.
            if (!pulled && !control::is_uncertain(pulled.error().code) && pulled.error().code != Code::no_space)
              return then(std::optional<wire::HostCheckpoint>{});
            then(std::move(pulled));
          });
        });
  });
}

void Laptop::run_launch(const JobPtr& job, Epoch epoch, Session session, std::shared_ptr<control::LaunchTalk> talk,
                        control::LaunchTalk::Next next, std::function<void(control::LaunchResult)> then) {
  if (const auto* result = std::get_if<control::LaunchResult>(&next)) return then(*result);
  const control::Request& question = std::get<control::Request>(next);
  const bool wanted =
      !job->unsure && job->state.epoch == epoch && std::holds_alternative<job::Launching>(job->state.phase);
  if (std::holds_alternative<wire::StartRequest>(question) && !wanted)
    return run_launch(
        job, epoch, session, talk,
        talk->give_up(control::not_started(make_error(Code::cancelled, "it is not wanted any more"), false)), then);
  ask(session, question, [=, this](const Result<control::Answer>& answer) {
    run_launch(job, epoch, session, talk, talk->next(answer), then);
  });
}

void Laptop::run_settle(const JobPtr& job, Session session, std::shared_ptr<control::CleanUpTalk> talk,
                        control::CleanUpTalk::Next next, job::PendingCleanup end, BootTime patience,
                        std::optional<wire::HostCheckpoint> found, Fetched then) {
  const auto go_on = [=, this](control::CleanUpTalk::Next more, std::optional<wire::HostCheckpoint> with) {
    run_settle(job, session, talk, std::move(more), end, patience, std::move(with), then);
  };
  if (const auto* failed = std::get_if<Error>(&next)) return then(*failed);
  if (std::holds_alternative<control::CleanUpTalk::CleanedUp>(next)) return then(std::move(found));
  if (std::holds_alternative<control::CleanUpTalk::Pause>(next)) {
    if (clock() > patience) return then(late());
    return after(k_stop_look, [=] { go_on(control::CleanUpTalk::Next{talk->repeat()}, found); });
  }
  if (std::holds_alternative<control::CleanUpTalk::Fetch>(next))
    return collect(job, session.host, end.epoch, job->saved[end.epoch.value],
                   [=](Result<std::optional<wire::HostCheckpoint>> collected) {
                     if (!collected || *collected) return then(std::move(collected));
                     go_on(control::CleanUpTalk::Next{talk->fetched()}, *collected);
                   });
  ask(session, std::get<control::Request>(next),
      [=](const Result<control::Answer>& answer) { go_on(talk->next(answer), found); });
}

}  // namespace gridctl::sim
