// SPDX-License-Identifier: Apache-2.0
#include "agent/surroundings.hpp"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/text.hpp"

namespace gridctl::agent {
namespace {

constexpr std::string_view k_folders[] = {"/usr/local/bin",  "/usr/bin",  "/bin",
                                          "/usr/local/sbin", "/usr/sbin", "/sbin"};
constexpr std::string_view k_home_folders[] = {"bin", ".local/bin"};  // rootless docker is installed into ~/bin
constexpr std::uint64_t k_config_bytes_max = 1u << 20;

bool is_socket_for_us(const os::Path& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISSOCK(info.st_mode) && ::access(path.c_str(), R_OK | W_OK) == 0;
}

// docker reads the context's name from this file; any word means that there is one.
bool chose_context(const os::Path& home) {
  const auto config = os::read_file(home / ".docker" / "config.json", k_config_bytes_max);
  if (!config) return false;
  const std::size_t at = config->find("\"currentContext\"");
  if (at == std::string::npos) return false;
  const std::size_t open = config->find('"', at + 16);
  if (open == std::string::npos) return false;
  const std::size_t close = config->find('"', open + 1);
  return close != std::string::npos && close > open + 1 && !is_one_of(config->substr(open + 1, close - open - 1), {"default"});
}

std::string completed_path(const Surroundings& here) {
  const std::string path = here.variable("PATH").value_or("");
  std::vector<std::string> folders = path.empty() ? std::vector<std::string>{} : split(path, ':');
  const auto add = [&](const std::string& folder) {
    if (std::ranges::find(folders, folder) == folders.end()) folders.push_back(folder);
  };
  for (const std::string_view folder : k_folders) add(std::string(folder));
  for (const std::string_view folder : k_home_folders)
    if (!here.home.empty() && os::exists(here.home / folder)) add((here.home / folder).native());
  return join(folders, ":");
}

std::optional<std::string> docker_host(const Surroundings& here) {
  for (const char* chosen : {"DOCKER_HOST", "DOCKER_CONTEXT"})
    if (const auto value = here.variable(chosen); value && !value->empty()) return std::nullopt;
  if (chose_context(here.home)) return std::nullopt;
  for (const char* machine : {"var/run/docker.sock", "run/docker.sock"})
    if (is_socket_for_us(here.root / machine)) return std::nullopt;
  const os::Path runtime = here.variable("XDG_RUNTIME_DIR").value_or("");
  for (const os::Path& folder : {runtime, here.root / "run/user" / std::to_string(here.uid), here.home / ".docker/run"})
    if (!folder.empty() && is_socket_for_us(folder / "docker.sock"))
      return "unix://" + (folder / "docker.sock").native();
  return std::nullopt;
}

}  // namespace

std::map<std::string, std::string> missing_variables(const Surroundings& here) {
  std::map<std::string, std::string> missing;
  if (std::string path = completed_path(here); path != here.variable("PATH")) missing["PATH"] = std::move(path);
  if (auto host = docker_host(here)) missing["DOCKER_HOST"] = *std::move(host);
  return missing;
}

void complete_environment() {
  const Surroundings here{&os::environment, "/", os::home_directory(), ::getuid()};
  for (const auto& [name, value] : missing_variables(here)) ::setenv(name.c_str(), value.c_str(), 1);
}

}  // namespace gridctl::agent
