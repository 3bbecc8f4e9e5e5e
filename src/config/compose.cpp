// SPDX-License-Identifier: Apache-2.0
// Reads a docker-compose file with one service as the equivalent job file. Each key is supported, ignored with a
// warning that says why, or refused with what to write instead.
#include <algorithm>
#include <optional>

#include "base/numbers.hpp"
#include "base/text.hpp"
#include "config/job_parts.hpp"

namespace gridctl::config {

namespace {
// Lists the programs of well-known images: an image's own entrypoint is not run.
struct Entry {
  std::string_view image, program;
};
constexpr Entry k_entries[] = {{"vllm/vllm-openai", "python3 -m vllm.entrypoints.openai.api_server"},
                               {"ghcr.io/ggml-org/llama.cpp", "/app/llama-server"},
                               {"ghcr.io/ggerganov/llama.cpp", "/app/llama-server"},
                               {"ghcr.io/huggingface/text-generation-inference", "text-generation-launcher"},
                               {"ghcr.io/huggingface/text-embeddings-inference", "text-embeddings-router"},
                               {"ollama/ollama", "ollama"}};
constexpr Remark k_meaningless[] = {{"restart", "a replica that ends is always started again"},
                                    {"container_name", "gridctl names containers itself"},
                                    {"hostname", "gridctl names containers itself"},
                                    {"init", "gridctl has its own init"},
                                    {"tty", "a replica has no terminal"},
                                    {"stdin_open", "a replica has no terminal"},
                                    {"logging", "gridctl keeps the output: gridctl service logs"},
                                    {"labels", "gridctl does not use compose labels"},
                                    {"networks", "a replica uses its host's network"},
                                    {"pull_policy", "hosts pull an image that they do not have"},
                                    {"platform", "a host's own platform is used"},
                                    {"stop_grace_period", "see service.drain"},
                                    {"stop_signal", "SIGTERM stops a replica"},
                                    {"ipc", "/dev/shm has at least 1 GiB"},
                                    {"shm_size", "/dev/shm has at least 1 GiB"},
                                    {"ulimits", "the host's limits apply"},
                                    {"runtime", "request GPUs with gpus or deploy.resources.reservations.devices"},
                                    {"expose", "the service has one port"},
                                    {"profiles", "the file's only service is always used"}};
constexpr Remark k_refused[] = {
    {"build", "is not supported: build the image, and name it with 'image: NAME'"},
    {"env_file", "is not supported: write its variables under 'environment'"},
    {"depends_on",
     "is not supported: a file describes one service; write a file for each, and give the address of the other"},
    {"network_mode", "is not supported: omit it; the port is reached at 127.0.0.1 on the host"},
    {"privileged", "is not supported: containers get no privileges"},
    {"cap_add", "is not supported: containers get no privileges"},
    {"security_opt", "is not supported: containers get no privileges"},
    {"devices", "is not supported: ask for GPUs with 'gpus: 1'"},
    {"user", "is not supported: the container runs as its image's user"},
    {"tmpfs", "is not supported: write below /tmp"},
    {"secrets",
     "is not supported: write 'environment: {NAME: ${NAME}}', which is taken from the environment of submit"},
    {"configs", "is not supported: mount the file with 'volumes: [./FILE:/PATH]'"},
    {"extends", "is not supported: write the keys themselves"}};

// Adds a value; a mapping stands where its first value does.
void add(Node& map, const std::string& key, Node value) {
  if (map.keys.empty()) map.at = value.at;
  put(map, key, std::move(value));
}

// Quotes the words of a list for the shell; a text is left to the shell.
std::string command_of(const Node& node) {
  if (node.kind != Node::Kind::list) return std::string(trim(node.text));
  std::vector<std::string> words;
  for (const Node& one : node.items) words.push_back(shell_quote(one.text));
  return join(words, " ");
}

// Returns the inner port of "8000:8000", "127.0.0.1:80:8000/tcp" or "8000".
std::optional<int> inner_port(const Node& node) {
  std::string text =
      node.kind == Node::Kind::map && node.find("target") != nullptr ? node.find("target")->text : node.text;
  text = text.substr(0, text.find('/'));
  if (const std::size_t colon = text.rfind(':'); colon != std::string::npos) text = text.substr(colon + 1);
  const auto port = parse_number<int>(text);
  return port && *port > 0 && *port < 65536 ? port : std::nullopt;
}

// Returns the path of a local URL in the command of a health check; empty: there is none.
std::string health_path(std::string_view command) {
  for (const std::string_view host : {"://localhost", "://127.0.0.1", "://0.0.0.0"}) {
    const std::size_t at = command.find(host);
    if (at == std::string_view::npos) continue;
    std::string_view rest = command.substr(at + host.size());
    if (rest.starts_with(':')) rest.remove_prefix(std::min(rest.find_first_not_of("0123456789", 1), rest.size()));
    const std::string_view path = rest.substr(0, rest.find_first_of(" \t\"'|;)>&"));
    return path.starts_with('/') ? std::string(path) : "/";
  }
  return "";
}

// Returns the shell text of a health check: ["CMD", "redis-cli", "ping"], ["CMD-SHELL", "test -e ready"], or text;
// empty: none.
std::string check_command(const Node& test) {
  if (test.kind != Node::Kind::list) return command_of(test);
  if (test.items.empty() || test.items[0].text == "NONE") return "";
  if (test.items[0].text == "CMD-SHELL") return test.items.size() > 1 ? test.items[1].text : "";
  Node words = test;
  if (test.items[0].text == "CMD") words.items.erase(words.items.begin());
  return command_of(words);
}

class Compose {
 public:
  Compose(SourceFile& source, const Context& context, const Node& root)
      : source_(source), context_(context), root_(root) {}

  Result<Node> job() {
    TRY_ASSIGN(const Fields file,
               Fields::open(source_, root_, "", {"version", "name", "services", "volumes", "networks"}));
    file.ignore("version", "compose no longer uses it");
    for (const char* key : {"volumes", "networks"})
      file.ignore(key, "replicas run on several hosts, which share neither volumes nor networks");
    const Node& services = *root_.find("services");
    if (services.kind != Node::Kind::map || services.items.size() != 1)
      return file.error("services", "expected one service, got " + std::to_string(services.items.size()) +
                                        ": write a file for each, and submit the ones that answer requests");
    const std::string name = services.keys[0].text;
    if (root_.find("name") != nullptr) add(job_, "name", *root_.find("name"));
    else add(job_, "name", text_node(lower(name), services.keys[0].at));
    TRY_ASSIGN(const Fields fields, open_service(services.items[0], "services." + name));
    TRY(read_program(fields));
    read_environment(fields);
    read_volumes(fields);
    TRY(read_resources_of(fields));
    TRY(read_ports_of(fields));
    TRY(read_health(fields));
    service_.at = fields.node().at;
    add(job_, "service", std::move(service_));
    return std::move(job_);
  }

 private:
  Result<Fields> open_service(const Node& node, const std::string& path) {
    std::vector<Error> unknown;
    TRY_ASSIGN(const Fields fields,
               Fields::open(source_, node, path,
                            {"image",        "command",     "entrypoint",  "working_dir",  "environment",
                             "ports",        "healthcheck", "volumes",     "deploy",       "gpus",
                             "scale",        "mem_limit",   "cpus",        "restart",      "container_name",
                             "hostname",     "init",        "tty",         "stdin_open",   "logging",
                             "labels",       "networks",    "pull_policy", "platform",     "stop_grace_period",
                             "stop_signal",  "ipc",         "shm_size",    "ulimits",      "runtime",
                             "expose",       "profiles",    "build",       "env_file",     "depends_on",
                             "network_mode", "privileged",  "cap_add",     "security_opt", "devices",
                             "user",         "tmpfs",       "secrets",     "configs",      "extends"},
                            &unknown));
    for (const Remark& no : k_refused)
      if (fields.find(no.key) != nullptr) unknown.push_back(fields.error(no.key, std::string(no.why)));
    if (!unknown.empty()) return all_errors(source_.file, std::move(unknown));
    for (const Remark& one : k_meaningless) fields.ignore(one.key, std::string(one.why));
    return fields;
  }

  Result<void> read_program(const Fields& fields) {
    const Node *image = fields.find("image"), *command = fields.find("command"), *entry = fields.find("entrypoint");
    if (image == nullptr) return fields.error("image", "missing: the image that the service runs");
    const std::string name = filled(image->text);
    add(job_, "image", text_node(name, image->at));
    std::string program = entry == nullptr ? "" : command_of(*entry);
    if (entry == nullptr)
      for (const Entry& known : k_entries)
        if (name == known.image || name.substr(0, name.find_last_of(":@")) == known.image) program = known.program;
    if (program.empty() && command == nullptr)
      return fields.error(
          "image", "gridctl does not run an image's own entrypoint: write its program with 'entrypoint' or 'command'");
    if (program.empty())
      source_.warn(command->at,
                   "'command' is used as the complete command: gridctl does not run an image's own entrypoint");
    std::string run =
        program + (program.empty() || command == nullptr ? "" : " ") + (command == nullptr ? "" : command_of(*command));
    if (program == "ollama" && command == nullptr) run = "ollama serve";
    std::string folder;
    TRY(fields.text("working_dir", folder));
    if (!folder.empty()) run = "cd " + shell_quote(folder) + " && " + run;
    add(job_, "run", text_node(filled(run), command == nullptr ? image->at : command->at));
    return {};
  }

  // Expands `${NAME}` and `${NAME:-DEFAULT}` from this machine's environment, as compose does. Names that are not set
  // here stay: the replica's shell may know them.
  [[nodiscard]] std::string filled(std::string_view text) const {
    std::string out;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = text.substr(at).starts_with("${") ? text.find('}', at) : std::string_view::npos;
      if (text.substr(at).starts_with("$$")) {
        out += '$';
        at += 2;
      } else if (end == std::string_view::npos) {
        out += text[at++];
      } else {
        const std::string_view inside = text.substr(at + 2, end - at - 2);
        const std::size_t other = inside.find_first_of(":-?");
        const auto given = context_.environment(inside.substr(0, other));
        const std::size_t word = other == std::string_view::npos ? other : inside.find('-', other);
        out += given && !given->empty()         ? *given
               : word == std::string_view::npos ? std::string(text.substr(at, end + 1 - at))
                                                : std::string(inside.substr(word + 1));
        at = end + 1;
      }
    }
    return out;
  }

  // A value that is exactly one variable of this machine's environment is treated as a secret: most are tokens.
  void read_variable(const std::string& name, const std::string& value, bool has_value, Position at, Node& envs,
                     Node& secrets) {
    const bool is_reference = value.starts_with("${") && value.ends_with("}") && value.find(":-") == std::string::npos;
    if (has_value && !is_reference) return add(envs, name, text_node(filled(value), at));
    const std::string other = is_reference ? value.substr(2, value.find_first_of("}:?") - 2) : name;
    const auto given = context_.environment(other);
    Node secret;
    secret.at = at;
    if (given) secret = text_node(*given, at);
    add(secrets, name, std::move(secret));
  }

  void read_environment(const Fields& fields) {
    const Node* node = fields.find("environment");
    if (node == nullptr) return;
    Node envs, secrets;
    for (std::size_t i = 0; i < node->items.size(); ++i) {
      const Node& item = node->items[i];
      if (node->kind == Node::Kind::map) {
        read_variable(node->keys[i].text, item.text, item.kind == Node::Kind::scalar, item.at, envs, secrets);
      } else {
        const std::size_t equals = item.text.find('=');
        read_variable(item.text.substr(0, equals), equals == std::string::npos ? "" : item.text.substr(equals + 1),
                      equals != std::string::npos, item.at, envs, secrets);
      }
    }
    if (!envs.items.empty()) add(job_, "envs", std::move(envs));
    if (!secrets.items.empty()) add(job_, "secrets", std::move(secrets));
  }

  void read_volumes(const Fields& fields) {
    const Node* node = fields.find("volumes");
    if (node == nullptr) return;
    Node mounts;
    for (const Node& item : node->items) {
      const bool is_long = item.kind == Node::Kind::map;
      const auto part = [&](std::string_view key) {
        return item.find(key) == nullptr ? std::string() : item.find(key)->text;
      };
      const std::size_t colon = item.text.find(':');
      const std::string from = is_long ? part("source") : colon == std::string::npos ? "" : item.text.substr(0, colon);
      const std::string to = is_long ? part("target")
                             : colon == std::string::npos
                                 ? item.text
                                 : item.text.substr(colon + 1, item.text.find(':', colon + 1) - colon - 1);
      if (from.starts_with('.') || from.starts_with('/') || from.starts_with('~'))
        add(mounts, to, text_node(from, item.at));
      else
        source_.warn(item.at, "the volume at " + excerpt(to) + " is empty at each start: replicas move between hosts");
    }
    if (!mounts.items.empty()) add(job_, "file_mounts", std::move(mounts));
  }

  Result<void> read_resources_of(const Fields& fields) {
    Node resources;
    const Node *gpus = fields.find("gpus"), *deploy = fields.find("deploy");
    std::string count;
    Position at = gpus == nullptr ? fields.node().at : gpus->at;
    if (gpus != nullptr) count = gpus->text == "all" || gpus->text.empty() ? "1" : gpus->text;
    if (deploy != nullptr) {
      TRY_ASSIGN(const Fields deployed, Fields::open(source_, *deploy, fields.path("deploy"),
                                                     {"replicas", "resources", "restart_policy", "mode", "labels",
                                                      "update_config", "placement"}));
      for (const char* key : {"restart_policy", "mode", "labels", "update_config", "placement"})
        deployed.ignore(key, "gridctl places and restarts replicas by its own rules");
      if (const Node* replicas = deployed.find("replicas")) add(service_, "replicas", *replicas);
      const Node* wanted = deployed.find("resources");
      for (const char* kind : {"limits", "reservations"})
        if (const Node* part = wanted == nullptr ? nullptr : wanted->find(kind))
          read_amounts(*part, resources, count, at);
    }
    if (!count.empty()) add(resources, "accelerators", text_node(count == "1" ? "nvidia" : "nvidia:" + count, at));
    if (const Node* scale = fields.find("scale")) add(service_, "replicas", *scale);
    if (!resources.items.empty()) add(job_, "resources", std::move(resources));
    return {};
  }

  static void read_amounts(const Node& part, Node& resources, std::string& gpus, Position& at) {
    for (const char* key : {"cpus", "memory"})
      if (const Node* amount = part.find(key); amount != nullptr && resources.find(key) == nullptr)
        add(resources, key, text_node(with_unit(key, amount->text), amount->at));
    const Node* devices = part.find("devices");
    for (std::size_t i = 0; devices != nullptr && i < devices->items.size(); ++i) {
      const Node &device = devices->items[i], *count = device.find("count"), *ids = device.find("device_ids");
      at = device.at;
      gpus = ids != nullptr                             ? std::to_string(ids->items.size())
             : count == nullptr || count->text == "all" ? "1"
                                                        : count->text;
    }
  }

  // Compose writes 16G or 16gb for GiB.
  static std::string with_unit(std::string_view key, const std::string& text) {
    if (key != std::string_view("memory")) return text;
    const std::string number = text.substr(0, text.find_first_not_of("0123456789."));
    const std::string unit = lower(text.substr(number.size()));
    return unit.starts_with('g') ? number : unit.starts_with('m') ? number + "MB" : text;
  }

  Result<void> read_ports_of(const Fields& fields) {
    const Node* ports = fields.find("ports");
    if (ports == nullptr || ports->items.size() != 1)
      return fields.error("ports", "expected one port such as \"8000:8000\": the one that answers requests");
    Node only = ports->items[0];
    only.text = filled(only.text);
    const std::optional<int> port = inner_port(only);
    if (!port) return fields.error("ports", "expected one port such as \"8000:8000\"");
    add(service_, "port", text_node(std::to_string(*port), ports->items[0].at));
    return {};
  }

  Result<void> read_health(const Fields& fields) {
    const Node* health = fields.find("healthcheck");
    if (health == nullptr) return {};
    TRY_ASSIGN(const Fields checks,
               Fields::open(source_, *health, fields.path("healthcheck"),
                            {"test", "interval", "timeout", "retries", "start_period", "start_interval", "disable"}));
    Node probe;
    const Node* test = checks.find("test");
    const std::string path = test == nullptr ? "" : health_path(check_command(*test));
    if (!path.empty()) add(probe, "path", text_node(path, test->at));
    else if (test != nullptr && !check_command(*test).empty())
      add(probe, "command", text_node(check_command(*test), test->at));
    if (const Node* start = checks.find("start_period")) add(probe, "initial_delay", *start);
    if (const Node* timeout = checks.find("timeout")) add(probe, "timeout", *timeout);
    if (!probe.items.empty()) add(service_, "probe", std::move(probe));
    return {};
  }

  SourceFile& source_;
  const Context& context_;
  const Node& root_;
  Node job_, service_;
};
}  // namespace

bool is_compose(const Node& root) {
  return root.kind == Node::Kind::map && root.find("services") != nullptr && root.find("run") == nullptr;
}

Result<Node> job_of_compose(SourceFile& source, const Context& context, const Node& root) {
  return Compose(source, context, root).job();
}

}  // namespace gridctl::config
