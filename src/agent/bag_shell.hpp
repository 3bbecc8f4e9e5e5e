// SPDX-License-Identifier: Apache-2.0
// The shell that runs the commands of tasks: bash, as jobs have it, or /bin/sh where both do the same; it starts in half of the
// time. Pure.
#pragma once

#include <string_view>

namespace gridctl::agent {

// Whether the text says nothing that bash and a plain POSIX shell take differently. Doubt is no.
[[nodiscard]] bool is_plain_shell(std::string_view text);

}  // namespace gridctl::agent
