// SPDX-License-Identifier: Apache-2.0
// Defines messages of the controller <-> agent protocol as values, with their JSON. Field meanings: gridctl-agent(7).
// parse_* refuse missing or mistyped required fields (protocol_violation) and ignore unknown ones. Ids are checked to
// be safe as file names; digests, counts and lengths to be within the limits below. Durations travel as milliseconds.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"
#include "base/ids.hpp"
#include "base/inventory.hpp"
#include "base/metrics.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "base/use.hpp"
#include "wire/bag_spec.hpp"
#include "wire/gang.hpp"
#include "wire/held.hpp"
#include "wire/message.hpp"

namespace gridctl::wire {

// Names the operations of requests; the other headers define their own.
inline constexpr std::string_view k_hello_operation = "hello", k_probe_operation = "probe", k_log_operation = "log",
                                  k_health_operation = "health", k_prepare_operation = "prepare",
                                  k_stop_operation = "stop", k_clean_operation = "clean",
                                  k_standby_operation = "standby", k_poll_operation = "poll";

inline constexpr int k_version_min = 1, k_version_max = 1;
inline constexpr std::size_t k_text_max = 64 * 1024;           // bytes of one string
inline constexpr std::size_t k_script_max = 256 * 1024;        // bytes of `setup` or `run`
inline constexpr std::size_t k_chunks_max = 4096;              // digests in one have or get
inline constexpr std::size_t k_attempts_max = 1000;            // in one poll or its reply
inline constexpr std::size_t k_checkpoints_listed_max = 1000;  // of one attempt
inline constexpr std::size_t k_list_max = 4096;                // any other list or map
inline constexpr std::size_t k_how_max = 200;                  // bytes of HostCheckpoint::how
inline constexpr std::size_t k_checkpoint_notes_max = 16;       // of one checkpoint
inline constexpr std::size_t k_glob_max = 1024;                // bytes of whole_when

// Holds the first frame each way (kind request from the controller, reply from the agent).
struct ControllerHello {
  int version_min = k_version_min, version_max = k_version_max;
  std::vector<std::string> features;
  ControllerId controller;
  std::optional<Digest> nonce{};  // made up for this connection: the agent signs it, wire/peer.hpp
};
struct AgentHello {
  int version = k_version_max;
  std::vector<std::string> features;
  std::string build;  // SHA-256 of the agent binary, hex
  std::string machine_id, boot_id;
  BootTime host_time;  // CLOCK_BOOTTIME of the host
  std::optional<Digest> peer_key{};  // public, of the host's identity
  std::string peer_proof{};          // its signature of the nonce, hex
};

// Names a tree the attempt needs, already pushed to the host's cache ("put" operations).
struct TreeRef {
  Digest root;         // SHA-256 of the manifest
  std::string target;  // see AttemptSpec
};

// Holds everything that the host must know to run one attempt. Secrets' values are in StartRequest, never stored in
// this.
struct AttemptSpec {
  JobId job;
  std::string job_name;
  AttemptNumber attempt;
  Epoch epoch;
  EngineKind engine = EngineKind::process;
  std::string image;                    // engine reference, or empty with process
  std::optional<Digest> image_archive;  // tree of one file "image.tar", loaded into the engine
  std::optional<Digest> workdir;        // tree put into the working directory
  std::vector<TreeRef> mounts;          // target: absolute path in the container, or relative to the working dir
  std::optional<Digest> restore;        // checkpoint tree; its content fills the checkpoint directory
  std::string restore_name;             // "JOB@SEQ", value of GRIDCTL_RESUME_FROM
  std::string checkpoint_path;          // as in the job file; empty = the default directory
  std::string whole_when;               // glob of checkpoint.whole_when; empty = none
  bool checkpoint_by_marker = false;    // the restored one was taken by `.commit`: from the start only markers count
  bool checkpoints = true;              // false: interval off
  bool checkpoint_late = false;         // the program makes the directory: it is not there when nothing is restored
  std::uint64_t upload_limit = 0;       // bytes a second of checkpoints that leave the host; 0: none
  Duration checkpoint_min_interval{};   // do not snapshot more often
  int interval_signal = 0;              // sent to the job when its interval changes; 0: none
  int notice_signal = 0;                // sent to the job before its host ends it; 0: none
  bool root_writable = false;           // of a container: the layer goes with it
  std::string setup, run;               // shell texts; run is resume_run when something was restored
  std::map<std::string, std::string> envs;  // all of them, GRIDCTL_* included
  std::vector<std::string> secret_names;
  std::vector<std::string> gpu_uuids;  // leased and shown to the job; empty = none
  double cpus = 0;                     // limit and lease; 0 = none
  std::uint64_t memory_bytes = 0;      // limit and lease; 0 = none
  Duration stop_grace = std::chrono::seconds{30};
  Duration keep_work{};                // what it leaves in its working directory stays so long; 0: goes with it
  std::uint64_t log_ring_bytes = 64ull << 20;
  std::uint64_t disk_bytes_max = 0;  // quota of the attempt folder's checkpoints; 0 = none
  std::optional<Gang> gang;          // several hosts or ranks; absent: one process here
  std::optional<BagSpec> bag{};      // `run` is what each task of a bag runs
};

struct PrepareRequest {
  OpId op;
  JobId job;
  Epoch epoch;
};
struct PrepareReply {
  BootTime host_time;
  std::string boot_id;
};

// Holds the remaining limits of an attempt: the host ends it when they are used up, even if nobody is watching.
struct Allowance {
  std::optional<Duration> run{};   // of running
  std::string run_limit{};         // whose it is: "max_duration", "budget", "month_budget"
  std::optional<Duration> time{};  // until its deadline, which is hard
  bool operator==(const Allowance&) const = default;
};

struct StartRequest {
  OpId op;
  BootTime echo;        // PrepareReply::host_time; the lease runs from here
  std::string boot_id;  // of the same reply
  Duration lease{};
  AttemptSpec spec;
  std::map<std::string, std::string> secrets;
  std::optional<Allowance> allowance{};  // `run` counts from when the program runs, `time` from `echo`
};
// Refusals are errors (refused: stale epoch, boot id changed, echo too old; busy: a resource is held). Before a
// refusal, the host durably raises max_epoch to the request's epoch: the refusal is a promise.
struct StartReply {
  bool already = false;
};  // already: this very op was accepted before

struct StopRequest {
  OpId op;
  JobId job;
  Epoch epoch;       // this and all lower epochs are stopped and refused from now on
  Duration grace{};  // TERM, then KILL after so long; 0 = at once
};

// Removes the leftovers of ended attempts up to this epoch (folder, container, secrets); keeps the fence.
struct CleanRequest {
  OpId op;
  JobId job;
  Epoch epoch;
  Duration keep_work{};  // the working directory stays for so long, whatever the specification says; 0: as that says
};

// Makes a checkpoint whose chunks are in the host's cache ready as files, for an attempt that may come; it replaces the
// job's earlier one. Without a root, nothing is kept ready any more. Slow: on a bulk connection.
struct StandbyRequest {
  JobId job;
  std::optional<Digest> root;
};

enum class AttemptPhase : std::uint8_t {
  absent,    // not here, and promised never to start (fence raised)
  starting,  // accepted; fetching image, restoring, setup not begun
  running,   // the payload is up
  stopping,  // TERM sent
  ended,     // see `end`
};
[[nodiscard]] std::string_view phase_name(AttemptPhase phase);

enum class EndReason : std::uint8_t {
  none,
  exited,         // the program ended by itself: exit_code
  signalled,      // killed by a signal nobody of us sent: signal
  oom,            // the memory limit killed it
  stopped,        // by a StopRequest
  lease_expired,  // nobody renewed
  host_rebooted,  // boot id differs from the one it ran under
  vanished,       // processes gone and no exit record: killed from outside
  start_failed,   // the host could not start it (engine, image, restore…): detail
  disk_full,      // the host's disk is full
  image_failed,   // the image could not be pulled or loaded: detail
  limit,          // it had used up what it was allowed: detail names the limit
};
[[nodiscard]] std::string_view end_reason_name(EndReason reason);
[[nodiscard]] Result<EndReason> parse_end_reason(std::string_view name);

// Describes a checkpoint snapshot on the host, complete and hashed.
struct HostCheckpoint {
  std::uint64_t number = 0;  // 1, 2, 3… within the attempt
  Digest root;               // SHA-256 of the manifest
  std::uint64_t bytes = 0;
  std::uint64_t files = 0;
  std::int64_t age_ms = 0;                   // host time since it was taken
  std::string how;                           // gridctl-agent(7); at most k_how_max bytes, foreign
  std::optional<std::int64_t> written_ms{};  // from the first change of its files to the last, as far as was seen
  Metrics metrics{};                         // what the job had told when it was taken
  bool provisional = false;                  // nobody could be sure that it is whole
  bool as_left = false;                      // what lay there at the end of the attempt, whatever it is
  bool torn = false;                         // with as_left: a file of it is torn by its own format
  std::vector<std::string> notes{};          // what was waited for, and what was left out and why; foreign text
};

struct AttemptStatus {
  JobId job;
  Epoch epoch;
  AttemptPhase phase = AttemptPhase::absent;
  std::string doing;  // one word while starting: "image", "restore", "workdir", "setup", "start"
  EndReason end = EndReason::none;
  int exit_code = -1;                // with exited
  int signal = 0;                    // with signalled
  std::string detail;                // for people; foreign text
  std::int64_t started_ms_ago = -1;  // since the payload started, -1 = not yet
  std::int64_t ended_ms_ago = -1;
  std::uint64_t log_bytes = 0;              // bytes of output ever written (offset of the log's end)
  std::vector<HostCheckpoint> checkpoints;  // those the host still holds, oldest first
  Epoch max_epoch;                          // the host's fence for this job
  std::int64_t running_ms_ago = -1;         // since `run` began, after `setup`; -1 = not yet, or not told
  std::int64_t allowed_ms = -1;             // what is left of Allowance::run; -1 = no limit
  std::int64_t paused_ms_ago = -1;          // since it was paused; -1 = it is not
  std::int64_t paused_ms = 0;               // how long it was paused before, all times together
  std::string no_checkpoint{};              // why none could be taken for longer than it should take; empty = well
  std::optional<Use> use{};                 // of the host, while it runs; nullopt: not measured, or nothing new
};
// Shifts every time back by this many milliseconds (>= 0), and reduces the remaining limits as much.
void make_older(AttemptStatus& status, std::int64_t ms);

// Describes how often a job should save and its host look. Zero: unchanged.
struct Tempo {
  Duration interval{};  // advice to the job
  Duration pause{};     // the host takes no two snapshots closer together
  bool operator==(const Tempo&) const = default;
};

// Represents the heartbeat: desired state down, observed state up. Safe to repeat, to lose, to receive twice.
struct PollRequest {
  BootTime echo;  // newest host_time seen; 0 on the first
  Duration lease{};
  struct Want {
    JobId job;
    Epoch epoch;
    std::uint64_t checkpoints_kept_from = 0;  // older snapshots may go
    Tempo tempo{};
    std::optional<Allowance> allowance{};  // from `echo` on, in place of what was said before; nullopt: as before
    bool operator==(const Want&) const = default;
  };
  std::vector<Want> attempts;  // renewed, and reported in the reply
};
struct PollReply {
  BootTime host_time;
  std::string boot_id;
  std::vector<AttemptStatus> attempts;  // those asked for, then others of this controller that the host still holds
  double load1 = 0;
  std::uint64_t disk_free_bytes = 0;
  std::optional<std::vector<HeldShare>> held;  // every lease on the host; nullopt: the ledger could not be read
  std::optional<Duration> ends_in{};           // until the host's orderly end: jobs there end then; nullopt: none is known
};

struct LogRequest {
  JobId job;
  Epoch epoch;
  std::uint64_t offset = 0;
  std::uint32_t max_bytes = 256 * 1024;
};
// Answered by reply LogReply, data, end. `offset` is where the data begins: later than requested if the ring overran.
struct LogReply {
  std::uint64_t offset = 0;
  std::uint64_t end_offset = 0;
};

// Defines the bulk operations (own connection):
//   have  {"chunks":[hex…<=4096]} -> reply {"missing":[index…]}
//   put   {"chunk":hex,"bytes":n} + data* + end -> reply {"stored":true}
//   seal  {} -> reply {}: everything put on this connection is durable in the host's cache
//   manifest {"job","epoch","number"} -> reply {"bytes":n} data* end     (checkpoint manifest)
//   get   {"job","epoch","number","chunks":[hex…]} -> reply {} then for each chunk in order: data*, end
// The data of a chunk may be encoded, as the end record says, if the receiver's hello allowed it.
struct HaveRequest {
  std::vector<Digest> chunks;
};
struct HaveReply {
  std::vector<std::uint32_t> missing;
};
struct PutRequest {
  Digest chunk;
  std::uint32_t bytes = 0;
};
struct CheckpointRef {
  JobId job;
  Epoch epoch;
  std::uint64_t number = 0;
  bool operator==(const CheckpointRef&) const = default;
};
struct GetRequest {
  CheckpointRef checkpoint;
  std::vector<Digest> chunks;
};
struct EndRecord {
  std::uint64_t bytes = 0;  // of the data frames before it
  std::optional<Error> error;
  std::uint8_t codec = 0;  // of a chunk; 0: the data are the chunk. Numbers of gridctl-store(5)
  std::uint16_t codec_parameter = 0;
};

// Returns the name of a request, whose payload is {"op":NAME, …}. The name is the first word of each function pair
// below.
[[nodiscard]] std::string request_name(std::string_view payload);  // "" when it is no JSON object with "op"

// Every reply that is an error is {"error":{"code","message","hint"}}.
[[nodiscard]] std::string error_payload(const Error& error);
// Returns an error if the payload carries one. Its text is made safe for a terminal; a hint survives only as a plain
// gridctl command, because a user must not type what a host made up. An unknown code becomes protocol_violation.
[[nodiscard]] std::optional<Error> payload_error(std::string_view payload);

GRIDCTL_MESSAGE(ControllerHello, parse_controller_hello)  // op "hello"
GRIDCTL_MESSAGE(AgentHello, parse_agent_hello)
GRIDCTL_MESSAGE(PrepareRequest, parse_prepare)  // op "prepare"
GRIDCTL_MESSAGE(PrepareReply, parse_prepare_reply)
GRIDCTL_MESSAGE(AttemptSpec, parse_attempt_spec)  // also the host's durable record of the attempt
GRIDCTL_MESSAGE(StartRequest, parse_start)  // op "start"
GRIDCTL_MESSAGE(StartReply, parse_start_reply)
GRIDCTL_MESSAGE(StopRequest, parse_stop)  // op "stop" -> reply {}
GRIDCTL_MESSAGE(CleanRequest, parse_clean)  // op "clean" -> reply {}
GRIDCTL_MESSAGE(StandbyRequest, parse_standby)  // op "standby" -> reply {}
GRIDCTL_MESSAGE(PollRequest, parse_poll)  // op "poll"
GRIDCTL_MESSAGE(PollReply, parse_poll_reply)  // also the payload of unsolicited events
GRIDCTL_MESSAGE(AttemptStatus, parse_attempt_status)  // also the host's status file
GRIDCTL_MESSAGE(LogRequest, parse_log)  // op "log"
GRIDCTL_MESSAGE(LogReply, parse_log_reply)
GRIDCTL_MESSAGE(HaveRequest, parse_have)  // op "have"
GRIDCTL_MESSAGE(HaveReply, parse_have_reply)
GRIDCTL_MESSAGE(PutRequest, parse_put)  // op "put"
GRIDCTL_MESSAGE(GetRequest, parse_get)  // op "get"
[[nodiscard]] std::string encode_manifest(const CheckpointRef&);  // op "manifest"
GRIDCTL_MESSAGE(EndRecord, parse_end)
[[nodiscard]] std::string encode_plain(std::string_view op);  // {"op":OP}: "probe" (reply Inventory), "seal"

[[nodiscard]] Result<CheckpointRef> parse_manifest_request(std::string_view);

}  // namespace gridctl::wire
