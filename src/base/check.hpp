// SPDX-License-Identifier: Apache-2.0
// Checks our own invariants, always. Never for a peer's bytes: those give Code::protocol_violation.
#pragma once

namespace gridctl {
[[noreturn]] void check_failed(const char* expression, const char* file, int line);
}

#define GRIDCTL_CHECK(cond) ((cond) ? static_cast<void>(0) : ::gridctl::check_failed(#cond, __FILE__, __LINE__))
