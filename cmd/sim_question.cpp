// SPDX-License-Identifier: Apache-2.0
#include "cmd/sim_question.hpp"

#include <cmath>
#include <filesystem>

#include "base/bytes.hpp"
#include "base/text.hpp"
#include "config/job_file.hpp"
#include "control/fleet/host_facts.hpp"
#include "control/follow/tuning.hpp"
#include "forecast/hosts_file.hpp"
#include "sched/standing/reliability.hpp"
#include "ui/reliability.hpp"

namespace gridctl::cmd {

namespace {
constexpr std::size_t k_hosts_file_max = 256 * 1024;  // bytes, as of a job file
constexpr std::uint64_t k_runs_max = 1'000'000;
constexpr double k_size_assumed = 1024.0 * 1024 * 1024;  // bytes of a checkpoint
constexpr double k_horizon_work = 20;                    // times the work, at least
constexpr double k_horizon_min = 30 * 86400.0;           // seconds
constexpr double k_horizon_max = 3650 * 86400.0;
constexpr double k_spread_max = 1;  // of what is hardly known: the few runs that draw the worst must not be the mean
constexpr double k_band = 1.645;    // standard deviations of a normal that hold 90 %

// Holds the costs, as given or as seen in an earlier job with this name.
struct Costs {
  std::optional<double> stall, upload, restore;  // seconds
  double size = k_size_assumed;                  // bytes
};

forecast::HostModel model_of(const registry::Provider& provider) {
  forecast::HostModel host;
  host.facts = control::facts_of(provider);
  const sched::Reliability seen = ui::reliability(provider);
  host.rate_per_hour =
      seen.rate_per_hour + static_cast<double>(provider.inventory->gpus.size()) * sched::k_gpu_rate_per_hour;
  if (seen.low_per_hour > 0)
    host.rate_spread = std::min(k_spread_max, std::log(seen.high_per_hour / seen.low_per_hour) / (2 * k_band));
  const bool watched = seen.hours > 0 && seen.up_share > 0 && seen.up_share < 1;
  host.outage = watched ? (1 - seen.up_share) / seen.up_share / seen.rate_per_hour * 3600 : forecast::k_outage_assumed;
  const auto start = ui::figure(provider, "start_time");
  host.start = start && *start > 0 ? *start : forecast::k_start_assumed;
  host.uplink = forecast::assumed_uplink(provider.host_class);
  return host;
}

Result<std::vector<forecast::HostModel>> registered(registry::HostRecords& registry) {
  TRY_ASSIGN(const std::vector<registry::Provider> providers, registry.providers());
  if (providers.empty())
    return make_error(Code::no_provider_fits, "no provider is registered",
                      "gridctl provider register NAME ssh://user@host");
  TRY_ASSIGN(auto links, control::link_figures(registry));
  std::vector<forecast::HostModel> hosts;
  for (const registry::Provider& provider : providers) {
    hosts.push_back(model_of(provider));
    sched::Figures& figures = links[provider.name.value];
    if (const auto up = figures.find("inet_up"); up != figures.end() && up->second > 0)
      hosts.back().uplink = up->second;
    hosts.back().facts.figures.merge(figures);
  }
  return hosts;
}

Result<std::string> read_text(const std::string& path, std::string_view what, std::uint64_t bytes_max) {
  Result<std::string> text = os::read_file(path, bytes_max);
  if (text) return text;
  return make_error(Code::bad_job_file,
                    "cannot read the " + std::string(what) + " '" + sanitize(path) + "': " + text.error().message);
}

// --- Traces ----------------------------------------------------------------------------------------------------------

Result<forecast::Trace> read_trace(const std::string& path) {
  TRY_ASSIGN(const std::string text, read_text(path, "trace", forecast::k_trace_bytes_max));
  return forecast::parse_trace(text, path);
}

void make_hosts_of(const forecast::Trace& trace, std::size_t number, SimQuestion& question) {
  const std::string stem = to_name(std::filesystem::path(trace.name).stem().string()).substr(0, 50);
  const std::string name = check_name("host", stem) ? stem : "trace";
  const int count = std::min<int>(trace.hosts_max, forecast::k_hosts_max);
  for (int i = 0; i < count; ++i) {
    forecast::HostModel host =
        forecast::host_for(question.spec, count == 1 ? name : name + "-" + std::to_string(i + 1), "market");
    host.recorded = forecast::up_times(trace, i, count);
    host.trace = number;
    question.grid.hosts.push_back(std::move(host));
  }
}

Error no_such_host(const std::string& name, const std::vector<forecast::HostModel>& hosts) {
  std::vector<std::string> names;
  for (const forecast::HostModel& host : hosts) names.push_back(host.facts.name.value);
  const std::string near = nearest(name, names);
  return make_error(Code::usage, "--trace " + sanitize(name) + "=…: no host has that name" +
                                     (near.empty() ? "" : "; did you mean '" + near + "'?"));
}

Result<void> apply_traces(const Parsed& parsed, bool hosts_given, SimQuestion& question) {
  std::vector<forecast::HostModel>& hosts = question.grid.hosts;
  std::size_t number = 0;
  std::optional<forecast::Trace> of_all;
  for (const std::string& given : parsed.values("trace")) {
    const std::size_t equals = given.find('=');
    const std::string name = given.substr(0, equals);
    const auto host = equals == std::string::npos
                          ? hosts.end()
                          : std::ranges::find_if(hosts, [&](const auto& h) { return h.facts.name.value == name; });
    const bool named = equals != std::string::npos && host == hosts.end() && hosts_given;
    if (named && !std::filesystem::exists(given)) return no_such_host(name, hosts);
    TRY_ASSIGN(forecast::Trace trace, read_trace(host == hosts.end() ? given : given.substr(equals + 1)));
    ++number;
    if (host != hosts.end()) {
      host->recorded = forecast::up_times(trace, 0, 1);
      host->trace = number;
    } else if (!hosts_given) {
      make_hosts_of(trace, number, question);
    } else if (of_all) {
      return make_error(Code::usage, "several traces need the host of each: --trace HOST=FILE", "gridctl sim --help");
    } else {
      of_all = std::move(trace);
    }
  }
  if (!of_all) return {};
  const auto rest = std::ranges::count_if(hosts, [](const auto& h) { return h.recorded == nullptr; });
  int rank = 0;
  for (forecast::HostModel& host : hosts) {
    if (host.recorded != nullptr) continue;
    host.recorded = forecast::up_times(*of_all, rank++, static_cast<int>(rest));
    host.trace = 0;
  }
  return {};
}

// --- Costs -----------------------------------------------------------------------------------------------------------

Result<Costs> costs_of(registry::JobRecords& registry, const Parsed& parsed, SimQuestion& question) {
  Costs costs;
  bool size_known = false;
  const Result<JobId> former = registry.resolve(question.spec.name);
  if (former) {
    TRY_ASSIGN(const std::vector<registry::Checkpoint> saved, registry.checkpoints(*former));
    const sched::CheckpointCost seen = control::measured_cost(saved, {}, question.spec.recovery.lost_after);
    if (seen.stall > Duration{}) costs.stall = seconds(seen.stall);
    if (seen.upload > Duration{}) costs.upload = seconds(seen.upload);
    if (!saved.empty() && saved.back().bytes > 0) {
      costs.size = static_cast<double>(saved.back().bytes);
      size_known = true;
    }
    if (costs.stall || costs.upload)
      question.assumptions.push_back("the cost of a checkpoint is that of job " + question.spec.name + " (" +
                                     former->value + ")");
  }
  if (parsed.has("size")) {
    const Result<std::uint64_t> size = parse_size(parsed.value("size"));
    if (!size || *size == 0 || *size > (std::uint64_t{1} << 50))
      return make_error(Code::usage, "--size " + sanitize(parsed.value("size")) + " is not a size from 1 byte to 1 PiB",
                        "write it as 800MiB or 14GB");
    costs.size = static_cast<double>(*size);
    costs.upload.reset();
    size_known = true;
  }
  for (const auto& [name, into] :
       {std::pair{"stall", &costs.stall}, {"upload", &costs.upload}, {"restore", &costs.restore}}) {
    TRY_ASSIGN(const std::optional<Duration> given, parsed.duration(name));
    if (given) *into = seconds(*given);
  }
  if (!costs.stall) question.assumptions.push_back("a checkpoint stalls the job for 5s (--stall)");
  if (!costs.upload && !size_known)
    question.assumptions.push_back("a checkpoint has 1 GiB (--size, or --upload and --restore)");
  return costs;
}

void charge(const Costs& costs, SimQuestion& question) {
  question.grid.stall = costs.stall.value_or(seconds(sched::k_stall_assumed));
  question.grid.state_bytes = costs.size;
  for (forecast::HostModel& host : question.grid.hosts) {
    const double over_link = costs.size * 8 / (host.uplink * 1e6);
    host.upload = costs.upload.value_or(over_link);
    host.restore = costs.restore.value_or(host.upload);
  }
}

// --- The rest --------------------------------------------------------------------------------------------------------

Result<job::CheckpointPolicy> policy_of(const std::string& text) {
  job::CheckpointPolicy policy;
  using Interval = job::CheckpointPolicy::Interval;
  if (text == "auto") return policy;
  policy.interval = text == "off" ? Interval::off : Interval::fixed;
  if (text == "off") return policy;
  const Result<Duration> every = parse_duration(text);
  if (!every || *every < std::chrono::seconds{1} || *every > std::chrono::hours{720})
    return make_error(Code::usage, "--interval " + sanitize(text) + " is neither auto, off, nor a time from 1s to 30d",
                      "write several as --interval auto,5m,1h");
  policy.every = *every;
  return policy;
}

// In a run, the time counts from the submission, which is now.
Result<void> read_deadline(const Context& context, const Parsed& parsed, SimQuestion& question) {
  job::Spec& spec = question.spec;
  TRY_ASSIGN(const std::optional<Duration> given, parsed.duration("deadline"));
  if (given) {
    spec.deadline = job::Deadline{{}, *given, false};
  } else if (spec.deadline) {
    const WallTime now = context.clock.wall();
    spec.deadline->after = std::chrono::milliseconds{job::moment_of(*spec.deadline, now).ms - now.ms};
    spec.deadline->at.reset();
  }
  if (spec.deadline && spec.deadline->after <= Duration{})
    return make_error(Code::usage, "the deadline has passed", "give another one with --deadline TIME");
  if (spec.deadline) question.settings.deadline = seconds(spec.deadline->after);
  else if (spec.max_duration) question.settings.deadline = seconds(*spec.max_duration);
  return {};
}

Result<void> read_settings(const Context& context, const Parsed& parsed, SimQuestion& question) {
  forecast::Settings& settings = question.settings;
  TRY_ASSIGN(const std::optional<std::uint64_t> runs, parsed.whole("runs"));
  settings.runs = runs.value_or(settings.runs);
  if (settings.runs == 0 || settings.runs > k_runs_max)
    return make_error(Code::usage, "--runs must be from 1 to " + std::to_string(k_runs_max));
  TRY_ASSIGN(const std::optional<std::uint64_t> seed, parsed.whole("seed"));
  settings.seed = seed.value_or(settings.seed);
  TRY_ASSIGN(const std::optional<Duration> work, parsed.duration("work"));
  if (!work || *work <= Duration{})
    return make_error(Code::usage, "'gridctl sim' needs --work TIME: how long the job computes on a host of speed 1",
                      "gridctl sim FILE.yaml --hosts FILE --work 40h");
  question.grid.work = seconds(*work);
  TRY_ASSIGN(const std::optional<Duration> horizon, parsed.duration("horizon"));
  question.grid.horizon = horizon
                              ? seconds(*horizon)
                              : std::min(std::max(k_horizon_work * question.grid.work, k_horizon_min), k_horizon_max);
  if (horizon && *horizon <= Duration{}) return make_error(Code::usage, "--horizon must be longer than 0");
  TRY(read_deadline(context, parsed, question));
  settings.budget = question.spec.budget_total;
  for (const std::string& list : parsed.values("interval"))
    for (const std::string& one : split(list, ',')) {
      TRY_ASSIGN(job::CheckpointPolicy policy, policy_of(std::string(trim(one))));
      question.intervals.push_back(std::move(policy));
    }
  return {};
}

void tell_of_hosts(SimQuestion& question, bool from_registry) {
  const bool guessed = std::ranges::any_of(question.grid.hosts,
                                           [](const auto& h) { return h.recorded == nullptr && h.rate_per_hour > 0; });
  if (from_registry && guessed)
    question.assumptions.emplace_back(
        "failure rates are those of `gridctl provider show`, each run drawing them from their bands");
  if (std::ranges::any_of(question.grid.hosts, [](const auto& h) { return h.recorded != nullptr; }))
    question.assumptions.emplace_back(
        "hosts of a trace: each run begins at a random point of it, and gridctl learns their failure rates during the "
        "run");
}

// Starts nothing, so that secrets need not be known.
Result<config::ParsedJob> read_job(const std::string& path) {
  TRY_ASSIGN(const std::string text, read_text(path, "job file", k_hosts_file_max));
  const std::filesystem::path folder = std::filesystem::absolute(path).parent_path();
  config::Context context = config::local_context(folder.string());
  context.environment = [known = context.environment](std::string_view name) {
    const std::optional<std::string> value = known(name);
    return value ? value : std::optional<std::string>("");
  };
  return config::parse_job_file(text, path, context);
}
}  // namespace

Result<SimQuestion> read_sim_question(Context& context, const Parsed& parsed) {
  const bool from_registry = parsed.has("from-registry"), from_file = parsed.has("hosts");
  if (from_registry && from_file)
    return make_error(Code::usage, "--hosts and --from-registry exclude each other", "gridctl sim --help");
  if (!from_registry && !from_file && !parsed.has("trace"))
    return make_error(Code::usage, "which hosts? give --hosts FILE, --from-registry or --trace FILE",
                      "gridctl sim --help");
  SimQuestion question;
  TRY_ASSIGN(config::ParsedJob job, read_job(parsed.positionals[0]));
  for (const std::string& warning : job.warnings) context.warn(warning);
  if (job.spec.twins > 1)
    context.note("warning: one twin is simulated, not " + std::to_string(job.spec.twins) + " at once");
  question.spec = std::move(job.spec);
  question.spec.constraints.image_tags = true;  // a registry that answers with digests is assumed
  TRY(read_settings(context, parsed, question));
  TRY_ASSIGN(registry::Registry registry, context.open_for_reading());
  if (from_registry) {
    TRY_ASSIGN(question.grid.hosts, registered(registry));
  } else if (from_file) {
    const std::string path = parsed.value("hosts");
    TRY_ASSIGN(const std::string text, read_text(path, "hosts file", k_hosts_file_max));
    TRY_ASSIGN(question.grid.hosts, forecast::parse_hosts_file(text, path, question.spec));
  }
  TRY(apply_traces(parsed, from_registry || from_file, question));
  TRY_ASSIGN(const Costs costs, costs_of(registry, parsed, question));
  charge(costs, question);
  tell_of_hosts(question, from_registry);
  return question;
}

}  // namespace gridctl::cmd
