// SPDX-License-Identifier: Apache-2.0
// Represents a user's request: the parsed and checked job file. A value; it is stored with the job as JSON.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.hpp"
#include "base/inventory.hpp"
#include "base/names.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "job/keep.hpp"
#include "job/launcher.hpp"
#include "job/outputs.hpp"
#include "job/service.hpp"
#include "job/variant.hpp"
#include "job/workload.hpp"

namespace gridctl::job {

// Describes the tasks of a bag, as their user does. Workload::tasks has their number. A value.
inline constexpr int k_task_retries_max = 100, k_bag_workers_max = 512, k_stream_window_max = 1024;
inline constexpr int k_stream_window = 16;  // unless the user says otherwise
inline constexpr std::size_t k_task_columns_max = 64;

// Names the way in which the text of an item reaches its task.
enum class ItemForm : std::uint8_t {
  none,       // tasks have an index only
  text,       // GRIDCTL_TASK_ITEM
  variables,  // lines NAME=VALUE, each a variable of the task
  columns,    // fields with \x1f between them: {1}, {2}
};
inline constexpr Names<ItemForm, ItemForm::columns> item_form_name{"none", "text", "variables", "columns"};

// A task that runs out of memory or disk is retried by a worker with so many times more: its level says how often that
// was done.
struct Raise {
  double memory = 0, disk = 0;                         // factors, k_raise_min..k_raise_max; 0: as much as before
  std::uint64_t memory_bytes = 0, disk_bytes = 0;      // of `resources` at level 0, when the level is not 0
  std::uint64_t level = 0;                             // of this worker
  [[nodiscard]] bool any() const { return memory > 0 || disk > 0; }
  bool operator==(const Raise&) const = default;
};
inline constexpr double k_raise_min = 1.1, k_raise_max = 16;

struct Tasks {
  ItemForm items = ItemForm::none;  // the texts lie beside the job, one for each task
  std::int64_t array_first = 0;     // SLURM_ARRAY_TASK_ID of task 0
  std::int64_t array_step = 1;
  bool render = false;  // `{}` and its kin stand in `run`
  int retries = 1;      // of a task that failed, on another host if there is one; 0..k_task_retries_max
  Duration timeout{};   // of each task; 0: none
  int max_parallel = 0; // workers at once; 0: as many as there is room for
  std::optional<int> max_fails{};  // more failed tasks than this stop the bag; nullopt: none does
  std::string stdin_from{};        // "": nothing, "item": the item's text, else a path
  bool split = false;              // standard error is kept apart
  bool folder = false;             // each task has a directory of its own
  int stream_window = 0;           // > 0: the command stays up, and has so many items at once; 1..k_stream_window_max
  bool stream_json = false;        // items and answers of a stream carry "id"
  std::vector<std::string> outputs{};  // patterns of the files that each task leaves
  Raise raise{};
  std::string finally_run{};       // run once when all tasks are done; shell text
  bool operator==(const Tasks&) const = default;
};

// Describes a request in the notation vendor:names:memory range:count, each part optional
// ("nvidia:A100,H100:40GB..:2").
struct GpuRequest {
  std::optional<Vendor> vendor;
  std::vector<std::string> names;           // any of; matched without case, spaces, '-' and '_'; empty = any
  std::optional<std::uint64_t> memory_min;  // bytes per GPU
  std::optional<std::uint64_t> memory_max;
  int count_min = 1;  // 1..256
  int count_max = 1;
  bool operator==(const GpuRequest&) const = default;
};

struct Resources {
  std::vector<GpuRequest> gpus;    // alternatives in order of preference; empty = no GPU
  double cpus = 0;                 // at least; 0 = 1
  std::uint64_t memory_bytes = 0;  // at least; 0 = unlimited share
  std::uint64_t disk_bytes = 0;    // free on the host
  bool any_order = false;          // the alternatives are equal: the order of `gpus` says nothing
  bool operator==(const Resources&) const = default;
};

struct Mount {
  std::string target;  // path in the job
  std::string source;  // local path, absolute
  bool operator==(const Mount&) const = default;
};

inline constexpr int k_copies_max = 8;
inline constexpr std::uint64_t k_upload_limit_min = 100'000;  // bytes a second; less passes for a broken link

struct CheckpointPolicy {
  std::string path;  // relative to the working directory, or absolute; empty = $GRIDCTL_CKPT_DIR
  enum class Interval : std::uint8_t { automatic, fixed, off } interval = Interval::automatic;
  Duration every{};  // with Interval::fixed
  KeepPolicy keep{};
  bool standby = false;            // the newest lies ready on the host that would be next
  int copies = 1;                  // of each, on independent places, the one here among them; 1..k_copies_max
  std::uint64_t upload_limit = 0;  // bytes a second that the host sends of checkpoints; 0: as fast as it can
  int signal = 0;                  // sent to the program when its interval changes: SIGUSR1, SIGUSR2, SIGHUP; 0: none
  bool local_shards = false;       // each host of a gang is given what its ranks need, not the whole directory
  std::string whole_when{};        // glob: after a change of a file that matches, the directory is whole; empty = none
  bool operator==(const CheckpointPolicy&) const = default;
};

// Describes how to react to a job that makes no progress while its hosts answer, and to a host that slows all others
// down.
enum class Hangs : std::uint8_t { restart, tell };
enum class Stragglers : std::uint8_t { tell, replace };
// Describes where a checkpoint that a lent host made is loaded outside a container: on other lent hosts and, of the
// user's own, on those of class datacenter and cloud (own_class), anywhere (any), or nowhere else (trusted).
enum class RestoreFrom : std::uint8_t { own_class, any, trusted };

struct RecoveryPolicy {
  Duration lost_after = std::chrono::seconds{60};
  int max_failures = 3;         // failures of the job's own code; 0..1000
  std::vector<int> restart_on;  // exit codes that always restart
  std::vector<int> fail_on;     // exit codes that never do
  Duration lease = std::chrono::hours{24};
  Hangs hangs = Hangs::restart;  // of a job on several hosts; a job on one is restarted only when its file says so
  bool restart_one = false;      // its file says `hangs: restart`
  Duration hang_after = std::chrono::minutes{10};  // a job on one host that shows nothing and computes nothing for so long
  Stragglers stragglers = Stragglers::tell;
  RestoreFrom restore_from = RestoreFrom::own_class;  // what the job file does not say
  bool exact_required = false;  // a drill fails unless the restored job continues exactly (exact: required)
  int notice = 0;               // sent to the program before its host ends it: SIGUSR1, SIGUSR2, SIGHUP; 0: none
  bool endless = false;         // it is a service: however its program ends, the program is started again
  bool operator==(const RecoveryPolicy&) const = default;
};

struct Constraints {
  std::vector<std::string> region_in, region_not;
  std::vector<std::string> classes;           // datacenter, cloud, market, home; empty = any
  std::optional<double> max_price;            // USD per hour
  std::vector<std::string> providers;         // pin (--provider); empty = any
  std::map<std::string, std::string> labels;  // all must match
  std::string query{};                        // in Vast.ai's language, see sched/query.hpp; empty = any host
  bool any_interconnect = false;              // a tight job makes do with whatever joins its GPUs and hosts
  bool is_private = false;                    // never on hosts that strangers lend (sensitivity: private)
  bool clear_traffic = false;                 // a gang may talk unencrypted with hosts that strangers lend (traffic: clear)
  bool unmeasured = false;  // it may have GPUs of hosts of strangers that nobody has measured (unmeasured: allow)
  bool unproven = false;    // it may go to hosts of strangers again, though it did not save there (unproven: allow)
  bool image_tags = false;                    // hosts that strangers lend may run images by tag (images: tags)
  bool operator==(const Constraints&) const = default;
};

// Names the quantity that decides among suitable hosts: all are expectations of the complete job, failures counted.
enum class Optimize : std::uint8_t { cost, time, reliability };
inline constexpr Names<Optimize, Optimize::reliability> optimize_name{"cost", "time", "reliability"};

// States when the job should be done: at a time, or so long after its submission.
struct Deadline {
  std::optional<WallTime> at;
  Duration after{};   // without `at`
  bool hard = false;  // it is stopped then
  bool operator==(const Deadline&) const = default;
};
[[nodiscard]] WallTime moment_of(const Deadline& deadline, WallTime submitted_at);

inline constexpr int k_nodes_max = 1024, k_spares_max = 8, k_ranks_per_node_max = 256;

// Holds the policy of a job on several hosts.
struct GangPolicy {
  int nodes_min = 0;       // it goes on with so many when no host replaces a lost one; 0: with num_nodes alone
  int spares = 0;          // hosts that stand by: 0..k_spares_max
  int ranks_per_node = 0;  // processes that are started on each host; 0: as its launcher usually does
  bool operator==(const GangPolicy&) const = default;
};

inline constexpr int k_twins_max = 8;
inline constexpr int k_priority_min = -1000, k_priority_max = 1000;

struct Spec {
  std::string name;
  Resources resources;
  int num_nodes = 1;  // at most, where gang.nodes_min is less
  GangPolicy gang;
  std::string image;              // engine reference, path of an archive, or empty: plain process
  bool image_is_archive = false;  // then `image` is an absolute local path
  std::map<std::string, std::string> image_digests{};  // of images by tag, as written -> "sha256:…", as their registries said once
  std::optional<bool> root_writable{};  // of its container; nullopt: on hosts of one's own
  std::string workdir;            // absolute local path, or empty
  std::map<std::string, std::string> envs;
  std::vector<std::string> secrets;  // names only; values never enter a Spec
  std::vector<Mount> file_mounts;
  std::string setup;              // shell text, may be empty
  std::string run;                // shell text
  std::string resume_run;         // shell text, empty = run
  std::vector<Output> outputs;    // brought back whatever the end; empty: nothing is
  std::vector<Variant> variants;  // in order of preference; empty: the job is the same everywhere
  CheckpointPolicy checkpoint;
  RecoveryPolicy recovery;
  Constraints constraints;
  Workload workload;
  Launcher launcher = Launcher::plain;  // whose environment the processes of the job see
  Optimize optimize = Optimize::cost;
  int priority = 0;                      // k_priority_min..k_priority_max; a higher one comes first
  std::string owner;                     // whose budget it counts for; empty: nobody's
  std::optional<double> budget_total;    // USD; it is stopped before it costs more
  std::optional<Duration> max_duration;  // of running, in all attempts together
  std::optional<Deadline> deadline;
  int twins = 1;  // of the whole job, at once and on different machines; the first result counts. 1..k_twins_max
  JobId twin_of;  // the job that it is a twin, a further worker or a further replica of; empty: a job of its own
  std::optional<Tasks> tasks{};      // it is a bag: `run` is run for each of its tasks
  std::optional<Service> service{};  // it is a service with `twins` replicas
  bool operator==(const Spec&) const = default;
};

// Returns the most GPUs of one host that an alternative asks for.
[[nodiscard]] inline int gpus_most(const Spec& spec) {
  int count = 0;
  for (const GpuRequest& gpu : spec.resources.gpus) count = std::max(count, gpu.count_max);
  return count;
}

// Returns the least number of hosts that the job runs on.
[[nodiscard]] inline int nodes_least(const Spec& spec) {
  return spec.gang.nodes_min > 0 ? spec.gang.nodes_min : spec.num_nodes;
}
[[nodiscard]] inline bool is_elastic(const Spec& spec) { return nodes_least(spec) < spec.num_nodes; }
// Returns the interval that holds for an attempt. `lent`: one of its hosts belongs to others. `off` does not hold there,
// except for services and bags, which have no state to lose.
[[nodiscard]] inline CheckpointPolicy::Interval interval_on(const Spec& spec, bool lent) {
  using Interval = CheckpointPolicy::Interval;
  const bool compulsory = lent && !spec.service && !spec.tasks;
  return compulsory && spec.checkpoint.interval == Interval::off ? Interval::automatic : spec.checkpoint.interval;
}
// "4", "2..4"
[[nodiscard]] std::string nodes_text(const Spec& spec);

[[nodiscard]] std::string to_json(const Spec& spec);
[[nodiscard]] Result<Spec> parse_spec(std::string_view json);  // state_unreadable when it is not ours

}  // namespace gridctl::job
