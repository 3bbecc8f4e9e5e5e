// SPDX-License-Identifier: Apache-2.0
// Checks what is impossible on any hosts.
#include <algorithm>
#include <cmath>

#include "base/text.hpp"
#include "sched/backend.hpp"
#include "sched/catalogue/catalogue.hpp"
#include "sched/catalogue/gpu_match.hpp"
#include "sched/impossible.hpp"
#include "sched/physics.hpp"
#include "sched/place.hpp"

namespace gridctl::sched {

namespace {
using job::JobClass;

using Finding = std::optional<Impossible>;

constexpr double k_nominal_excess = 1.08;  // a size may be meant in GiB: "80GiB" of an 80 GB part

std::string key(const char* name, int value) { return std::string(name) + ": " + std::to_string(value); }

Finding tasks_in_gangs(const job::Spec& spec, const Coupling&) {
  if (spec.workload.tasks == 0 || spec.num_nodes == 1) return std::nullopt;
  const std::string tasks = key("tasks", spec.workload.tasks), nodes = key("num_nodes", spec.num_nodes);
  return Impossible{"contradiction",
                    tasks + " are pieces of work for one host each, but " + nodes + " asks for " +
                        std::to_string(spec.num_nodes) + " hosts for one piece",
                    {tasks + " without num_nodes: each task on any host", nodes + " without tasks: one job over them"}};
}

Finding tasks_of_class(const job::Spec& spec, const Coupling&) {
  const JobClass said = spec.workload.job_class;
  if (spec.workload.tasks == 0 || (said != JobClass::tight && said != JobClass::service)) return std::nullopt;
  const std::string tasks = key("tasks", spec.workload.tasks);
  const std::string head = "class: " + std::string(job::class_name(said));
  return Impossible{"contradiction",
                    said == JobClass::tight
                        ? head + " couples all parts, but " + tasks + " are independent"
                        : head + " runs until stopped, but the tasks of " + tasks + " end one by one",
                    {"class: loose with " + tasks, head + " without tasks"}};
}

Finding gang_in_one_host(const job::Spec& spec, const Coupling&) {
  if (spec.workload.job_class != JobClass::medium || spec.num_nodes == 1) return std::nullopt;
  const std::string nodes = key("num_nodes", spec.num_nodes);
  return Impossible{"contradiction",
                    "class: medium keeps all GPUs in one host, but " + nodes + " asks for " +
                        std::to_string(spec.num_nodes) + " hosts",
                    {"class: tight with " + nodes, "class: medium with num_nodes: 1"}};
}

// Impossible only if no alternative can follow the wish.
Finding backend(const job::Spec& spec, const Coupling& coupling) {
  BackendQuestion question{coupling.job_class, {}, Reach::host, spec.workload.backend};
  if (question.wish == job::Backend::automatic) return std::nullopt;
  if (coupling.job_class == JobClass::federated && spec.num_nodes > 1) question.reach = Reach::wan;
  std::optional<Error> refusal;
  std::vector<std::vector<Vendor>> cases;
  for (const job::GpuRequest& gpu : spec.resources.gpus) {
    const std::vector<Vendor> vendors = vendors_meant(gpu);
    if (vendors.empty()) return std::nullopt;
    for (Vendor vendor : vendors) cases.push_back({vendor});
  }
  if (spec.resources.gpus.empty()) cases.emplace_back();
  for (const std::vector<Vendor>& vendors : cases) {
    question.vendors = vendors;
    auto choice = choose_backend(question);
    if (choice) return std::nullopt;
    if (!refusal) refusal = std::move(choice).error();
  }
  return Impossible{"backend", refusal->message, refusal->context};
}

double largest_memory(const std::vector<const GpuModel*>& models, const GpuModel** which = nullptr) {
  double most = 0;
  for (const GpuModel* model : models)
    if (model->memory_gb > most) {
      most = model->memory_gb;
      if (which != nullptr) *which = model;
    }
  return most * 1e9;
}

std::vector<const GpuModel*> all_models() {
  std::vector<const GpuModel*> models;
  for (const GpuModel& model : catalogue()) models.push_back(&model);
  return models;
}

// Returns the models that a request can mean; all of them if it names none, none if it names an unknown one.
std::vector<const GpuModel*> models_of(const job::GpuRequest& request) {
  std::vector<const GpuModel*> models;
  for (const std::string& name : request.names) {
    const std::vector<const GpuModel*> some = models_named(name);
    if (some.empty()) return {};
    models.insert(models.end(), some.begin(), some.end());
  }
  if (request.names.empty()) models = all_models();
  std::erase_if(models, [&](const GpuModel* model) { return request.vendor && model->vendor != *request.vendor; });
  return models;
}

std::string split_over(double bytes, double each, const std::string& what) {
  const auto count = static_cast<int>(std::ceil(bytes / each));
  return std::to_string(count) + " x " + what + " in one host, with the model split over them";
}

// Returns the smallest known model with this much memory.
const GpuModel* large_enough(double bytes) {
  const GpuModel* best = nullptr;
  for (const GpuModel& model : catalogue())
    if (model.memory_gb * 1e9 >= bytes && (best == nullptr || model.memory_gb < best->memory_gb)) best = &model;
  return best;
}

Finding memory_of_request(const job::GpuRequest& request) {
  const std::vector<const GpuModel*> models = models_of(request);
  if (models.empty() || !request.memory_min) return std::nullopt;
  const double wanted = static_cast<double>(*request.memory_min);
  const GpuModel* largest = nullptr;
  const double most = largest_memory(models, &largest);
  if (wanted <= most * k_nominal_excess) return std::nullopt;
  const bool any = request.names.empty();
  const std::string who =
      any ? "no GPU has " + bytes_text(wanted) + " of memory: the largest known, " + largest->key + ", has "
          : join(request.names, ",") + " has at most ";
  Impossible no{
      std::string(k_gpu_memory), who + bytes_text(most) + (any ? "" : " of memory, " + bytes_text(wanted) + " wanted"), {}};
  no.instead.push_back(split_over(wanted, most, any ? largest->key : join(request.names, ",")));
  if (const GpuModel* other = large_enough(wanted); other != nullptr && !any)
    no.instead.push_back("another GPU: " + other->key + " has " + bytes_text(other->memory_gb * 1e9));
  return no;
}

// Impossible only if no alternative has it.
Finding gpu_memory(const job::Spec& spec, const Coupling&) {
  Finding first;
  for (const job::GpuRequest& request : spec.resources.gpus) {
    Finding no = memory_of_request(request);
    if (!no) return std::nullopt;
    if (!first) first = std::move(no);
  }
  return first;
}

// Returns the most memory that all GPUs of one host have together, over the alternatives; 0 = not known.
double host_memory(const job::GpuRequest& request) {
  double each = largest_memory(models_of(request));
  if (request.memory_max) each = std::min(each > 0 ? each : 1e18, static_cast<double>(*request.memory_max));
  return each * request.count_max;
}

Finding no_gpu_for(const std::string& replica, double wanted) {
  return Impossible{"model_memory",
                    replica + "the job does not request a GPU",
                    {"resources: {accelerators: \"" + bytes_text(wanted) + "..\"}"}};
}

// A tight gang has a fabric and may split a replica over its hosts; others may not.
Finding model_memory(const job::Spec& spec, const Coupling& coupling) {
  if (!spec.workload.model_memory_bytes) return std::nullopt;
  const double wanted = static_cast<double>(*spec.workload.model_memory_bytes);
  const std::string replica = "a replica needs " + bytes_text(wanted) + " of GPU memory (workload.model_memory), and ";
  if (spec.resources.gpus.empty()) return no_gpu_for(replica, wanted);
  const int hosts = coupling.job_class == JobClass::tight ? spec.num_nodes : 1;
  double most = 0;
  const job::GpuRequest* best = nullptr;
  for (const job::GpuRequest& request : spec.resources.gpus) {
    const double memory = host_memory(request) * hosts;
    if (memory <= 0 || wanted <= memory * k_nominal_excess) return std::nullopt;
    if (memory > most) most = memory, best = &request;
  }
  const int gpus = best->count_max * hosts;
  job::GpuRequest one = *best;
  one.count_min = one.count_max = 1;
  const bool open = best->names.empty() && !best->memory_max && !best->memory_min;
  Impossible no{"model_memory",
                replica + std::to_string(gpus) + " x " + (open ? "any GPU" : describe(one)) + " of " +
                    (hosts == 1 ? "one host" : std::to_string(hosts) + " hosts") + " have at most " + bytes_text(most),
                {}};
  if (hosts < spec.num_nodes) no.why += "; without a fabric, several hosts cannot pool their memory";
  no.instead.push_back(split_over(wanted, most / gpus, best->names.empty() ? "such GPUs" : join(best->names, ",")));
  if (const GpuModel* other = large_enough(wanted / gpus); other != nullptr)
    no.instead.push_back(std::to_string(gpus) + " x " + other->key + " with " + bytes_text(other->memory_gb * 1e9) +
                         " each");
  return no;
}

Finding duration(const job::Spec& spec, const Coupling&) {
  if (!spec.workload.work || !spec.max_duration || *spec.workload.work <= *spec.max_duration) return std::nullopt;
  const double work = seconds(*spec.workload.work), most = seconds(*spec.max_duration);
  return Impossible{"duration",
                    "the job needs " + time_text(work) + " of useful time (workload.work), but may run for " +
                        time_text(most) + " (max_duration)",
                    {"max_duration above " + time_text(work),
                     "hardware more than " + share_text(work / most - 1) + " faster than its first choice"}};
}

// Some parts have more memory than any row of the catalogue: an owner of one knows better.
bool is_held(const job::Spec& spec, const std::vector<HostFacts>& hosts) {
  for (const HostFacts& host : hosts)
    for (const Gpu& gpu : host.inventory->gpus)
      for (const job::GpuRequest& request : spec.resources.gpus)
        if (match_gpu(request, gpu) == GpuMismatch::none) return true;
  return false;
}

using Check = Finding (*)(const job::Spec&, const Coupling&);
constexpr Check k_checks_alone[] = {&tasks_in_gangs, &tasks_of_class, &gang_in_one_host, &backend,
                                    &gpu_memory,     &model_memory,   &duration};
}  // namespace

std::vector<Vendor> vendors_meant(const job::GpuRequest& request) {
  if (request.vendor) return {*request.vendor};
  std::vector<Vendor> vendors;
  for (const std::string& name : request.names) {
    const std::vector<const GpuModel*> models = models_named(name);
    if (models.empty()) return {};
    for (const GpuModel* model : models)
      if (std::ranges::find(vendors, model->vendor) == vendors.end()) vendors.push_back(model->vendor);
  }
  return vendors;
}

Finding impossible_alone(const job::Spec& spec, const Coupling& coupling) {
  for (const Check check : k_checks_alone)
    if (Finding no = check(spec, coupling)) return no;
  return std::nullopt;
}

Finding impossible(const job::Spec& spec, const Coupling& coupling, const std::vector<HostFacts>& hosts,
                   std::span<const PairLink> links) {
  Finding no = impossible_alone(spec, coupling);
  if (no && no->code == k_gpu_memory && is_held(spec, hosts)) no.reset();
  return no ? no : impossible_here(spec, coupling, hosts, links);
}

}  // namespace gridctl::sched
