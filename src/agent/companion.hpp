// SPDX-License-Identifier: Apache-2.0
// Lets mpirun on the first host of a gang start processes on the others, without ssh between hosts: it calls our agent
// instead (`gang-run HOST COMMAND…`), which asks the agent that serves in the job of that host (`gang-serve`). Both
// prove that they have the token of this epoch's gang. gridctl-agent(7), GANGS.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "agent/peer_socket.hpp"
#include "base/bytes.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "os/clock.hpp"
#include "os/files.hpp"

namespace gridctl::agent {

inline constexpr Duration k_companion_wait = std::chrono::minutes{30};  // for another host to be up: it may fetch its
                                                                        // image. torch waits as long for its peers.
inline constexpr std::size_t k_call_bytes_max = 128 * 1024;             // of one command

// Holds the content of the file that $GRIDCTL_GANG_FILE names.
struct GangFile {
  Digest token;
  std::uint16_t port = 0;  // where each member serves
  std::size_t node_rank = 0;
  std::vector<std::string> addresses;  // of the members
};
[[nodiscard]] Result<GangFile> parse_gang_file(std::string_view text);
[[nodiscard]] Result<GangFile> own_gang();  // of this process
// Connects, and both sides prove that they belong to the gang. The other host may not be up yet: retries until
// `give_up`.
[[nodiscard]] Result<PeerStream> reach_member(const GangFile& gang, const std::string& address, BootTime give_up,
                                              const os::Clock& clock);
void end_all_children();  // of this process, their children too: they may save first, for five seconds

// Each returns the exit status of this process.
[[nodiscard]] int gang_serve(const os::Clock& clock);  // until the first host says that it is over: with its status
[[nodiscard]] int gang_run(std::span<char* const> arguments, const os::Clock& clock);  // HOST COMMAND…, as rsh
[[nodiscard]] int gang_end(std::span<char* const> arguments, const os::Clock& clock);  // STATUS
[[nodiscard]] int gang_node(std::span<char* const> arguments, const os::Clock& clock);  // COMMAND…; gang_node.cpp

}  // namespace gridctl::agent
