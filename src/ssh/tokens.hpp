// SPDX-License-Identifier: Apache-2.0
// Expands the tokens of ssh_config(5) in names of files.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace gridctl::ssh {

struct TokenValues {
  std::string alias, host, user, port;                                   // %n %h %r %p
  std::string home, local_user, local_host, uid;                         // %d %u %l %i
  std::function<std::optional<std::string>(std::string_view)> variable;  // ${NAME}
};

// Expands "~/.ssh/%r@%h", "${KEYS}/id" to a path. nullopt: it contains parts that only `ssh` itself can expand (%C,
// ~other), or a variable that is not set.
[[nodiscard]] std::optional<std::string> expand_tokens(std::string_view text, const TokenValues& values);

}  // namespace gridctl::ssh
