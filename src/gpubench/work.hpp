// SPDX-License-Identifier: Apache-2.0
// Declares the tests, each of which reports its results through talk.hpp.
#pragma once

#include <span>
#include <string_view>

#include "gpubench/device.hpp"
#include "gpubench/talk.hpp"

namespace gridctl::gpubench {

// Run seeded tests that the controller checks; a "ready" comes when clocks have settled.
[[nodiscard]] Result<void> test_gemm(Device& device, const Parameters& parameters);
[[nodiscard]] Result<void> test_fma(Device& device, const Parameters& parameters);
[[nodiscard]] Result<void> test_fill(Device& device, const Parameters& parameters);
// Run tests that this machine's clock alone times; they begin at their "ready".
[[nodiscard]] Result<void> test_rates(Device& device, const Parameters& parameters);
[[nodiscard]] Result<void> test_memory(Device& device, const Parameters& parameters);
[[nodiscard]] Result<void> test_copies(Device& device, const Parameters& parameters);
// Copies to the device at the place `peer` of the backend's list.
[[nodiscard]] Result<void> test_peer(Device& device, const Parameters& parameters);
[[nodiscard]] Result<void> test_sustain(Device& device, const Parameters& parameters);

// Fails unless the matrix product by the GemmWay of the parameter `way` gives the answer of the portable kernel, and
// faster. A kernel that this card has never run may hang or crash instead, so call it only in a process that may be
// lost.
[[nodiscard]] Result<void> test_way(Device& device, const Parameters& parameters);
// Does "pause", "resume" or "state" for the processes that the words name; reports the state of each that uses CUDA. A
// change that fails for one of them is undone for all.
[[nodiscard]] Result<void> take_and_give_back(std::string_view what, std::span<char* const> words);

}  // namespace gridctl::gpubench
