// SPDX-License-Identifier: Apache-2.0
#include "sched/place.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <map>
#include <system_error>
#include <thread>

#include "base/formatted.hpp"
#include "base/text.hpp"
#include "sched/candidate.hpp"
#include "sched/cheaper.hpp"
#include "sched/deadline.hpp"
#include "sched/geo/residency.hpp"

namespace gridctl::sched {

std::int64_t thousandths(double cpus) { return std::llround(cpus * 1000); }

void take_away(HostFacts& host, const std::vector<std::string>& gpu_uuids, double cpus, std::uint64_t memory_bytes) {
  host.busy_gpus.insert(host.busy_gpus.end(), gpu_uuids.begin(), gpu_uuids.end());
  const std::int64_t free = thousandths(host.cpus_free.value_or(host.inventory->cpus)) - thousandths(cpus);
  host.cpus_free = static_cast<double>(std::max<std::int64_t>(free, 0)) / 1000;
  const std::uint64_t memory = host.memory_free.value_or(host.inventory->memory_bytes);
  host.memory_free = memory - std::min(memory, memory_bytes);
}

namespace {
// Returns "12.30 USD to finish, 10h (work 9.6h, …)"; for a job of unknown length, the cost of an hour of its work.
std::string end_text(const Candidate& c, const JobKnowledge& known) {
  const Estimate& end = c.placement.estimate;
  if (end.is_never()) return describe(end);
  if (known.work_known) return formatted("%.2f USD to finish, ", end.cost()) + describe(end);
  if (c.host->price_per_hour <= 0) return "";
  const double work = (known.task.work > 0 ? known.task.work : k_work_assumed) / 3600;
  const char* unit = c.gpus.empty() ? "hour of work" : "A100-hour of work";
  return formatted("%.2f USD per %s, failures included", end.cost() / work, unit);
}

std::string facts_text(const Candidate& c, const JobKnowledge& known) {
  const std::string cpus = short_number(c.placement.cpus) + (c.placement.cpus == 1 ? " CPU" : " CPUs");
  std::string text = c.gpus.empty() ? cpus : gpus_text(c.gpus);
  if (c.variant != nullptr) text += ", variant " + c.variant->kind;
  const bool contained = c.placement.engine != EngineKind::process;
  text += ", " + std::string(contained ? engine_name(c.placement.engine) : "no container") + ", " +
          price_text(c.host->price_per_hour);
  const std::string end = end_text(c, known);
  if (!end.empty()) text += ", " + end;
  return known.is_due() ? text + "; " + due_text(c.placement, *known.time_left) : text;
}

constexpr std::string_view k_aims[] = {"cheapest", "fastest", "most reliable"};

std::string winner_reason(const Candidate& best, std::size_t fitting, std::size_t total, const job::Spec& spec,
                          const JobKnowledge& known) {
  std::string why = total == 1 ? "the only provider" : "the only suitable host";
  if (fitting > 1) {
    why = std::string(k_aims[static_cast<std::size_t>(spec.optimize)]) + " of " + std::to_string(fitting) +
          " suitable hosts";
    if (!spec.resources.any_order && spec.resources.gpus.size() > 1) why += ", in your order of GPUs";
    if (known.is_due()) why += ", within the deadline";
    if (best.placement.late)
      why = "none of " + std::to_string(fitting) +
            " suitable hosts is certain to meet the deadline; this one finishes first";
  }
  std::string text = why + ": " + facts_text(best, known);
  if (!best.avoided.empty())
    text += "; gridctl would avoid it (" + best.avoided + "), but no other host can run the job";
  return text;
}

std::string_view why_behind(const Candidate& c, const Candidate& best, job::Optimize optimize) {
  const Estimate &mine = c.placement.estimate, &its = best.placement.estimate;
  if (c.placement.late && !best.placement.late) return "too late";
  if (c.rank.late > best.rank.late) return "later";
  if (c.alternative > best.alternative) return "a later choice in your order of GPUs";
  if (c.host->on_probation && !best.host->on_probation) return "on probation";
  if (optimize == job::Optimize::reliability && c.placement.failures_per_hour > best.placement.failures_per_hour)
    return "fails more often";
  if (optimize != job::Optimize::time && mine.cost() > its.cost())
    return c.host->price_per_hour > best.host->price_per_hour ? "more expensive" : "more expensive in total";
  if (mine.takes() > its.takes()) return "slower to finish";
  if (c.host->price_per_hour > best.host->price_per_hour) return "more expensive per hour";
  return "equally good, but later alphabetically";
}

std::string runner_reason(const Candidate& c, const Candidate& best, const job::Spec& spec, const JobKnowledge& known) {
  if (c.avoided_rank > best.avoided_rank) return "avoided (" + c.avoided + "): " + facts_text(c, known);
  return std::string(why_behind(c, best, spec.optimize)) + ": " + facts_text(c, known);
}

// Holds the figures that decide whether a suitable host is among the best: thousands of hosts are compared.
struct Contender {
  Rank rank;
  const HostFacts* host;
  bool avoided, late;
};

// Holds the contenders among some of the hosts, in the order of the hosts.
struct Considered {
  std::vector<Contender> fitting;
  std::vector<Rejection> rejections, avoided_busy;
  Refuge refuge;

  void add(Candidate c) {
    if (!c.rejection) fitting.push_back({c.rank, c.host, !c.avoided.empty(), c.placement.late});
    else if (c.rejection->code == k_busy && !c.avoided.empty()) avoided_busy.push_back(*std::move(c.rejection));
    else rejections.push_back(*std::move(c.rejection));
  }
};

Considered put_together(std::vector<Considered> shares) {
  const auto append = [](auto& all, auto& more) { std::move(more.begin(), more.end(), std::back_inserter(all)); };
  Considered all = std::move(shares.front());
  for (std::size_t i = 1; i < shares.size(); ++i) {
    append(all.fitting, shares[i].fitting);
    append(all.rejections, shares[i].rejections);
    append(all.avoided_busy, shares[i].avoided_busy);
    if (shares[i].refuge.within < all.refuge.within) all.refuge = std::move(shares[i].refuge);
  }
  return all;
}

// Returns the number of threads for this many hosts: fewer than some hundreds are not worth a thread's start.
std::size_t shares_of(std::size_t hosts) {
  constexpr std::size_t k_hosts_a_thread = 500, k_threads_max = 4;
  if (hosts < 2 * k_hosts_a_thread) return 1;  // to count processors is to read a file
  return std::clamp(hosts / k_hosts_a_thread, std::size_t{1},
                    std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, k_threads_max));
}

// Calls work(share, begin, end) for each of `shares` parts of 0..count-1, all at once.
void in_shares(std::size_t shares, std::size_t count,
               const std::function<void(std::size_t share, std::size_t begin, std::size_t end)>& work) {
  std::vector<std::thread> others;
  for (std::size_t i = 1; i < shares; ++i) {
    const auto its = [&work, i, begin = count * i / shares, end = count * (i + 1) / shares] { work(i, begin, end); };
    try {
      others.emplace_back(its);
    } catch (const std::system_error&) {
      its();  // no thread to be had (process limit)
    }
  }
  work(0, 0, count / shares);
  for (std::thread& other : others) other.join();
}

// Splits off avoided hosts, unless there are no others.
void keep_away(std::vector<Contender>& fitting, const std::vector<Avoid>& avoided, std::vector<Rejection>& rejections) {
  const bool others = std::ranges::any_of(fitting, [](const Contender& one) { return !one.avoided; });
  const bool worth_waiting = std::ranges::any_of(rejections, [](const Rejection& r) { return r.code == k_busy; });
  if (!others && !worth_waiting) return;
  for (const Contender& one : fitting) {
    if (!one.avoided) continue;
    Candidate c;
    c.host = one.host;
    note_avoidance(c, avoided);
    rejections.push_back({one.host->name, "avoided", c.avoided, true});
  }
  std::erase_if(fitting, [](const Contender& one) { return one.avoided; });
}
constexpr std::string_view k_no_checkpoint = "no checkpoint yet, so the job would ", k_over_on = "start over on ";

// Checkpoints that were never seen promise nothing.
Tolerance tolerance_of(const job::Spec& spec, const HostFacts& host, std::size_t others, const JobKnowledge& known) {
  const std::string where = others == 1 ? std::string("the other suitable host") : "one of " + std::to_string(others) + " other hosts";
  if (spec.service && others == 0) return {2, "if it dies, its requests wait: no other host is suitable now"};
  if (spec.service)
    return spec.twins > 1
               ? Tolerance{4, "if it dies, the other replicas answer, and another one is started on " + where}
               : Tolerance{3, "if it dies, requests wait until the service runs on " + where};
  if (job::interval_on(spec, is_lent(host.host_class, host.labels)) == job::CheckpointPolicy::Interval::off)
    return {1, "if it dies, the job starts over: it takes no checkpoints"};
  if (!known.task.resumes && !known.drilled)
    return {1, std::string(k_no_checkpoint) +
                   (others == 0 ? "wait for another host and start over" : std::string(k_over_on) + where)};
  if (others == 0) return {2, "if it dies, the job waits: its checkpoints are kept, but no other host is suitable now"};
  return {3, "if it dies, the job continues on " + where + " from its last checkpoint"};
}

std::string counts_text(const std::map<std::string, int>& counts) {
  std::vector<std::string> parts;
  for (const auto& [code, count] : counts) parts.push_back(std::to_string(count) + " " + code);
  return join(parts, ", ");
}
}  // namespace

std::string counts_text(const std::vector<Rejection>& rejections) {
  std::map<std::string, int> counts;
  for (const Rejection& no : rejections) ++counts[no.code];
  return counts_text(counts);
}

// A person does not read thousands of lines: of each reason, the first few hosts, then how many more.
void explain_rejections(const std::vector<Rejection>& rejections, std::vector<std::string>& lines) {
  constexpr std::size_t k_lines_max = 40;
  constexpr int k_of_each = 3;
  const bool many = rejections.size() > k_lines_max;
  std::map<std::string, int> told, more;
  for (const Rejection& no : rejections) {
    if (many && ++told[no.code] > k_of_each) ++more[no.code];
    else lines.push_back(no.host.value + " cannot (" + no.code + (no.temporary ? ", for now" : "") + "): " + no.detail);
  }
  if (!more.empty()) lines.push_back("and as many others cannot: " + counts_text(more));
}

JobKnowledge knowledge_of(const job::Spec& spec) {
  JobKnowledge known;
  known.task = task_of(spec);
  known.work_known = spec.workload.work.has_value();
  return known;
}

JobKnowledge knowledge_of(const job::Spec& spec, WallTime now) {
  JobKnowledge known = knowledge_of(spec);
  if (spec.deadline) known.time_left = static_cast<double>(job::moment_of(*spec.deadline, now).ms - now.ms) / 1000;
  return known;
}

Decision place(const job::Spec& spec, const std::vector<HostFacts>& hosts, const std::vector<Avoid>& avoided) {
  return place(spec, hosts, avoided, knowledge_of(spec));
}

Decision place(const job::Spec& spec, const std::vector<HostFacts>& hosts, const std::vector<Avoid>& avoided,
               const JobKnowledge& known) {
  Decision decision;
  const Result<Query> query = Query::parse(spec.constraints.query);
  const auto considered = [&](const HostFacts& host) {
    Candidate c = consider(spec, query, host);
    if (spec.num_nodes > 1)
      c.reject("nodes",
               "the job wants " + std::to_string(spec.num_nodes) + " hosts at once");
    note_avoidance(c, avoided);
    if (c.rejection) return c;
    estimate(c, known, spec.optimize);
    fits_before_end(c, spec, known);
    return c;
  };
  std::vector<Considered> shares(shares_of(hosts.size()));
  in_shares(shares.size(), hosts.size(), [&](std::size_t share, std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      Candidate c = considered(hosts[i]);
      if (!c.rejection && may_move_for_less(spec)) shares[share].refuge.offer(c);
      shares[share].add(std::move(c));
    }
  });
  Considered all = put_together(std::move(shares));
  std::vector<Contender>& fitting = all.fitting;
  decision.rejections = std::move(all.rejections);
  keep_away(fitting, avoided, decision.rejections);
  decision.rejections.insert(decision.rejections.end(), all.avoided_busy.begin(), all.avoided_busy.end());
  in_shares(shares_of(fitting.size()), fitting.size(), [&](std::size_t, std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      if (!fitting[i].late) continue;
      Candidate c = considered(*fitting[i].host);
      lean_on(all.refuge, c, known);
      fitting[i].rank = c.rank;
    }
  });
  decision.fitting = fitting.size();
  const auto told = fitting.begin() + static_cast<std::ptrdiff_t>(std::min(fitting.size(), k_runners_up_max + 1));
  std::partial_sort(fitting.begin(), told, fitting.end(),
                    [](const Contender& a, const Contender& b) { return a.rank < b.rank; });
  std::ranges::sort(decision.rejections, {}, &Rejection::host);
  std::optional<Candidate> best;
  for (auto at = fitting.begin(); at != told; ++at) {
    Candidate c = considered(*at->host);
    lean_on(all.refuge, c, known);
    c.placement.reason =
        best ? runner_reason(c, *best, spec, known) : winner_reason(c, fitting.size(), hosts.size(), spec, known);
    if (best) {
      decision.runners_up.push_back(std::move(c.placement));
    } else {
      decision.placement = c.placement;
      best = std::move(c);
    }
  }
  if (decision.placement) decision.tolerance = tolerance_of(spec, *best->host, decision.fitting - 1, known);
  decision.could_ever_fit =
      decision.placement || std::ranges::any_of(decision.rejections, [](const Rejection& r) { return r.temporary; });
  return decision;
}

std::string explained_with_checkpoint(std::string line) {
  const std::size_t at = line.find(k_no_checkpoint);
  if (at == std::string::npos) return line;
  const std::string would = line.substr(at + k_no_checkpoint.size());
  if (!would.starts_with(k_over_on))
    return "fault tolerance 2 of 4: if it dies, the job waits for another host and continues from its last checkpoint";
  return "fault tolerance 3 of 4: if it dies, the job continues on " + would.substr(k_over_on.size()) + " from its last checkpoint";
}

std::vector<std::string> explain(const Decision& decision) {
  std::vector<std::string> lines;
  if (decision.placement)
    lines.push_back("placed on " + decision.placement->host.value + ": " + decision.placement->reason);
  else lines.push_back(summary(decision));
  if (decision.tolerance)
    lines.push_back("fault tolerance " + std::to_string(decision.tolerance->level) +
                    " of 4: " + decision.tolerance->why);
  for (const Placement& other : decision.runners_up)
    lines.push_back(other.host.value + " would do equally well: " + other.reason);
  if (const std::size_t known = decision.runners_up.size() + 1; decision.fitting > known)
    lines.push_back("and " + std::to_string(decision.fitting - known) + " more are suitable");
  explain_rejections(decision.rejections, lines);
  return lines;
}

std::string summary(const Decision& decision) {
  if (decision.placement) return "placed on " + decision.placement->host.value + ": " + decision.placement->reason;
  if (decision.rejections.empty()) return "no provider is registered";
  const std::string total = std::to_string(decision.rejections.size());
  return "0 of " + total + (total == "1" ? " provider fits: " : " providers fit: ") + counts_text(decision.rejections);
}

}  // namespace gridctl::sched
