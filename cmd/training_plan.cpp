// SPDX-License-Identifier: Apache-2.0
#include "cmd/training_plan.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/text.hpp"
#include "cmd/plan_islands.hpp"
#include "cmd/plan_question.hpp"
#include "cmd/training_outcome.hpp"
#include "plan/search.hpp"
#include "sched/catalogue/gpu_match.hpp"
#include "ui/human.hpp"

namespace gridctl::cmd {

namespace {
Result<plan::Training> training_of(const job::Trained& wish) {
  plan::Training out;
  const plan::Model* const model = plan::family(wish.model);
  if (model == nullptr) return make_error(Code::bad_job_file, "unknown model '" + sanitize(wish.model, 80) + "'");
  out.model = *model;
  out.method = plan::method_of(wish.method).value_or(plan::Method::full);
  out.sequence = std::max<std::int64_t>(wish.sequence, 1);
  if (out.model.learned_positions) out.model.positions = std::max(out.model.positions, out.sequence);
  return out;
}

// Returns the number of a host's GPUs that the job may use, at most as many as it asks for; 0: none.
int usable_gpus(const job::Spec& spec, const sched::HostFacts& host) {
  const auto& gpus = host.inventory->gpus;
  if (gpus.empty() || host.drained || !host.quarantined.empty()) return 0;
  const auto& pinned = spec.constraints.providers;
  if (!pinned.empty() && std::ranges::find(pinned, host.name.value) == pinned.end()) return 0;
  if (spec.resources.gpus.empty()) return static_cast<int>(gpus.size());
  for (const job::GpuRequest& request : spec.resources.gpus) {
    const auto count = std::ranges::count_if(
        gpus, [&](const Gpu& gpu) { return sched::match_gpu(request, gpu) == sched::GpuMismatch::none; });
    if (count >= request.count_min) return static_cast<int>(std::min<std::ptrdiff_t>(count, request.count_max));
  }
  return 0;
}

// Groups the hosts as the job may use them. For GPUs that only the catalogue knows, the groups are machines by name.
std::vector<Machines> machines_for(const job::Spec& spec, const std::vector<sched::HostFacts>& hosts,
                                   const std::vector<registry::HostLink>& links) {
  std::vector<sched::HostFacts> cut;
  for (const sched::HostFacts& host : hosts) {
    const int count = usable_gpus(spec, host);
    if (count == 0) continue;
    cut.push_back(host);
    cut.back().inventory.edit().gpus.resize(static_cast<std::size_t>(count));
  }
  std::vector<const sched::HostFacts*> usable;
  for (const sched::HostFacts& host : cut) usable.push_back(&host);
  std::vector<Machines> out = grouped(usable);
  apply_links(links, out);
  if (!out.empty() || spec.resources.gpus.empty() || spec.resources.gpus.front().names.empty()) return out;
  const job::GpuRequest& request = spec.resources.gpus.front();
  const auto model = plan::gpu_named(request.names.front());
  if (!model) return out;
  Machines named;
  named.cluster = plan::cluster_of(plan::device_of(**model), *model, request.count_max);
  named.nodes = spec.num_nodes;
  named.gpu = (*model)->key;
  return {named};
}

Result<plan::Question> question_of(const job::Spec& spec, const Machines& machines) {
  plan::Question out;
  TRY_ASSIGN(out.training, training_of(spec.workload.trained));
  out.cluster = machines.cluster;
  out.usd_per_gpu_hour = machines.usd_per_gpu_hour;
  out.risk.failures_per_node_hour = machines.failures_per_node_hour;
  // A job that asks for GPUs gets exactly those; otherwise the plan chooses the number of hosts.
  out.fewer_nodes = spec.resources.gpus.empty();
  out.nodes = out.fewer_nodes && spec.num_nodes == 1 ? machines.nodes : std::min(spec.num_nodes, machines.nodes);
  if (!spec.workload.trained.layout.empty()) {
    TRY_ASSIGN(out.wanted, plan::read_wanted(spec.workload.trained.layout));
  }
  const std::int64_t gpus = static_cast<std::int64_t>(out.nodes) * out.cluster.gpus_per_node;
  out.training.framework = plan::framework_of(spec.workload.trained.framework)
                               .value_or(plan::usual_framework(out.training.method, static_cast<int>(gpus), plan::Framework::fsdp2));
  const std::int64_t tokens = out.training.method == plan::Method::full ? k_tokens_of_step : k_tokens_of_tuning;
  const std::int64_t usual = std::max<std::int64_t>(tokens / out.training.sequence, 1);
  out.training.batch = spec.workload.trained.batch > 0
                           ? spec.workload.trained.batch
                           : std::max<std::int64_t>(1, (usual + gpus / 2) / gpus) * gpus;
  return out;
}

// Describes the run in the words of `gridctl plan estimate`, so that its measured figures can calibrate.
std::string row_of(const plan::Question& question, const plan::Plan& plan, const Machines& machines) {
  const plan::Training& t = question.training;
  const plan::Parallelism& l = plan.parallelism;
  const nlohmann::json row{{"model", t.model.name},
                           {"seq_len", t.sequence},
                           {"global_batch", t.batch},
                           {"method", plan::text_of(t.method)},
                           {"framework", plan::text_of(t.framework)},
                           {"precision", plan::text_of(t.precision)},
                           {"gpu", machines.gpu},
                           {"gpus_per_node", question.cluster.gpus_per_node},
                           {"dp", l.dp},
                           {"tp", l.tp},
                           {"pp", l.pp},
                           {"cp", l.cp},
                           {"ep", l.ep},
                           {"vpp", l.virtual_stages},
                           {"sharding", l.zero == 0 ? "none" : "zero" + std::to_string(l.zero)},
                           {"micro_batch", l.micro_batch},
                           {"act_recompute", plan::text_of(l.recompute)},
                           {"offload", plan::text_of(l.offload)}};
  return row.dump();
}

void apply(const plan::Question& question, const plan::Plan& plan, const Machines& machines, job::Spec& spec) {
  const plan::Parallelism& l = plan.parallelism;
  const int each = std::min(l.gpus(), question.cluster.gpus_per_node);
  if (spec.resources.gpus.empty()) {
    job::GpuRequest request;
    request.names = {machines.gpu};
    request.count_min = request.count_max = each;
    spec.resources.gpus.push_back(request);
    spec.num_nodes = (l.gpus() + each - 1) / each;
  }
  if (spec.num_nodes > 1 && spec.workload.job_class == job::JobClass::automatic)
    spec.workload.job_class = job::JobClass::tight;
  job::Workload& workload = spec.workload;
  const int replica = l.tp * l.pp * l.cp * (l.zero == 3 ? l.dp : 1);
  if (!workload.trained.memory_said)
    workload.model_memory_bytes = static_cast<std::uint64_t>(plan.memory.peak() * replica);
  if (!workload.step)
    workload.step = std::chrono::milliseconds{std::max<long long>(1, std::llround(plan.time.seconds * 1000))};
  workload.trained.batch = question.training.batch;
  workload.predicted = {plan::text_of(l), machines.gpu,        l.gpus(), plan.time.seconds, plan.tokens_per_s,
                        plan.memory.peak(), row_of(question, plan, machines)};
}

// Names the network between the hosts on which these figures rest.
std::string network_text(const plan::Question& question, const Machines& machines, int gpus) {
  if (gpus <= question.cluster.gpus_per_node || machines.rdma || machines.hosts.empty()) return "";
  return machines.between > 0 ? ", with the measured " + ui::number(machines.between * 8 / 1e9, 3) + " Gbit/s between the hosts"
                              : ", with an assumed network (gridctl provider links measures)";
}

Error refusal(const job::Spec& spec, const plan::Question& question, const plan::Answer& answer) {
  Error error = make_error(Code::no_provider_fits,
                           "no layout of " + question.training.model.name + " fits " + std::to_string(question.nodes) +
                               " x " + std::to_string(question.cluster.gpus_per_node) + " " +
                               question.cluster.device.name + " (workload.model)");
  error.context = plan::explain_rejections(question, answer);
  error.hint = "gridctl plan train --model " + spec.workload.trained.model + " --explain";
  return error;
}
}  // namespace

Result<std::optional<std::string>> plan_training(job::Spec& spec, const std::vector<sched::HostFacts>& hosts,
                                                 const std::vector<registry::HostLink>& links,
                                                 const std::vector<plan::FinishedRun>& runs) {
  if (spec.workload.trained.model.empty()) return std::optional<std::string>{};
  std::optional<Error> refused;
  struct Found {
    plan::Question question;
    plan::Plan plan;
    Machines machines;
  };
  std::optional<Found> best;
  for (const Machines& machines : machines_for(spec, hosts, links)) {
    TRY_ASSIGN(plan::Question question, question_of(spec, machines));
    std::vector<std::string> sources;
    calibrate(runs, question, sources);
    if (const auto faults = plan::faults_of_wanted(question); !faults.empty()) {
      refused = make_error(Code::bad_job_file, "workload.layout: " + join(faults, "; "));
      continue;
    }
    const plan::Answer answer = plan::search(question);
    if (answer.best.empty()) refused = refusal(spec, question, answer);
    else if (!best || answer.best.front().expected_hours() < best->plan.expected_hours())
      best = Found{question, answer.best.front(), machines};
  }
  if (!best) {
    if (refused) return *std::move(refused);
    return std::optional<std::string>{};
  }
  apply(best->question, best->plan, best->machines, spec);
  const job::Predicted& told = *spec.workload.predicted;
  return std::optional("planned: " + told.layout + " on " + std::to_string(told.gpus) + " x " + told.gpu + ", " +
                       ui::number(told.peak_bytes / 1e9, 3) + " GB on each, " + ui::number(told.step_s, 3) +
                       " s a step, " + std::to_string(std::llround(told.tokens_per_s)) + " tokens/s" +
                       network_text(best->question, best->machines, told.gpus));
}

}  // namespace gridctl::cmd
