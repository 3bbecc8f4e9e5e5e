// SPDX-License-Identifier: Apache-2.0
#include "sched/place.hpp"

#include <algorithm>
#include <cstdio>
#include <map>
#include <tuple>

#include "base/bytes.hpp"
#include "base/text.hpp"
#include "sched/gpu_match.hpp"
#include "sched/query.hpp"

namespace gridctl::sched {

namespace {
constexpr double k_cpus_default = 1;  // a job that names no CPUs gets one

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}
std::string price_text(double usd_per_hour) {
  char text[48];
  std::snprintf(text, sizeof text, "%.2f USD/h", usd_per_hour);
  return text;
}
std::string quoted(const std::vector<std::string>& words) { return join(words, ", "); }

// "DE" is "de" and every "DE-…".
bool region_is(std::string_view host, std::string_view wanted) {
  const std::string h = lower(host), w = lower(wanted);
  return h == w || h.starts_with(w + "-");
}

// A host under consideration: set `rejection` to give it up.
struct Candidate {
  const HostFacts* host = nullptr;
  Placement placement;
  std::size_t alternative = 0;  // index into resources.gpus
  std::string gpu_text;
  std::optional<Rejection> rejection;
  std::string avoided;           // reason, or empty
  std::size_t avoided_rank = 0;  // by how late it failed this job

  bool reject(std::string code, std::string detail, bool temporary = false) {
    rejection = Rejection{host->name, std::move(code), std::move(detail), temporary};
    return false;
  }
};

// What its owner and the user said.
bool policy_allows(Candidate& c, const job::Spec& spec) {
  const HostFacts& host = *c.host;
  const job::Constraints& want = spec.constraints;
  const auto is_region = [&](const std::string& region) { return region_is(host.region, region); };
  if (!want.providers.empty() &&
      std::find(want.providers.begin(), want.providers.end(), host.name.value) == want.providers.end())
    return c.reject("pinned", "the job is pinned to " + quoted(want.providers));
  if (host.drained) return c.reject("drained", "it is drained; `gridctl provider undrain` puts it back");
  if (!host.mismatch.empty())
    return c.reject("mismatch", "it is not what it is declared to be: " + host.mismatch +
                                    "; `gridctl provider bench` lets it prove itself");
  if (!want.classes.empty() &&
      std::find(want.classes.begin(), want.classes.end(), host.host_class) == want.classes.end())
    return c.reject("class", "its class is " + host.host_class + ", wanted " + quoted(want.classes));
  if (!want.region_in.empty() && std::none_of(want.region_in.begin(), want.region_in.end(), is_region))
    return c.reject("region", (host.region.empty() ? "its region is not known" : "it is in " + host.region) +
                                  ", wanted " + quoted(want.region_in));
  if (!want.region_not.empty() && host.region.empty())
    return c.reject("region", "its region is not known, and it must not be in " + quoted(want.region_not));
  if (std::any_of(want.region_not.begin(), want.region_not.end(), is_region))
    return c.reject("region", "it is in " + host.region + ", which the job excludes");
  for (const auto& [key, value] : want.labels) {
    const auto found = host.labels.find(key);
    if (found == host.labels.end())
      return c.reject("label", "it has no label " + key + ", wanted " + key + "=" + value);
    if (found->second != value)
      return c.reject("label", "its label " + key + " is " + found->second + ", wanted " + value);
  }
  if (want.max_price && host.price_per_hour > *want.max_price)
    return c.reject("price", "it costs " + price_text(host.price_per_hour) + ", at most " +
                                 price_text(*want.max_price) + " wanted");
  return true;
}

const Engine* engine_of(const HostFacts& host, EngineKind kind) {
  for (const Engine& engine : host.inventory.engines)
    if (engine.kind == kind) return &engine;
  return nullptr;
}

// Why a container engine cannot be used, empty when it can.
std::string engine_problem(const HostFacts& host, EngineKind kind) {
  const Engine* engine = engine_of(host, kind);
  if (engine == nullptr) return std::string(engine_name(kind)) + " was not found";
  return engine->problem.empty() ? "" : std::string(engine_name(kind)) + ": " + engine->problem;
}

bool choose_container(Candidate& c) {
  const HostFacts& host = *c.host;
  if (host.engine == EngineKind::process)
    return c.reject("engine", "the job has an image, the host is set to plain processes");
  std::vector<EngineKind> kinds{EngineKind::docker, EngineKind::podman};
  if (host.engine) kinds = {*host.engine};
  std::vector<std::string> problems;
  const Engine* best = nullptr;
  for (EngineKind kind : kinds) {
    if (std::string problem = engine_problem(host, kind); !problem.empty()) {
      problems.push_back(std::move(problem));
      continue;
    }
    const Engine* engine = engine_of(host, kind);
    if (best == nullptr || (engine->limits_enforced && !best->limits_enforced)) best = engine;
  }
  if (best == nullptr) return c.reject("engine", "the job has an image, but " + join(problems, "; "));
  c.placement.engine = best->kind;
  return true;
}

bool choose_engine(Candidate& c, const job::Spec& spec) {
  if (!spec.image.empty()) return choose_container(c);
  const HostFacts& host = *c.host;
  if (host.engine && *host.engine != EngineKind::process)
    return c.reject("engine", "the job has no image, the host is set to " + std::string(engine_name(*host.engine)) +
                                  " only: give the job an image, or register the host with --engine auto");
  const Engine* process = engine_of(host, EngineKind::process);
  if (process != nullptr && !process->problem.empty())
    return c.reject("engine", "the job has no image, but process: " + process->problem);
  c.placement.engine = EngineKind::process;
  return true;
}

bool choose_shares(Candidate& c, const job::Resources& want) {
  const Inventory& have = c.host->inventory;
  const double cpus = want.cpus > 0 ? want.cpus : std::min(k_cpus_default, have.cpus);
  if (have.cpus < cpus) return c.reject("cpus", "it has " + number(have.cpus) + " CPUs, wanted " + number(cpus));
  if (have.memory_bytes < want.memory_bytes)
    return c.reject(
        "memory", "it has " + format_size(have.memory_bytes) + " of memory, wanted " + format_size(want.memory_bytes));
  if (have.disk_free_bytes < want.disk_bytes)
    return c.reject("disk", "it has " + format_size(have.disk_free_bytes) + " of disk free, wanted " +
                                format_size(want.disk_bytes));
  c.placement.cpus = cpus;
  c.placement.memory_bytes = want.memory_bytes;
  return true;
}

// GPUs of one request on one host.
struct GpuChoice {
  std::vector<const Gpu*> gpus;  // as many as may be taken now; empty = cannot now
  std::size_t matching = 0;      // GPUs of one vendor that answer the request, busy ones included
  bool memory_short = false;     // some have the right name but the wrong memory
  std::size_t unhealthy = 0;     // of the matching, those that are quarantined
  std::string why_unhealthy;     // the first of them and its reason
};

GpuChoice choose_gpus(const job::GpuRequest& request, const HostFacts& host) {
  std::map<Vendor, std::map<std::string, std::vector<const Gpu*>>> free;
  std::map<Vendor, std::size_t> matching, free_count;
  GpuChoice choice;
  for (const Gpu& gpu : host.inventory.gpus) {
    const GpuMismatch mismatch = match_gpu(request, gpu);
    choice.memory_short = choice.memory_short || mismatch == GpuMismatch::memory;
    if (mismatch != GpuMismatch::none) continue;
    choice.matching = std::max(choice.matching, ++matching[gpu.vendor]);
    if (const auto sick = host.unhealthy_gpus.find(gpu.uuid); sick != host.unhealthy_gpus.end()) {
      if (choice.unhealthy++ == 0) choice.why_unhealthy = gpu.uuid + ": " + sick->second;
      continue;
    }
    if (std::find(host.busy_gpus.begin(), host.busy_gpus.end(), gpu.uuid) != host.busy_gpus.end()) continue;
    free[gpu.vendor][gpu.name].push_back(&gpu);
    ++free_count[gpu.vendor];
  }
  const auto least = static_cast<std::size_t>(request.count_min);
  const auto most = static_cast<std::size_t>(std::max(request.count_max, request.count_min));
  for (const auto& [vendor, models] : free)
    for (const auto& [name, gpus] : models)
      if (gpus.size() >= least && gpus.size() > choice.gpus.size()) choice.gpus = gpus;
  for (const auto& [vendor, models] : free) {
    if (!choice.gpus.empty() || free_count[vendor] < least) continue;
    for (const auto& [name, gpus] : models) choice.gpus.insert(choice.gpus.end(), gpus.begin(), gpus.end());
  }
  if (choice.gpus.size() > most) choice.gpus.resize(most);
  return choice;
}

std::string gpus_text(const std::vector<const Gpu*>& gpus) {
  std::map<std::string, int> counts;
  for (const Gpu* gpu : gpus) ++counts[describe(*gpu)];
  std::vector<std::string> parts;
  for (const auto& [text, count] : counts) parts.push_back(std::to_string(count) + "x " + text);
  return parts.empty() ? "no GPU" : join(parts, " + ");
}

std::string all_gpus_text(const HostFacts& host) {
  std::vector<const Gpu*> gpus;
  for (const Gpu& gpu : host.inventory.gpus) gpus.push_back(&gpu);
  return gpus_text(gpus);
}

bool choose_among_gpus(Candidate& c, const std::vector<job::GpuRequest>& requests) {
  if (requests.empty()) return true;
  bool enough = false, some = false, memory_short = false;
  std::string unhealthy;
  std::vector<std::string> wanted;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const GpuChoice choice = choose_gpus(requests[i], *c.host);
    if (!choice.gpus.empty()) {
      for (const Gpu* gpu : choice.gpus) c.placement.gpu_uuids.push_back(gpu->uuid);
      c.alternative = i;
      c.gpu_text = gpus_text(choice.gpus);
      return true;
    }
    wanted.push_back(describe(requests[i]));
    enough = enough || choice.matching >= static_cast<std::size_t>(requests[i].count_min);
    some = some || choice.matching > 0;
    if (choice.matching < static_cast<std::size_t>(requests[i].count_min) + choice.unhealthy)
      unhealthy = unhealthy.empty() ? choice.why_unhealthy : unhealthy;
    memory_short = memory_short || choice.memory_short;
  }
  const std::string text = "it has " + all_gpus_text(*c.host) + ", wanted " + join(wanted, " or ");
  if (enough && !unhealthy.empty()) return c.reject("unhealthy", unhealthy, true);
  if (enough) return c.reject("busy", "its GPUs are in use: " + text, true);
  if (some) return c.reject("gpu_count", text);
  return c.reject(memory_short ? "gpu_memory" : "gpu", text);
}

// Whether what fits in principle is free just now.
bool free_now(Candidate& c, const job::Resources& want) {
  const HostFacts& host = *c.host;
  const double cpus = host.cpus_free.value_or(host.inventory.cpus);
  const std::uint64_t memory = host.memory_free.value_or(host.inventory.memory_bytes);
  if (cpus < c.placement.cpus)
    return c.reject(
        "busy",
        number(cpus) + " of its " + number(host.inventory.cpus) + " CPUs are free, wanted " + number(c.placement.cpus),
        true);
  if (memory < want.memory_bytes)
    return c.reject("busy", format_size(memory) + " of its memory is free, wanted " + format_size(want.memory_bytes),
                    true);
  return true;
}

Candidate consider(const job::Spec& spec, const Result<Query>& query, const HostFacts& host) {
  Candidate c;
  c.host = &host;
  c.placement.host = host.name;
  c.placement.price_per_hour = host.price_per_hour;
  if (spec.num_nodes > 1) {
    c.reject("nodes", "the job wants " + std::to_string(spec.num_nodes) + " hosts at once, which is not supported yet");
    return c;
  }
  if (!policy_allows(c, spec)) return c;
  if (!query) {  // another gridctl stored it
    c.reject("query", query.error().message);
    return c;
  }
  const std::optional<Query::Refusal> refusal = query->refusal(subject_of(host));
  if (refusal && !refusal->passing) {
    c.reject("query", refusal->text);
    return c;
  }
  if (!choose_engine(c, spec) || !choose_shares(c, spec.resources)) return c;
  const bool gpus_fit = choose_among_gpus(c, spec.resources.gpus);
  if (!gpus_fit && !c.rejection->temporary) return c;
  if (!host.reachable) c.reject("unreachable", "it does not answer", true);
  else if (!host.quarantined.empty()) c.reject("quarantined", host.quarantined, true);
  else if (refusal) c.reject("query", refusal->text, true);
  else if (gpus_fit) free_now(c, spec.resources);
  return c;
}

bool better(const Candidate& a, const Candidate& b) {
  return std::tie(a.avoided_rank, a.alternative, a.host->on_probation, a.host->price_per_hour, a.host->name) <
         std::tie(b.avoided_rank, b.alternative, b.host->on_probation, b.host->price_per_hour, b.host->name);
}

std::string facts_text(const Candidate& c) {
  std::string text = c.gpu_text.empty() ? number(c.placement.cpus) + " CPUs" : c.gpu_text;
  return text + ", " + std::string(engine_name(c.placement.engine)) + ", " + price_text(c.host->price_per_hour);
}

std::string winner_reason(const Candidate& best, std::size_t fitting, std::size_t total) {
  std::string why = fitting == 1 ? (total == 1 ? "the only provider" : "the only one that fits")
                                 : "best of " + std::to_string(fitting) + " that fit, by GPU preference, price, name";
  std::string text = why + ": " + facts_text(best);
  if (!best.avoided.empty()) text += "; it is avoided (" + best.avoided + "), but no other could take the job";
  return text;
}

std::string runner_reason(const Candidate& c, const Candidate& best) {
  if (c.avoided_rank > best.avoided_rank) return "avoided (" + c.avoided + "): " + facts_text(c);
  if (c.alternative > best.alternative) return "a later choice among the GPUs wanted: " + facts_text(c);
  if (c.host->on_probation && !best.host->on_probation) return "on probation: " + facts_text(c);
  if (c.host->price_per_hour > best.host->price_per_hour) return "dearer: " + facts_text(c);
  return "equal, but later by name: " + facts_text(c);
}

// Splits off avoided hosts, unless they are all there is.
void keep_away(std::vector<Candidate>& fitting, std::vector<Rejection>& rejections) {
  const auto is_free = [](const Candidate& c) { return c.avoided.empty(); };
  const bool others = std::any_of(fitting.begin(), fitting.end(), is_free);
  const bool worth_waiting =
      std::any_of(rejections.begin(), rejections.end(), [](const Rejection& r) { return r.code == "busy"; });
  if (!others && !worth_waiting) return;
  for (const Candidate& c : fitting)
    if (!c.avoided.empty()) rejections.push_back({c.host->name, "avoided", c.avoided, true});
  std::erase_if(fitting, [](const Candidate& c) { return !c.avoided.empty(); });
}
}  // namespace

Decision place(const job::Spec& spec, const std::vector<HostFacts>& hosts, const std::vector<Avoid>& avoided) {
  Decision decision;
  const Result<Query> query = Query::parse(spec.constraints.query);
  std::vector<Candidate> fitting;
  std::vector<Rejection> avoided_busy;
  for (const HostFacts& host : hosts) {
    Candidate c = consider(spec, query, host);
    c.avoided = host.shunned;
    for (std::size_t i = 0; i < avoided.size(); ++i) {
      if (avoided[i].host != host.name) continue;
      c.avoided = avoided[i].reason.empty() ? "it failed this job" : avoided[i].reason;
      c.avoided_rank = i + 1;
    }
    if (!c.rejection) fitting.push_back(std::move(c));
    else if (c.rejection->code == "busy" && !c.avoided.empty()) avoided_busy.push_back(*std::move(c.rejection));
    else decision.rejections.push_back(*std::move(c.rejection));
  }
  keep_away(fitting, decision.rejections);
  decision.rejections.insert(decision.rejections.end(), avoided_busy.begin(), avoided_busy.end());
  std::sort(fitting.begin(), fitting.end(), better);
  std::sort(decision.rejections.begin(), decision.rejections.end(),
            [](const Rejection& a, const Rejection& b) { return a.host < b.host; });
  for (Candidate& c : fitting) {
    const bool first = &c == fitting.data();
    c.placement.reason = first ? winner_reason(c, fitting.size(), hosts.size()) : runner_reason(c, fitting.front());
    if (first) decision.placement = c.placement;
    else decision.runners_up.push_back(c.placement);
  }
  decision.could_ever_fit = decision.placement || std::any_of(decision.rejections.begin(), decision.rejections.end(),
                                                              [](const Rejection& r) { return r.temporary; });
  return decision;
}

std::vector<std::string> explain(const Decision& decision) {
  std::vector<std::string> lines;
  if (decision.placement)
    lines.push_back("placed on " + decision.placement->host.value + ": " + decision.placement->reason);
  else lines.push_back(summary(decision));
  for (const Placement& other : decision.runners_up)
    lines.push_back(other.host.value + " would do too: " + other.reason);
  for (const Rejection& no : decision.rejections)
    lines.push_back(no.host.value + " cannot (" + no.code + (no.temporary ? ", for now" : "") + "): " + no.detail);
  return lines;
}

std::string summary(const Decision& decision) {
  if (decision.placement) return "placed on " + decision.placement->host.value + ": " + decision.placement->reason;
  if (decision.rejections.empty()) return "no provider is registered";
  std::map<std::string, int> counts;
  for (const Rejection& no : decision.rejections) ++counts[no.code];
  std::vector<std::string> parts;
  for (const auto& [code, count] : counts) parts.push_back(std::to_string(count) + " " + code);
  const std::string total = std::to_string(decision.rejections.size());
  return "0 of " + total + (total == "1" ? " provider fits: " : " providers fit: ") + join(parts, ", ");
}

}  // namespace gridctl::sched
