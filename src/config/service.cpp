// SPDX-License-Identifier: Apache-2.0
// Reads `service`: replicas behind one address, in gridctl's words and in SkyServe's.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/numbers.hpp"
#include "base/text.hpp"
#include "config/job_parts.hpp"

namespace gridctl::config {

namespace {
using namespace std::chrono_literals;
constexpr std::size_t k_prefixes_max = 64, k_prefix_max = 1024;
constexpr std::size_t k_command_max = 4096;  // bytes of a probe's command
constexpr std::size_t k_probe_max = 1000, k_headers_max = 16;  // bytes; HAProxy reads lines of 2,048
constexpr Duration k_service_lost_after = 15s;  // a replica has no work to lose: another may start early

// Lists keys with another meaning than in this gateway, and what to do instead.
constexpr Remark k_refused_keys[] = {
    {"https", "is not supported: the address is on 127.0.0.1; put your own proxy in front of it"},
    {"tls", "is not supported: the address is on 127.0.0.1; put your own proxy in front of it"},
};

bool is_plain_path(std::string_view text) {
  return text.starts_with('/') && text.size() <= k_prefix_max && std::ranges::all_of(text, [](char c) {
           return c > ' ' && c < 127 && c != '"' && c != '\'' && c != '\\' && c != '#';
         });
}

Result<void> read_seconds(const Fields& fields, std::string_view key, Duration most, Duration& into) {
  int seconds = 0;
  TRY(fields.integer(key, 1, static_cast<int>(std::chrono::duration_cast<std::chrono::seconds>(most).count()),
                     seconds));
  if (seconds > 0) into = std::chrono::seconds{seconds};
  return {};
}

// A plain word stands for the number, truth value or null that it spells, as in YAML.
nlohmann::ordered_json json_of(const Node& node, const std::map<std::string, std::string>& envs) {
  nlohmann::ordered_json value;
  if (node.kind == Node::Kind::scalar) {
    if (node.text == "true" || node.text == "false") return node.text == "true";
    if (const auto whole = parse_number<std::int64_t>(node.text)) return *whole;
    if (const auto number = parse_number<double>(node.text); number && std::isfinite(*number)) return *number;
    return expand_envs(node.text, envs);
  }
  if (node.kind == Node::Kind::list) value = nlohmann::ordered_json::array();
  if (node.kind == Node::Kind::map) value = nlohmann::ordered_json::object();
  for (std::size_t i = 0; i < node.items.size(); ++i)
    if (node.kind == Node::Kind::map) value[node.keys[i].text] = json_of(node.items[i], envs);
    else value.push_back(json_of(node.items[i], envs));
  return value;
}

bool is_one_line(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) >= ' ' && c != 127; });
}

// Reads `headers` and `post_data`, which is sent unchanged if it is a text, and as JSON if it is a mapping.
Result<void> read_probe_request(const Fields& fields, const std::map<std::string, std::string>& envs, job::Service& into) {
  if (const Node* headers = fields.find("headers")) {
    if (headers->kind != Node::Kind::map) return fields.expected("headers", "a mapping such as {Authorization: Bearer KEY}");
    for (std::size_t i = 0; i < headers->items.size(); ++i) {
      const std::string& name = headers->keys[i].text;
      const std::string value = expand_envs(headers->items[i].text, envs);
      const bool good = !name.empty() && std::ranges::all_of(name, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
      });
      if (!good || headers->items[i].kind != Node::Kind::scalar || !is_one_line(value))
        return fields.error("headers", "expected names of headers with values of one line, such as {X-Probe: gridctl}");
      into.probe_headers[name] = value;
    }
  }
  if (const Node* data = fields.find("post_data")) {
    into.probe_body = data->kind == Node::Kind::scalar ? expand_envs(data->text, envs) : json_of(*data, envs).dump(-1, ' ', true, nlohmann::ordered_json::error_handler_t::replace);
    if (!is_one_line(into.probe_body)) return fields.error("post_data", "expected a text of one line, or a mapping");
    const bool typed = std::ranges::any_of(into.probe_headers,
                                           [](const auto& entry) { return lower(entry.first) == "content-type"; });
    if (!into.probe_body.empty() && !typed) into.probe_headers["Content-Type"] = "application/json";
  }
  std::size_t bytes = into.probe_body.size();
  for (const auto& [name, value] : into.probe_headers) bytes += name.size() + value.size();
  if (bytes > k_probe_max || into.probe_headers.size() > k_headers_max)
    return fields.error(into.probe_body.empty() ? "headers" : "post_data",
                        "is too long: a probe has at most 16 headers, and 1,000 bytes with its data");
  return {};
}

// Reads a path alone, or a mapping.
Result<void> read_probe(const Fields& service, std::string_view key, const std::map<std::string, std::string>& envs, job::Service& into) {
  const Node* node = service.find(key);
  if (node == nullptr) return {};
  if (node->kind != Node::Kind::map) {
    TRY(service.text(key, into.path));
  } else {
    TRY_ASSIGN(const Fields fields, Fields::open(service.source(), *node, service.path(key),
                                                 {"path", "command", "initial_delay", "every", "timeout", "post_data",
                                                  "headers", "initial_delay_seconds", "timeout_seconds"}));
    TRY(fields.text("command", into.probe_command));
    if (into.probe_command.size() > k_command_max) return fields.error("command", "is longer than 4,096 bytes");
    TRY(fields.text("path", into.path));
    TRY(read_probe_request(fields, envs, into));
    TRY(fields.duration("initial_delay", 1s, 24h, into.initial_delay));
    TRY(fields.duration("every", 100ms, 5min, into.every));
    TRY(fields.duration("timeout", 100ms, 5min, into.timeout));
    TRY(read_seconds(fields, "initial_delay_seconds", 24h, into.initial_delay));
    TRY(read_seconds(fields, "timeout_seconds", 5min, into.timeout));
  }
  into.path = expand_envs(into.path, envs);
  if (!into.path.empty() && !is_plain_path(into.path))
    return service.error(key, "expected a path that begins with '/', such as /health");
  return {};
}

constexpr double k_usual_concurrency = 8;

// Reads a number, or a range such as 1..6.
Result<void> read_replicas(const Fields& service, job::Service& into, int& twins) {
  const Node* node = service.find("replicas");
  const std::size_t dots = node == nullptr ? std::string::npos : node->text.find("..");
  if (dots == std::string::npos) {
    TRY(service.integer("replicas", 1, job::k_twins_max, twins));
  } else {
    const auto least = parse_number<int>(trim(node->text.substr(0, dots))),
               most = parse_number<int>(trim(node->text.substr(dots + 2)));
    if (!least || !most || *least < 0 || *most < std::max(*least, 1) || *most > job::k_twins_max)
      return service.expected("replicas", "a number from 1 to 8, or a range such as 1..4 or 0..4");
    twins = *most;
    into.sleeps = *least == 0;
    into.replicas_min = std::max(*least, 1);
  }
  const Node* policy = service.find("replica_policy");
  if (policy == nullptr) return {};
  TRY_ASSIGN(const Fields fields,
             Fields::open(service.source(), *policy, "service.replica_policy",
                          {"min_replicas", "max_replicas", "target_qps_per_replica", "upscale_delay_seconds",
                           "downscale_delay_seconds", "base_ondemand_fallback_replicas", "dynamic_ondemand_fallback"}));
  int least = 1;
  TRY(fields.integer("min_replicas", 0, job::k_twins_max, least));
  into.sleeps = least == 0;
  twins = std::max(least, 1);
  TRY(fields.integer("max_replicas", twins, job::k_twins_max, twins));
  if (twins != least) into.replicas_min = std::max(least, 1);
  TRY(read_seconds(fields, "upscale_delay_seconds", 24h, into.up_after));
  TRY(read_seconds(fields, "downscale_delay_seconds", 24h, into.down_after));
  if (twins == least) fields.ignore("target_qps_per_replica", "the number of replicas is fixed");
  else TRY(fields.number("target_qps_per_replica", {0.001, 1e6}, into.scale_rate));
  for (const char* key : {"base_ondemand_fallback_replicas", "dynamic_ondemand_fallback"})
    fields.ignore(key, "any suitable host may get a replica");
  return {};
}

// Reads what the number of replicas follows if it is a range.
Result<void> read_scale(const Fields& service, job::Service& into) {
  into.scale_concurrency = into.replicas_min > 0 && into.scale_rate == 0 ? k_usual_concurrency : 0;
  const Node* scale = service.find("scale");
  if (scale == nullptr) return {};
  TRY_ASSIGN(const Fields fields, Fields::open(service.source(), *scale, "service.scale",
                                               {"concurrency", "requests_per_second", "up_after", "down_after"}));
  if (into.replicas_min == 0) return service.error("scale", "needs a range: write 'replicas: 1..4'");
  if (fields.find("requests_per_second") != nullptr && fields.find("concurrency") != nullptr)
    return fields.error("requests_per_second",
                        "cannot be combined with 'concurrency': the number of replicas follows only one of them");
  double rate = 0;
  TRY(fields.number("requests_per_second", {0.001, 1e6}, rate));
  if (rate > 0) into.scale_rate = rate, into.scale_concurrency = 0;
  int concurrency = 0;
  TRY(fields.integer("concurrency", 1, 100'000, concurrency));
  if (concurrency > 0) into.scale_concurrency = concurrency, into.scale_rate = 0;
  TRY(fields.duration("up_after", 1s, 24h, into.up_after));
  return fields.duration("down_after", 1s, 24h, into.down_after);
}

// Reads `port` here, otherwise the one port of `ports` or of `resources.ports`.
Result<void> read_port(const Fields& service, const job::Spec& spec, job::Service& into) {
  int port = 0;
  TRY(service.integer(service.find("ports") != nullptr ? "ports" : "port", 1, 65535, port));
  const auto declared = spec.envs.find("GRIDCTL_FORWARD_PORTS");
  if (port == 0 && declared != spec.envs.end() && declared->second.find(',') == std::string::npos) {
    TRY_ASSIGN(port, parse_integer(declared->second, 1, 65535));
  }
  if (port == 0) return service.error("port", "missing: the port that the program listens on, such as 'port: 8000'");
  into.port = static_cast<std::uint16_t>(port);
  return {};
}

Result<void> read_auth(const Fields& service, const Context& context, std::string& keys_file) {
  const Node* auth = service.find("auth");
  if (auth == nullptr || auth->text == "false") return {};
  TRY_ASSIGN(const Fields fields, Fields::open(service.source(), *auth, "service.auth", {"keys"}));
  TRY(fields.text("keys", keys_file));
  if (keys_file.empty()) return fields.error("keys", "missing: a file with one key on each line");
  keys_file = resolve_path(keys_file, context);
  return {};
}

Result<void> read_fixed(const Fields& service, std::string_view key, std::string_view only,
                        const std::string& instead) {
  std::string word;
  TRY(service.text(key, word));
  return word.empty() || word == only ? Result<void>{} : service.error(key, instead);
}

Result<void> read_affinity(const Fields& service, job::Affinity& into) {
  std::string word = std::string(job::affinity_name(into));
  TRY(service.text("affinity", word));
  const Result<job::Affinity> affinity = job::parse_affinity(word);
  if (!affinity) return service.expected("affinity", "none, session or prefix");
  into = *affinity;
  return {};
}

// Checks keys of other parts of the file that have no meaning, or another one, beside `service`.
Result<void> check_beside(const Fields& root, const job::Spec& spec) {
  if (spec.num_nodes > 1)
    return root.error("num_nodes",
                      "each replica of a service runs on one host; set their number with 'service.replicas'");
  if (root.find("tasks") != nullptr) return root.error("tasks", "a service cannot have tasks");
  if (root.find("replication") != nullptr) return root.error("replication", "set the number with 'service.replicas'");
  if (root.find("deadline") != nullptr)
    return root.error("deadline", "a service does not end on its own; stop it with gridctl service stop");
  return {};
}
}  // namespace

Result<void> read_service(const Fields& root, const Context& context, job::Spec& spec) {
  const Node* node = root.find("service");
  if (node == nullptr) return {};
  job::Service service;
  if (node->kind == Node::Kind::scalar) return root.expected("service", "a mapping such as {port: 8000, replicas: 2}");
  TRY_ASSIGN(const Fields fields,
             Fields::open(root.source(), *node, "service",
                          {"port", "ports", "probe", "readiness_probe", "replicas", "replica_policy", "scale",
                           "retry_post", "drain", "affinity", "auth", "gateway", "load_balancing_policy", "tls", "https",
                           "auto_restart", "autoscaling_decision_interval", "controller_resources", "controller"}));
  for (const Remark& one : k_refused_keys)
    if (fields.find(one.key) != nullptr) return fields.error(one.key, std::string(one.why));
  TRY(check_beside(root, spec));
  for (const char* key :
       {"auto_restart", "autoscaling_decision_interval", "controller_resources", "controller", "load_balancing_policy"})
    fields.ignore(key, "it is specific to SkyServe: requests go to the replica with the fewest requests under way");
  TRY(read_port(fields, spec, service));
  TRY(read_probe(fields, fields.find("readiness_probe") != nullptr ? "readiness_probe" : "probe", spec.envs, service));
  TRY(read_replicas(fields, service, spec.twins));
  TRY(read_scale(fields, service));
  TRY(fields.words("retry_post", service.retry_post));
  if (service.retry_post.size() > k_prefixes_max || !std::ranges::all_of(service.retry_post, is_plain_path))
    return fields.expected("retry_post", "path prefixes such as [/v1/], at most 64");
  TRY(fields.duration("drain", 0s, 24h, service.drain));
  TRY(read_affinity(fields, service.affinity));
  TRY(read_fixed(fields, "gateway", "here",
                 "is not supported yet: write 'gateway: here', the machine that runs gridctl"));
  TRY(read_auth(fields, context, service.keys_file));
  const std::string port = std::to_string(service.port);
  std::string& ports = spec.envs["GRIDCTL_FORWARD_PORTS"];
  if (("," + ports + ",").find("," + port + ",") == std::string::npos) ports += (ports.empty() ? "" : ",") + port;
  const Node* recovery = root.find("recovery");
  const auto says = [&](std::string_view key) {
    return recovery != nullptr && std::ranges::any_of(recovery->keys, [&](const Key& one) { return one.text == key; });
  };
  if (!says("lost_after")) spec.recovery.lost_after = k_service_lost_after;
  if (!says("max_failures")) spec.recovery.max_failures = job::k_service_failures;
  spec.recovery.endless = true;
  if (spec.workload.job_class == job::JobClass::automatic) spec.workload.job_class = job::JobClass::service;
  if (root.find("checkpoint") == nullptr) spec.checkpoint.interval = job::CheckpointPolicy::Interval::off;
  spec.service = std::move(service);
  return {};
}

}  // namespace gridctl::config
