// SPDX-License-Identifier: Apache-2.0
#include "job/state.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "base/names.hpp"
#include "job/state_step.hpp"

namespace gridctl::job {

namespace {
constexpr Names<JobState, JobState::cancelled> k_state_names{"PENDING",   "STARTING", "RUNNING",  "RECOVERING",
                                                             "SUCCEEDED", "FAILED",   "CANCELLED"};
}  // namespace

std::string_view state_name(JobState state) { return k_state_names(state); }

Result<JobState> parse_state_name(std::string_view name) { return k_state_names.parse(name, "a job state"); }

bool is_final(JobState state) { return state >= JobState::succeeded; }

std::string_view end_kind_name(EndKind kind) {
  static constexpr Names<EndKind, EndKind::not_started> k_names{
      "exited",        "signalled", "oom",          "stopped",   "lease_expired",
      "host_rebooted", "vanished",  "start_failed", "disk_full", "image_failed",
      "absent",        "host_lost", "limit",        "hung",      "not_started"};
  return k_names(kind);
}

std::string_view part_name(Part part) {
  static constexpr Names<Part, Part::collected> k_names{"placed",  "prepared", "promised",
                                                        "running", "ended",    "collected"};
  return k_names(part);
}

bool Attempt::all(Part part) const {
  return std::ranges::all_of(members, [&](const Member& member) { return member.part >= part; });
}

const Member* Attempt::member(int rank) const {
  const auto found = std::ranges::find(members, rank, &Member::rank);
  return found == members.end() ? nullptr : &*found;
}

Member* Attempt::member(int rank) { return const_cast<Member*>(std::as_const(*this).member(rank)); }

const Member* Attempt::on(const HostName& host) const {
  const auto found = std::ranges::find(members, host, &Member::host);
  return found == members.end() ? nullptr : &*found;
}

std::string Attempt::where() const {
  constexpr std::size_t k_named_max = 3;
  std::string text = lead().host.value;
  const std::size_t named = members.size() <= k_named_max ? members.size() : k_named_max - 1;
  for (std::size_t i = 1; i < named; ++i) text += (i + 1 == members.size() ? " and " : ", ") + members[i].host.value;
  if (named < members.size()) text += " and " + std::to_string(members.size() - named) + " more hosts";
  return text;
}

double State::price_per_hour() const {
  double price = 0;
  if (const Attempt* current = attempt())
    for (const Member& member : current->members) price += member.price_per_hour;
  return price;
}

JobState State::visible() const {
  return std::visit(
      Overloaded{[&](const Waiting&) { return recovering ? JobState::recovering : JobState::pending; },
                 [&](const Launching&) { return recovering ? JobState::recovering : JobState::starting; },
                 [](const Done& done) { return done.state; }, [](const auto&) { return JobState::running; }},
      phase);
}

const Attempt* State::attempt() const {
  return std::visit(
      Overloaded{[](const Launching& p) { return &p.attempt; }, [](const Running& p) { return &p.attempt; },
                 [](const Stopping& p) { return &p.attempt; }, [](const Collecting& p) { return &p.attempt; },
                 [](const auto&) -> const Attempt* { return nullptr; }},
      phase);
}

bool State::is_suspect(CheckpointSeq seq) const { return std::ranges::find(suspects, seq) != suspects.end(); }

std::string_view State::moving() const {
  return std::visit(Overloaded{[](const Stopping& p) -> std::string_view { return p.moving; },
                               [](const Collecting& p) -> std::string_view { return p.moving; },
                               [](const auto&) -> std::string_view { return {}; }},
                    phase);
}

std::string doing_in_words(std::string_view doing) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 6> k_words{
      {{"send", "sending its files"},
       {"workdir", "filling the working directory"},
       {"restore", "restoring the checkpoint"},
       {"image", "preparing the image"},
       {"setup", "running setup"},
       {"start", "starting the program"}}};
  for (const auto& [word, text] : k_words)
    if (word == doing) return std::string(text);
  return std::string(doing);
}

std::string effect_name(const Effect& effect) {
  const auto of = [](const char* what, Epoch epoch, int rank) {
    return std::string(what) + "/" + std::to_string(epoch.value) + "/" + std::to_string(rank);
  };
  return std::visit(Overloaded{[](const Place&) { return std::string("place"); },
                               [&](const Launch& e) { return of(e.start ? "launch" : "prepare", e.epoch, e.rank); },
                               [](const Connect& e) { return "connect/" + std::to_string(e.epoch.value); },
                               [&](const Stop& e) { return of("stop", e.epoch, e.rank); },
                               [&](const Collect& e) { return of("collect", e.epoch, e.rank); },
                               [](const CleanUp& e) {
                                 return "settle/" + std::to_string(e.end.epoch.value) + "/" + e.end.host.value;
                               }},
                    effect);
}

namespace {

// All or none: nothing starts before every member is ready and they reach each other.
void pending_launch(const Launching& phase, std::vector<Effect>& effects) {
  const Attempt& attempt = phase.attempt;
  const bool ready = !attempt.is_gang() || attempt.all(Part::prepared);
  if (ready && attempt.is_gang() && !phase.connected) return effects.push_back(Connect{attempt.epoch});
  for (const Member& member : attempt.members)
    if (member.part < (ready ? Part::promised : Part::prepared))
      effects.push_back(Launch{attempt.epoch, member.rank, member.host, attempt.resumed_from, ready});
}

}  // namespace

std::vector<Effect> pending(const State& state) {
  std::vector<Effect> effects;
  std::visit(Overloaded{[&](const Waiting& p) { effects.push_back(Place{p.backoff}); },
                        [&](const Launching& p) { pending_launch(p, effects); },
                        [&](const Stopping& p) {
                          for (const Member& member : p.attempt.members)
                            if (member.part < Part::ended)
                              effects.push_back(Stop{member.host, p.attempt.epoch, p.grace, member.rank});
                        },
                        [&](const Collecting& p) {
                          for (const Member& member : p.attempt.members)
                            if (member.part < Part::collected)
                              effects.push_back(Collect{member.host, p.attempt.epoch, p.attempt.number, member.rank});
                        },
                        [](const auto&) {}},
             state.phase);
  // A host cleans up after an epoch and all older ones, so the oldest is cleaned first: otherwise, its saved data would
  // be removed unread.
  for (const PendingCleanup& end : state.pending_cleanups)
    if (std::ranges::none_of(state.pending_cleanups, [&](const PendingCleanup& other) {
          return other.host == end.host && other.epoch < end.epoch;
        }))
      effects.push_back(CleanUp{end});
  return effects;
}

Step submitted(JobId id, const Spec& spec, WallTime at) {
  State state;
  state.id = std::move(id);
  state.policy = spec.recovery;
  state.phase = Waiting{Duration::zero(), "submitted", ""};
  state.reason = "submitted";
  state.reason_text = "waiting for a host";
  Stepper stepper(state, at);
  stepper.record("submitted", "submitted as " + spec.name);
  Step out = std::move(stepper).take();
  out.effects = pending(out.state);
  return out;
}

Step step(const State& state, const TimedEvent& event) {
  Stepper stepper(state, event.at);
  std::visit(stepper, event.what);
  Step out = std::move(stepper).take();
  const std::vector<Effect> before = pending(state);
  // A new question to the scheduler is due whenever Waiting was entered again, even with the same backoff.
  const bool asked_again =
      std::holds_alternative<NotPlaced>(event.what) && std::holds_alternative<Waiting>(out.state.phase);
  for (Effect& effect : pending(out.state)) {
    const bool is_new = std::ranges::find(before, effect) == before.end();
    if (is_new || (asked_again && std::holds_alternative<Place>(effect))) out.effects.push_back(std::move(effect));
  }
  return out;
}

}  // namespace gridctl::job
