// SPDX-License-Identifier: Apache-2.0
#include "probe/engines.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "probe/tool_text.hpp"

namespace gridctl::probe {
namespace {

using nlohmann::json;

bool says(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

bool is_true(const json& value) { return value.is_boolean() && value.get<bool>(); }

// Finds "unix:///run/user/1000/docker.sock" in an error text, and returns its path.
std::string socket_path(std::string_view text) {
  const std::size_t at = text.find("unix://");
  if (at == std::string_view::npos) return "/var/run/docker.sock";
  std::string_view path = text.substr(at + 7);
  path = path.substr(0, path.find_first_of(" \t\n\"'?:,"));
  while (path.ends_with('.')) path.remove_suffix(1);
  return std::string(path.substr(0, 120));
}

std::string docker_problem(std::string_view text, std::string_view user) {
  const std::string said = lower(text);
  if (says(said, "permission denied"))
    return "docker: permission denied on " + socket_path(text) +
           ": add the user to group docker: sudo usermod -aG docker " + (user.empty() ? "$USER" : shell_quote(user));
  if (says(said, "cannot connect") || says(said, "failed to connect") || says(said, "daemon running"))
    return "docker: no daemon answers on " + socket_path(text) + ": sudo systemctl enable --now docker";
  return {};
}

bool lists_word(const json& list, std::string_view word) {
  if (!list.is_array()) return false;
  return std::ranges::any_of(list, [&](const json& item) { return text_of(item) == word; });
}

bool mentions(const json& list, std::string_view part) {
  if (!list.is_array()) return false;
  return std::ranges::any_of(list, [&](const json& item) { return says(text_of(item), part); });
}

}  // namespace

ToolCall docker_call() { return {{"docker", "info", "--format", "{{json .}}"}}; }
ToolCall podman_call() { return {{"podman", "info", "--format", "json"}}; }

Engine read_docker(const ToolAnswer& answer, std::string_view user) {
  Engine engine;
  engine.kind = EngineKind::docker;
  if (!answer.answered) {
    engine.problem = answer.problem;
    return engine;
  }
  const json info = find_json(answer.out);
  if (info.is_object() && info.contains("host") && info.contains("store")) {
    engine.problem = "docker is podman under another name: use podman";
    return engine;
  }
  engine.version = available(text_of(member(info, "ServerVersion")));
  if (engine.version.empty()) {
    std::string said = answer.err;
    if (const json& errors = member(info, "ServerErrors"); errors.is_array())
      for (const json& error : errors) said += "\n" + text_of(error);
    engine.problem = docker_problem(said, user);
    if (engine.problem.empty()) {
      const std::string words = complaint(answer.out.starts_with("{") ? "" : answer.out, said);
      engine.problem = "docker: " + (words.empty() ? "reported no server version" : words);
    }
    return engine;
  }
  engine.rootless = mentions(member(info, "SecurityOptions"), "name=rootless");
  engine.limits_enforced = is_true(member(info, "MemoryLimit")) && is_true(member(info, "CpuCfsQuota")) &&
                           text_of(member(info, "CgroupDriver")) != "none";
  return engine;
}

Engine read_podman(const ToolAnswer& answer, std::string_view user) {
  Engine engine;
  engine.kind = EngineKind::podman;
  if (!answer.answered) {
    engine.problem = answer.problem;
    return engine;
  }
  const json info = find_json(answer.out);
  const json& host = member(info, "host");
  if (!answer.ok() || !host.is_object()) {
    const std::string said = lower(answer.err);
    if (says(said, "newuidmap")) engine.problem = "podman: newuidmap is missing: sudo apt-get install uidmap";
    else if (says(said, "subuid") || says(said, "subgid"))
      engine.problem =
          "podman: the user has no subordinate ids: sudo usermod --add-subuids 100000-165535 --add-subgids "
          "100000-165535 " +
          (user.empty() ? std::string("$USER") : shell_quote(user));
    else {
      const std::string words = complaint(answer.out, answer.err);
      engine.problem = "podman: " + (words.empty() ? "reported no information" : words);
    }
    return engine;
  }
  engine.version = available(text_of(member(member(info, "version"), "Version")));
  engine.rootless = is_true(member(member(host, "security"), "rootless"));
  if (!engine.rootless) engine.rootless = is_true(member(host, "rootless"));
  const json& controllers = member(host, "cgroupControllers");
  const bool v2 = text_of(member(host, "cgroupVersion")) == "v2";
  engine.limits_enforced =
      !engine.rootless || (v2 && lists_word(controllers, "cpu") && lists_word(controllers, "memory"));
  const json& runtime = member(host, "ociRuntime");
  if (runtime.is_object() && text_of(member(runtime, "name")).empty() && text_of(member(runtime, "path")).empty())
    engine.problem = "podman: no OCI runtime: sudo apt-get install crun";
  return engine;
}

Engine process_engine(bool limits_enforced) {
  Engine engine;
  engine.kind = EngineKind::process;
  engine.limits_enforced = limits_enforced;
  return engine;
}

}  // namespace gridctl::probe
