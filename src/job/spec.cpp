// SPDX-License-Identifier: Apache-2.0
#include "job/spec.hpp"

#include <nlohmann/json.hpp>

namespace gridctl::job {

using nlohmann::json;

namespace {
constexpr int k_format = 1;  // raised when an older gridctl would misread a Spec

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
          {"disk_bytes", resources.disk_bytes}};
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

json checkpoint_json(const CheckpointPolicy& policy) {
  return {{"path", policy.path},
          {"interval", interval_name(policy.interval)},
          {"every_ms", to_ms(policy.every)},
          {"keep", policy.keep}};
}

CheckpointPolicy checkpoint_of(const json& in) {
  CheckpointPolicy policy;
  policy.path = in.value("path", "");
  const std::string interval = in.value("interval", "auto");
  policy.interval = interval == "fixed" ? CheckpointPolicy::Interval::fixed
                    : interval == "off" ? CheckpointPolicy::Interval::off
                                        : CheckpointPolicy::Interval::automatic;
  policy.every = duration_of(in, "every_ms", policy.every);
  policy.keep = in.value("keep", policy.keep);
  return policy;
}

json recovery_json(const RecoveryPolicy& policy) {
  return {{"lost_after_ms", to_ms(policy.lost_after)},
          {"max_failures", policy.max_failures},
          {"restart_on", policy.restart_on},
          {"fail_on", policy.fail_on},
          {"lease_ms", to_ms(policy.lease)}};
}

RecoveryPolicy recovery_of(const json& in) {
  RecoveryPolicy policy;
  policy.lost_after = duration_of(in, "lost_after_ms", policy.lost_after);
  policy.max_failures = in.value("max_failures", policy.max_failures);
  policy.restart_on = in.value("restart_on", policy.restart_on);
  policy.fail_on = in.value("fail_on", policy.fail_on);
  policy.lease = duration_of(in, "lease_ms", policy.lease);
  return policy;
}

json constraints_json(const Constraints& constraints) {
  return {{"region_in", constraints.region_in}, {"region_not", constraints.region_not},
          {"classes", constraints.classes},     {"max_price", optional_json(constraints.max_price)},
          {"providers", constraints.providers}, {"labels", constraints.labels},
          {"query", constraints.query}};
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
  return constraints;
}

Result<Spec> spec_of(const json& in) {
  Spec spec;
  spec.name = in.at("name").get<std::string>();
  TRY_ASSIGN(spec.resources, resources_of(in.value("resources", json::object())));
  spec.num_nodes = in.value("num_nodes", 1);
  spec.image = in.value("image", "");
  spec.image_is_archive = in.value("image_is_archive", false);
  spec.workdir = in.value("workdir", "");
  spec.envs = in.value("envs", spec.envs);
  spec.secrets = in.value("secrets", spec.secrets);
  for (const json& mount : in.value("file_mounts", json::array()))
    spec.file_mounts.push_back({mount.at("target").get<std::string>(), mount.at("source").get<std::string>()});
  spec.setup = in.value("setup", "");
  spec.run = in.at("run").get<std::string>();
  spec.resume_run = in.value("resume_run", "");
  spec.checkpoint = checkpoint_of(in.value("checkpoint", json::object()));
  spec.recovery = recovery_of(in.value("recovery", json::object()));
  spec.constraints = constraints_of(in.value("constraints", json::object()));
  spec.budget_total = optional_of<double>(in, "budget_total");
  if (in.contains("max_duration_ms") && !in["max_duration_ms"].is_null())
    spec.max_duration = duration_of(in, "max_duration_ms", {});
  return spec;
}
}  // namespace

std::string to_json(const Spec& spec) {
  json mounts = json::array();
  for (const Mount& mount : spec.file_mounts) mounts.push_back({{"target", mount.target}, {"source", mount.source}});
  const json out{{"format", k_format},
                 {"name", spec.name},
                 {"resources", resources_json(spec.resources)},
                 {"num_nodes", spec.num_nodes},
                 {"image", spec.image},
                 {"image_is_archive", spec.image_is_archive},
                 {"workdir", spec.workdir},
                 {"envs", spec.envs},
                 {"secrets", spec.secrets},
                 {"file_mounts", std::move(mounts)},
                 {"setup", spec.setup},
                 {"run", spec.run},
                 {"resume_run", spec.resume_run},
                 {"checkpoint", checkpoint_json(spec.checkpoint)},
                 {"recovery", recovery_json(spec.recovery)},
                 {"constraints", constraints_json(spec.constraints)},
                 {"budget_total", optional_json(spec.budget_total)},
                 {"max_duration_ms", spec.max_duration ? json(to_ms(*spec.max_duration)) : json(nullptr)}};
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
