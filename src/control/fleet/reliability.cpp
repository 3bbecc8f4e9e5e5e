// SPDX-License-Identifier: Apache-2.0
#include "control/fleet/reliability.hpp"

#include <algorithm>
#include <utility>

#include "base/text.hpp"
#include "os/log.hpp"

namespace gridctl::control {

namespace {
constexpr Duration k_save_first = std::chrono::seconds{30};  // of an observation: a restarting daemon leaves few rows
constexpr Duration k_save_pause = std::chrono::minutes{5};   // what kill -9 of the daemon may cost
constexpr Duration k_judge_pause = std::chrono::seconds{60};
constexpr std::size_t k_starts_max = 50;     // of which the 90th percentile is taken
constexpr std::int64_t k_end_slack_ms = 120'000;  // that a host may be gone before the end that was told
constexpr std::size_t k_placed_max = 10000;  // attempts on their way

void report(const Result<void>& saved) {
  if (!saved) os::log(os::LogLevel::warn, "while recording the history of hosts: " + saved.error().one_line());
}

std::vector<sched::Watched> watched_host(const std::vector<registry::HostSpan>& spans) {
  std::vector<sched::Watched> seen;
  for (const registry::HostSpan& span : spans)
    if (span.unit.empty()) seen.push_back({span.began_at, span.ended_at, !span.cause.empty()});
  return seen;
}

std::map<std::string, int> failures_by_gpu(const std::vector<registry::HostSpan>& spans) {
  std::map<std::string, int> failures;
  for (const registry::HostSpan& span : spans)
    if (!span.unit.empty()) ++failures[span.unit];
  return failures;
}

std::string attempt_key(const JobId& job, Epoch epoch) { return job.value + "/" + std::to_string(epoch.value); }
}  // namespace

void ReliabilityLog::save() {
  report(registry_.together([this]() -> Result<void> {
    for (auto& [name, host] : hosts_) save_open({name}, host);
    return {};
  }));
}

void ReliabilityLog::event(const HostName& name, const std::string& kind, const std::string& text) {
  report(registry_.add_host_event({0, name, clock_.wall(), kind, text}));
}

ReliabilityLog::Host& ReliabilityLog::host_of(const HostName& name) {
  Host& host = hosts_[name.value];
  if (host.loaded) return host;
  const Result<std::vector<registry::HostSpan>> spans = registry_.host_spans(name);
  if (!spans) {  // asked again with the next news
    report(spans.error());
    return host;
  }
  host.loaded = true;
  host.dirty = true;
  host.seen = watched_host(*spans);
  host.gpu_failures = failures_by_gpu(*spans);
  return host;
}

// Returns true if the host was drained, or its agreed time was over.
bool ReliabilityLog::is_excused(const Host& host, WallTime at) {
  return host.drained || (host.ends && at.ms >= host.ends->ms - k_end_slack_ms);
}

void ReliabilityLog::answered(const registry::Provider& provider, const std::string& boot_id,
                              std::optional<WallTime> ends) {
  Host& host = host_of(provider.name);
  const WallTime now = clock_.wall();
  host.host_class = provider.host_class;
  host.drained = provider.drained;
  if (host.open && !host.boot_id.empty() && host.boot_id != boot_id) {
    // The host failed some time after its last answer.
    const bool excused = is_excused(host, host.open->ended_at);
    close(provider.name, host, host.open->ended_at, excused ? "" : "rebooted");
    event(provider.name, "rebooted", host.drained ? "rebooted while it was drained"
                                     : excused    ? "rebooted after its agreed time"
                                                  : "rebooted");
  }
  host.ends = ends;
  host.boot_id = boot_id;
  if (!host.open) {
    if (!host.seen.empty() && host.seen.back().failed && host.save_due != BootTime{})
      event(provider.name, "returned", "answers again");
    host.open = sched::Watched{now, now, false};
    host.save_due = clock_.boot() + k_save_first;
  }
  host.open->ended_at = std::max(host.open->ended_at, now);  // our own clock may be set back
}

void ReliabilityLog::lost(const registry::Provider& provider, Duration silent) {
  Host& host = host_of(provider.name);
  if (!host.open) return;
  host.drained = provider.drained;
  const WallTime last = host.open->ended_at;
  const bool excused = is_excused(host, last);
  close(provider.name, host, last, excused ? "" : "host_lost");
  if (excused && !host.drained)
    return event(provider.name, "ended", "its agreed time has ended, and it no longer answers");
  event(provider.name, "lost", "given up after " + format_duration(silent) + " of silence");
}

// Closes the present observation at `at`.
void ReliabilityLog::close(const HostName& name, Host& host, WallTime at, const std::string& cause) {
  sched::Watched ended = *std::exchange(host.open, std::nullopt);
  ended.ended_at = at;
  ended.failed = !cause.empty();
  host.seen.push_back(ended);
  host.dirty = true;
  next_judgement_ = {};
  report(registry_.save_host_span({name, "", ended.began_at, ended.ended_at, cause}));
}

void ReliabilityLog::gpus_judged(const HostName& name) {
  Host& host = host_of(name);
  const Result<std::vector<registry::HostSpan>> spans = registry_.host_spans(name);
  if (!spans) return report(spans.error());
  host.gpu_failures = failures_by_gpu(*spans);
}

// Records a failure that did not end the observation.
void ReliabilityLog::broke(const HostName& name, const std::string& cause, const std::string& text) {
  Host& host = host_of(name);
  const WallTime now = clock_.wall();
  if (is_excused(host, now)) return;
  host.seen.push_back({now, now, true});
  host.dirty = true;
  next_judgement_ = {};
  report(registry_.save_host_span({name, "", now, now, cause}));
  event(name, "broke_job", text);
}

void ReliabilityLog::on_step(const job::State& before, const job::Step& step) {
  const JobId& id = step.state.id;
  for (const job::AttemptRow& row : step.attempts) {
    const std::string key = attempt_key(id, row.attempt.epoch);
    if (row.state == job::k_row_starting) {
      if (placed_.size() < k_placed_max) placed_[key] = clock_.boot();
      continue;
    }
    const auto placed = placed_.find(key);
    for (const job::Member& member : row.attempt.members) {
      if (row.state != job::k_row_running) {
        if (member.end && (member.end->kind == job::EndKind::vanished || member.end->kind == job::EndKind::disk_full)) {
          const std::string cause(job::end_kind_name(member.end->kind));
          broke(member.host, cause, "job " + id.value + " was broken there: " + cause);
        }
        if (row.state == job::k_row_succeeded) blame_former_hosts(step.state, member.host, true);
        continue;
      }
      if (placed != placed_.end()) {
        Host& host = host_of(member.host);
        host.starts.push_back(clock_.boot() - placed->second);
        if (host.starts.size() > k_starts_max) host.starts.pop_front();
        host.dirty = true;
      }
      blame_former_hosts(before, member.host, false);
    }
    placed_.erase(key);
  }
}

// A job that one host has just started or finished failed on earlier hosts because of them, not because of the job.
void ReliabilityLog::blame_former_hosts(const job::State& state, const HostName& good, bool finished) {
  if (state.start_failures_in_row == 0 && state.failures.empty()) return;
  const Result<std::vector<registry::AttemptRecord>> attempts = registry_.attempts(state.id);
  if (!attempts) return report(attempts.error());
  std::set<std::string> blamed{good.value};  // where it failed too, it was not the host
  const auto failed_itself = [](const std::string& reason) { return is_one_of(reason, {job::end_kind_name(job::EndKind::exited), job::end_kind_name(job::EndKind::signalled)}); };
  if (finished)
    for (const registry::AttemptRecord& former : *attempts)
      if (former.provider == good && failed_itself(former.reason) && former.state == job::k_row_failed) return;
  int left = finished ? static_cast<int>(attempts->size()) : state.start_failures_in_row;
  for (auto former = attempts->rbegin(); former != attempts->rend() && left > 0; ++former) {
    const bool matches =
        former->state == job::k_row_failed && (finished ? failed_itself(former->reason) : former->reason == job::end_kind_name(job::EndKind::start_failed));
    if (!matches) continue;
    --left;
    if (!blamed.insert(former->provider.value).second) continue;
    broke(former->provider, finished ? "job_failed" : "start_failed",
          "job " + state.id.value +
              (finished ? " failed there, and finished on " : " could not start there, but started on ") + good.value);
  }
}

void ReliabilityLog::save_open(const HostName& name, Host& host) {
  if (!host.open || host.open->ended_at == host.open->began_at) return;
  report(registry_.save_host_span({name, "", host.open->began_at, host.open->ended_at, ""}));
}

void ReliabilityLog::tick(BootTime now) {
  std::vector<std::pair<const std::string, Host>*> due;
  for (auto& entry : hosts_)
    if (entry.second.open && now >= entry.second.save_due) due.push_back(&entry);
  const bool judges = now >= next_judgement_;
  if (due.empty() && !judges) return;
  // One transaction writes hundreds of hosts, because each transaction costs a synced file.
  report(registry_.together([&]() -> Result<void> {
    for (auto* entry : due) {
      entry->second.save_due = now + k_save_pause;
      save_open({entry->first}, entry->second);
      entry->second.dirty = true;
    }
    if (!judges) return {};
    next_judgement_ = now + k_judge_pause;
    judge_all();
    return {};
  }));
}

void ReliabilityLog::judge_all() {
  std::map<std::string, std::vector<double>> rates;  // by class
  for (auto& [name, host] : hosts_) {
    if (host.dirty) work_out({name}, host);
    rates[host.host_class].push_back(host.now.rate_per_hour);
  }
  for (auto& [name, host] : hosts_) {
    if (!host.loaded) continue;
    const double usual = sched::median_rate(rates[host.host_class], sched::class_rate_per_hour(host.host_class));
    std::string reason = sched::lemon_reason(host.now, host.host_class, usual);
    if (reason.empty() != host.shunned.empty())
      event({name}, reason.empty() ? "trusted" : "avoided",
            reason.empty() ? "it fails no more often than other hosts: jobs may run there again"
                           : reason + "; jobs run there only if no other host is suitable");
    host.shunned = std::move(reason);
  }
}

void ReliabilityLog::work_out(const HostName& name, Host& host) {
  host.dirty = false;
  std::vector<sched::Watched> seen = host.seen;
  if (host.open) seen.push_back(*host.open);
  host.now = sched::estimate(sched::class_rate_per_hour(host.host_class), std::move(seen), clock_.wall());
  const std::optional<Duration> start = sched::ninetieth({host.starts.begin(), host.starts.end()});
  std::map<std::string, std::optional<double>> figures{
      {"reliability", host.now.up_share},      {"mtbf", host.now.mtbf_hours()},
      {"mtbf_low", host.now.mtbf_low_hours()}, {"mtbf_high", host.now.mtbf_high_hours()},
      {"failures", host.now.failures},         {"watched", host.now.hours},
      {"uptime", host.now.seen_share}};
  if (start) figures["start_time"] = seconds(*start);
  report(registry_.save_figures(name, figures));
}

void ReliabilityLog::keep_only(const std::set<std::string>& names) {
  std::erase_if(hosts_, [&](const auto& entry) { return !names.contains(entry.first); });
}

void ReliabilityLog::apply(sched::HostFacts& facts) const {
  const auto found = hosts_.find(facts.name.value);
  if (found != hosts_.end()) facts.shunned = found->second.shunned;
}

double ReliabilityLog::rate_per_hour(const HostName& name, const std::string& host_class,
                                     const std::vector<std::string>& gpus) const {
  const auto found = hosts_.find(name.value);
  if (found == hosts_.end() || found->second.now.rate_per_hour <= 0)
    return sched::class_rate_per_hour(host_class) + static_cast<double>(gpus.size()) * sched::k_gpu_rate_per_hour;
  double rate = found->second.now.rate_per_hour;
  for (const std::string& gpu : gpus) {
    const auto failures = found->second.gpu_failures.find(gpu);
    const double count = failures == found->second.gpu_failures.end() ? 0 : failures->second;
    rate += sched::posterior_rate(sched::k_gpu_rate_per_hour, found->second.now.hours, count);
  }
  return rate;
}

sched::Reliability reliability_of_gpu(const std::string& uuid, const std::vector<registry::HostSpan>& spans,
                                      WallTime now) {
  std::vector<sched::Watched> seen = watched_host(spans);
  for (sched::Watched& one : seen) one.failed = false;  // the host's own failures are not the GPU's
  for (const registry::HostSpan& span : spans)
    if (span.unit == uuid) seen.push_back({span.began_at, span.ended_at, true});
  return sched::estimate(sched::k_gpu_rate_per_hour, std::move(seen), now);
}

}  // namespace gridctl::control
