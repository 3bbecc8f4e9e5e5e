// SPDX-License-Identifier: Apache-2.0
// The tests: each says what it found by talk.hpp.
#pragma once

#include <span>
#include <string_view>

#include "gpubench/device.hpp"
#include "gpubench/talk.hpp"

namespace gridctl::gpubench {

// Seeded, checked by the controller; a "ready" comes when clocks have settled.
[[nodiscard]] Result<void> test_gemm(Device& device, const Parameters& parameters);
[[nodiscard]] Result<void> test_fma(Device& device, const Parameters& parameters);
[[nodiscard]] Result<void> test_fill(Device& device, const Parameters& parameters);
// Timed by this machine's clock alone; they begin at their "ready".
[[nodiscard]] Result<void> test_rates(Device& device, const Parameters& parameters);
[[nodiscard]] Result<void> test_memory(Device& device, const Parameters& parameters);
[[nodiscard]] Result<void> test_copies(Device& device, const Parameters& parameters);
// To the device at the place `peer` of the backend's list.
[[nodiscard]] Result<void> test_peer(Device& device, const Parameters& parameters);
[[nodiscard]] Result<void> test_sustain(Device& device, const Parameters& parameters);

// Fails unless the matrix product by the GemmWay of the parameter `way` gives the answer of the portable kernel, and
// faster. A kernel that this card has never run may hang or crash instead: for a process that may be lost.
[[nodiscard]] Result<void> test_way(Device& device, const Parameters& parameters);
// "pause", "resume" or "state" of the processes that the words name; says the state of each that uses CUDA. What cannot
// be done as a whole is undone.
[[nodiscard]] Result<void> take_and_give_back(std::string_view what, std::span<char* const> words);

}  // namespace gridctl::gpubench
