// SPDX-License-Identifier: Apache-2.0
// Describes a host's part in a job that runs on several hosts, or as several ranks on one. Feature word "gangs" of the
// agent; gridctl-agent(7), GANGS. An attempt without it is a single process on one host.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"

namespace gridctl::wire {

inline constexpr std::string_view k_gangs_feature = "gangs";
inline constexpr std::size_t k_gang_members_max = 1024;
inline constexpr std::size_t k_gang_ranks_max = 256;  // of one member

struct GangMember {
  std::string name;     // the provider's
  std::string address;  // numeric, as the other members reach it
  std::uint32_t ranks = 1;
  bool operator==(const GangMember&) const = default;
};

// The gang's generation is the attempt's epoch.
struct Gang {
  std::uint32_t node_rank = 0;      // of the host that gets this, among `members`
  std::vector<GangMember> members;  // in the order of their ranks
  std::string launcher = "plain";   // gridctl-job(5)
  bool self_starting = false;       // the job's own command starts the ranks: it runs once on each host, or on the first
  std::uint16_t port = 0;           // the rendezvous on the first member; it and those behind it are this epoch's alone
  std::uint16_t ports = 0;
  std::uint32_t restarts = 0;  // attempts before this one
  std::uint32_t spares = 0;    // hosts that stand by
  Digest token;                // by which members of this epoch know each other
  bool operator==(const Gang&) const = default;

  [[nodiscard]] const GangMember& here() const { return members.at(node_rank); }
  [[nodiscard]] std::uint32_t world_size() const;
  [[nodiscard]] std::uint32_t first_rank() const;  // of this host
};

}  // namespace gridctl::wire
