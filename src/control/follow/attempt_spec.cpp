// SPDX-License-Identifier: Apache-2.0
#include "control/follow/attempt_spec.hpp"

#include <algorithm>
#include <cmath>

#include "base/formatted.hpp"
#include "control/follow/gang_backend.hpp"
#include "control/follow/results.hpp"
#include "job/image_reference.hpp"
#include "job/last_step.hpp"
#include "job/launcher.hpp"
#include "job/rank_start.hpp"
#include "sched/backend.hpp"
#include "sched/ranks.hpp"
#include "store/listing.hpp"

namespace gridctl::control {

namespace {

constexpr int k_master_port = 29500;  // torchrun's own default

// Returns the collective library that the job asks for, or the one that suits the GPUs of one host, by torch's name.
std::string backend_of(const job::Spec& spec, const std::optional<Vendor>& vendor) {
  sched::BackendQuestion question{job::JobClass::medium, {}, sched::Reach::host, spec.workload.backend};
  if (vendor) question.vendors = {*vendor};
  const Result<sched::BackendChoice> choice = sched::choose_backend(question);
  return std::string(sched::torch_name(choice ? choice->backend : job::Backend::gloo));
}

// Lists one address per line, by rank, as SkyPilot does.
std::string addresses(const AttemptFacts& facts) {
  std::string text;
  for (std::size_t i = 0; i < facts.hosts.size(); ++i) {
    const std::string& told = facts.attempt.members.at(i).address;
    text += (text.empty() ? "" : "\n") + (told.empty() ? facts.hosts[i].host : told);
  }
  return text;
}

// Returns how many times as many hosts the job has at most: "1", "1.333333". Each rank multiplies its work by it to
// keep the batch size.
std::string world_scale(const AttemptFacts& facts) {
  const auto members = static_cast<double>(facts.attempt.members.size());
  return formatted("%.7g", std::max(1.0, facts.job.spec.num_nodes / members));
}

void add_own(std::map<std::string, std::string>& env, const AttemptFacts& facts) {
  const job::Member& member = facts.member;
  const std::optional<Vendor> vendor = vendor_of(facts);
  env["GRIDCTL_JOB_ID"] = facts.job.id.value;
  env["GRIDCTL_JOB_NAME"] = facts.job.name;
  env["GRIDCTL_ATTEMPT"] = std::to_string(facts.attempt.number.value);
  env["GRIDCTL_EPOCH"] = std::to_string(facts.attempt.epoch.value);
  env["GRIDCTL_NODE_RANK"] = std::to_string(member.rank);
  env["GRIDCTL_NUM_NODES"] = std::to_string(facts.attempt.members.size());
  env["GRIDCTL_WORLD_SCALE"] = world_scale(facts);
  env["GRIDCTL_NODE_IPS"] = addresses(facts);
  env["GRIDCTL_MASTER_ADDR"] =
      facts.attempt.is_gang() ? addresses(facts).substr(0, addresses(facts).find('\n')) : "127.0.0.1";
  env["GRIDCTL_MASTER_PORT"] = std::to_string(k_master_port);
  env["GRIDCTL_GPUS_PER_NODE"] = std::to_string(member.gpu_uuids.size());
  env["GRIDCTL_GPU_VENDOR"] = vendor ? std::string(vendor_name(*vendor)) : "";
  env["GRIDCTL_BACKEND"] = backend_of(facts.job.spec, vendor);
  env["GRIDCTL_CKPT_INTERVAL"] = std::to_string(std::llround(seconds(facts.checkpoint_interval)));
  env["GRIDCTL_RESUME_FROM"] = facts.restore ? checkpoint_name(facts.job.id, facts.restore->seq) : "";
  env["GRIDCTL_RESTART_REASON"] = facts.restart_reason;
}

// Adds SkyPilot's names for these variables.
void add_skypilot(std::map<std::string, std::string>& env, const AttemptFacts& facts) {
  env["SKYPILOT_TASK_ID"] = facts.job.id.value;
  env["SKYPILOT_JOB_RANK"] = "0";
  env["SKYPILOT_NODE_RANK"] = env["GRIDCTL_NODE_RANK"];
  env["SKYPILOT_NUM_NODES"] = env["GRIDCTL_NUM_NODES"];
  env["SKYPILOT_NODE_IPS"] = env["GRIDCTL_NODE_IPS"];
  env["SKYPILOT_NUM_GPUS_PER_NODE"] = env["GRIDCTL_GPUS_PER_NODE"];
}

// Sets the variables that the job's launcher would set, if it has one.
void add_launcher(std::map<std::string, std::string>& env, const AttemptFacts& facts) {
  job::RankPlace place;
  place.run_id = facts.job.id.value;
  place.job_name = facts.job.name;
  place.restarts = static_cast<int>(facts.attempt.number.value) - 1;
  place.gpus_per_node = static_cast<int>(facts.member.gpu_uuids.size());
  place.hosts = {{env["GRIDCTL_MASTER_ADDR"], 1}};
  place.port = k_master_port;
  for (auto& [name, value] : job::launcher_environment(facts.job.spec.launcher, place)) env[name] = value;
}

// Returns the form that runs on such GPUs: a variant, or the job itself. An image archive of the job has no target
// among the inputs.
job::Variant form_of(const job::Spec& spec, std::optional<Vendor> vendor) {
  const job::Variant* variant = job::variant_for(spec, vendor);
  if (variant != nullptr) return *variant;
  return {"", spec.image, spec.image_is_archive, spec.setup, spec.run, spec.resume_run};
}

}  // namespace

std::optional<Vendor> vendor_of(const AttemptFacts& facts) {
  const job::Member& member = facts.member;
  if (member.gpu_uuids.empty()) return std::nullopt;
  for (const Gpu& gpu : facts.hosts.at(static_cast<std::size_t>(member.rank)).inventory->gpus)
    if (gpu.uuid == member.gpu_uuids.front()) return gpu.vendor;
  return std::nullopt;
}

namespace {

// Returns the address at which other members reach this one.
std::string address_of(const AttemptFacts& facts, std::size_t position) {
  const job::Member& member = facts.attempt.members.at(position);
  return member.address.empty() ? facts.hosts.at(position).host : member.address;
}

// Returns how the tasks of a bag's worker run.
std::optional<wire::BagSpec> bag_part(const job::Spec& spec) {
  if (!spec.tasks || job::is_last_step(spec)) return std::nullopt;
  wire::BagSpec bag;
  bag.count = static_cast<std::uint64_t>(spec.workload.tasks);
  bag.timeout = spec.tasks->timeout;
  if (spec.tasks->items == job::ItemForm::variables) bag.items = wire::BagItems::variables;
  if (spec.tasks->items == job::ItemForm::columns) bag.items = wire::BagItems::columns;
  bag.render = spec.tasks->render;
  bag.stdin_from = spec.tasks->stdin_from;
  bag.folder = spec.tasks->folder;
  bag.array_first = spec.tasks->array_first;
  bag.array_step = spec.tasks->array_step;
  bag.outputs = spec.tasks->outputs;
  bag.split = spec.tasks->split;
  bag.json = spec.tasks->stream_json;
  if (spec.tasks->stream_window > 0) {
    bag.mode = wire::BagMode::stream;
    bag.window = static_cast<std::uint32_t>(spec.tasks->stream_window);
  }
  return bag;
}

// Returns the other members for this one; nullopt for a job that is a single process on one host. `run`: the command of
// the variant that runs there.
std::optional<wire::Gang> gang_part(const AttemptFacts& facts, const std::string& run) {
  const job::Spec& spec = facts.job.spec;
  const job::Attempt& attempt = facts.attempt;
  const int proven = facts.rendezvous.port;
  wire::Gang gang;
  gang.node_rank = static_cast<std::uint32_t>(facts.member.rank);
  gang.launcher = std::string(job::launcher_name(spec.launcher));
  gang.self_starting = sched::starts_ranks_itself(run);
  gang.port = static_cast<std::uint16_t>(proven != 0 ? proven : job::gang_port(facts.job.id, attempt.epoch, 0));
  gang.ports = job::k_gang_ports;
  gang.restarts = static_cast<std::uint32_t>(attempt.number.value - 1);
  gang.spares = static_cast<std::uint32_t>(spec.gang.spares);
  if (const auto token = parse_digest(facts.rendezvous.token)) gang.token = *token;
  for (std::size_t i = 0; i < attempt.members.size(); ++i)
    gang.members.push_back({attempt.members[i].host.value, attempt.is_gang() ? address_of(facts, i) : "127.0.0.1",
                            sched::ranks_of(spec, attempt.members[i])});
  if (gang.world_size() == 1) return std::nullopt;
  return gang;
}

}  // namespace

wire::AttemptSpec build_attempt_spec(const AttemptFacts& facts) {
  const job::Spec& spec = facts.job.spec;
  const job::Variant form = form_of(spec, vendor_of(facts));
  const job::Member& member = facts.member;
  const bool is_last_step = job::is_last_step(spec);
  wire::AttemptSpec out;
  out.job = facts.job.id;
  out.job_name = facts.job.name;
  out.attempt = facts.attempt.number;
  out.epoch = facts.attempt.epoch;
  out.engine = member.engine;
  if (!form.image_is_archive) out.image = job::image_on_host(spec, form.image, facts.lent);
  for (const registry::Input& input : facts.inputs) {
    if (input.role == registry::k_image_role && form.image_is_archive && input.target == form.kind) out.image_archive = input.root;
    if (input.role == (is_last_step ? std::string_view(job::k_tasks_role) : registry::k_workdir_role)) out.workdir = input.root;
    if (input.role == registry::k_mount_role) out.mounts.push_back({input.root, input.target});
  }
  if (facts.restore) {
    out.restore = facts.restore->root;
    out.restore_name = checkpoint_name(facts.job.id, facts.restore->seq);
    out.checkpoint_by_marker = facts.restore->how == store::k_how_marker;
  }
  out.checkpoint_path = spec.checkpoint.path;
  out.checkpoint_late = facts.job.machine.late_directory;
  out.whole_when = spec.checkpoint.whole_when;
  out.checkpoints =
      job::interval_on(spec, facts.any_lent) != job::CheckpointPolicy::Interval::off && (!spec.tasks || is_last_step);
  out.interval_signal = spec.checkpoint.signal;
  out.notice_signal = spec.recovery.notice;
  out.upload_limit = spec.checkpoint.upload_limit;
  out.root_writable = spec.root_writable.value_or(!facts.lent);
  if (spec.outputs.empty()) out.keep_work = k_keep_work;
  out.checkpoint_min_interval = facts.snapshot_pause;
  out.setup = form.setup;
  out.run = is_last_step ? spec.tasks->finally_run : facts.restore && !form.resume_run.empty() ? form.resume_run : form.run;
  if (is_last_step) out.envs["GRIDCTL_TASK_COUNT"] = std::to_string(spec.workload.tasks);
  add_own(out.envs, facts);
  add_skypilot(out.envs, facts);
  out.gang = gang_part(facts, out.run);
  out.bag = bag_part(spec);
  if (out.bag) out.envs["SLURM_ARRAY_JOB_ID"] = (spec.twin_of.value.empty() ? facts.job.id : spec.twin_of).value;
  if (facts.attempt.is_gang()) {
    const sched::BackendChoice choice = gang_backend(spec, facts.attempt, facts.hosts);
    out.envs["GRIDCTL_BACKEND"] = std::string(sched::torch_name(choice.backend));
    const auto rank = static_cast<std::size_t>(member.rank);
    for (const auto& [name, value] : gang_variables(spec, facts.attempt, facts.hosts, rank)) out.envs[name] = value;
  }
  if (out.gang) out.envs["GRIDCTL_MASTER_PORT"] = std::to_string(out.gang->port);
  else add_launcher(out.envs, facts);  // the ranks of a gang each get their own from the agent
  for (const auto& [name, value] : spec.envs) out.envs[name] = value;  // the user's word is the last
  out.secret_names = spec.secrets;
  out.gpu_uuids = member.gpu_uuids;
  out.cpus = member.cpus;
  out.memory_bytes = member.memory_bytes;
  return out;
}

}  // namespace gridctl::control
