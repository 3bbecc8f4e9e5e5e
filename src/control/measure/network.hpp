// SPDX-License-Identifier: Apache-2.0
// Measures one link, blocking, for a worker thread. Records nothing. Reports from hosts are bounded and checked: a
// round trip counts only with our nonce, bytes only with proof of receipt.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "control/reach/host_access.hpp"
#include "wire/network.hpp"

namespace gridctl::control {

inline constexpr Duration k_resolve = std::chrono::seconds{3};  // to find the addresses of a name

// Gets called between two frames; true ends the measurement (cancelled), because something more important needs the
// link.
using GiveWay = std::function<bool()>;

// Measures between here and a host, over a separate connection on the path that transfers take (including SSH and its
// windows).
struct HereMeasured {
  Duration rtt{};                            // smallest
  std::optional<double> to_host, from_host;  // bits per second
  std::uint64_t bytes = 0;                   // both ways
};
// `bytes_max` each way.
[[nodiscard]] Result<HereMeasured> measure_here(const HostAccess& place, const GiveWay& give_way,
                                                std::uint64_t bytes_max);

// Measures between two hosts. Tries both directions of connecting; the first that works measures the rates of both.
struct PairMeasured {
  struct Contact {  // one of them connecting to the other
    bool works = false;
    std::string address;  // that worked
    std::string reason;   // why none did
  };
  Contact a_to_b, b_to_a;                // a connects to b; b connects to a
  std::optional<Duration> rtt_a, rtt_b;  // as a measured, as b measured
  std::optional<double> rate_ab, rate_ba;
  std::uint64_t bytes = 0;  // both ways
};
// `bytes_max`: each way; 0: only round trips. An error says nothing about the link: one of the two hosts could not be
// asked.
[[nodiscard]] Result<PairMeasured> measure_pair(const HostAccess& a, const HostAccess& b, std::uint64_t bytes_max);

// Measures whether `from` reaches `to` at the address of a gang's rendezvous, and at what rate. An error says nothing
// about the path: one of the two could not be asked. `busy`: the port is already in use, or the host is measuring
// another link.
struct PortProof {
  PairMeasured::Contact contact;
  std::optional<Duration> rtt;
  std::optional<double> rate_there, rate_back;  // bits a second: from -> to, to -> from
  std::string interface;                        // of `to`, that has the address which worked; empty: not known
  std::uint16_t ephemeral_first = 0;            // of `to`; 0: not known
};
[[nodiscard]] Result<PortProof> prove_port(const HostAccess& from, const HostAccess& to, std::uint16_t port,
                                           std::uint64_t bytes_max);

// Measures how long the host takes to connect to these.
[[nodiscard]] Result<wire::ReachReply> measure_landmarks(const HostAccess& place,
                                                         const std::vector<wire::ReachRequest::Target>& targets);

// Returns the addresses of a listening host that another host may use: first those at which we reach it, then private
// ones that it claims. A public address that only the host claims could belong to someone else.
[[nodiscard]] std::vector<std::string> usable_addresses(const std::vector<std::string>& ours,
                                                        const std::vector<std::string>& claimed);

}  // namespace gridctl::control
