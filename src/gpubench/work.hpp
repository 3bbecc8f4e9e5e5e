// SPDX-License-Identifier: Apache-2.0
// The tests: each says what it found by talk.hpp.
#pragma once

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

}  // namespace gridctl::gpubench
