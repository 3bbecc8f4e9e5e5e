// SPDX-License-Identifier: Apache-2.0
#include "control/copies/copier.hpp"

#include <algorithm>
#include <utility>

#include "control/copies/copy_plan.hpp"
#include "control/copies/remote_work.hpp"
#include "control/reach/report.hpp"
#include "os/log.hpp"

namespace gridctl::control {

namespace {

constexpr Duration k_look = std::chrono::seconds{1};         // at the registry
constexpr Duration k_retry_first = std::chrono::seconds{2};  // after trouble, doubled each time
constexpr Duration k_retry_max = std::chrono::seconds{60};
constexpr Duration k_busy_retry = std::chrono::seconds{2};  // another process is at the remote
constexpr Duration k_linger = std::chrono::minutes{10};     // a daemon with nothing else to do waits for a remote
constexpr Duration k_prune_every = std::chrono::hours{1};
constexpr std::size_t k_events_max = 100'000;  // of a job, that are looked through
constexpr const char* k_not_allowed = "copy_not_allowed";
constexpr unsigned k_threads = 4;  // remotes served at once: a stuck one holds up no other

struct Due {
  registry::Remote remote;
  std::vector<registry::CopyWanted> copies;
  std::vector<RefusedJob> refused;  // that must not be there
  bool has_obsolete = false;
  [[nodiscard]] bool any() const { return !copies.empty() || has_obsolete; }
};
Result<Due> look(registry::AllRecords& registry, const std::string& name, const RemoteMemory& memory) {
  Due due;
  TRY_ASSIGN(due.remote, registry.remote(name));
  TRY_ASSIGN(const auto offers, remote_offers(registry));
  TRY_ASSIGN(const auto copyable, registry.copyable());
  TRY_ASSIGN(const auto copies, registry.copies());
  TRY_ASSIGN(const auto kept, registry.kept_checkpoints());
  due.copies = due_at(name, offers, copyable, copies);
  std::erase_if(due.copies, [&](const registry::CopyWanted& one) {
    return memory.hopeless.contains({one.checkpoint.job, one.checkpoint.seq});
  });
  for (const RemoteOffer& offer : offers)
    if (offer.name == name) due.refused = refused_at(offer, copyable);
  due.has_obsolete = !obsolete_at(name, kept, copies).empty();
  return due;
}

// Reports trouble with this remote once to each waiting job, and again when the reason changes.
void tell_trouble(registry::AllRecords& registry, const Due& due, const Error& error, WallTime now, RemoteMemory& memory) {
  const Result<bool> is_news = registry.note_trouble(due.remote.name, now, error);
  if (!is_news) report(is_news.error(), "while recording the problem with remote " + due.remote.name);
  else if (*is_news) report(error, "remote " + due.remote.name);
  for (const registry::CopyWanted& wanted : due.copies) {
    const JobId& job = wanted.checkpoint.job;
    if (!memory.told.insert(job.value + " " + std::string(code_name(error.code))).second) continue;
    const std::string text = due.remote.name + " accepts no copies: " + error.one_line() + "; retrying";
    report(registry.note(job, now, {"copy_waits", text, {}, {}}), "while recording that a copy waits");
  }
}

// Reports each refusal once in a job's life for each remote and reason, even across daemon restarts.
Result<void> tell_refusals(registry::JobRecords& registry, const Due& due, WallTime now, RemoteMemory& memory) {
  for (const RefusedJob& refused : due.refused) {
    const std::string text = "copies of its checkpoints are not sent to " + due.remote.name + ": " + refused.why;
    if (!memory.refused.insert(refused.job.value + " " + refused.why).second) continue;
    TRY_ASSIGN(const auto events, registry.events(refused.job, 0, k_events_max));
    const bool told = std::any_of(events.begin(), events.end(), [&](const registry::EventRecord& event) {
      return event.kind == k_not_allowed && event.text == text;
    });
    if (!told) TRY(registry.note(refused.job, now, {k_not_allowed, text, {}, {}}));
  }
  return {};
}

void tell_damage(registry::JobRecords& registry, const registry::CopyWanted& wanted, const Error& error, WallTime now,
                 RemoteMemory& memory) {
  const registry::Checkpoint& checkpoint = wanted.checkpoint;
  memory.hopeless.insert({checkpoint.job, checkpoint.seq});
  const std::string text = "checkpoint " + std::to_string(checkpoint.seq.value) + " is not copied: " + error.one_line();
  report(registry.note(checkpoint.job, now, {"copy_refused", text, checkpoint.epoch, {}}),
         "while recording that a checkpoint is not copied");
}

// Copies one checkpoint, then chooses again: a newer one may have arrived.
Result<bool> copy_one(registry::AllRecords& registry, RemoteWork& work, const Due& due, WallTime now,
                      RemoteMemory& memory) {
  const registry::CopyWanted& wanted = due.copies.front();
  const Result<store::CopyStats> copied = work.copy(wanted);
  if (copied) return true;
  if (copied.error().code != Code::checkpoint_damaged) return copied.error();
  // The checkpoint may have been removed here while it was read; then it is no longer due, and not damaged.
  TRY_ASSIGN(const auto kept, registry.kept_checkpoints());
  const registry::CheckpointRef ref{wanted.checkpoint.job, wanted.checkpoint.seq};
  if (std::find(kept.begin(), kept.end(), ref) != kept.end())
    tell_damage(registry, wanted, copied.error(), now, memory);
  return false;
}

Result<void> tidy(RemoteWork& work, os::Clock& clock, RemoteMemory& memory) {
  TRY_ASSIGN(const std::uint64_t forgotten, work.forget_obsolete());
  if (forgotten == 0 || clock.boot() < memory.next_prune) return {};
  memory.next_prune = clock.boot() + k_prune_every;
  TRY(work.prune());
  return {};
}

Result<std::uint64_t> serve_remote(const Paths& paths, AgentNetwork& net, registry::AllRecords& registry, Due& due,
                                  os::Clock& clock, RemoteMemory& memory) {
  TRY_ASSIGN(RemoteWork work,
             RemoteWork::open(paths, net, registry, due.remote, clock, false, memory.uploads, memory.open));
  std::uint64_t copied = 0;
  while (!due.copies.empty()) {
    TRY_ASSIGN(const bool done, copy_one(registry, work, due, clock.wall(), memory));
    if (done) ++copied;
    TRY_ASSIGN(due, look(registry, due.remote.name, memory));
  }
  if (due.has_obsolete) TRY(tidy(work, clock, memory));
  memory.told.clear();
  return copied;
}

}  // namespace

CopyRound copy_what_is_due(const Paths& paths, AgentNetwork& net, const std::string& remote, os::Clock& clock,
                           RemoteMemory& memory) {
  CopyRound round;
  const auto run = [&]() -> Result<void> {
    TRY_ASSIGN(registry::Registry registry, registry::Registry::open(paths.root));
    TRY_ASSIGN(Due due, look(registry, remote, memory));
    TRY(tell_refusals(registry, due, clock.wall(), memory));
    if (!due.any()) return {};
    const Result<std::uint64_t> served = serve_remote(paths, net, registry, due, clock, memory);
    if (served) {
      round.copied = *served;
      return registry.note_answer(remote, clock.wall());
    }
    round.is_due = true;
    round.busy = served.error().code == Code::busy;
    if (round.busy) return {};
    round.trouble = served.error();
    tell_trouble(registry, due, served.error(), clock.wall(), memory);
    return {};
  };
  if (const Result<void> ran = run(); !ran && ran.error().code != Code::not_found) {  // else it was removed just now
    report(ran.error(), "while maintaining remote " + remote);
    round.is_due = true;
    round.trouble = ran.error();
  }
  return round;
}

struct Copier::AtRemote {
  RemoteMemory memory;
  bool under_way = false, wanted = true, is_due = true;
  BootTime next_try{};
  std::optional<BootTime> trouble_since;
  Duration pause = k_retry_first;
};

Copier::Copier(os::Loop& loop, os::Clock& clock, Paths paths, AgentNetwork& net)
    : loop_(loop), clock_(clock), paths_(std::move(paths)), net_(net), pool_(std::make_unique<os::Pool>(k_threads)) {
  timer_ = loop_.every(k_look, [this] { tick(); });
}

Copier::~Copier() = default;

bool Copier::is_idle() const {
  const BootTime now = clock_.boot();
  return std::all_of(remotes_.begin(), remotes_.end(), [now](const auto& entry) {
    const AtRemote& at = *entry.second;
    const bool given_up = at.trouble_since && now - *at.trouble_since > k_linger;
    return !at.under_way && (given_up || (!at.is_due && !at.wanted));
  });
}

void Copier::tick() {
  if (!registry_) {
    Result<registry::Registry> opened = registry::Registry::open(paths_.root);
    if (!opened) return report(opened.error(), "while looking for checkpoints to copy");
    registry_ = std::make_unique<registry::Registry>(*std::move(opened));
  }
  const Result<std::int64_t> version = registry_->data_version();
  if (!version) return report(version.error(), "while looking for checkpoints to copy");
  if (*version != seen_version_) {
    const Result<std::vector<registry::Remote>> remotes = registry_->remotes();
    if (!remotes) return report(remotes.error(), "while listing remotes");
    seen_version_ = *version;
    std::map<std::string, std::shared_ptr<AtRemote>> present;
    for (const registry::Remote& remote : *remotes) {
      std::shared_ptr<AtRemote>& at = present[remote.name];
      at = remotes_.contains(remote.name) ? remotes_[remote.name] : std::make_shared<AtRemote>();
      at->wanted = true;
    }
    remotes_ = std::move(present);
  }
  const BootTime now = clock_.boot();
  for (const auto& [name, at] : remotes_)
    if (!at->under_way && (at->wanted || at->is_due) && now >= at->next_try) serve(name, *at);
}

void Copier::serve(const std::string& name, AtRemote& at) {
  at.under_way = true;
  at.wanted = false;
  pool_->submit([this, name, mine = remotes_[name]] {
    const CopyRound round = copy_what_is_due(paths_, net_, name, clock_, mine->memory);
    loop_.post([this, name, mine, round] {
      mine->under_way = false;
      done(name, round);
    });
  });
}

void Copier::done(const std::string& name, const CopyRound& round) {
  const auto found = remotes_.find(name);
  if (found == remotes_.end()) return;
  AtRemote& at = *found->second;
  at.is_due = round.is_due;
  if (round.busy) {
    at.next_try = clock_.boot() + k_busy_retry;
  } else if (round.trouble) {
    at.next_try = clock_.boot() + at.pause;
    at.pause = std::min(2 * at.pause, k_retry_max);
    if (!at.trouble_since) at.trouble_since = clock_.boot();
  } else {
    at.pause = k_retry_first;
    at.trouble_since.reset();
  }
}

}  // namespace gridctl::control
