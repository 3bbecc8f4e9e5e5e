// SPDX-License-Identifier: Apache-2.0
#include "options.hpp"

#include <algorithm>
#include <array>

#include "image_registries.hpp"
#include "options_rich.hpp"

namespace gridctl::sim {

namespace {

constexpr std::array<const char*, k_fault_kinds + 8> k_names{
    "cut_both",         "cut_requests",      "cut_replies",    "cut_all",         "slow",
    "host_power",       "host_sleep",        "host_disk_full", "host_clock_jump", "agent_kill",
    "supervisor_kill",  "payload_kill",      "laptop_kill",    "laptop_power",    "laptop_sleep",
    "laptop_disk_full", "laptop_clock_jump", "registry_error", "cancel",
    "resume",           "drain",             "price",          "month_budget",    "gateway_kill",
    "service_apply",    "image_registry",    "tag_moves"};

void draw_faults(Random& random, Options& options) {
  std::array<double, k_fault_kinds> weight{};
  double total = 0;
  for (double& one : weight) total += one = random.chance(0.5) ? random.unit() : 0;
  if (total <= 0) return;
  const int count = static_cast<int>(random.below(4)) == 0 ? 2 : static_cast<int>(random.between(3, 25));
  for (int i = 0; i < count; ++i) {
    double at = random.unit() * total;
    std::size_t kind = 0;
    while (kind + 1 < weight.size() && at >= weight[kind]) at -= weight[kind++];
    if (weight[kind] <= 0) continue;
    Fault fault;
    fault.kind = static_cast<FaultKind>(kind);
    fault.at = random.between(0, options.faults_until);
    fault.duration = std::min(draw_duration(random, options), options.faults_until - fault.at);
    fault.host = static_cast<int>(random.below(static_cast<std::uint64_t>(options.hosts)));
    fault.laptop = static_cast<int>(random.below(static_cast<std::uint64_t>(options.laptops)));
    fault.job = static_cast<int>(random.below(static_cast<std::uint64_t>(options.jobs)));
    options.faults.push_back(fault);
  }
  std::stable_sort(options.faults.begin(), options.faults.end(),
                   [](const Fault& a, const Fault& b) { return a.at < b.at; });
}

// A cancellation amid the first starts, on slow links: STOP may overtake START.
void draw_early_cancel(Random& random, Options& options) {
  if (!random.chance(0.15)) return;
  Fault fault;
  fault.kind = FaultKind::cancel;
  fault.at = random.between(k_s / 2, k_min);
  fault.duration = random.between(0, 1);  // even: at once
  fault.job = static_cast<int>(random.below(static_cast<std::uint64_t>(options.jobs)));
  for (int laptop = 0; laptop < options.laptops; ++laptop) {
    fault.laptop = laptop;
    options.faults.push_back(fault);
  }
  fault.kind = FaultKind::slow;
  fault.at = 0;
  fault.duration = 2 * k_min;
  for (fault.host = 0; fault.host < options.hosts; ++fault.host)
    if (random.chance(0.5)) options.faults.push_back(fault);
}

// More jobs of two users than GPUs, on hosts where supervisors die: what looks free for a moment is wanted by somebody
// else at once.
void draw_crowd(Random& random, Options& options) {
  if (!random.chance(0.1)) return;
  options.laptops = 2;
  options.hosts = static_cast<int>(random.between(2, 3));
  options.gpus_per_host = 1;
  options.gpus_for_all = true;
  options.jobs = static_cast<int>(random.between(4, 6));
  options.liar = -1;
  options.kill_launch = random.chance(0.5) ? 0.5 * random.unit() : 0;
  for (Fault& fault : options.faults) fault.host %= options.hosts;
  for (std::int64_t left = random.between(0, 10); left > 0; --left) {
    Fault fault;
    fault.kind = FaultKind::supervisor_kill;
    fault.at = random.between(0, options.faults_until);
    fault.host = static_cast<int>(random.below(static_cast<std::uint64_t>(options.hosts)));
    options.faults.push_back(fault);
  }
}

// A host's disk that is all but full when jobs start.
void draw_nearly_full(Random& random, Options& options) {
  if (!random.chance(0.2)) return;
  options.full_rate = random.unit();
  Fault fault;
  fault.kind = FaultKind::host_disk_full;
  fault.at = random.between(0, 20 * k_s);
  fault.duration = random.between(10 * k_s, 3 * k_min);
  fault.host = static_cast<int>(random.below(static_cast<std::uint64_t>(options.hosts)));
  options.faults.push_back(fault);
}

// All hosts' disks at once, as where their homes lie on one file server; and requests that come twice.
void draw_all_full(Random& random, Options& options) {
  if (!random.chance(0.1)) return;
  options.full_rate = random.unit();
  if (random.chance(0.5)) options.duplicate = std::max(options.duplicate, 0.5 * random.unit());
  Fault fault;
  fault.kind = FaultKind::host_disk_full;
  fault.at = random.between(0, 10 * k_s);
  fault.duration = random.between(k_min, 6 * k_min);
  for (fault.host = 0; fault.host < options.hosts; ++fault.host) options.faults.push_back(fault);
}

// A lid that is closed when a job has just come; a host that says no, and one where nothing lives for long.
void draw_unwilling(Random& random, Options& options) {
  if (random.chance(0.1)) options.sleep_launch = 0.5 * random.unit();
  if (options.liar >= 0 && random.chance(0.5)) options.lie_start = random.chance(0.5) ? 1 : random.unit();
  else options.deadly = options.liar >= 0 && random.chance(0.5);
}

// STOP overtakes START.
void draw_overtaking(Random& random, Options& options) {
  if (!random.chance(0.1)) return;
  options.late_start = random.unit();
  options.cancel_start = 0.5 * random.unit();
}

// Most keep the usual number; where it is one, the last two must stay all the same.
void draw_keep(Random& random, Options& options) {
  if (random.chance(0.25)) options.keep = static_cast<int>(random.between(1, 5));
}

// Two jobs that need several hosts each, and others that want the same hosts: of one user, or of two.
void draw_gangs(Random& random, Options& options) {
  if (!random.chance(0.2)) return;
  options.ganged = 0.5 * random.unit();
  options.hosts = static_cast<int>(random.between(std::max(options.hosts, 3), 5));
  options.jobs = static_cast<int>(random.between(std::max(options.jobs, 3), 7));
  options.laptops = random.chance(0.4) ? 2 : 1;
  options.gpus_for_all = random.chance(0.7);
  for (Fault& fault : options.faults) fault.laptop %= options.laptops;
  if (random.chance(0.4)) options.port_trouble = 0.1 * random.unit();
}

// Tasks that fail, kill their workers, or take long on one host.
void draw_bags(Random& random, Options& o) {
  if (!random.chance(0.15)) return;
  o.bags = random.unit();
  o.tasks = static_cast<int>(random.chance(0.3) ? random.between(1, 20) : random.between(20, 300));
  o.task_takes = std::max<Nanos>(o.work * o.hosts / o.tasks / 4, k_ms);
  if (random.chance(0.2)) o.task_takes = random.between(1, 200) * k_ms;
  if (random.chance(0.3)) o.task_slow = static_cast<int>(random.between(2, 12));
  if (random.chance(0.3)) o.task_fails = 0.3 * random.unit();
  if (random.chance(0.3)) o.task_poison = 0.1 * random.unit();
  if (random.chance(0.15)) o.task_kills = 0.02 * random.unit();
}

void draw_bag(const Options& o, Random& random, job::Spec& spec) {
  spec.tasks = job::Tasks{};
  spec.workload.tasks = static_cast<int>(random.between(1, o.tasks));
  spec.workload.work.reset();
  if (random.chance(0.5)) spec.tasks->retries = static_cast<int>(random.between(0, 3));
  if (random.chance(0.3)) spec.tasks->max_parallel = static_cast<int>(random.between(1, 4));
  if (o.last_step || spec.workload.tasks % 3 == 0) spec.tasks->finally_run = "merge";
  spec.twins = 1;
  spec.checkpoint.standby = false;
  // Only where its user forbids it, a bag makes no room for more urgent jobs.
  if (spec.workload.tasks % 4 == 0) spec.checkpoint.interval = job::CheckpointPolicy::Interval::off;
  spec.outputs.clear();
}

// Services beside other jobs, on hosts that say the truth: replicas that are lost, sleep, follow the load and get new
// versions, behind gateways that are killed.
void draw_services(Random& random, Options& o) {
  if (o.bags > 0 || o.ganged > 0 || !random.chance(0.12)) return;
  o.half_saved = 0;
  o.services = random.chance(0.5) ? 0.001 : random.unit();
  o.liar = -1;
  o.deadly = false;
  o.lie_start = 0;
  o.hosts = static_cast<int>(random.between(2, 5));
  o.jobs = std::min(o.jobs, 3);
  o.faults_until = std::min(o.faults_until, 15 * k_min);
  o.load_time = random.between(k_s / 2, 40 * k_s);
  o.load_step = random.between(20 * k_s, 4 * k_min);
  o.load_max = static_cast<int>(random.between(2, 20));
  o.request_rate = 0.1 + 4 * random.unit();
  o.request_takes = random.chance(0.3) ? random.between(5, 40) * k_s : random.between(50, 3000) * k_ms;
  if (random.chance(0.3)) o.server_crashes = 0.8 * random.unit();
  if (random.chance(0.2)) o.server_hangs = 0.4 * random.unit();
  if (random.chance(0.3)) o.gateway_fails = 0.5 * random.unit();
  o.prices.clear();
  std::erase_if(o.faults, [](const Fault& one) { return one.kind == FaultKind::price || one.kind == FaultKind::month_budget; });
  for (Fault& fault : o.faults) fault.host %= o.hosts, fault.job %= o.jobs, fault.at = std::min(fault.at, o.faults_until);
  const auto strike = [&](FaultKind kind) {
    Fault fault;
    fault.kind = kind;
    fault.at = random.between(0, o.faults_until);
    fault.duration = std::min(draw_duration(random, o), o.faults_until - fault.at);
    fault.host = static_cast<int>(random.below(static_cast<std::uint64_t>(o.hosts)));
    fault.laptop = static_cast<int>(random.below(static_cast<std::uint64_t>(o.laptops)));
    fault.job = random.chance(0.6) ? 0 : static_cast<int>(random.below(static_cast<std::uint64_t>(o.jobs)));
    o.faults.push_back(fault);
  };
  const auto often = [&](FaultKind kind, double share, std::int64_t most) {
    if (random.chance(share))
      for (std::int64_t left = random.between(1, most); left > 0; --left) strike(kind);
  };
  often(FaultKind::gateway_kill, 0.5, 5);
  often(FaultKind::service_apply, 0.6, 4);
  often(FaultKind::host_power, 0.5, 4);
  often(FaultKind::cut_both, 0.5, 4);
  often(FaultKind::laptop_kill, 0.4, 4);
  often(FaultKind::payload_kill, 0.3, 4);
  // Most of their users let them be.
  if (random.chance(0.8))
    std::erase_if(o.faults, [](const Fault& one) { return one.kind == FaultKind::cancel || one.kind == FaultKind::resume; });
}

void draw_service(const Options& o, int index, Random& random, job::Spec& spec) {
  job::Service service;
  service.port = static_cast<std::uint16_t>(random.chance(0.3) ? 8000 : 8001 + index);
  service.path = "/";
  service.initial_delay = Duration{2 * o.load_time + random.between(30, 120) * k_s};
  service.drain = Duration{random.between(5, 60) * k_s};
  spec.twins = static_cast<int>(random.between(1, std::min(4, o.hosts)));
  if (random.chance(0.6)) {
    service.replicas_min = static_cast<int>(random.between(1, spec.twins));
    service.sleeps = service.replicas_min == 1 && random.chance(0.6);
    if (random.chance(0.3)) service.scale_rate = 0.5 + 5 * random.unit();
    else service.scale_concurrency = static_cast<double>(random.between(2, 6));
    service.up_after = Duration{random.between(2, 20) * k_s};
    service.down_after = Duration{random.between(10, 60) * k_s};
  }
  spec.service = service;
  spec.resources.gpus.clear();
  spec.recovery.endless = true;
  spec.recovery.max_failures = job::k_service_failures;
  spec.checkpoint.interval = job::CheckpointPolicy::Interval::off;
  spec.checkpoint.standby = false;
  spec.workload.work.reset();
  spec.outputs.clear();
  spec.budget_total.reset();
  spec.max_duration.reset();
  spec.deadline.reset();
}

// What a job costs that runs whole on a host of this price.
double cost_of(const Options& o, double usd_per_hour) { return usd_per_hour * static_cast<double>(o.work) / (3600 * k_s); }

void draw_commands(Random& random, Options& o) {
  const auto command = [&](FaultKind kind, double usd) {
    Fault fault;
    fault.kind = kind;
    fault.at = random.between(0, o.faults_until);
    fault.duration = std::min(draw_duration(random, o), o.faults_until - fault.at);
    fault.host = static_cast<int>(random.below(static_cast<std::uint64_t>(o.hosts)));
    fault.laptop = static_cast<int>(random.below(static_cast<std::uint64_t>(o.laptops)));
    fault.job = static_cast<int>(random.below(static_cast<std::uint64_t>(o.jobs)));
    fault.usd = usd;
    o.faults.push_back(fault);
  };
  if (random.chance(0.15))
    for (std::int64_t left = random.between(1, 4); left > 0; --left) command(FaultKind::resume, 0);
  if (random.chance(0.3))
    for (std::int64_t left = random.between(1, 4); left > 0; --left) command(FaultKind::drain, 0);
  if (o.prices.empty()) return;
  if (random.chance(0.3))
    for (std::int64_t left = random.between(1, 4); left > 0; --left)
      command(FaultKind::price, random.chance(0.3) ? 0 : 20 * random.unit());
  if (random.chance(0.25)) command(FaultKind::month_budget, cost_of(o, 10) * o.jobs * 2 * random.unit());
}

// Jobs with priorities, limits and twins, on hosts that cost; and users who drain, resume and change prices.
void draw_wishes(Random& random, Options& o) {
  if (!random.chance(0.6)) return;
  if (random.chance(0.6))
    for (int i = 0; i < o.hosts; ++i) o.prices.push_back(random.chance(0.3) ? 0 : 20 * random.unit());
  const auto likely = [&](double share) { return random.chance(share) ? random.unit() : 0; };
  o.replicated = likely(0.2);
  o.urgent = likely(0.4);
  o.owned = likely(0.3);
  o.limited = likely(0.3);
  o.due = likely(0.3);
  o.standby = likely(0.2);
  o.tuned = likely(0.3);
  o.secret = likely(0.1);
  draw_commands(random, o);
}

void draw_limits(const Options& o, Random& random, job::Spec& spec) {
  if (random.chance(o.limited)) {
    if (random.chance(0.5)) spec.budget_total = cost_of(o, 10) * 3 * random.unit();
    else spec.max_duration = Duration{static_cast<Nanos>(static_cast<double>(o.work) * (0.3 + 3 * random.unit()))};
  }
  if (!random.chance(o.due)) return;
  spec.deadline = job::Deadline{{}, Duration{static_cast<Nanos>(static_cast<double>(o.work) * (1 + 5 * random.unit()))},
                                random.chance(o.due > 1 ? 0.8 : 0.3)};
}

}  // namespace

namespace {

// What later themes want of a job, from a stream of its own.
void add_themes(const Options& o, int index, job::Spec& spec) {
  Random themes(o.seed * 47 + static_cast<std::uint64_t>(index));
  if (o.chatter > 0) {
    spec.recovery.restart_one = themes.chance(0.7);
    spec.recovery.hangs = themes.chance(0.3) ? job::Hangs::tell : job::Hangs::restart;
    spec.recovery.hang_after = Duration{o.hang_after};
  }
  if (o.images > 0) {
    if (themes.chance(0.9)) spec.image = ImageHub::written(static_cast<int>(themes.below(static_cast<std::uint64_t>(o.images))));
    spec.constraints.image_tags = themes.chance(o.image_tags);
  }
}

}  // namespace

job::Spec draw_spec(const Options& o, int index, Random& random) {
  job::Spec spec;
  spec.name = "job" + std::to_string(index);
  spec.run = "train";
  if (random.chance(0.7) || o.gpus_for_all) {
    job::GpuRequest gpu;
    gpu.count_min = gpu.count_max = static_cast<int>(random.between(1, o.gpus_per_host));
    spec.resources.gpus.push_back(gpu);
  }
  spec.resources.cpus = 1;
  spec.recovery.lost_after = Duration{o.lost_after};
  spec.recovery.lease = Duration{o.lease};
  spec.checkpoint.interval = job::CheckpointPolicy::Interval::fixed;
  spec.checkpoint.every = Duration{o.save_every};
  spec.checkpoint.keep = job::KeepPolicy::newest(o.keep);
  if (random.chance(o.replicated)) spec.twins = static_cast<int>(random.between(2, 3));
  if (random.chance(o.urgent)) spec.priority = static_cast<int>(random.between(-2, 2));
  if (random.chance(o.owned)) spec.owner = random.chance(0.5) ? "ada" : "bob";
  if (random.chance(o.standby)) spec.checkpoint.standby = true;
  if (random.chance(o.tuned)) spec.checkpoint.interval = job::CheckpointPolicy::Interval::automatic;
  if (random.chance(o.secret)) spec.secrets.push_back("TOKEN");
  if (!o.prices.empty() || o.due > 0) spec.workload.work = Duration{o.work};
  draw_limits(o, random, spec);
  add_themes(o, index, spec);
  if (o.outputs > 0) {
    Random outputs(o.seed * 31 + static_cast<std::uint64_t>(index));
    if (outputs.chance(o.outputs))
      spec.outputs.push_back({"out", job::OutputWhen::always, outputs.chance(0.5) ? Duration{o.save_every} : Duration{}});
  }
  if (o.bags > 0) {
    Random bags(o.seed * 37 + static_cast<std::uint64_t>(index));
    if (index == 0 || bags.chance(o.bags)) return draw_bag(o, bags, spec), spec;
  }
  if (o.services > 0) {
    Random services(o.seed * 41 + static_cast<std::uint64_t>(index));
    if (index == 0 || services.chance(o.services)) return draw_service(o, index, services, spec), spec;
  }
  if (o.ganged > 0 && (index < 2 || random.chance(o.ganged))) {
    // One that lies, or where nothing lives for long, can be avoided.
    spec.num_nodes = static_cast<int>(random.between(2, std::max(2, std::min(3, o.hosts - (o.liar >= 0 ? 1 : 0)))));
    spec.constraints.any_interconnect = true;
    spec.twins = 1;
    spec.checkpoint.standby = false;
    if (o.elastic > 0 && random.chance(o.elastic)) {
      spec.num_nodes = static_cast<int>(random.between(spec.num_nodes, std::max(spec.num_nodes, o.hosts)));
      spec.gang.nodes_min = static_cast<int>(random.between(1, std::min(2, spec.num_nodes - 1)));
    }
    if (o.elastic > 0 && random.chance(0.5)) spec.gang.spares = static_cast<int>(random.between(1, 2));
  }
  return spec;
}

const char* fault_name(FaultKind kind) { return k_names[static_cast<std::size_t>(kind)]; }

std::string to_text(const Fault& fault) {
  return std::string(fault_name(fault.kind)) + " at " + std::to_string(fault.at / k_ms) + " ms for " +
         std::to_string(fault.duration / k_ms) + " ms, host " + std::to_string(fault.host) + ", laptop " +
         std::to_string(fault.laptop) + ", job " + std::to_string(fault.job);
}

Options draw(std::uint64_t seed, Drawing drawing) {
  Random random(seed);
  Options o;
  o.seed = seed;
  o.registry = seed % 16 == 15 ? RegistryKind::sqlite : RegistryKind::memory;
  o.wait_mode = random.chance(0.4);
  o.encode = random.chance(0.08);
  o.hosts = static_cast<int>(random.between(2, 5));
  o.laptops = random.chance(0.2) ? 2 : 1;
  o.jobs = static_cast<int>(random.between(1, 4));
  o.gpus_per_host = static_cast<int>(random.between(1, 2));
  if (!o.wait_mode && o.hosts > 2 && random.chance(0.15)) o.liar = static_cast<int>(random.below(2));
  o.faults_until = random.between(5 * k_min, 30 * k_min);
  o.tick = random.chance(0.3) ? 200 * k_ms : random.between(400, 1000) * k_ms;
  if (random.chance(0.6)) o.loss = random.unit() * (random.chance(0.3) ? 0.3 : 0.03);
  if (random.chance(0.5)) o.duplicate = random.unit() * 0.2;
  if (random.chance(0.4)) o.long_delay = random.unit() * 0.02;
  if (o.encode && random.chance(0.5)) o.bad_bytes = random.unit() * 0.02;
  o.delay = random.between(1, 400) * k_ms;
  if (random.chance(0.5)) o.kill_point = random.unit() * 0.02;
  if (random.chance(0.5)) o.torn_transfer = random.unit() * 0.5;
  if (random.chance(0.5)) o.skew = 0.001 * random.unit();
  if (random.chance(0.2)) o.start_problem = random.unit() * 0.1;
  o.lost_after = random.between(10, 60) * k_s;
  o.lease = random.chance(0.5) ? random.between(60, 240) * k_s : random.between(5, 60) * k_min;
  if (o.wait_mode) {
    // Wait for the lease: a silent attempt has ended by itself before another is started. Its last line acts 15 s after
    // deadline and grace; a host's clock may go slower than ours.
    o.lease = random.between(60, 180) * k_s;
    o.lost_after = o.lease + o.lease / 500 + 30 * k_s + 30 * k_s;
  }
  o.long_delay_max = 2 * std::max(o.lease, o.lost_after);
  o.work = random.between(30, 900) * k_s;
  o.save_every = std::max<Nanos>(o.work / random.between(2, 20), 2 * k_s);
  o.start_time = random.between(100, 8000) * k_ms;
  o.transfer_time = random.between(50, 5000) * k_ms;
  if (random.chance(0.25)) o.program_fails = random.unit() * 0.3;
  Random faults = random.fork();
  draw_faults(faults, o);
  draw_early_cancel(faults, o);
  // Later inventions have a stream of their own, so that seeds without them are what they were.
  Random later(~seed);
  draw_crowd(later, o);
  draw_nearly_full(later, o);
  draw_overtaking(later, o);
  draw_all_full(later, o);
  draw_unwilling(later, o);
  draw_keep(later, o);
  Random gangs(seed * 0xD1B54A32D192ED03u + 7);
  draw_gangs(gangs, o);
  Random sizes(seed * 0xBF58476D1CE4E5B9u + 3);
  if (o.ganged > 0 && sizes.chance(0.6)) o.elastic = sizes.unit();
  Random wishes(seed * 0x9E3779B97F4A7C15u + 1);
  draw_wishes(wishes, o);
  Random points(seed * 0x94D049BB133111EBu + 5);
  if (points.chance(0.3)) o.point_faults = 0.003 * points.unit();
  if (points.chance(0.4)) o.words = 1;
  if (points.chance(0.3)) o.rich_faults = 0.3 * points.unit();
  if (points.chance(0.3)) o.outputs = points.unit();
  Random rich(seed * 0xD6E8FEB86659FD93u + 19);
  const std::optional<std::size_t> wanted = theme_of(drawing);
  const bool is_rich = drawing != Drawing::first && rich.chance(0.75);
  if (is_rich || wanted) condense(rich, o), enrich(rich, o);
  Random bags(seed * 0xA24BAED4963EE407u + 13);
  if (!wanted) draw_bags(bags, o);
  Random themes(seed * 0xE7037ED1A0B428DBu + 23);
  const bool has_theme = wanted || (drawing >= Drawing::third && is_rich && o.bags == 0 && themes.chance(0.5));
  const std::size_t drawn = themes.below(drawing == Drawing::third ? k_themes_of_third : k_themes.size());
  if (has_theme) set_theme(themes, o, wanted.value_or(drawn));
  Random services(seed * 0x9FB21C651E98DF25u + 17);
  if (!has_theme) draw_services(services, o);
  return o;
}

Options quiet_options() {
  Options o;
  o.seed = 1;
  o.hosts = 2;
  o.jobs = 0;
  o.tick = 200 * k_ms;
  o.delay = 10 * k_ms;
  o.lost_after = 30 * k_s;
  o.lease = 10 * k_min;
  o.work = 10 * k_min;
  o.save_every = k_min;
  o.start_time = k_s;
  o.transfer_time = 500 * k_ms;
  return o;
}

}  // namespace gridctl::sim
