// SPDX-License-Identifier: Apache-2.0
// Runs a program on a host with this command's standard streams, or its terminal.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cmd/context.hpp"
#include "control/reach/agent_network.hpp"
#include "os/loop.hpp"

namespace gridctl::cmd {

struct SessionWish {
  std::vector<std::string> command;  // empty: a shell
  bool terminal = false;
  std::uint32_t rank = 0;
};

// Runs the program to its end. Returns its exit code; 128 plus the signal that killed it, as shells do.
[[nodiscard]] Result<int> run_session(Context& context, os::Loop& loop, std::unique_ptr<control::AgentChannel> channel,
                                      const SessionWish& wish);

}  // namespace gridctl::cmd
