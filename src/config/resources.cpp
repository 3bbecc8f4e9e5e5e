// SPDX-License-Identifier: Apache-2.0
// Reads `resources:` in our own words and in SkyPilot's.
#include <algorithm>

#include "base/bytes.hpp"
#include "base/text.hpp"
#include "config/job_parts.hpp"
#include "sched/catalogue/gpu_spec.hpp"

namespace gridctl::config {

namespace {
constexpr double k_cpus_max = 4096;
constexpr double k_gib_max = 1 << 22;           // 4 PiB: beyond it a typing error
constexpr std::size_t k_alternatives_max = 64;  // GPU requests tried per host
constexpr std::string_view k_strategies = "FAILOVER or EAGER_NEXT_REGION";

Error gpu_error(const Fields& fields, const Node& at, const Error& error) {
  return error_at(fields.source().file, at.at, "key '" + fields.path("accelerators") + "': " + error.message);
}

// Reads one entry of a mapping: "L4: 1".
Result<job::GpuRequest> counted_gpu(const Fields& fields, const Key& name, const Node& count) {
  std::string spec = name.text;
  if (count.kind == Node::Kind::scalar) spec += ":" + count.text;
  else if (count.kind != Node::Kind::null)
    return error_at(
        fields.source().file, count.at,
        "key '" + fields.path("accelerators") + "." + excerpt(name.text) + "': expected a count, got " + shown(count));
  auto parsed = sched::parse_gpu_spec(spec);
  if (!parsed) return gpu_error(fields, Node{Node::Kind::scalar, "", name.at, {}, {}}, parsed.error());
  return parsed;
}

// Alternatives that differ only by name become one request, so that the cheapest of them is taken.
std::vector<job::GpuRequest> merge_any(const std::vector<job::GpuRequest>& requests) {
  std::vector<job::GpuRequest> merged;
  for (const job::GpuRequest& request : requests) {
    const auto alike = std::ranges::find_if(merged, [&](job::GpuRequest other) {
      const bool both_named = !other.names.empty() && !request.names.empty();
      other.names = request.names;
      return both_named && other == request;
    });
    if (alike == merged.end()) merged.push_back(request);
    else alike->names.insert(alike->names.end(), request.names.begin(), request.names.end());
  }
  return merged;
}

// Reads accelerators: "H100:8", an ordered list of such, or a mapping of names to counts (any of them).
Result<std::vector<job::GpuRequest>> read_accelerators(const Fields& fields, bool& any_order) {
  std::vector<job::GpuRequest> gpus;
  const Node* value = fields.find("accelerators");
  if (value == nullptr) return gpus;
  if (value->items.size() > k_alternatives_max)
    return fields.error("accelerators", "more than " + std::to_string(k_alternatives_max) + " alternatives");
  if (value->kind == Node::Kind::map) {
    for (std::size_t i = 0; i < value->keys.size(); ++i) {
      TRY_ASSIGN(job::GpuRequest gpu, counted_gpu(fields, value->keys[i], value->items[i]));
      gpus.push_back(std::move(gpu));
    }
    any_order = true;
    return merge_any(gpus);
  }
  const std::span<const Node> items = items_of(*value);
  for (const Node& item : items) {
    if (item.kind != Node::Kind::scalar)
      return error_at(fields.source().file, item.at,
                      "key '" + fields.path("accelerators") + "': expected a GPU such as A100:2, got " + shown(item));
    if (lower(item.text) == "none" && items.size() == 1) return gpus;
    auto parsed = sched::parse_gpu_spec(item.text);
    if (!parsed) return gpu_error(fields, item, parsed.error());
    gpus.push_back(*std::move(parsed));
  }
  return gpus;
}

// A type with GPUs alone is a request for GPUs: without them, the job would start on any host, and fail there.
Result<void> check_instance_type(const Fields& fields) {
  std::string type;
  TRY(fields.text("instance_type", type));
  const std::optional<std::string> gpus = gpus_of_instance(type);
  if (!gpus || fields.find("accelerators") != nullptr) return {};
  const std::string model = gpus->empty() ? "NAME" : *gpus;
  return fields.error("instance_type",
                      excerpt(type) +
                          " is a machine with GPUs; jobs run on registered providers, so name the GPUs that the job "
                          "needs: 'accelerators: " +
                          model + (model.find(':') == model.npos ? ":COUNT" : "") + "'");
}

void ignore_cloud_keys(const Fields& fields) {
  for (std::string_view key : {"cloud", "region", "zone", "instance_type"})
    fields.ignore(key, "jobs run on registered providers; see 'constraints'");
  for (std::string_view key : {"disk_tier", "network_tier", "labels", "autostop", "priority", "accelerator_args"})
    fields.ignore(key, "it has no meaning on providers");
}

Result<void> read_spot(const Fields& fields) {
  bool spot = false;
  TRY(fields.boolean("use_spot", spot));
  if (spot) fields.ignore("use_spot", "every job survives the loss of its host");
  return {};
}

// Reads infra: ssh/NAME pins the job to a provider with that name.
Result<void> read_infra(const Fields& fields, const Context& context, job::Constraints& into) {
  std::string infra;
  TRY(fields.text("infra", infra));
  if (infra.empty() || infra == "ssh" || infra == "ssh/*" || infra == "*") return {};
  const std::string name = infra.starts_with("ssh/") ? infra.substr(4) : "";
  const auto& known = context.known_providers;
  if (!name.empty() && std::ranges::find(known, name) != known.end()) into.providers = {name};
  else if (!name.empty())
    fields.ignore("infra", "no provider is called '" + excerpt(name) + "'; any suitable provider is used");
  else fields.ignore("infra", "jobs run on registered providers; see 'constraints'");
  return {};
}

// Reads SkyPilot's job_recovery: {strategy, max_restarts_on_errors, recover_on_exit_codes}, or just the strategy.
Result<void> read_job_recovery(const Fields& resources, job::RecoveryPolicy& into) {
  const Node* value = resources.find("job_recovery");
  if (value == nullptr || value->kind == Node::Kind::scalar) return {};
  TRY_ASSIGN(const Fields fields, Fields::open(resources.source(), *value, resources.path("job_recovery"),
                                               {"strategy", "max_restarts_on_errors", "recover_on_exit_codes"}));
  std::string strategy;
  TRY(fields.text("strategy", strategy));
  const std::string word = lower(strategy);
  if (!word.empty() && word != "failover" && word != "eager_next_region")
    return fields.expected("strategy", std::string(k_strategies));
  TRY(fields.integer("max_restarts_on_errors", 0, 1000, into.max_failures));
  return fields.exit_codes("recover_on_exit_codes", into.restart_on);
}

// Reads any_of and ordered: alternatives. Only their accelerators may differ here.
Result<void> read_alternatives(const Fields& resources, std::string_view key, job::Resources& into) {
  const Node* list = resources.find(key);
  if (list == nullptr) return {};
  if (list->kind != Node::Kind::list || list->items.empty() || list->items.size() > k_alternatives_max)
    return resources.expected(key, "a list of at most " + std::to_string(k_alternatives_max) + " resources");
  std::vector<job::GpuRequest> found;
  for (std::size_t i = 0; i < list->items.size(); ++i) {
    TRY_ASSIGN(const Fields entry,
               Fields::open(resources.source(), list->items[i], resources.path(key) + "[" + std::to_string(i) + "]",
                            {"accelerators", "infra", "cloud", "region", "zone", "instance_type", "use_spot",
                             "disk_tier", "network_tier", "labels", "ports", "priority", "accelerator_args", "cpus",
                             "memory", "disk_size", "image_id", "job_recovery"}));
    for (std::string_view common : {"cpus", "memory", "disk_size", "image_id", "job_recovery"})
      if (entry.find(common) != nullptr)
        return entry.error(common, "must be the same for all alternatives; give it in 'resources'");
    TRY(check_instance_type(entry));
    ignore_cloud_keys(entry);
    entry.ignore("ports", "move it to 'resources', for all alternatives");
    entry.ignore("infra", "jobs run on registered providers; see 'constraints'");
    TRY(read_spot(entry));
    bool any_order = false;
    TRY_ASSIGN(const std::vector<job::GpuRequest> some, read_accelerators(entry, any_order));
    found.insert(found.end(), some.begin(), some.end());
  }
  if (found.empty()) return {};
  if (!into.gpus.empty())
    return resources.error(key, "gives accelerators, but so does '" + resources.path("accelerators") + "'");
  into.any_order = key == "any_of";
  into.gpus = into.any_order ? merge_any(found) : found;
  return {};
}
}  // namespace

Result<double> parse_cpus(std::string_view text) {
  if (text.ends_with('+')) text.remove_suffix(1);
  const auto value = parse_decimal(trim(text), {0.01, k_cpus_max});
  if (!value) return make_error(Code::usage, "a number of CPUs from 0.01 to 4096 such as 4 or 4+");
  return *value;
}

Result<std::uint64_t> parse_gib(std::string_view text) {
  const Error bad = make_error(Code::usage, "a number of GiB such as 16 or 16+, or a size such as 512MB");
  if (text.ends_with('+')) text.remove_suffix(1);
  text = trim(text);
  if (const auto plain = parse_decimal(text, {0, k_gib_max}))
    return static_cast<std::uint64_t>(*plain * static_cast<double>(1ull << 30));
  const std::size_t unit = text.find_first_not_of("0123456789.");
  if (unit == std::string_view::npos || !parse_decimal(text.substr(0, unit), {0, 1e12})) return bad;
  const auto size = parse_size(text);
  if (!size || static_cast<double>(*size) > k_gib_max * static_cast<double>(1ull << 30)) return bad;
  return *size;
}

Result<void> read_resources(SourceFile& source, const Node& node, const Context& context, job::Spec& spec,
                            std::string& image) {
  TRY_ASSIGN(const Fields fields,
             Fields::open(source, node, "resources",
                          {"accelerators", "cpus",     "memory",           "disk",      "disk_size",    "image_id",
                           "any_of",       "ordered",  "job_recovery",     "infra",     "use_spot",     "cloud",
                           "region",       "zone",     "instance_type",    "disk_tier", "network_tier", "labels",
                           "autostop",     "priority", "accelerator_args", "ports",     "spot_recovery"}));
  std::vector<Error> errors;
  const auto read = [&errors](Result<void> part) {
    if (!part) errors.push_back(std::move(part).error());
  };
  auto gpus = read_accelerators(fields, spec.resources.any_order);
  if (gpus) spec.resources.gpus = *std::move(gpus);
  else errors.push_back(std::move(gpus).error());
  read(read_alternatives(fields, "any_of", spec.resources));
  read(read_alternatives(fields, "ordered", spec.resources));
  read(fields.value("cpus", spec.resources.cpus, parse_cpus));
  read(fields.value("memory", spec.resources.memory_bytes, parse_gib));
  // SkyPilot creates a disk of that size; on your own hosts, the wish has no effect.
  fields.ignore("disk_size", "it sizes a cloud machine's disk; 'disk: 100' requires free space on the host");
  read(fields.value("disk", spec.resources.disk_bytes, parse_gib));
  read(read_infra(fields, context, spec.constraints));
  read(read_spot(fields));
  read(read_job_recovery(fields, spec.recovery));
  if (spec.resources.gpus.empty()) read(check_instance_type(fields));
  ignore_cloud_keys(fields);
  read(read_ports(fields, spec));
  read(fields.text("image_id", image));
  if (!image.empty() && !image.starts_with("docker:"))
    errors.push_back(fields.expected("image_id", "docker:IMAGE (cloud machine images have no meaning on providers)"));
  if (!errors.empty()) return all_errors(source.file, std::move(errors));
  return {};
}

}  // namespace gridctl::config
