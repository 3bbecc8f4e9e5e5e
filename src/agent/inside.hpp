// SPDX-License-Identifier: Apache-2.0
// `gridctl-agent inside`: serves one conversation of streams (gridctl-agent(7), STREAMS) on standard input, a socket,
// as a process of the job, or of the host's user. Ends with the connection, and ends what it has started then.
#pragma once

#include <span>

namespace gridctl::agent {

// `arguments`: those of init, to_arguments(); none outside of a job.
[[nodiscard]] int run_inside(std::span<char* const> arguments);

// `gridctl-agent become [--terminal] -- COMMAND...`: the last step of a program that is started inside. Says on
// standard error why a command cannot be run, and exits as a shell does then: 126 or 127.
[[nodiscard]] int become(std::span<char* const> arguments);

}  // namespace gridctl::agent
