// SPDX-License-Identifier: Apache-2.0
#include "sched/candidate.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

#include "base/bytes.hpp"
#include "base/formatted.hpp"
#include "base/text.hpp"
#include "job/image_reference.hpp"
#include "sched/catalogue/catalogue.hpp"
#include "sched/catalogue/gpu_match.hpp"
#include "sched/deadline.hpp"
#include "sched/fabric.hpp"
#include "sched/geo/residency.hpp"

namespace gridctl::sched {

std::string short_number(double value) { return formatted("%.6g", value); }
std::string price_text(double usd_per_hour) { return formatted("%.2f USD/h", usd_per_hour); }

namespace {
bool is_alike(const Gpu& a, const Gpu& b) {
  return a.vendor == b.vendor && a.name == b.name && a.memory_bytes == b.memory_bytes;
}
}  // namespace

std::string gpus_text(const std::vector<const Gpu*>& gpus) {
  std::map<std::string, int> counts;
  const Gpu* former = nullptr;
  int* times = nullptr;
  for (const Gpu* gpu : gpus) {
    if (former == nullptr || !is_alike(*former, *gpu)) times = &counts[describe(*gpu)];
    ++*times;
    former = gpu;
  }
  std::vector<std::string> parts;
  for (const auto& [text, count] : counts) parts.push_back(std::to_string(count) + "x " + text);
  return parts.empty() ? "no GPU" : join(parts, " + ");
}

namespace {
constexpr std::size_t k_vendors = static_cast<std::size_t>(Vendor::other) + 1;
constexpr double k_cpus_default = 1;            // a job that names no CPUs gets one
constexpr std::size_t k_after_all_gpus = 1000;  // as an alternative: no job has so many


// Checks the policies that the owner of the host and the user set.
bool policy_allows(Candidate& c, const job::Spec& spec) {
  const HostFacts& host = *c.host;
  const job::Constraints& want = spec.constraints;
  if (!want.providers.empty() && std::ranges::find(want.providers, host.name.value) == want.providers.end())
    return c.reject("pinned", "the job is pinned to " + join(want.providers, ", "));
  if (host.inventory->version == 0) return c.reject("unreachable", "its owner has not joined yet", true);
  if (host.drained) return c.reject("drained", "the host is drained; `gridctl provider undrain` returns it to service");
  if (!host.mismatch.empty())
    return c.reject("mismatch", "it differs from its declaration: " + host.mismatch +
                                    "; `gridctl provider bench` tests it again");
  if (!want.classes.empty() && std::ranges::find(want.classes, host.host_class) == want.classes.end())
    return c.reject("class", "its class is " + host.host_class + ", wanted " + join(want.classes, ", "));
  const std::string region = host.region_doubt.empty() ? host.region : "";
  if (std::string why = region_refusal(want, region); !why.empty())
    return c.reject("region", host.region_doubt.empty() ? std::move(why) : host.region_doubt);
  // A stranger whose machine is not where he says is not believed in anything else either.
  if (!host.region_doubt.empty() && is_lent(host.host_class, host.labels)) return c.reject("region", host.region_doubt);
  if (std::string why = residency_refusal(want, region, is_lent(host.host_class, host.labels)); !why.empty())
    return c.reject("sensitivity", std::move(why));
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
  for (const Engine& engine : host.inventory->engines)
    if (engine.kind == kind) return &engine;
  return nullptr;
}

// Returns why a container engine cannot be used; empty if it can.
std::string engine_problem(const HostFacts& host, EngineKind kind) {
  const Engine* engine = engine_of(host, kind);
  if (engine == nullptr) return std::string(engine_name(kind)) + " was not found";
  return engine->problem.empty() ? "" : std::string(engine_name(kind)) + ": " + engine->problem;
}

bool choose_container(Candidate& c) {
  const HostFacts& host = *c.host;
  if (host.engine == EngineKind::process)
    return c.reject("engine", "the job has an image, but the host runs only plain processes");
  constexpr std::array k_any{EngineKind::docker, EngineKind::podman};
  const std::span<const EngineKind> kinds = host.engine ? std::span(&*host.engine, 1) : std::span(k_any);
  const Engine* best = nullptr;
  for (const EngineKind kind : kinds) {
    const Engine* engine = engine_of(host, kind);
    if (engine == nullptr || !engine->problem.empty()) continue;
    if (best == nullptr || (engine->limits_enforced && !best->limits_enforced)) best = engine;
  }
  if (best != nullptr) {
    c.placement.engine = best->kind;
    return true;
  }
  std::vector<std::string> problems;
  for (const EngineKind kind : kinds) problems.push_back(engine_problem(host, kind));
  return c.reject("engine", "the job has an image, but " + join(problems, "; "));
}

bool choose_engine(Candidate& c, const std::string& image) {
  if (!image.empty()) return choose_container(c);
  const HostFacts& host = *c.host;
  if (host.engine && *host.engine != EngineKind::process)
    return c.reject("engine", "the job has no image, but the host is set to " + std::string(engine_name(*host.engine)) +
                                  " only: give the job an image, or register the host with --engine auto");
  if (!host.not_plain.empty()) return c.reject("restore_from", host.not_plain);
  const Engine* process = engine_of(host, EngineKind::process);
  if (process != nullptr && !process->problem.empty())
    return c.reject("engine", "the job has no image, but process: " + process->problem);
  c.placement.engine = EngineKind::process;
  return true;
}

bool choose_shares(Candidate& c, const job::Resources& want) {
  const Inventory& have = c.host->inventory;
  const double cpus = want.cpus > 0 ? want.cpus : std::min(k_cpus_default, have.cpus);
  if (thousandths(have.cpus) < thousandths(cpus))
    return c.reject("cpus", "it has " + short_number(have.cpus) + " CPUs, wanted " + short_number(cpus));
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

// Holds the free GPUs with one vendor and name on one host.
struct FreeGpus {
  Vendor vendor;
  std::string_view name;
  std::vector<const Gpu*> gpus;
};

void add(std::vector<FreeGpus>& free, const Gpu& gpu, std::size_t most) {
  auto same =
      std::ranges::find_if(free, [&](const FreeGpus& one) { return one.vendor == gpu.vendor && one.name == gpu.name; });
  if (same == free.end()) {
    same = free.insert(same, {gpu.vendor, gpu.name, {}});
    same->gpus.reserve(most);
  }
  same->gpus.push_back(&gpu);
}

// Holds GPUs for one request on one host.
struct GpuChoice {
  std::vector<const Gpu*> gpus;  // as many as may be taken now; empty = cannot now
  std::size_t matching = 0;      // GPUs of one vendor that answer the request, busy ones included
  bool memory_short = false;     // some have the right name but the wrong memory
  std::size_t unhealthy = 0;     // of the matching, those that are quarantined
  std::string why_unhealthy;     // the first of them and its reason
  std::string why_not_named;     // why a GPU of a wanted name does not count as that model
};

// Returns why the device does not count as the model that its name claims; empty if it does. A request for memory does
// not ask for a name, and takes the device as measured.
std::string name_refusal(const job::GpuRequest& request, const HostFacts& host, const Gpu& gpu) {
  if (request.names.empty()) return {};
  if (host.unverified_gpus.contains(gpu.uuid))
    return describe(gpu) + " is unverified: no known model has its name and properties; a request for "
           "memory alone, such as accelerators: " + std::to_string(gpu.memory_bytes / 1'000'000'000) + "GB, accepts it";
  if (!gpu.model.empty()) return {};
  const std::vector<std::string> against = find_model(gpu).contradictions;
  return against.empty() ? "" : "it does not match its name: " + gpu.name + "; " + join(against, "; ");
}

GpuChoice choose_gpus(const job::GpuRequest& request, const HostFacts& host) {
  std::vector<FreeGpus> free;
  std::array<std::size_t, k_vendors> matching{}, free_count{};
  GpuChoice choice;
  const Gpu* former = nullptr;
  GpuMismatch mismatch = GpuMismatch::none;
  for (const Gpu& gpu : host.inventory->gpus) {
    if (former == nullptr || !is_alike(*former, gpu)) {
      mismatch = match_gpu(request, gpu);
      std::string why = mismatch == GpuMismatch::none ? name_refusal(request, host, gpu) : "";
      if (!why.empty()) mismatch = GpuMismatch::name, choice.why_not_named = std::move(why);
    }
    former = &gpu;
    choice.memory_short = choice.memory_short || mismatch == GpuMismatch::memory;
    if (mismatch != GpuMismatch::none) continue;
    choice.matching = std::max(choice.matching, ++matching[static_cast<std::size_t>(gpu.vendor)]);
    if (const auto sick = host.unhealthy_gpus.find(gpu.uuid); sick != host.unhealthy_gpus.end()) {
      if (choice.unhealthy++ == 0) choice.why_unhealthy = gpu.uuid + ": " + sick->second;
      continue;
    }
    if (std::ranges::find(host.busy_gpus, gpu.uuid) != host.busy_gpus.end()) continue;
    add(free, gpu, host.inventory->gpus.size());
    ++free_count[static_cast<std::size_t>(gpu.vendor)];
  }
  std::ranges::sort(free, [](const FreeGpus& a, const FreeGpus& b) {
    return std::tie(a.vendor, a.name) < std::tie(b.vendor, b.name);
  });
  const auto least = static_cast<std::size_t>(request.count_min);
  const auto most = static_cast<std::size_t>(std::max(request.count_max, request.count_min));
  const FreeGpus* largest = nullptr;
  for (const FreeGpus& one : free)
    if (one.gpus.size() >= least && (largest == nullptr || one.gpus.size() > largest->gpus.size())) largest = &one;
  if (largest != nullptr) {
    choice.gpus = largest->gpus;
  } else {  // of several models of the first vendor that has enough
    for (const FreeGpus& one : free)
      if (free_count[static_cast<std::size_t>(one.vendor)] >= least &&
          (choice.gpus.empty() || choice.gpus.front()->vendor == one.vendor))
        choice.gpus.insert(choice.gpus.end(), one.gpus.begin(), one.gpus.end());
  }
  choice.gpus = best_joined(host.inventory, std::move(choice.gpus), most);
  return choice;
}

std::string all_gpus_text(const HostFacts& host) {
  std::vector<const Gpu*> gpus;
  for (const Gpu& gpu : host.inventory->gpus) gpus.push_back(&gpu);
  return gpus_text(gpus);
}

// Returns whether that settles it: among equal alternatives, the fastest is searched for.
bool take_gpus(Candidate& c, bool any_order, std::size_t alternative, const std::vector<const Gpu*>& gpus) {
  const bool first = c.gpus.empty();
  if (first || speed_of(*c.host, gpus) > speed_of(*c.host, c.gpus)) c.gpus = gpus;
  if (!any_order) c.alternative = alternative;
  return !any_order;
}

bool choose_among_gpus(Candidate& c, const std::vector<job::GpuRequest>& requests, bool any_order) {
  if (requests.empty()) return true;
  bool enough = false, some = false, memory_short = false;
  std::string unhealthy, not_named;
  std::vector<std::string> wanted;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const GpuChoice choice = choose_gpus(requests[i], *c.host);
    if (!choice.gpus.empty() && take_gpus(c, any_order, i, choice.gpus)) return true;
    wanted.push_back(describe(requests[i]));
    enough = enough || choice.matching >= static_cast<std::size_t>(requests[i].count_min);
    some = some || choice.matching > 0;
    if (choice.matching < static_cast<std::size_t>(requests[i].count_min) + choice.unhealthy)
      unhealthy = unhealthy.empty() ? choice.why_unhealthy : unhealthy;
    memory_short = memory_short || choice.memory_short;
    if (not_named.empty()) not_named = choice.why_not_named;
  }
  if (!c.gpus.empty()) return true;
  const std::string text = "it has " + all_gpus_text(*c.host) + ", wanted " + join(wanted, " or ");
  if (enough && !unhealthy.empty()) return c.reject("unhealthy", unhealthy, true);
  if (enough) return c.reject(std::string(k_busy), "its GPUs are in use: " + text, true);
  if (some) return c.reject("gpu_count", text);
  if (!not_named.empty()) return c.reject("unverified", not_named);
  return c.reject(memory_short ? std::string(k_gpu_memory) : "gpu", text);
}

// A borrowed host is given images by digest.
std::optional<Rejection> image_rejection(const HostFacts& host, const job::Spec& spec, const std::string& image, bool is_archive) {
  if (!is_lent(host.host_class, host.labels)) return std::nullopt;
  const auto problem = host.image_problems.find(image);
  const auto refusal = job::tag_refusal(spec, image, is_archive, problem == host.image_problems.end() ? "" : problem->second);
  if (!refusal) return std::nullopt;
  return Rejection{host.name, std::string(k_image_tag),
                   refusal->text + "; " + refusal->way_out + ", or allow tags with " + std::string(job::k_image_tags_way_out) +
                       " (a job that waits: gridctl job cancel JOB && gridctl job resume JOB --images tags)",
                   refusal->curable};
}

// A rejection that waiting may cure comes after those that it cannot.
bool choose_parts(Candidate& c, const job::Spec& spec, const std::string& image, bool is_archive, const std::vector<job::GpuRequest>& gpus) {
  if (!choose_engine(c, image)) return false;
  const std::optional<Rejection> by_image = image_rejection(*c.host, spec, image, is_archive);
  if ((!by_image || by_image->temporary) && !choose_among_gpus(c, gpus, spec.resources.any_order)) return false;
  c.rejection = by_image;
  return !by_image;
}

// Chooses the first of the job's variants that fits there; among the reasons against, prefers one that waiting may
// cure.
bool choose_variant(Candidate& c, const job::Spec& spec) {
  std::optional<Rejection> why;
  for (const job::Variant& variant : spec.variants) {
    c.rejection.reset();
    c.variant = &variant;
    if (choose_parts(c, spec, variant.image, variant.image_is_archive, job::gpus_wanted(spec, variant))) return true;
    if (!why || (c.rejection->temporary && !why->temporary)) why = c.rejection;
  }
  c.rejection = std::move(why);
  return false;
}

bool choose_form(Candidate& c, const job::Spec& spec) {
  if (!spec.variants.empty()) return choose_variant(c, spec);
  return choose_parts(c, spec, spec.image, spec.image_is_archive, spec.resources.gpus);
}

// Handles a tight job on one host: its GPUs form one group. Another part of the host may be suitable when it becomes
// free.
bool is_tight_enough(Candidate& c, const job::Spec& spec) {
  if (spec.workload.job_class != job::JobClass::tight || spec.constraints.any_interconnect) return true;
  const auto problem = fabric_problem(c.host->inventory, c.gpus);
  return !problem || c.reject("fabric", *problem, !c.host->busy_gpus.empty());
}

// Returns whether the resources that fit in principle are free now.
bool free_now(Candidate& c, const job::Resources& want) {
  const HostFacts& host = *c.host;
  const double cpus = host.cpus_free.value_or(host.inventory->cpus);
  const std::uint64_t memory = host.memory_free.value_or(host.inventory->memory_bytes);
  if (thousandths(cpus) < thousandths(c.placement.cpus))
    return c.reject(std::string(k_busy),
                    short_number(cpus) + " of its " + short_number(host.inventory->cpus) + " CPUs are free, wanted " +
                        short_number(c.placement.cpus),
                    true);
  if (memory < want.memory_bytes)
    return c.reject(std::string(k_busy), format_size(memory) + " of its memory is free, wanted " + format_size(want.memory_bytes),
                    true);
  return true;
}
}  // namespace

Candidate consider(const job::Spec& spec, const Result<Query>& query, const HostFacts& host) {
  Candidate c;
  c.host = &host;
  c.placement.host = host.name;
  c.placement.price_per_hour = host.price_per_hour;
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
  if (!choose_shares(c, spec.resources)) return c;
  const bool form_fits = choose_form(c, spec) && is_tight_enough(c, spec);
  if (!form_fits && !c.rejection->temporary) return c;
  if (form_fits) free_now(c, spec.resources);
  const std::optional<Rejection> busy = std::exchange(c.rejection, std::nullopt);
  if (!host.reachable) c.reject("unreachable", "it does not answer", true);
  else if (!host.apart.empty()) c.reject("replica", host.apart, true);
  else if (!host.resting.empty()) c.reject("resting", host.resting, true);
  else if (!host.quarantined.empty()) c.reject("quarantined", host.quarantined, true);
  else if (refusal) c.reject("query", refusal->text, true);
  else if (!host.unproven.empty()) c.reject("unproven", host.unproven, true);
  else if (!host.unmeasured.empty() && !c.gpus.empty()) c.reject("unmeasured", host.unmeasured, true);
  else c.rejection = busy;
  if (busy && host.reachable && c.rejection->code != busy->code)
    c.rejection->detail += "; " + busy->code + ", too: " + busy->detail;
  return c;
}

void note_avoidance(Candidate& c, const std::vector<Avoid>& avoided) {
  c.avoided = c.host->shunned;
  for (std::size_t i = 0; i < avoided.size(); ++i) {
    if (avoided[i].host != c.host->name) continue;
    c.avoided = avoided[i].reason.empty() ? "it failed this job" : avoided[i].reason;
    c.avoided_rank = i + 1;
  }
}

namespace {
bool is_too_flaky(const Candidate& c, const JobKnowledge& known) {
  return known.failures_max > 0 && c.placement.failures_per_hour > known.failures_max;
}
}  // namespace

void estimate(Candidate& c, const JobKnowledge& known, job::Optimize optimize) {
  HostGroup group = group_of(*c.host, c.gpus);
  const bool instead_of_gpus = c.variant != nullptr && c.gpus.empty();
  if (instead_of_gpus) {
    group.speed = speed_of_cores(c.placement.cpus);
    c.alternative = k_after_all_gpus;
  }
  if (const auto there = known.speeds.find(c.host->name); there != known.speeds.end()) group.speed = there->second;
  WorkEstimate task = known.task;
  if (const auto there = known.bytes_there.find(c.host->name); there != known.bytes_there.end())
    task.input_bytes = std::max(0.0, task.input_bytes - there->second);
  c.placement.estimate = to_finish(task, group);
  c.placement.failures_per_hour = group.failures_per_hour;
  if (known.is_due()) {
    c.placement.safely = safely(c.placement.estimate, group.failures_per_hour);
    c.placement.late = is_too_flaky(c, known) || c.placement.safely > *known.time_left;
  }
  c.rank = {c.avoided_rank,
            c.placement.late ? c.placement.safely : 0,
            c.alternative,
            c.host->on_probation,
            aim_of(optimize, c.placement.estimate, group.failures_per_hour),
            c.host->price_per_hour,
            c.host->name.value};
  for (const Gpu* gpu : c.gpus) c.placement.gpu_uuids.push_back(gpu->uuid);
}

void Refuge::offer(const Candidate& c) {
  if (c.placement.late || c.placement.safely <= 0 || !c.avoided.empty()) return;
  const double in_all = c.placement.safely + c.placement.estimate.failure;
  if (in_all >= within) return;
  host = c.placement.host;
  within = in_all;
}

void lean_on(const Refuge& refuge, Candidate& c, const JobKnowledge& known) {
  const Estimate& there = c.placement.estimate;
  if (!c.placement.late || there.is_never() || is_too_flaky(c, known)) return;
  if (refuge.within + there.transfer + there.start + there.failure > *known.time_left) return;
  c.placement.refuge = refuge.host;
  c.placement.late = false;
  c.rank.late = 0;
}

}  // namespace gridctl::sched
