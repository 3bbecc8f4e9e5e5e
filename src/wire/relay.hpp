// SPDX-License-Identifier: Apache-2.0
// Defines the words that the two ends of a lent host say to the machine where they meet, before their bytes pass:
// gridctl-lend(7).
#pragma once

#include <chrono>
#include <string_view>

#include "base/time.hpp"

namespace gridctl::wire {

// Starts the host's first line: this, a space, its claim (64 hexadecimal digits), a space, the machine's name.
inline constexpr std::string_view k_relay_hello = "GRIDCTL-RELAY/1";
// Answer the host. The relay's lines also begin with '\n', because login noise may precede them.
inline constexpr std::string_view k_relay_ready = "\nGRIDCTL-RELAY/1 ready\n";
inline constexpr std::string_view k_relay_refused = "\nGRIDCTL-RELAY/1 refused ";  // the reason ends the line
// While there is no caller, the relay sends this every k_relay_beat, and the host sends it back.
inline constexpr char k_relay_beat_byte = '.';
// For a call, the relay sends this line, the host sends it back, and everything after that is the caller's.
inline constexpr std::string_view k_relay_go = "go\n";
inline constexpr Duration k_relay_beat = std::chrono::seconds{1};
inline constexpr Duration k_relay_silence = std::chrono::seconds{5};  // then the other one is gone
inline constexpr std::size_t k_claim_digits = 64;
// Answer the caller: the host listens, or this line gives the reason why not.
inline constexpr std::string_view k_relay_connected = "\nGRIDCTL-RELAY/1 connected\n";
inline constexpr std::string_view k_relay_nobody = "\nGRIDCTL-RELAY/1 nobody ";

}  // namespace gridctl::wire
