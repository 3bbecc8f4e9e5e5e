// SPDX-License-Identifier: Apache-2.0
// Implements trust on first use: only if a person is there to compare the fingerprint.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "cmd/context.hpp"
#include "ssh/target.hpp"

namespace gridctl::cmd {

// Shows unknown host keys and asks a person. Empty if nobody can be asked: no terminal, --json, or CI.
[[nodiscard]] std::function<bool(const std::string& peer, std::span<const ssh::HostKey> keys)> asker(Context& context);

}  // namespace gridctl::cmd
