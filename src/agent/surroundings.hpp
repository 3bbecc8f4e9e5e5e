// SPDX-License-Identifier: Apache-2.0
// Provides the environment that a login shell sets up for an interactive user, and that sshd's plain commands lack.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "os/files.hpp"

namespace gridctl::agent {

struct Surroundings {
  std::function<std::optional<std::string>(std::string_view)> variable;  // of our environment
  os::Path root = "/";
  os::Path home;  // of the user
  unsigned uid = 0;
};

// Returns variables to set before tools run:
// - PATH, with the folders in which most systems have tools after the user's own;
// - DOCKER_HOST, if this user cannot use the machine's own daemon but has a rootless one, and has not chosen one
//   (by DOCKER_HOST, DOCKER_CONTEXT or `docker context use`).
[[nodiscard]] std::map<std::string, std::string> missing_variables(const Surroundings& here);

// Sets them for this process and its children.
void complete_environment();

}  // namespace gridctl::agent
