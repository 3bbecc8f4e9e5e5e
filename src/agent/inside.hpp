// SPDX-License-Identifier: Apache-2.0
// Implements `gridctl-agent inside`: serves one conversation of streams (gridctl-agent(7), STREAMS) on standard input,
// a socket, as a process of the job, or of the host's user. Ends with the connection, and then ends what it has
// started.
#pragma once

#include <span>

namespace gridctl::agent {

// `arguments`: those of init, to_arguments(); none outside a job.
[[nodiscard]] int run_inside(std::span<char* const> arguments);

// Implements `gridctl-agent become [--terminal] -- COMMAND...`: the last step of a program started inside. Says on
// standard error why a command cannot run, and then exits as a shell does: 126 or 127.
[[nodiscard]] int become(std::span<char* const> arguments);

}  // namespace gridctl::agent
