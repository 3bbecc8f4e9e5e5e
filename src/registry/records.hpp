// SPDX-License-Identifier: Apache-2.0
// Value types of the registry: what is known of providers, jobs, attempts, checkpoints and events.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "base/ids.hpp"
#include "base/inventory.hpp"
#include "base/shared.hpp"
#include "base/time.hpp"
#include "job/spec.hpp"
#include "job/state.hpp"

namespace gridctl::registry {

// A way to a host: by SSH, or by the relay that a lent host dials. A row of its own in the database.
struct Way {
  std::string address;  // "user@host:port" as shown to people; "lent:ID"
  std::string user, host;
  int port = 22;
  std::vector<std::string> identities;  // key files
  std::string jump;                     // -J value, or empty
  std::string alias;                    // the name given to ssh when it is one of the user's own config, or empty
  std::string transport;                // "libssh2" or "ssh": what worked at registration
  bool operator==(const Way&) const = default;
  [[nodiscard]] std::string_view kind() const { return address.starts_with("lent:") ? "relay" : "dial"; }
};

// A provider is the way that is tried first, and all else that is known of it.
struct Provider : Way {
  HostName name;
  std::vector<Way> more_ways{};  // tried in this order when the first leads to no answer
  [[nodiscard]] std::vector<Way> ways() const {
    std::vector<Way> all{*this};
    all.insert(all.end(), more_ways.begin(), more_ways.end());
    return all;
  }
  // Returns the provider as if this way were the only one.
  [[nodiscard]] Provider by(const Way& way) const {
    Provider other = *this;
    static_cast<Way&>(other) = way;
    other.more_ways.clear();
    return other;
  }
  // REQUIRES: there is one.
  void set_ways(std::vector<Way> all) {
    static_cast<Way&>(*this) = all.front();
    all.erase(all.begin());
    more_ways = std::move(all);
  }
  std::string peer_key{};  // of the host's identity, in hexadecimal, pinned when it was first met; empty: none yet
  // Statements of the user.
  std::string engine = "auto";  // auto, docker, podman, process
  double price_per_hour = 0;    // USD for the whole host
  std::string region, site;
  std::string host_class = "home";  // datacenter, cloud, market, home
  std::map<std::string, std::string> labels;
  std::string declared_gpus;                         // "RTX_4090:2", what its owner says it has; may be empty
  bool drained = false;                              // no new jobs; those there move away
  Duration drain_within = std::chrono::minutes{10};  // how long a job's next checkpoint is waited for
  std::optional<WallTime> until;                     // it ends then, and that is no failure
  // Findings of the agent.
  Shared<Inventory> inventory;
  std::map<std::string, double, std::less<>> figures;  // measured numbers, by their names in queries (gridctl-query(7))
  WallTime registered_at;
  std::optional<WallTime> last_seen_at;
  std::string liveness = "unknown";  // unknown, answering, suspect, unreachable, lost; as the controller last judged
};

struct JobRow {  // a line of `job ls`
  JobId id;
  std::string name;
  job::JobState state = job::JobState::pending;
  std::string reason;
  HostName provider;  // of the current attempt, may be empty
  std::optional<int> exit_code;
  WallTime submitted_at;
  std::optional<WallTime> ended_at;
  int recoveries = 0;
  std::string resources;  // "1x A100, 4 cpus"
};

struct Job : JobRow {
  job::Spec spec;
  job::State machine;
  double cost = 0;  // USD so far
};

inline constexpr std::string_view k_workdir_role = "workdir", k_mount_role = "mount", k_image_role = "image";
// An input of a job, stored as a tree when it was submitted, so that every attempt runs the same code.
struct Input {
  std::string role;    // k_workdir_role, k_mount_role, k_image_role, or job::k_tasks_role
  std::string target;  // of a mount
  Digest root;         // its manifest lies in the chunk store
  std::uint64_t bytes = 0;
};

// By all attempts of a job together.
struct Spent {
  double usd = 0;
  Duration ran{};
  double usd_per_hour = 0;  // now; set by who knows what runs
};

struct MemberRecord {
  int rank = 0;
  HostName provider;
  std::string state;  // "running", "exited", "host_lost": as far as it has come, or how it ended
  double price_per_hour = 0;
  std::optional<int> exit_code;
};
inline constexpr std::string_view k_paused_reason = "paused";  // of a job that is running, in listings

// Since when the current attempt of a job is paused, and for how long at most.
inline constexpr Duration k_pause_max = std::chrono::hours{2};  // unless the user says otherwise: then the job moves
struct Pause {
  WallTime since;
  Duration most{};
};

struct AttemptRecord {
  AttemptNumber number;
  Epoch epoch;
  HostName provider;
  std::string state, reason;
  std::string placement_reason;
  double price_per_hour = 0;
  std::optional<WallTime> started_at, ended_at;
  CheckpointSeq resumed_from;
  std::optional<int> exit_code;
  std::vector<MemberRecord> members;  // by rank; empty of those from before members were kept

  [[nodiscard]] std::vector<HostName> hosts() const {  // its provider, and those of all members
    std::vector<HostName> all{provider};
    for (const MemberRecord& member : members) all.push_back(member.provider);
    return all;
  }
};

struct EventRecord {
  std::int64_t id = 0;  // grows; unique in the state directory
  JobId job;
  WallTime at;
  std::string kind, text;
  Epoch epoch;
  AttemptNumber attempt;
  HostName host;
};

struct Checkpoint {
  JobId job;
  CheckpointSeq seq;
  Epoch epoch;
  AttemptNumber attempt;
  Digest root;  // SHA-256 of the manifest; the manifest itself lies in the chunk store under it
  WallTime created_at;
  std::uint64_t bytes = 0, stored_bytes = 0, files = 0;
  std::uint64_t host_number = 0;  // the agent's number of it within the attempt
  bool verified = true;
  bool pinned = false;
  bool stray = false;               // from a stale epoch: kept, never restored by itself
  bool provisional = false;         // nobody could be sure that it is whole: restored when nothing better exists
  bool as_left = false;             // what lay there when the attempt ended: restored when there is nothing else at all
  bool torn = false;                // with as_left: never restored by itself
  bool suspect = false;             // the program failed from it, again and again; never restored by itself
  std::string how;                  // how it was known to be whole, as the host told it ("format"), or "push"
  std::optional<Duration> stall;    // how long saving it held the job up
  std::optional<Duration> upload;   // from taking it on the host until it was whole and verified here
  Metrics metrics;                  // what the job had told when it was taken
  std::vector<std::string> copies;  // remotes that have acknowledged it, by name
};

// The files that a job has left in its working directory, outside of its checkpoints.
struct Results {
  JobId job;
  std::optional<Digest> root;  // of the tree of its outputs, if some are here
  std::uint64_t files = 0, bytes = 0;
  WallTime at;  // when they came
  // Files that lie on a host only, for a while.
  struct Left {
    HostName host;
    Epoch epoch;
    std::uint64_t files = 0, bytes = 0;
    WallTime until;
    bool operator==(const Left&) const = default;
  };
  std::optional<Left> left;
  bool operator==(const Results&) const = default;
};

// The amount that jobs may cost in a calendar month (UTC).
struct Budget {
  std::string owner;  // of the jobs; empty: all jobs together
  double usd_month = 0;
  // The month in which it was, "2026-11"; empty: never since it was set. It stays until the budget is set anew: what
  // was kept back for saving would be spent by the next start.
  std::string used_up{};
};
struct Spending {
  double usd = 0;           // since some time
  double usd_per_hour = 0;  // of what runs now
};

// Somewhere else, where copies of checkpoints are kept.
struct Remote {
  std::string name;
  std::string url;                        // "dir:/path", "ssh://provider/path", "s3://bucket/prefix"
  std::string endpoint, region, profile;  // of S3; may be empty
  WallTime added_at;
  std::optional<WallTime> answered_at;  // when it last did what was asked
  std::optional<WallTime> trouble_at;   // since when it does not
  std::string trouble_code, trouble;    // why; empty when it does
  std::string location{};               // a region as jobs want it ("DE"); empty: not known, or that of its provider
  bool lent = false;                    // it belongs to others
  bool operator==(const Remote&) const = default;
};

// A checkpoint that a remote has acknowledged.
struct Copy {
  std::string remote;
  JobId job;
  CheckpointSeq seq;
  WallTime copied_at;
  bool operator==(const Copy&) const = default;
};

struct CheckpointRef {
  JobId job;
  CheckpointSeq seq;
  auto operator<=>(const CheckpointRef&) const = default;
};

// A checkpoint, the job it is of, how many copies that job asks for, and where they may be.
struct CopyWanted {
  Checkpoint checkpoint;
  std::string job_name;
  int copies = 1;  // with the one here
  job::Constraints constraints{};
};

// The result of a job's newest drill: whether it can be resumed on another host.
struct Drill {
  std::string name;         // of the job
  std::string fingerprint;  // of what decides how it resumes; as the caller made it
  JobId id;                 // the job that was started for it
  WallTime at;
  std::string verdict;                      // "yes", "no", "unknown"
  std::string summary;                      // one line for people
  std::optional<Duration> took;             // from the kill until it went on
  std::optional<std::uint64_t> steps_lost;  // when the program tells its steps
};

}  // namespace gridctl::registry
