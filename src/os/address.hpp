// SPDX-License-Identifier: Apache-2.0
// Handles numeric internet addresses: their kinds, and those of this machine. It looks up no names.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gridctl::os {

enum class AddressKind : std::uint8_t {
  none,      // no numeric IPv4 or IPv6 address
  own,       // loopback or unspecified: the machine itself
  special,   // link-local (where clouds keep their metadata), multicast, broadcast, reserved
  site,      // of a private network: 10/8, 172.16/12, 192.168/16, 100.64/10, fc00::/7
  internet,  // everything else
};
[[nodiscard]] AddressKind address_kind(const std::string& address);

// Returns the addresses of interfaces that are up, without kinds `own` and `special`; IPv4 first.
[[nodiscard]] std::vector<std::string> own_addresses();
// Returns the interface that has this address, such as "eth0"; empty if it is not an address of this machine.
[[nodiscard]] std::string interface_of(const std::string& address);

// Returns the lowest port that this machine gives to outgoing connections; 0 if unknown.
[[nodiscard]] std::uint16_t ephemeral_port_first();

}  // namespace gridctl::os
