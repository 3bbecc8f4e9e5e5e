// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <cmath>
#include <csignal>

#include "cmd/commands.hpp"
#include "cmd/provider_facts.hpp"
#include "cmd/sim_question.hpp"
#include "os/loop.hpp"
#include "sched/interval.hpp"

namespace gridctl::cmd {

namespace sim {
namespace {
using forecast::HostModel;
using Interval = job::CheckpointPolicy::Interval;
constexpr std::size_t k_alone_max = 8;  // hosts that are also tried alone

// Returns the hosts that can run it, if all of them are available.
Result<std::vector<const HostModel*>> fitting(const SimQuestion& question) {
  const forecast::Choice choice{"", question.spec};
  forecast::Scheduler scheduler(question.grid, choice);
  forecast::Scheduler::Now now;
  now.seen.assign(question.grid.hosts.size(), true);
  now.work = question.grid.work;
  if (question.spec.deadline) now.time_left = seconds(question.spec.deadline->after);
  std::vector<const HostModel*> hosts;  // best first
  const auto add = [&](const HostName& name) {
    for (const HostModel& host : question.grid.hosts)
      if (host.facts.name == name) hosts.push_back(&host);
  };
  if (scheduler.is_gang()) {
    const sched::GangDecision gang = scheduler.decide_gang(now, {});
    if (!gang.plan) return nothing_fits(question.spec, gang);
    for (const sched::Placement& member : gang.plan->members) add(member.host);
    return hosts;
  }
  const sched::Decision decision = scheduler.decide(now, scheduler.known(now), {});
  if (!decision.placement) return nothing_fits(question.spec.name, decision);
  add(decision.placement->host);
  for (const sched::Placement& other : decision.runners_up) add(other.host);
  return hosts;
}

sched::Interval tuned_for(const SimQuestion& question, const HostModel& host) {
  sched::CheckpointCost cost;
  const auto span = [](double s) { return std::chrono::milliseconds{std::llround(s * 1000)}; };
  cost.stall = std::max<Duration>(span(question.grid.stall), std::chrono::milliseconds{10});
  cost.upload = span(host.upload);
  cost.restart = question.spec.recovery.lost_after + span(host.start + host.restore);
  return sched::checkpoint_interval(cost, std::max(host.rate_per_hour, 1e-9));
}

SimRow row_of(const SimQuestion& question, const job::CheckpointPolicy& policy, Duration tuned) {
  SimRow row;
  const int nodes = question.spec.num_nodes;
  row.hosts = nodes > 1 ? "any " + std::to_string(nodes) + " hosts" : "any host";
  row.providers = question.spec.constraints.providers;
  row.interval = policy.interval;
  if (policy.interval == Interval::fixed) row.every = seconds(policy.every);
  row.checkpoints = policy.interval == Interval::off ? "off"
                    : policy.interval == Interval::fixed
                        ? format_duration(policy.every)
                        : "tuned (" + format_duration(forecast::round_for_people(tuned)) + ")";
  if (policy == question.spec.checkpoint && policy.interval != Interval::automatic)
    row.checkpoints += ", as in the file";
  return row;
}

// Describes a way to run it, with its place in the report.
struct Try {
  SimRow row;
  forecast::Choice choice;
};

std::vector<Try> intervals_of(const SimQuestion& question, Duration tuned) {
  std::vector<job::CheckpointPolicy> policies = question.intervals;
  job::CheckpointPolicy one = question.spec.checkpoint;
  if (policies.empty()) {
    one.interval = Interval::automatic;
    one.every = {};
    policies.push_back(one);
    if (question.spec.checkpoint.interval != Interval::automatic) policies.push_back(question.spec.checkpoint);
    for (const Duration every : forecast::around(tuned)) {
      one.interval = Interval::fixed;
      one.every = every;
      if (!(one == question.spec.checkpoint)) policies.push_back(one);
    }
  }
  std::vector<Try> tries;
  for (job::CheckpointPolicy& policy : policies) {
    policy.path = question.spec.checkpoint.path;
    policy.keep = question.spec.checkpoint.keep;
    Try next{row_of(question, policy, tuned), {"", question.spec}};
    next.choice.spec.checkpoint = policy;
    tries.push_back(std::move(next));
  }
  return tries;
}

bool alike(const HostModel& a, const HostModel& b) {
  return a.facts.host_class == b.facts.host_class && a.facts.price_per_hour == b.facts.price_per_hour &&
         a.rate_per_hour == b.rate_per_hour && a.outage == b.outage && a.start == b.start && a.speed == b.speed &&
         a.upload == b.upload && a.recorded == nullptr && b.recorded == nullptr;
}

// Includes the tuned interval on one class of hosts, and on single hosts; one of several equal hosts stands for all.
std::vector<Try> hosts_of(const SimQuestion& question, const std::vector<const HostModel*>& hosts, const Try& like) {
  std::vector<Try> tries;
  const auto add = [&](std::string name, std::vector<std::string> providers, const HostModel& first) {
    Try next = like;
    if (like.choice.spec.checkpoint.interval == Interval::automatic)
      next.row = row_of(question, like.choice.spec.checkpoint, tuned_for(question, first).every);
    next.row.hosts = std::move(name);
    next.row.providers = providers;
    next.choice.spec.constraints.providers = std::move(providers);
    tries.push_back(std::move(next));
  };
  for (const std::string_view host_class : {"datacenter", "cloud", "market", "home"}) {
    std::vector<std::string> names;
    const HostModel* first = nullptr;
    for (const HostModel* host : hosts)
      if (host->facts.host_class == host_class) {
        names.push_back(host->facts.name.value);
        first = first == nullptr ? host : first;
      }
    const std::string count = std::to_string(names.size());
    if (names.size() > 1 && names.size() < hosts.size())
      add(std::string(host_class) + ", " + count + " hosts", names, *first);
  }
  std::vector<const HostModel*> alone;
  for (const HostModel* host : hosts)
    if (std::ranges::none_of(alone, [&](const HostModel* other) { return alike(*host, *other); }))
      alone.push_back(host);
  if (std::ranges::any_of(hosts, [&](const HostModel* host) {
        return host->facts.price_per_hour != hosts.front()->facts.price_per_hour;
      })) {
    add("cheapest per hour", question.spec.constraints.providers, *hosts.front());
    tries.back().choice.by_price = true;
  }
  if (hosts.size() < 2 || alone.size() > k_alone_max) return tries;
  for (const HostModel* host : alone) add(host->facts.name.value + " alone", {host->facts.name.value}, *host);
  return tries;
}

// Shows how the closed form gives a figure near the simulated one, for the host that is taken first.
std::vector<std::string> arithmetic_of(const SimQuestion& question, const HostModel& host) {
  if (host.recorded == nullptr && host.rate_per_hour <= 0)
    return {host.facts.name.value + " is declared never to fail, so the longest interval is best"};
  const sched::Interval tuned = tuned_for(question, host);
  std::vector<std::string> lines{"tuned for " + host.facts.name.value + ": every " + tuned.reason};
  if (host.recorded != nullptr) return lines;
  const double mtbf = 3600 / host.rate_per_hour, tau = seconds(tuned.every);
  const double silence = seconds(question.spec.recovery.lost_after), restart = host.start + host.restore;
  const double time = sched::expected_time(question.grid.work / host.speed, tau, question.grid.stall, mtbf,
                                           restart + host.upload, silence);
  lines.push_back(
      "closed form while another such host is always free: T = (M + D) e^(R/M) (e^((tau + C)/M) - 1) W/tau = " +
      long_time(time) + " with M " + long_time(mtbf) + ", D " + long_time(silence) + ", R " +
      long_time(restart + host.upload) + ", tau " + long_time(tau) + ", C " + ui::number(question.grid.stall, 3) +
      "s, W " + long_time(question.grid.work / host.speed));
  return lines;
}

// Runs on another thread, so that Ctrl-C ends it at once.
Result<SimReport> simulate(const SimQuestion& question, std::vector<Try> tries) {
  SimReport report;
  std::atomic<bool> stopped = false;
  os::Loop loop;
  {
    const auto interrupted = [&] {
      stopped = true;
      loop.stop();
    };
    const os::Loop::Watch on_int = loop.on_signal(SIGINT, interrupted);
    const os::Loop::Watch on_term = loop.on_signal(SIGTERM, interrupted);
    os::Pool pool(1);  // ends before they do: who sends the signal twice is told, too
    pool.submit([&] {
      forecast::Settings settings = question.settings;
      settings.go_on = [&] { return !stopped; };
      for (Try& one : tries) {
        std::optional<forecast::Figures> figures = forecast::expect(question.grid, one.choice, settings);
        if (!figures) return;
        one.row.figures = *figures;
        report.rows.push_back(std::move(one.row));
      }
      loop.post([&] { loop.stop(); });
    });
    loop.run();
  }
  if (stopped) return make_error(Code::interrupted, "interrupted; nothing was changed");
  for (std::size_t i = 0; i < report.rows.size(); ++i) {
    if (forecast::faster(report.rows[i].figures, report.rows[report.fastest].figures)) report.fastest = i;
    if (forecast::cheaper(report.rows[i].figures, report.rows[report.cheapest].figures)) report.cheapest = i;
  }
  return report;
}

Result<int> run(Context& context, const Parsed& parsed) {
  TRY_ASSIGN(const SimQuestion question, read_sim_question(context, parsed));
  Result<std::vector<const HostModel*>> found = fitting(question);
  if (!found && !parsed.has("from-registry")) found.error().hint = "gridctl sim --help";
  TRY_ASSIGN(const std::vector<const HostModel*> hosts, std::move(found));
  const bool gang = question.spec.num_nodes > 1;
  HostModel first = gang ? forecast::together(hosts) : *hosts.front();
  if (gang) first.facts.name.value = std::to_string(hosts.size()) + " hosts like " + first.facts.name.value;
  std::vector<Try> tries = intervals_of(question, tuned_for(question, first).every);
  if (!gang)
    for (Try& one : hosts_of(question, hosts, Try(tries.front()))) tries.push_back(std::move(one));
  TRY_ASSIGN(SimReport report, simulate(question, std::move(tries)));
  report.arithmetic = arithmetic_of(question, first);
  if (context.json) context.print_line(sim_json(question, report));
  else context.print(sim_text(context, question, report));
  return 0;
}
}  // namespace
}  // namespace sim

const Command k_sim{
    .name = "sim",
    .summary = "predict time, cost and lost work of a job",
    .examples = {{"Predict when the job will be done, and at what cost",
                  "gridctl sim train.yaml --work 40h --from-registry"},
                 {"Predict it for hosts that you might rent",
                  "gridctl sim train.yaml --work 10d --hosts hosts.yaml --deadline 14d"},
                 {"Replay a recorded trace of spot instances",
                  "gridctl sim train.yaml --work 40h --trace us-west-2a_v100_1.json"},
                 {"Compare intervals, for a checkpoint of 14 GB",
                  "gridctl sim train.yaml --work 40h --hosts hosts.yaml --size 14GB --interval auto,5m,30m,off"}},
    .description =
        "Simulates the job many times on virtual hosts that fail at declared or observed rates, with the controller's "
        "own decisions: which host to use, when to give up a silent host, how often to save. For several checkpoint "
        "intervals and choices of hosts, it reports the expected time and cost with the range of 9 in 10 runs, the "
        "lost work, and the share of time spent on recovery. It starts and changes nothing.\n\nANY HOST is what "
        "gridctl would do: choose by expected total cost and, with a deadline, choose hosts that meet it and leave "
        "unreliable ones in time. CHEAPEST PER HOUR is for comparison: the host with the lowest hourly price, "
        "regardless of speed, failures and deadline.\n\nHosts come from a file, from the registry, or from "
        "availability traces; see gridctl-sim(5). A trace replaces the failure rates: the same proportion of hosts is "
        "up. Without other hosts, the trace defines its own.\n\nTUNED is gridctl's default (checkpoint.interval: "
        "auto): the interval follows from the measured cost of a checkpoint and the host's failure rate. The figure "
        "next to it is for the first host. LOST is work that had to be repeated. RECOVERY is the share of time between "
        "a failure and the restart of the job.\n\nA job on several hosts (num_nodes) stops when one of them fails and "
        "continues when there are enough hosts again; its hosts move for no deadline or price here, and an elastic job "
        "grows only when it restarts. Links between hosts are not considered.\n\nThe same seed gives the same figures, "
        "and all choices meet the same failures.",
    .positionals = {{"FILE.yaml", Completion::file}},
    .options =
        {{"work", 0, "TIME", "compute time on a host of speed 1, without checkpoints and failures"},
         {"hosts", 0, "FILE", "hosts and their failure rates; see gridctl-sim(5)", "", Completion::file},
         {"from-registry", 0, "", "use the registered providers and gridctl's observations of them"},
         {"trace", 0, "[HOST=]FILE", "recorded availability of HOST, or of all hosts", "", Completion::file, "", true},
         {"runs", 0, "N", "number of simulated runs per choice", "1000"},
         {"seed", 0, "N", "random seed; the same seed gives the same figures", "1"},
         {"interval", 0, "LIST", "checkpoint intervals to compare: auto,5m,1h,off", "auto and the intervals around it",
          Completion::nothing, "", true},
         {"stall", 0, "TIME", "how long a checkpoint pauses the job",
          "as measured for a job with this name, otherwise 5s"},
         {"size", 0, "SIZE", "size of a checkpoint; with the host's uplink, it determines when the checkpoint is safe",
          "as measured, otherwise 1GiB"},
         {"upload", 0, "TIME", "time until a checkpoint is safe, on every host", "size over uplink"},
         {"restore", 0, "TIME", "time to bring a checkpoint to a new host", "as long as the upload"},
         {"deadline", 0, "TIME", "deadline of the job; gridctl chooses hosts for it and reports how likely it is met",
          "deadline or max_duration of the job file"},
         {"horizon", 0, "TIME", "count runs that take longer as unfinished", "20 times the work, at least 30d"}},
    .exit_codes = {4, 7, 130},
    .run = sim::run};

}  // namespace gridctl::cmd
