// SPDX-License-Identifier: Apache-2.0
// Implements the supervisor's state machine of one job. Pure: no clock, no I/O, no randomness; time arrives in the
// event.
//
// A job's life:  Waiting -> Launching -> Running -> Collecting -> Done, or back to Waiting with a higher epoch.
// Stopping replaces Running while a cancellation or a move is carried out. Processes and files that earlier attempts
// may
// have left on hosts are kept in `loose_ends` until the host has confirmed that they are gone.
//
// A move (its host is drained, or too likely to fail for the job's deadline) begins with MoveRequested: the attempt
// runs on until a checkpoint made after it is safe, or patience ends; then MoveDue stops it, its last checkpoint is
// collected, and it waits for another host. Both need another host that can run the job; as long as there is none,
// MoveBlocked keeps it where it is. For a deadline, it moves with a checkpoint or not at all.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/ids.hpp"
#include "base/inventory.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "job/last_words.hpp"
#include "job/setback.hpp"
#include "job/spec.hpp"
#include "job/state_words.hpp"

namespace gridctl::job {

// States that users see.
enum class JobState : std::uint8_t { pending, starting, running, recovering, succeeded, failed, cancelled };
[[nodiscard]] std::string_view state_name(JobState state);  // "PENDING"
[[nodiscard]] Result<JobState> parse_state_name(std::string_view name);
[[nodiscard]] bool is_final(JobState state);

inline constexpr std::string_view k_setup_failed = "setup failed";  // a host's detail: `run` has never begun
// Describes how a member of an attempt ended, as far as known; and the attempt, by the member that was the cause.
enum class EndKind : std::uint8_t {
  exited,         // by itself, exit_code
  signalled,      // by a signal that was not ours
  oom,            // memory limit
  stopped,        // by our order
  lease_expired,  // it was not renewed
  host_rebooted,  // proof of death: other boot id
  vanished,       // its processes are gone without an exit record
  start_failed,   // the host could not start it
  disk_full,      // the host's disk
  image_failed,   // the container's image could not be pulled or loaded
  absent,         // the host promised that it is not there and never will be
  host_lost,      // silence beyond lost_after
  limit,          // its host ended it: it had used up what it was allowed; detail names the limit
  hung,           // we ended it: its members answered, and nothing got on
  not_started,    // nobody's fault: what it wanted was taken, or this machine had trouble
};
[[nodiscard]] std::string_view end_kind_name(EndKind kind);  // "host_rebooted"
struct End {
  EndKind kind = EndKind::exited;
  int exit_code = -1;
  int signal = 0;
  std::string detail;
  int rank = 0;                  // of the member that ended so
  std::string last{};            // the gist of what it said last; see gist_of
  std::optional<WallTime> at{};  // when, as far as the host told
  LastWords said{};              // what its last words mean
  bool operator==(const End&) const = default;
  [[nodiscard]] bool success() const { return kind == EndKind::exited && exit_code == 0; }
};

// Describes how far a member has come. Each part includes those before it.
enum class Part : std::uint8_t {
  placed,     // intent committed
  prepared,   // its files are there and the host would start it (only members of a gang wait for the others here)
  promised,   // the host has accepted START
  running,    // its program came up
  ended,      // the host has proven its end, or is given up
  collected,  // and nothing is left to fetch from it
};
[[nodiscard]] std::string_view part_name(Part part);  // "placed"

// Represents one host's part in an attempt. A job on one host is a gang of one.
struct Member {
  int rank = 0;
  HostName host;
  EngineKind engine = EngineKind::process;
  std::vector<std::string> gpu_uuids;
  double cpus = 0;
  std::uint64_t memory_bytes = 0;
  double price_per_hour = 0;  // USD, now
  Part part = Part::placed;
  std::optional<End> end{};  // from `ended` on
  std::string doing{};       // what of its start is under way, as in Launching
  std::string address{};     // as the other members of a gang reach it; numeric
  bool keep_work = false;    // its working directory holds what could not be fetched
  bool operator==(const Member&) const = default;
  [[nodiscard]] bool lost() const { return end && end->kind == EndKind::host_lost; }
};

struct Attempt {
  AttemptNumber number;
  Epoch epoch;
  std::vector<Member> members;            // by rank, at least one
  CheckpointSeq resumed_from;             // 0 = fresh start
  std::string placement_reason;           // why these hosts
  std::optional<WallTime> started_at;     // the payload came up, on all members
  std::optional<WallTime> last_saved_at;  // newest checkpoint committed from this attempt
  bool operator==(const Attempt&) const = default;
  [[nodiscard]] const Member& lead() const { return members.front(); }  // rank 0
  [[nodiscard]] bool is_gang() const { return members.size() > 1; }
  [[nodiscard]] bool all(Part part) const;             // have come at least so far
  [[nodiscard]] const Member* member(int rank) const;  // or nullptr
  [[nodiscard]] Member* member(int rank);
  [[nodiscard]] const Member* on(const HostName& host) const;  // its first member there, or nullptr
  [[nodiscard]] std::string where() const;                     // "ada", "ada, bob and 2 more hosts"
};

struct Waiting {       // for a host
  Duration backoff{};  // wait so long before asking the scheduler (again)
  std::string why;     // machine word: "submitted", "no_provider_fits", "host_lost", …
  std::string detail;
  bool for_room = false;            // a resource was taken a moment ago: asked again as soon as something is free
  std::optional<WallTime> until{};  // the stamp at which the backoff ends, for people
  bool operator==(const Waiting&) const = default;
};
struct Launching {  // intent committed
  Attempt attempt;
  WallTime placed_at;
  std::string doing;  // what of the start is under way: "send", then the host's words; see doing_in_words
  WallTime doing_since;
  bool connected = false;  // the members of a gang have proven that they reach each other, and:
  int port = 0;            // of their rendezvous on rank 0's host
  std::string token{};     // by which they know each other in this epoch; secret
  bool operator==(const Launching&) const = default;
};
// The job should leave its host when a checkpoint made from now on is safe.
struct Move {
  std::string why;  // machine word: "drained", "deadline", "cheaper", "preempted"
  WallTime since;
  std::uint64_t after = 0;  // the host's number of its newest checkpoint when the move was asked for
  bool saved = false;       // one with a higher number is safe
  HostName host{};          // that it leaves; empty: that of rank 0
  bool operator==(const Move&) const = default;
};
struct Running {
  Attempt attempt;
  std::optional<Move> move;
  bool operator==(const Running&) const = default;
};
struct Stopping {
  Attempt attempt;
  Duration grace{};
  std::string moving;          // why it is moved; empty: the job is cancelled, or
  std::optional<End> cause{};  // a member of the gang ended so, and the others cannot go on without it
  bool operator==(const Stopping&) const = default;
};
struct Collecting {  // ended; its last checkpoint and output are being fetched
  Attempt attempt;
  End end;
  std::string moving;  // as in Stopping
  bool operator==(const Collecting&) const = default;
};
struct Done {
  JobState state = JobState::succeeded;  // succeeded, failed or cancelled
  std::optional<int> exit_code;
  WallTime at;
  bool operator==(const Done&) const = default;
};
using Phase = std::variant<Waiting, Launching, Running, Stopping, Collecting, Done>;

struct PendingCleanup {  // (host, epoch) that may hold processes, files or checkpoints of this job
  HostName host;
  Epoch epoch;
  AttemptNumber attempt;
  bool stale = false;  // it was given up while possibly alive: what it saved later is a stray
  int rank = 0;
  bool keep_work = false;  // its working directory stays there for a while
  bool operator==(const PendingCleanup&) const = default;
};
struct Avoided {
  HostName host;
  std::string reason;
  bool operator==(const Avoided&) const = default;
};
struct Failure {
  HostName host;
  int exit_code = -1;
  int signal = 0;
  CheckpointSeq restored{};  // what its attempt had started from and saved nothing newer than; 0: it was none such
  std::string last{};        // the gist of what it said last
  bool operator==(const Failure&) const = default;
};
// Describes a checkpoint that is kept and intact, and not a stray.
struct Saved {
  CheckpointSeq seq;
  AttemptNumber attempt;  // that made it; 0: it was brought in
  HostName host;          // that made it; empty: it was brought in
  bool provisional = false;
  bool as_left = false;  // what lay there when its attempt ended; also provisional
  bool operator==(const Saved&) const = default;
};
// Filled in from the registry by the caller that loads a state. It is not stored with the state, and no part of its
// value.
struct SavedList {
  std::vector<Saved> list{};  // oldest first
  bool operator==(const SavedList&) const { return true; }
};

// Holds the expected time and cost of the complete job, as the scheduler saw it.
struct Expected {
  double seconds = 0;
  double usd = 0;
  bool operator==(const Expected&) const = default;
};

struct State {
  JobId id;
  RecoveryPolicy policy;
  Phase phase = Waiting{};
  std::string reason;                    // machine word, as in `job show`
  std::string reason_text;               // for people
  Epoch epoch;                           // highest ever used
  AttemptNumber attempts;                // how many were launched
  CheckpointSeq head;                    // newest committed checkpoint
  std::optional<CheckpointSeq> restore;  // the next attempt starts from this instead of the head
  std::vector<Failure> failures;         // of the job's own code, since submit or resume
  int restarts_in_row = 0;               // attempts that ended without a new checkpoint: drives the backoff
  std::vector<Avoided> avoided;          // in the order of their last failure
  std::vector<PendingCleanup> pending_cleanups;
  int recoveries = 0;
  Duration lost{};                   // work thrown away so far
  int start_failures_in_row = 0;     // hosts that could not even start it, without a start between
  bool recovering = false;           // an attempt was lost and its successor does not run yet
  std::optional<Duration> cancel;    // requested, with this grace
  std::string limit, limit_text;     // the limit that asked for it, a machine word: "budget"; empty: the user
  double failures_max = 0;           // per hour: hosts that fail more often are too risky for its deadline; 0 = none
  bool late = false;                 // its deadline has passed, and that was told
  std::string overtaken{};           // it has a result without its own attempt, for people; empty: it has not
  Overtaken overtaken_by{};
  std::optional<Expected> expected;  // when it was placed first, if its work was known then
  std::vector<CheckpointSeq> suspects{};  // its program failed from them, again and again; never restored by themselves
  CheckpointSeq proven{};                 // the newest that it was restored from and saved something newer
  std::vector<Setback> setbacks{};        // what failed again and again, and how long its hosts are left alone
  int gone_back = 0;                      // how often to an earlier checkpoint, since one was saved: the last suspects
  bool late_directory = false;            // the program makes its checkpoint directory itself
  Readiness ready{};                      // of a service's replica
  SavedList saved{};
  bool operator==(const State&) const = default;

  [[nodiscard]] JobState visible() const;
  [[nodiscard]] const Attempt* attempt() const;                                 // the current one, or nullptr
  [[nodiscard]] CheckpointSeq start() const { return restore.value_or(head); }  // of the next attempt
  [[nodiscard]] bool is_suspect(CheckpointSeq seq) const;
  [[nodiscard]] double price_per_hour() const;  // USD, of the current attempt; 0 without one
  // Returns why the job is being moved, from the stop until its end is collected; otherwise empty.
  [[nodiscard]] std::string_view moving() const;
  [[nodiscard]] bool needs_controller() const {
    return !std::holds_alternative<Done>(phase) || !pending_cleanups.empty();
  }
};

// --- Events ------------------------------------------------------------------------------------------------------
struct Placed {
  std::vector<Member> members;
  std::string reason;
  std::optional<Expected> expected{};  // of what is left of it; nullopt: its work is not known
};
struct NotPlaced {
  bool could_ever_fit = true;
  std::string summary;
  bool held = false;  // it must not start now, wherever it fits
};
// States why a launch failed. `host_max_epoch` is set if the host knows a higher epoch than ours.
struct LaunchFailed {
  Epoch epoch;
  std::string detail;
  bool host_fault = true;
  Epoch host_max_epoch{};
  EndKind kind = EndKind::start_failed;  // disk_full; or absent: what the host said could not be understood
  bool refused = false;                  // by the host, for a reason that may pass
  int rank = 0;
  bool damaged = false;  // the checkpoint that it begins from is damaged here, and no copy replaces it
  bool busy = false;     // by the host: a resource was taken a moment ago
  bool hopeless = false;  // no host can cure it: what the job needs from this machine is missing or damaged
};
// A member of a gang is ready: its files are there, and its host would start it.
struct MemberPrepared { Epoch epoch; int rank = 0; };
// All members of a gang were asked whether they reach each other on the ports of this epoch.
struct MembersConnected {
  Epoch epoch;
  std::string text;                    // how fast, for people
  std::vector<std::string> addresses;  // of the members by rank, as the others reach them
  int port = 0;                        // of the rendezvous
  std::string token;                   // drawn for this epoch
};
struct LaunchAccepted { Epoch epoch; int rank = 0; };
// Names the present step of the host's preparations: "image", "workdir", "restore", "setup".
struct Preparing {
  Epoch epoch;
  std::string doing;  // foreign
  int rank = 0;
};
struct PayloadStarted {
  Epoch epoch;
  int rank = 0;
  Duration ago{};  // as the host tells
};
struct AttemptEnded {
  Epoch epoch;
  End end;         // with the member's rank
  Duration ago{};  // as the host tells
};                 // proof, from the host
struct HostLost {
  Epoch epoch;
  Duration silent_for{};
  int rank = 0;
};
// A drill treats the host, which is alive and well, as lost.
struct Drilled { Epoch epoch; };
struct Collected {
  Epoch epoch;
  std::string problem;
  int rank = 0;
  std::string last{};  // the gist of its last lines, when it failed
  LastWords said{};    // what they mean
  bool makes_directory = false;  // it failed because its checkpoint directory was there already
  bool keep_work = false;  // its working directory holds what could not be fetched
};                     // problem: empty when everything was fetched
struct CheckpointCommitted {
  Epoch epoch;
  CheckpointSeq seq;
  std::string detail;             // size, how whole
  std::uint64_t host_number = 0;  // the host's count within the attempt
  bool as_left = false;           // the attempt has left it, and may have got nowhere
};
struct CancelRequested {
  Duration grace{};
};
inline constexpr Duration k_limit_grace = std::chrono::seconds{30};
// All members of a gang answer, but make no progress: they are stopped, and the gang restarts.
struct Hung {
  Epoch epoch;
  std::string text;  // for people
};
// The job has reached a limit of its own file: it is stopped like a cancelled job, so that it saves first.
struct LimitReached {
  std::string limit;  // machine word: "budget", "max_duration", "deadline"
  std::string text;   // for people
  Duration grace = k_limit_grace;
};
// A twin finished first, or all tasks of the bag are done: what still runs is killed, and what that saves is a stray.
struct TwinSucceeded {
  std::string text;  // for people
  Overtaken by = Overtaken::twin;
};
// The host's price changes from now on.
struct PriceChanged {
  Epoch epoch;
  double usd_per_hour = 0;
  int rank = 0;
};
// The deadline has passed, and the job continues.
struct DeadlinePassed {
  std::string text;  // for people
};
// The host is being emptied, or is too risky for the deadline, and another can run the job now.
struct MoveRequested {
  Epoch epoch;
  std::string why;          // machine word: "drained", "deadline", "cheaper", "preempted", "grown"
  std::uint64_t after = 0;  // see Move
  Duration patience{};      // how long the next checkpoint is waited for; told to people, kept by the shell
  std::string text{};       // why, for people, when the word says too little
  double failures_max = 0;  // of where it goes from now on, per hour; 0 = any
  HostName host{};          // that it leaves; empty: that of rank 0
  bool by_tasks = false;    // a worker of a bag: it leaves when the tasks that it runs have ended, and saves nothing
};
// Another host can run the job now, and a checkpoint is safe or patience has ended.
struct MoveDue {
  Epoch epoch;
  std::string because{};  // why now, for people, where no checkpoint was waited for
};
// The host is being emptied, but no other can run the job now: it stays.
struct MoveBlocked {
  Epoch epoch;
  std::string summary;  // of the scheduler
};
// The reason to move no longer exists.
struct MoveWithdrawn {
  Epoch epoch;
};
struct ResumeRequested {
  std::optional<CheckpointSeq> from;
};
struct CleanedUp {
  HostName host;
  Epoch epoch;
};  // nothing of it is left on the host
struct HostForgotten {
  HostName host;
};  // removed from the registry by force
using Event =
    std::variant<Placed, NotPlaced, LaunchFailed, MemberPrepared, MembersConnected, LaunchAccepted, Preparing,
                 PayloadStarted, AttemptEnded, HostLost, Drilled, Collected, CheckpointCommitted, CancelRequested, Hung,
                 LimitReached, TwinSucceeded, PriceChanged, DeadlinePassed, MoveRequested, MoveDue, MoveBlocked,
                 MoveWithdrawn, ResumeRequested, CleanedUp, HostForgotten, ServerReady,
                 ServerReplaced>;
struct TimedEvent {
  WallTime at;  // for stamps only
  Event what;
};

// An elastic gang that grows after running this long tries again the hosts that it avoided. It does not do so sooner,
// because a host that still fails costs two restarts.
inline constexpr Duration k_forgiven_after = std::chrono::hours{1};
[[nodiscard]] bool forgives(const Attempt& attempt, WallTime now);
// "ada is drained", "ada is too risky for the deadline"
[[nodiscard]] std::string leaving_in_words(const HostName& host, std::string_view why);
inline constexpr Duration k_gang_grace = std::chrono::seconds{2};   // for the others of a gang that has lost a member
inline constexpr Duration k_move_grace = std::chrono::seconds{30};  // to save once more, as with `job cancel`
// Returns "restoring the checkpoint" for "restore"; an unknown word is returned unchanged.
[[nodiscard]] std::string doing_in_words(std::string_view doing);

// --- Effects: what the shell shall do. Idempotent; named by job, epoch and kind. ------------------------------------
struct Place {
  Duration after{};
  bool operator==(const Place&) const = default;
};
struct Launch {  // one member
  Epoch epoch;
  int rank = 0;
  HostName host;
  CheckpointSeq restore;  // 0: nothing
  bool start = true;      // all others are ready; false: only make it ready
  bool operator==(const Launch&) const = default;
};
// Makes the members of a gang prove that they reach each other.
struct Connect {
  Epoch epoch;
  bool operator==(const Connect&) const = default;
};
struct Stop {
  HostName host;
  Epoch epoch;
  Duration grace{};
  int rank = 0;
  bool operator==(const Stop&) const = default;
};
struct Collect {
  HostName host;
  Epoch epoch;
  AttemptNumber attempt;
  int rank = 0;
  bool operator==(const Collect&) const = default;
};
struct CleanUp {
  PendingCleanup end;
  bool operator==(const CleanUp&) const = default;
};
using Effect = std::variant<Place, Launch, Connect, Stop, Collect, CleanUp>;
// Returns a name that is stable within a job: "launch/7/0". Two effects with one name are the same work.
[[nodiscard]] std::string effect_name(const Effect& effect);

struct Record {  // a line of the job's history
  std::string kind;  // "placed", "attempt_started", "host_lost", …
  std::string text;  // for people, with the reason
  Epoch epoch;       // 0 = none
  HostName host;     // may be empty
};
// Holds the row of `job show`'s attempts to insert or update.
struct AttemptRow {
  Attempt attempt;
  std::string state;  // "starting", "running", "succeeded", "failed", "lost", "stopped"
  std::string reason;
  std::optional<WallTime> ended_at;
  std::optional<int> exit_code;
};

struct Step {
  State state;
  std::vector<Effect> effects;  // newly due; the same as pending(state) less those pending before
  std::vector<Record> records;
  std::vector<AttemptRow> attempts;
};

// Starts the life of a job just submitted.
[[nodiscard]] Step submitted(JobId id, const Spec& spec, WallTime at);
// Applies one event. The function is total: an event that does not apply (stale epoch, already done) changes nothing
// and records nothing.
[[nodiscard]] Step step(const State& state, const TimedEvent& event);
// Returns everything unfinished: what a supervisor that just started must (re)do.
[[nodiscard]] std::vector<Effect> pending(const State& state);

[[nodiscard]] std::string to_json(const State& state);
[[nodiscard]] Result<State> parse_state(std::string_view json);

}  // namespace gridctl::job
