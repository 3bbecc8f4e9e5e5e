// SPDX-License-Identifier: Apache-2.0
#include "forecast/hosts_file.hpp"

#include <algorithm>
#include <set>

#include "config/fields.hpp"
#include "sched/catalogue/catalogue.hpp"
#include "sched/catalogue/gpu_spec.hpp"
#include "sched/standing/reliability.hpp"

namespace gridctl::forecast {

namespace {
using namespace std::chrono_literals;
constexpr Duration k_mtbf_min = 1min, k_mtbf_max = 24h * 3650;
constexpr Duration k_outage_max = 24h * 365, k_start_max = 24h * 7;
constexpr double k_price_max = 1e6;  // USD per hour
constexpr double k_speed_min = 0.001, k_speed_max = 1000;
constexpr double k_uplink_max = 1e6;  // Mbit/s
constexpr double k_cpus_max = 4096, k_gib_max = 1 << 20;
constexpr int k_count_max = static_cast<int>(k_hosts_max);

void give_gpus(sched::HostFacts& facts, const job::GpuRequest& want) {
  facts.inventory.edit().gpus.clear();
  const std::string named = want.names.empty() ? "GPU" : want.names.front();
  const auto models = sched::models_named(named);
  const bool surely = want.names.empty() ? false : !models.empty();
  Gpu gpu;
  gpu.vendor = want.vendor.value_or(surely ? models.front()->vendor : Vendor::nvidia);
  gpu.name = surely ? models.front()->key : named;
  gpu.model = surely ? models.front()->key : "";
  if (surely) gpu.memory_bytes = static_cast<std::uint64_t>(models.front()->memory_gb * 1e9);
  if (want.memory_min) gpu.memory_bytes = *want.memory_min;
  for (int i = 0; i < want.count_min; ++i) {
    gpu.uuid = facts.name.value + "-gpu-" + std::to_string(i);
    facts.inventory.edit().gpus.push_back(gpu);
  }
}

Result<void> read_hardware(const config::Fields& fields, sched::HostFacts& facts) {
  if (fields.find("gpus") != nullptr) {
    std::string text;
    TRY(fields.text("gpus", text));
    if (text == "none" || text == "0") {
      facts.inventory.edit().gpus.clear();
    } else {
      const Result<job::GpuRequest> gpus = sched::parse_gpu_spec(text);
      if (!gpus) return fields.error("gpus", gpus.error().message);
      give_gpus(facts, *gpus);
    }
  }
  double gib = 0;
  TRY(fields.number("cpus", {0.1, k_cpus_max}, facts.inventory.edit().cpus));
  TRY(fields.number("memory", {0.1, k_gib_max}, gib));
  if (gib > 0) facts.inventory.edit().memory_bytes = static_cast<std::uint64_t>(gib * 1024 * 1024 * 1024);
  gib = 0;
  TRY(fields.number("disk", {0.1, k_gib_max}, gib));
  if (gib > 0) facts.inventory.edit().disk_free_bytes = static_cast<std::uint64_t>(gib * 1024 * 1024 * 1024);
  return {};
}

Result<void> read_failures(const config::Fields& fields, HostModel& host) {
  const config::Node* mtbf = fields.find("mtbf");
  if (mtbf != nullptr && fields.find("failures_per_hour") != nullptr)
    return fields.error("failures_per_hour", "means the same as 'mtbf'; give one of them");
  if (mtbf != nullptr && mtbf->text == "never") {
    host.rate_per_hour = 0;
  } else {
    Duration between{};
    TRY(fields.duration("mtbf", k_mtbf_min, k_mtbf_max, between));
    if (between > Duration{}) host.rate_per_hour = 3600 / seconds(between);
  }
  TRY(fields.number("failures_per_hour", {0, 60}, host.rate_per_hour));
  Duration outage = -1s, start = -1s;
  TRY(fields.duration("outage", 0s, k_outage_max, outage));
  TRY(fields.duration("start", 0s, k_start_max, start));
  if (outage >= 0s) host.outage = seconds(outage);
  if (start >= 0s) host.start = seconds(start);
  return {};
}

Result<void> check_host_name(const config::Fields& fields, const std::string& name, std::set<std::string>& names) {
  if (const Result<void> checked = check_name("host", name); !checked)
    return fields.expected("name", "at most 63 lower-case letters, digits and inner '-'");
  if (!names.insert(name).second) return fields.error("name", "a second host with the name '" + name + "'");
  return {};
}

Result<void> read_host(config::SourceFile& source, const config::Node& node, std::size_t index, const job::Spec& job,
                       std::set<std::string>& names, std::vector<HostModel>& into) {
  TRY_ASSIGN(const config::Fields fields,
             config::Fields::open(source, node, "hosts[" + std::to_string(index) + "]",
                                  {"name", "count", "gpus", "cpus", "memory", "disk", "class", "region", "site", "price",
                                   "mtbf", "failures_per_hour", "outage", "start", "speed", "uplink"}));
  std::string name, host_class = "home";
  TRY(fields.text("name", name));
  if (name.empty()) return fields.expected("name", "a name");
  TRY(fields.text("class", host_class));
  const std::vector<std::string> classes{"datacenter", "cloud", "market", "home"};
  if (std::ranges::find(classes, host_class) == classes.end())
    return fields.expected("class", "datacenter, cloud, market or home");
  HostModel host = host_for(job, name, host_class);
  TRY(fields.text("region", host.facts.region));
  TRY(fields.text("site", host.facts.site));
  TRY(fields.number("price", {0, k_price_max}, host.facts.price_per_hour));
  TRY(fields.number("speed", {k_speed_min, k_speed_max}, host.speed));
  TRY(fields.number("uplink", {0.01, k_uplink_max}, host.uplink));
  TRY(read_failures(fields, host));
  TRY(read_hardware(fields, host.facts));
  int count = 1;
  TRY(fields.integer("count", 1, k_count_max, count));
  if (into.size() + static_cast<std::size_t>(count) > k_hosts_max)
    return fields.error("count", "more than " + std::to_string(k_hosts_max) + " hosts");
  for (int i = 1; i <= count; ++i) {
    const std::string one = fields.find("count") == nullptr ? name : name + "-" + std::to_string(i);
    TRY(check_host_name(fields, one, names));
    host.facts.name = {one};
    for (std::size_t gpu = 0; gpu < host.facts.inventory->gpus.size(); ++gpu)
      host.facts.inventory.edit().gpus[gpu].uuid = one + "-gpu-" + std::to_string(gpu);
    into.push_back(host);
  }
  return {};
}
}  // namespace

double assumed_uplink(std::string_view host_class) {
  if (host_class == "datacenter" || host_class == "cloud") return 1000;
  return host_class == "market" ? 300 : 40;
}

HostModel host_for(const job::Spec& job, const std::string& name, const std::string& host_class) {
  HostModel host;
  sched::HostFacts& facts = host.facts;
  facts.name = {name};
  facts.host_class = host_class;
  const job::Resources& want = job.resources;
  facts.inventory.edit().cpus = std::max(want.cpus, 1.0);
  facts.inventory.edit().memory_bytes = want.memory_bytes;
  facts.inventory.edit().disk_free_bytes = want.disk_bytes;
  facts.inventory.edit().engines = {{EngineKind::docker, "", false, true, ""},
                             {EngineKind::podman, "", true, true, ""},
                             {EngineKind::process, "", false, false, ""}};
  if (!want.gpus.empty()) give_gpus(facts, want.gpus.front());
  host.rate_per_hour = sched::class_rate_per_hour(host_class);
  host.outage = k_outage_assumed;
  host.start = k_start_assumed;
  host.uplink = assumed_uplink(host_class);
  return host;
}

Result<std::vector<HostModel>> parse_hosts_file(std::string_view text, const std::string& file, const job::Spec& job) {
  TRY_ASSIGN(const config::Node root, config::parse_yaml(text, file));
  config::SourceFile source{file, {}};
  if (root.kind == config::Node::Kind::null)
    return config::error_at(file, {}, "the file is empty; it needs at least one host under 'hosts'");
  TRY_ASSIGN(const config::Fields fields, config::Fields::open(source, root, "", {"hosts"}));
  const config::Node* list = fields.find("hosts");
  if (list == nullptr || list->kind != config::Node::Kind::list || list->items.empty())
    return fields.expected("hosts", "a list of hosts, each with at least a name");
  std::vector<HostModel> hosts;
  std::set<std::string> names;
  for (std::size_t i = 0; i < list->items.size(); ++i) TRY(read_host(source, list->items[i], i, job, names, hosts));
  return hosts;
}

}  // namespace gridctl::forecast
