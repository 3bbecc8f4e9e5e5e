// SPDX-License-Identifier: Apache-2.0
// Chooses the shell that runs the commands of tasks: bash, as for jobs, or /bin/sh where both do the same; that one
// starts in half the time. Pure.
#pragma once

#include <string_view>

namespace gridctl::agent {

// Returns whether the text has nothing that bash and a plain POSIX shell interpret differently. In doubt, false.
[[nodiscard]] bool is_plain_shell(std::string_view text);

}  // namespace gridctl::agent
