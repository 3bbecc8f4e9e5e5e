// SPDX-License-Identifier: Apache-2.0
#include "job/spec.hpp"

#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

#include "job/workload_json.hpp"

namespace gridctl::job {

using nlohmann::json;

namespace {
constexpr int k_format = 2;  // raised when an older gridctl would misread a Spec
constexpr int k_format_without_variants = 1;
constexpr std::array<std::string_view, 3> k_optimize_names{"cost", "time", "reliability"};

std::int64_t to_ms(Duration duration) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
}

json optional_json(const auto& value) { return value ? json(*value) : json(nullptr); }

template <class T>
std::optional<T> optional_of(const json& in, const char* key) {
  const auto found = in.find(key);
  if (found == in.end() || found->is_null()) return std::nullopt;
  return found->get<T>();
}

Duration duration_of(const json& in, const char* key, Duration fallback) {
  const auto ms = optional_of<std::int64_t>(in, key);
  return ms ? Duration{std::chrono::milliseconds{*ms}} : fallback;
}

json gpu_json(const GpuRequest& gpu) {
  return {{"vendor", gpu.vendor ? json(vendor_name(*gpu.vendor)) : json(nullptr)},
          {"names", gpu.names},
          {"memory_min_bytes", optional_json(gpu.memory_min)},
          {"memory_max_bytes", optional_json(gpu.memory_max)},
          {"count_min", gpu.count_min},
          {"count_max", gpu.count_max}};
}

Result<GpuRequest> gpu_of(const json& in) {
  GpuRequest gpu;
  if (const auto vendor = optional_of<std::string>(in, "vendor")) {
    TRY_ASSIGN(gpu.vendor, parse_vendor(*vendor));
  }
  gpu.names = in.value("names", std::vector<std::string>{});
  gpu.memory_min = optional_of<std::uint64_t>(in, "memory_min_bytes");
  gpu.memory_max = optional_of<std::uint64_t>(in, "memory_max_bytes");
  gpu.count_min = in.value("count_min", 1);
  gpu.count_max = in.value("count_max", gpu.count_min);
  return gpu;
}

json resources_json(const Resources& resources) {
  json gpus = json::array();
  for (const GpuRequest& gpu : resources.gpus) gpus.push_back(gpu_json(gpu));
  return {{"gpus", std::move(gpus)},
          {"cpus", resources.cpus},
          {"memory_bytes", resources.memory_bytes},
          {"disk_bytes", resources.disk_bytes},
          {"any_order", resources.any_order}};
}

Result<Resources> resources_of(const json& in) {
  Resources resources;
  for (const json& gpu : in.value("gpus", json::array())) {
    TRY_ASSIGN(GpuRequest request, gpu_of(gpu));
    resources.gpus.push_back(std::move(request));
  }
  resources.cpus = in.value("cpus", 0.0);
  resources.memory_bytes = in.value("memory_bytes", std::uint64_t{0});
  resources.disk_bytes = in.value("disk_bytes", std::uint64_t{0});
  resources.any_order = in.value("any_order", false);
  return resources;
}

std::string_view interval_name(CheckpointPolicy::Interval interval) {
  switch (interval) {
    case CheckpointPolicy::Interval::automatic: return "auto";
    case CheckpointPolicy::Interval::fixed: return "fixed";
    case CheckpointPolicy::Interval::off: return "off";
  }
  return "auto";
}

json keep_json(const KeepPolicy& policy) {
  if (policy == KeepPolicy::newest(policy.last)) return policy.last;
  return {{"last", policy.last}, {"hourly", policy.hourly}, {"daily", policy.daily},    {"weekly", policy.weekly},
          {"best", policy.best}, {"metric", policy.metric}, {"highest", policy.highest}};
}

KeepPolicy keep_of(const json& in) {
  KeepPolicy policy;
  if (in.is_number()) {
    policy.last = in.get<int>();
    return policy;
  }
  policy.last = in.value("last", policy.last);
  policy.hourly = in.value("hourly", policy.hourly);
  policy.daily = in.value("daily", policy.daily);
  policy.weekly = in.value("weekly", policy.weekly);
  policy.best = in.value("best", policy.best);
  policy.metric = in.value("metric", policy.metric);
  policy.highest = in.value("highest", policy.highest);
  return policy;
}

json checkpoint_json(const CheckpointPolicy& policy) {
  return {{"path", policy.path},
          {"interval", interval_name(policy.interval)},
          {"every_ms", to_ms(policy.every)},
          {"signal", policy.signal},
          {"keep", keep_json(policy.keep)},
          {"standby", policy.standby},
          {"copies", policy.copies},
          {"upload_limit", policy.upload_limit},
          {"local_shards", policy.local_shards},
          {"whole_when", policy.whole_when}};
}

CheckpointPolicy checkpoint_of(const json& in) {
  CheckpointPolicy policy;
  policy.path = in.value("path", "");
  const std::string interval = in.value("interval", "auto");
  policy.interval = interval == "fixed" ? CheckpointPolicy::Interval::fixed
                    : interval == "off" ? CheckpointPolicy::Interval::off
                                        : CheckpointPolicy::Interval::automatic;
  policy.every = duration_of(in, "every_ms", policy.every);
  policy.signal = in.value("signal", 0);
  if (in.contains("keep")) policy.keep = keep_of(in["keep"]);
  policy.standby = in.value("standby", false);
  policy.copies = in.value("copies", policy.copies);
  policy.upload_limit = in.value("upload_limit", policy.upload_limit);
  policy.local_shards = in.value("local_shards", false);
  policy.whole_when = in.value("whole_when", policy.whole_when);
  return policy;
}

json recovery_json(const RecoveryPolicy& policy) {
  return {{"lost_after_ms", to_ms(policy.lost_after)},
          {"max_failures", policy.max_failures},
          {"restart_on", policy.restart_on},
          {"fail_on", policy.fail_on},
          {"lease_ms", to_ms(policy.lease)},
          {"tell_hangs", policy.hangs == Hangs::tell},
          {"replace_stragglers", policy.stragglers == Stragglers::replace},
          {"only_trusted", policy.only_trusted}};
}

RecoveryPolicy recovery_of(const json& in) {
  RecoveryPolicy policy;
  policy.lost_after = duration_of(in, "lost_after_ms", policy.lost_after);
  policy.max_failures = in.value("max_failures", policy.max_failures);
  policy.restart_on = in.value("restart_on", policy.restart_on);
  policy.fail_on = in.value("fail_on", policy.fail_on);
  policy.lease = duration_of(in, "lease_ms", policy.lease);
  if (in.value("tell_hangs", false)) policy.hangs = Hangs::tell;
  if (in.value("replace_stragglers", false)) policy.stragglers = Stragglers::replace;
  policy.only_trusted = in.value("only_trusted", false);
  return policy;
}

json constraints_json(const Constraints& constraints) {
  return {{"region_in", constraints.region_in},
          {"region_not", constraints.region_not},
          {"classes", constraints.classes},
          {"max_price", optional_json(constraints.max_price)},
          {"providers", constraints.providers},
          {"labels", constraints.labels},
          {"query", constraints.query},
          {"is_private", constraints.is_private},
          {"any_interconnect", constraints.any_interconnect}};
}

Constraints constraints_of(const json& in) {
  Constraints constraints;
  constraints.region_in = in.value("region_in", constraints.region_in);
  constraints.region_not = in.value("region_not", constraints.region_not);
  constraints.classes = in.value("classes", constraints.classes);
  constraints.max_price = optional_of<double>(in, "max_price");
  constraints.providers = in.value("providers", constraints.providers);
  constraints.labels = in.value("labels", constraints.labels);
  constraints.query = in.value("query", "");
  constraints.is_private = in.value("is_private", false);
  constraints.any_interconnect = in.value("any_interconnect", false);
  return constraints;
}

json gang_json(const GangPolicy& gang) {
  return {{"nodes_min", gang.nodes_min}, {"spares", gang.spares}, {"ranks_per_node", gang.ranks_per_node}};
}

GangPolicy gang_of(const json& in) {
  return {in.value("nodes_min", 0), in.value("spares", 0), in.value("ranks_per_node", 0)};
}

json variants_json(const std::vector<Variant>& variants) {
  json out = json::array();
  for (const Variant& variant : variants)
    out.push_back({{"kind", variant.kind},
                   {"image", variant.image},
                   {"image_is_archive", variant.image_is_archive},
                   {"setup", variant.setup},
                   {"run", variant.run},
                   {"resume_run", variant.resume_run}});
  return out;
}

Variant variant_of(const json& in) {
  Variant variant;
  variant.kind = in.at("kind").get<std::string>();
  variant.image = in.value("image", "");
  variant.image_is_archive = in.value("image_is_archive", false);
  variant.setup = in.value("setup", "");
  variant.run = in.at("run").get<std::string>();
  variant.resume_run = in.value("resume_run", "");
  return variant;
}

json outputs_json(const std::vector<Output>& outputs) {
  json out = json::array();
  for (const Output& output : outputs)
    out.push_back({{"from", output.from}, {"when", output_when_name(output.when)}, {"sync_ms", to_ms(output.sync)}});
  return out;
}

Output output_of(const json& in) {
  Output output;
  output.from = in.at("from").get<std::string>();
  const std::string when = in.value("when", "always");
  for (const OutputWhen one : {OutputWhen::success, OutputWhen::failure})
    if (when == output_when_name(one)) output.when = one;
  output.sync = duration_of(in, "sync_ms", {});
  return output;
}

json deadline_json(const std::optional<Deadline>& deadline) {
  if (!deadline) return nullptr;
  return {{"at_ms", deadline->at ? json(deadline->at->ms) : json(nullptr)},
          {"after_ms", to_ms(deadline->after)},
          {"hard", deadline->hard}};
}

std::optional<Deadline> deadline_of(const json& in) {
  if (!in.is_object()) return std::nullopt;
  Deadline deadline;
  if (const auto at = optional_of<std::int64_t>(in, "at_ms")) deadline.at = WallTime{*at};
  deadline.after = duration_of(in, "after_ms", {});
  deadline.hard = in.value("hard", false);
  return deadline;
}

Result<Spec> spec_of(const json& in) {
  Spec spec;
  spec.name = in.at("name").get<std::string>();
  TRY_ASSIGN(spec.resources, resources_of(in.value("resources", json::object())));
  spec.num_nodes = in.value("num_nodes", 1);
  spec.gang = gang_of(in.value("gang", json::object()));
  spec.image = in.value("image", "");
  spec.image_is_archive = in.value("image_is_archive", false);
  spec.root_writable = optional_of<bool>(in, "root_writable");
  spec.workdir = in.value("workdir", "");
  spec.envs = in.value("envs", spec.envs);
  spec.secrets = in.value("secrets", spec.secrets);
  for (const json& mount : in.value("file_mounts", json::array()))
    spec.file_mounts.push_back({mount.at("target").get<std::string>(), mount.at("source").get<std::string>()});
  spec.setup = in.value("setup", "");
  spec.run = in.at("run").get<std::string>();
  spec.resume_run = in.value("resume_run", "");
  for (const json& output : in.value("outputs", json::array())) spec.outputs.push_back(output_of(output));
  for (const json& variant : in.value("variants", json::array())) spec.variants.push_back(variant_of(variant));
  spec.checkpoint = checkpoint_of(in.value("checkpoint", json::object()));
  spec.recovery = recovery_of(in.value("recovery", json::object()));
  spec.constraints = constraints_of(in.value("constraints", json::object()));
  spec.optimize = parse_optimize(in.value("optimize", "cost")).value_or(Optimize::cost);
  TRY_ASSIGN(spec.workload, workload_of(in.value("workload", json::object())));
  TRY_ASSIGN(spec.launcher, parse_launcher(in.value("launcher", "plain")));
  spec.priority = in.value("priority", 0);
  spec.owner = in.value("owner", "");
  spec.budget_total = optional_of<double>(in, "budget_total");
  if (in.contains("max_duration_ms") && !in["max_duration_ms"].is_null())
    spec.max_duration = duration_of(in, "max_duration_ms", {});
  spec.deadline = deadline_of(in.value("deadline", json()));
  spec.replicas = in.value("replicas", 1);
  spec.replica_of = {in.value("replica_of", "")};
  return spec;
}
}  // namespace

WallTime moment_of(const Deadline& deadline, WallTime submitted_at) {
  return deadline.at.value_or(WallTime{submitted_at.ms + to_ms(deadline.after)});
}

std::string_view optimize_name(Optimize optimize) { return k_optimize_names[static_cast<std::size_t>(optimize)]; }

std::optional<Optimize> parse_optimize(std::string_view word) {
  const auto found = std::find(k_optimize_names.begin(), k_optimize_names.end(), word);
  if (found == k_optimize_names.end()) return std::nullopt;
  return static_cast<Optimize>(found - k_optimize_names.begin());
}

std::string nodes_text(const Spec& spec) {
  return (is_elastic(spec) ? std::to_string(nodes_least(spec)) + ".." : "") + std::to_string(spec.num_nodes);
}

std::string to_json(const Spec& spec) {
  json mounts = json::array();
  for (const Mount& mount : spec.file_mounts) mounts.push_back({{"target", mount.target}, {"source", mount.source}});
  const json out{{"format", spec.variants.empty() ? k_format_without_variants : k_format},
                 {"name", spec.name},
                 {"resources", resources_json(spec.resources)},
                 {"num_nodes", spec.num_nodes},
                 {"gang", gang_json(spec.gang)},
                 {"image", spec.image},
                 {"image_is_archive", spec.image_is_archive},
                 {"root_writable", optional_json(spec.root_writable)},
                 {"workdir", spec.workdir},
                 {"envs", spec.envs},
                 {"secrets", spec.secrets},
                 {"file_mounts", std::move(mounts)},
                 {"setup", spec.setup},
                 {"run", spec.run},
                 {"resume_run", spec.resume_run},
                 {"outputs", outputs_json(spec.outputs)},
                 {"variants", variants_json(spec.variants)},
                 {"checkpoint", checkpoint_json(spec.checkpoint)},
                 {"recovery", recovery_json(spec.recovery)},
                 {"constraints", constraints_json(spec.constraints)},
                 {"optimize", optimize_name(spec.optimize)},
                 {"priority", spec.priority},
                 {"owner", spec.owner},
                 {"workload", workload_json(spec.workload)},
                 {"launcher", launcher_name(spec.launcher)},
                 {"budget_total", optional_json(spec.budget_total)},
                 {"max_duration_ms", spec.max_duration ? json(to_ms(*spec.max_duration)) : json(nullptr)},
                 {"deadline", deadline_json(spec.deadline)},
                 {"replicas", spec.replicas},
                 {"replica_of", spec.replica_of.value}};
  return out.dump(-1, ' ', false, json::error_handler_t::replace);
}

Result<Spec> parse_spec(std::string_view text) {
  const std::string what = "cannot read the job's stored specification: ";
  try {
    const json in = json::parse(text);
    if (in.at("format").get<int>() > k_format)
      return make_error(Code::state_unreadable, what + "it was written by a newer gridctl", "gridctl version");
    Result<Spec> spec = spec_of(in);
    if (!spec) return make_error(Code::state_unreadable, what + spec.error().message, "gridctl doctor");
    return spec;
  } catch (const json::exception& e) {
    return make_error(Code::state_unreadable, what + e.what(), "gridctl doctor");
  }
}

}  // namespace gridctl::job
