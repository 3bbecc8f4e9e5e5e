// SPDX-License-Identifier: Apache-2.0
// What one seed is about. Every seed draws its own sizes and probabilities (swarm testing), so that some runs have no
// loss but many crashes, and others the reverse; the faults are drawn beforehand as a list, so that a failing run can
// be repeated with fewer of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "job/spec.hpp"
#include "random.hpp"

namespace gridctl::sim {

using Nanos = std::int64_t;  // true time since the world began
inline constexpr Nanos k_ms = 1'000'000;
inline constexpr Nanos k_s = 1'000 * k_ms;
inline constexpr Nanos k_min = 60 * k_s;

enum class RegistryKind : std::uint8_t { memory, sqlite };

enum class FaultKind : std::uint8_t {
  cut_both,      // host and laptop do not hear each other
  cut_requests,  // the host hears nothing
  cut_replies,   // the laptop hears nothing
  cut_all,       // the laptop's own network is gone
  slow,          // messages take many seconds
  host_power,    // power loss; back after the duration under a new boot id
  host_sleep,    // the host is suspended
  host_disk_full,
  host_clock_jump,  // wall clock only
  agent_kill,       // the connections' processes
  supervisor_kill,  // of one attempt; its payload lives on
  payload_kill,     // SIGKILL from outside
  laptop_kill,      // the daemon; started again after the duration
  laptop_power,     // the same, and what was not durable is gone
  laptop_sleep,
  laptop_disk_full,
  laptop_clock_jump,
  registry_error,  // commits fail
  cancel,          // a user's command
  // More of them, drawn apart.
  resume,
  drain,         // for the duration
  price,         // of a host, from now on
  month_budget,  // of all jobs, or those of an owner
  gateway_kill,   // of every service of the laptop
  service_apply,  // a new version of the service, or the one before that does not work
  image_registry,  // is silent, refuses, or does not know its images, for the duration
  tag_moves,       // of an image
};
inline constexpr int k_fault_kinds = static_cast<int>(FaultKind::cancel) + 1;
[[nodiscard]] const char* fault_name(FaultKind kind);

struct Fault {
  FaultKind kind = FaultKind::cut_both;
  Nanos at = 0, duration = 0;
  int host = 0;    // index, where one is meant
  int laptop = 0;  // index, where one is meant; of `cancel` too
  int job = 0;     // index, where one is meant
  double usd = 0;  // a price of an hour, a budget
};
[[nodiscard]] std::string to_text(const Fault& fault);

struct Options {
  std::uint64_t seed = 0;
  RegistryKind registry = RegistryKind::memory;
  bool wait_mode = false;  // lost_after is beyond the lease: at most one attempt of a job runs anywhere
  bool encode = false;     // messages travel as bytes
  int hosts = 3, laptops = 1, jobs = 2, gpus_per_host = 1;
  int liar = -1;  // index of a host that says what it likes
  Nanos faults_until = 0;

  Nanos tick = 0;
  double loss = 0, duplicate = 0, long_delay = 0, bad_bytes = 0;
  Nanos delay = 0, long_delay_max = 0;
  double kill_point = 0;      // a process is killed at one of its changes
  double torn_transfer = 0;   // a checkpoint does not arrive whole
  double skew = 0;            // of host clocks, relative
  double start_problem = 0;   // an engine cannot start it
  double point_faults = 0;    // of the effects at fault points
  double commit_faults = 1;   // so many times as often at what makes a result safe
  double rich_faults = 0;     // a fault just after a job has begun to start, to stop or to be collected
  double full_rate = 1;       // of a host's writes that fail while its disk is full: others find a last block
  double kill_launch = 0;     // a supervisor is killed while it launches
  bool gpus_for_all = false;  // no job goes without
  double late_start = 0;      // a START is held up on its way
  double cancel_start = 0;    // the user cancels when a START has just gone out
  double sleep_launch = 0;    // a host falls asleep while it launches
  double lie_start = 0;       // the liar refuses what it could start; 1: that is its only lie
  bool lie_orders = false;    // the liar has had orders of a bag that nobody gave
  bool deadly = false;        // on the liar's machine programs are killed before they have saved anything
  Nanos lost_after = 0, lease = 0;
  Nanos work = 0, save_every = 0, start_time = 0, transfer_time = 0;
  int keep = 3;              // newest checkpoints of a job; two stay in any case
  Nanos save_cost = 0;       // the program's work stands still so long for each checkpoint
  double start_spread = 1;   // of the start's time: from (1 - half of it) to (1 + half of it)
  double bags = 0;             // a job is a bag of tasks; the first one surely, when any
  int tasks = 0;               // at most
  Nanos task_takes = k_s / 2;  // on average
  int task_slow = 1;           // so many times as long on the first host
  bool last_step = false;  // of every bag
  double task_fails = 0, task_poison = 0, task_kills = 0;  // once; always; its worker dies of it, always
  double services = 0;           // a job is a service; the first one surely, when any
  Nanos load_time = 0;           // until a server answers
  double server_crashes = 0, server_hangs = 0;  // of an attempt: its server ends after a while; never answers
  double gateway_fails = 0;      // a gateway comes to nothing when it is started
  Nanos load_step = k_min;       // so long clients ask for as much
  int load_max = 0;              // requests under way at most
  double request_rate = 1;       // per second, for each of them
  Nanos request_takes = k_s;
  double program_fails = 0;  // a job's own code ends with an error once in a while
  double kills_itself = 0;   // a job: its program always ends by a signal, wherever it runs
  double half_saved = 0;     // what is killed has begun a save that nobody can be sure of, or has torn a file
  Nanos chatter = 0;         // programs say a line so often, and hosts tell how busy they are; 0: neither
  int late_hangs = 0;        // so many of them when all is well
  double hangs = 0;          // an attempt stands still for longer than any rule allows
  double stalls = 0;         // an attempt pauses for a while
  Nanos hang_after = 0;      // of jobs on one host
  int unmeasured = -1;       // index of a host that does not tell how busy it is
  double insight_fails = 0;  // stacks or steps come late, or not
  bool tells_steps = false;  // ranks report their steps
  int images = 0;            // that jobs name by tag; 0: they are plain processes
  double image_tags = 0;     // a job allows tags everywhere
  Nanos mtbf = 0;            // of the host that the first job is on, until the end; 0: it never fails by itself
  Nanos patience = 0;        // with the healed world; 0: as long as it should take
  std::uint64_t events_max = 3'000'000;  // most worlds have some thousands
  std::vector<Fault> faults;

  // What users want: how likely a job has it.
  std::vector<double> prices;  // of hosts, USD an hour
  int lent = 0;                // so many of them belong to strangers, the first ones
  bool measured = true;        // and their GPUs have been measured
  std::string own_class = "home";  // of the others
  double ganged = 0;        // a job needs several hosts at once; the first two surely, when any
  double elastic = 0;       // such a one makes do with fewer, and has spares
  double port_trouble = 0;  // of a proof that members reach each other
  double words = 0, outputs = 0, replicated = 0, urgent = 0, owned = 0, limited = 0, due = 0, standby = 0, tuned = 0, secret = 0;
};
// Seeds mean what they meant when they were written down: worlds of the first kind are those of before; most of the
// second kind are short and crowded; of the third kind, many are about one thing that seldom comes together by itself; the fourth kind has
// more such things.
enum class Drawing : std::uint8_t { first = 1, second = 2, third = 3, fourth = 4 };
// All of it from the seed and that alone.
[[nodiscard]] Options draw(std::uint64_t seed, Drawing drawing = Drawing::fourth);
[[nodiscard]] job::Spec draw_spec(const Options& options, int index, Random& random);

// Two sound hosts, no faults, no jobs: for tests that add what they are about.
[[nodiscard]] Options quiet_options();

}  // namespace gridctl::sim
