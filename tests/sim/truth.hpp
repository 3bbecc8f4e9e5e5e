// SPDX-License-Identifier: Apache-2.0
// What really happens, as nobody in the world can see it, and the rules it is held to (S1-S8, L1-L5). Every call
// checks; a breach throws Violation.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "job/state.hpp"
#include "registry/records.hpp"
#include "wire/messages.hpp"
#include "world.hpp"

namespace gridctl::control {
struct TrackedJob;
}

namespace gridctl::sim {

// What a checkpoint holds. `whole`: no byte is missing or changed.
struct Content {
  int job = 0;
  Nanos step = 0;  // work done
  Epoch epoch;
  int host = 0;
  Nanos made_at = 0;
  int parts = 1;  // members of a gang that it has the parts of
  bool is_output = false, final = false;  // of a working directory; of a program that has ended
  bool as_left = false, torn = false;     // as its host tells it
};

enum class Why : std::uint8_t { finished, failed, ordered, lease_passed, killed, power };

struct Payload {  // the job's own program on a host
  int job = 0, laptop = 0, host = 0;
  Epoch epoch;
  std::vector<std::string> gpus;
  int members = 1;  // of its gang
  bool alive = true;
  Why why = Why::finished;
  Nanos began_at = 0, ended_at = 0;
  Nanos ready_at = 0;  // of a server
  Nanos alone = 0, alone_since = -1;  // without a supervisor, which was killed: only its lease ends it then

  Nanos stands_since = -1, stood = 0, longest_stand = 0;  // it computes nothing and says nothing; all earlier times
  std::pair<Nanos, Nanos> last_stand{-k_min, -k_min};
  std::vector<Nanos> signs;  // lines and saves, where programs chat
  std::int64_t steps = 0;    // as its ranks report them

  void loses_supervisor(Nanos now) { if (alone_since < 0) alone_since = now; }
  void has_supervisor(Nanos now) { if (alone_since >= 0) alone += now - std::exchange(alone_since, -1); }
};

class Truth {
 public:
  explicit Truth(World& world) : world_(world) {}

  // Checkpoints.
  [[nodiscard]] Digest make_content(const Content& content);
  [[nodiscard]] const Content* content(const Digest& root) const;

  // On hosts.
  Payload* payload_starts(int host, int laptop, const wire::AttemptSpec& spec);
  void payload_ends(Payload& payload, Why why);
  [[nodiscard]] bool serves(int host, const JobId& job, Epoch epoch);  // a replica of a service answers there
  [[nodiscard]] bool was_ready(const JobId& job, Epoch epoch) const;   // it answered there at some time
  [[nodiscard]] const job::State* newest(const JobId& job) const;      // that was acknowledged; nullptr: nobody knows it
  [[nodiscard]] bool has_peers(const Payload& payload) const;  // all members of its gang have begun
  [[nodiscard]] bool has_lost_peer(const Payload& payload) const;
  void accepts(int host, int laptop, const wire::StartRequest& request);
  void promised_never(int host, int laptop, const JobId& job, Epoch epoch, const char* by);
  void recorded_never(int host, int laptop, const JobId& job, Epoch epoch);  // as certain, on whatever ground
  void lease_extends(const Payload* payload, BootTime until);                // by a renewal that was answered
  void lease_ends(const Payload& payload, BootTime now, BootTime deadline);
  void runs(const Payload& payload, Duration grace);  // its supervisor, which lives, sees it
  void outlives(const Payload& payload, BootTime now, BootTime deadline, Duration grace);

  // On laptops.
  void submitted(int job);
  void cancelled(int job);
  void may_resume(int job);  // by its user, after its end
  void resumed(int job, const job::State& state);
  void heard(int laptop, int host);  // an answer to a heartbeat
  void stepped(int laptop, const job::State& before, const job::Event& what, const job::State& after);
  void committed(int laptop, const registry::Checkpoint& checkpoint, const job::State& before, bool became_head);
  void stored(int laptop, const Digest& root);                // every byte is here, checked and durable
  void listed(const std::vector<registry::Checkpoint>& all);  // of a job
  void head_is(int laptop, const job::State& state, const Result<registry::Checkpoint>& row);
  void dropped(int laptop, const JobId& job, CheckpointSeq seq);
  void starts_from(const JobId& job, CheckpointSeq seq, const Result<registry::Checkpoint>& row);
  void looked(int laptop, const job::State& state);  // read back from the registry, whenever that happens
  void lost_job(int laptop, const JobId& job, const std::string& why);

  // What users want of their jobs and hosts; truth_wishes.cpp.
  void wants_empty(int laptop, int host, bool drained);
  void audit(Laptop& laptop);  // now and then
  void start_sent(Laptop& laptop, const JobId& job, Epoch epoch);

  // What users rely on; truth_kept.cpp.
  [[nodiscard]] static std::string signature(const JobId& job, AttemptNumber attempt, int rank);  // of each line
  void said(const wire::AttemptSpec& spec, const std::string& log);
  void logged(const JobId& job, AttemptNumber attempt, int rank, std::uint64_t offset, std::string_view bytes);
  void told(int laptop, const JobId& job, const job::Record& record);
  void results_are(int laptop, const registry::Results& results);
  void removes(int host, int laptop, const JobId& job, Epoch epoch);  // the folder of an attempt
  void limit_ends(const Payload& payload, const std::string& limit);  // on its host
  void may_go(const JobId& job, CheckpointSeq seq);                   // its removal is asked for
  [[nodiscard]] std::string secret_of(int job) const;

  // What is told and what is, at every look; truth_told.cpp.
  void check_row(const registry::Checkpoint& row) const;
  void check_told(Laptop& laptop, const control::TrackedJob& job);
  void check_standbys() const;

  // Who stands still; truth_hangs.cpp.
  [[nodiscard]] bool stands(const Payload& payload) const;  // or one of its gang does
  void check_hung(const JobId& job, Epoch epoch, bool is_ended);
  void check_hangs(Laptop& laptop, const control::TrackedJob& job);

  // Images by tag; truth_images.cpp.
  void image_told(int laptop, int image, const std::string& digest);  // by its registry
  void check_image(int host, int laptop, const wire::StartRequest& request);
  void check_image_waits(Laptop& laptop, const control::TrackedJob& job);

  // Gangs: all members or none; truth_gangs.cpp.
  void check_start(const JobId& job, Epoch epoch) const;
  void check_holds(Laptop& laptop);
  void check_size(const job::State& after) const;
  void check_room(Laptop& laptop);
  [[nodiscard]] static bool is_behind_a_gang(Laptop& laptop, const control::TrackedJob& job);

  // The end.
  void healed();
  [[nodiscard]] Nanos patience() const;
  [[nodiscard]] bool all_settled() const;
  void final_check();

  [[nodiscard]] int index(const JobId& job) const;
  [[nodiscard]] bool knows(const JobId& job) const;                 // it was acknowledged
  [[nodiscard]] bool is_over(const JobId& job) const;               // or it is being ended
  [[nodiscard]] int family(int job) const;                          // the leader of a twin; else the job itself
  [[nodiscard]] int host_of(int job) const;                         // as the laptop last recorded; -1: on none
  [[nodiscard]] Nanos finished_at() const { return finished_at_; }  // the newest end of a job
  [[nodiscard]] bool is_liar(const HostName& host) const;
  std::uint64_t restarts = 0, finished = 0;
  int late_hangs = 0;  // of programs that began in the healed world
  bool has_monthly_budgets = false;  // the user has set one at any time
  std::map<std::string_view, std::uint64_t> rules_met;  // how often each rule was held against what is
  // From a host's power loss until the job's program runs again; from a snapshot until it is the head.
  struct Mean {
    double sum = 0;
    int count = 0;
    void add(Nanos time) { sum += static_cast<double>(time) / k_s, ++count; }
    [[nodiscard]] double value() const { return count == 0 ? 0 : sum / count; }
  };
  Mean outage, upload;

 private:
  struct Shadow {  // of a job: what was acknowledged
    bool submitted = false, cancelled = false, done = false;
    job::State newest;
    std::map<std::uint64_t, std::uint64_t> attempts;  // epoch, number
    std::vector<CheckpointSeq> kept, left;            // no strays; as listed at
    Nanos kept_at = -1;
    Nanos resumed_at = -k_min;
    Nanos done_at = -1;
  };
  [[nodiscard]] bool clock_is_set() const;  // by somebody, at some time
  [[nodiscard]] Nanos gang_began(const Payload& payload) const;  // its last member, or it alone
  void check_needless(int laptop, const job::State& before, const job::Event& what);
  void check_end(const job::State& before, const job::AttemptEnded& ended);
  void check_final(const job::State& before, const job::State& after);
  void check_overtaken(const job::State& after);
  void check_collected(int laptop, const job::State& before, const job::Collected& collected);
  void check_reason(const job::State& before, const job::LimitReached& limit);
  void check_never(int laptop, const job::State& before, const job::LaunchFailed& failed);
  // truth_kept.cpp
  void keep(int laptop, const registry::Checkpoint& checkpoint);
  void check_kept(Laptop& laptop, const JobId& job);
  void check_spec(int host, int laptop, const wire::StartRequest& request);
  void check_last(int laptop, const job::State& before, const job::State& after);
  void check_words(int laptop, const job::State& before, const job::Collected& collected);
  void check_last_line(const job::State& before, const job::State& after, const job::Collected& collected);
  void check_left();
  void check_money();
  [[nodiscard]] bool is_kept(int laptop, const JobId& job, Epoch epoch, const std::function<bool(const Content&)>& fits) const;
  [[nodiscard]] bool is_lost_told(const JobId& job, Epoch epoch) const;
  [[nodiscard]] bool is_recorded(const JobId& job, Epoch epoch, bool (*tells)(std::string_view kind)) const;
  // truth_told.cpp
  void check_believed(Laptop& laptop, const control::TrackedJob& job);
  void check_fresh(Laptop& laptop, const control::TrackedJob& job);
  void check_renewed(Laptop& laptop, const control::TrackedJob& job);
  void check_idle(Laptop& laptop, const control::TrackedJob& job);
  void check_keeping(Laptop& laptop, const control::TrackedJob& job);
  void check_choice(int laptop, const job::State& before, const job::State& after);
  void check_move(int laptop, const job::State& before, const job::MoveRequested& move);
  // truth_wishes.cpp
  void check_placed(int laptop, const job::State& before, const job::State& after);
  void check_used_up(int laptop, const job::State& after);
  void check_apart(const job::State& state);
  void check_silence(Laptop& laptop, const control::TrackedJob& job);
  void note_answers(Laptop& laptop);
  [[nodiscard]] bool has_answered_for_long(Laptop& laptop, const job::State& state) const;
  void check_seen(Laptop& laptop);
  void look_at_forgotten(Laptop& laptop);
  void check_limits(Laptop& laptop, const control::TrackedJob& job);
  void check_emptied(Laptop& laptop, const control::TrackedJob& job);
  void check_urgent(Laptop& laptop, const control::TrackedJob& job);
  [[nodiscard]] bool could_take(Laptop& laptop, int host, const job::Spec& spec) const;
  [[nodiscard]] Payload* find(int host, int job, Epoch epoch);
  [[nodiscard]] int host_index(const HostName& host) const;
  [[nodiscard]] std::string name(const Payload& payload) const;
  [[nodiscard]] Shadow& shadow(const JobId& job) { return shadows_[index(job)]; }

  World& world_;
  Nanos finished_at_ = 0;
  std::map<int, Nanos> down_since_;  // job
  std::map<Digest, Content> contents_;
  std::uint64_t next_content_ = 1;
  std::vector<std::unique_ptr<Payload>> payloads_;
  std::map<const Payload*, Nanos> over_since_;                         // seen to run longer than it may
  std::map<const Payload*, BootTime> owed_;                            // lease until which it may run at least
  std::set<std::tuple<int, int, std::uint64_t>> promises_, accepted_;  // host, job, epoch
  std::map<int, Shadow> shadows_;
  struct Heard {
    Nanos awake = 0;  // time of the laptop
    int naps = 0;     // of the laptop, until then
  };
  std::map<std::pair<int, int>, Heard> heard_at_;  // laptop, host
  std::set<std::pair<int, Digest>> stored_;
  struct Kept {
    Digest root;
    bool is_apart = false;  // a stray, or pinned: no rule of keep is about it
  };
  std::map<int, std::map<std::uint64_t, Kept>> kept_;           // job: sequence numbers
  std::set<std::tuple<int, std::uint64_t, Digest>> committed_;  // job, epoch; ever
  std::set<std::pair<int, std::uint64_t>> lost_told_;           // job, epoch
  std::set<std::pair<int, std::uint64_t>> stray_lost_told_;     // the same, said of what a host that is back has
  std::set<std::pair<int, std::uint64_t>> fetch_failed_;        // the same, of those that may be had at another try, too
  std::map<std::pair<int, std::uint64_t>, Nanos> given_up_at_;  // job, epoch
  std::map<std::tuple<std::string, std::uint64_t, int>, std::string> words_;  // job, attempt, rank
  std::map<int, Digest> results_;                               // job
  std::map<std::string, Nanos> next_look_at_kept_;              // job
  std::map<std::pair<int, int>, Nanos> emptied_since_;                      // laptop, host
  std::map<int, Nanos> next_look_at_seen_;                                  // laptop
  std::map<std::pair<int, int>, int> answers_for_;                          // laptop, host: looks in a row
  std::map<std::pair<int, int>, Nanos> answers_since_;                      // laptop, host
  std::map<std::string, Nanos> stays_since_, crowded_since_, roomy_since_, unsure_at_, waits_since_;  // by job
  struct Stale {  // a step that a running attempt's hosts tell of, and that is not here
    Epoch epoch;
    Nanos step = 0, since = 0;
  };
  std::map<std::string, std::pair<HostName, int>> barren_on_;       // by job: its last host, and how often in a row for nothing
  std::map<std::string, Stale> stale_;                              // by job
  std::map<std::string, int> differs_, keeping_;                    // by job: looks in a row
  std::map<std::string, Nanos> next_look_at_belief_, free_since_;   // by job
  std::map<std::pair<std::string, int>, Nanos> unrenewed_since_;    // job, host
  Nanos healed_at_ = -1;
  std::set<std::pair<int, std::uint64_t>> hung_told_;  // job, epoch
  std::set<std::tuple<int, int, std::string>> images_told_;  // laptop, image, digest
  std::map<int, std::string> digests_;                       // by family: what ran on a borrowed host first
  std::map<std::string, Nanos> wants_digest_since_;          // by job
  std::map<std::tuple<int, std::string, std::uint64_t>, Nanos> held_since_, half_since_;  // host or -1, job, epoch
};

}  // namespace gridctl::sim
