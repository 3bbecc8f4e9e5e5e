// SPDX-License-Identifier: Apache-2.0
// Measures one link, blocking, for a worker thread. Nothing is recorded here. What hosts say is bounded and checked: a
// round trip counts only with our nonce, bytes only with proof that they came.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "control/reach/host_access.hpp"
#include "wire/network.hpp"

namespace gridctl::control {

inline constexpr Duration k_resolve = std::chrono::seconds{3};  // to find the addresses of a name

// Asked between two frames; true ends the measurement (cancelled): something more important needs the link.
using GiveWay = std::function<bool()>;

// Between here and a host, over a connection of its own on the way that transfers take (SSH and its windows included).
struct HereMeasured {
  Duration rtt{};                            // smallest
  std::optional<double> to_host, from_host;  // bits per second
  std::uint64_t bytes = 0;                   // both ways
};
// `bytes_max` each way.
[[nodiscard]] Result<HereMeasured> measure_here(const HostAccess& place, const GiveWay& give_way,
                                                std::uint64_t bytes_max);

// Between two hosts. Both directions of connecting are tried; the first that works measures the rates of both.
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
// `bytes_max` each way; 0: round trips alone. An error says nothing about the link: one of the two could not be asked.
[[nodiscard]] Result<PairMeasured> measure_pair(const HostAccess& a, const HostAccess& b, std::uint64_t bytes_max);

// Whether `from` reaches `to` where a gang's rendezvous will be, and at what rate. An error says nothing about the way:
// one of the two could not be asked. `busy`: somebody listens on that port already, or the host measures another link.
struct PortProof {
  PairMeasured::Contact contact;
  std::optional<Duration> rtt;
  std::optional<double> rate_there, rate_back;  // bits a second: from -> to, to -> from
  std::string interface;                        // of `to`, that has the address which worked; empty: not known
  std::uint16_t ephemeral_first = 0;            // of `to`; 0: not known
};
[[nodiscard]] Result<PortProof> prove_port(const HostAccess& from, const HostAccess& to, std::uint16_t port,
                                           std::uint64_t bytes_max);

// How long the host takes to connect to these.
[[nodiscard]] Result<wire::ReachReply> measure_landmarks(const HostAccess& place,
                                                         const std::vector<wire::ReachRequest::Target>& targets);

// Returns the addresses of a listening host that another one may be sent to: first the ones at which we reach it, and
// private ones that it says it has. A public address on its word alone could be somebody else's.
[[nodiscard]] std::vector<std::string> usable_addresses(const std::vector<std::string>& ours,
                                                        const std::vector<std::string>& claimed);

}  // namespace gridctl::control
