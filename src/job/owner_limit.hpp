// SPDX-License-Identifier: Apache-2.0
// First words of a host's detail when a limit of the machine's owner ended an attempt: gridctl-lend(7).
#pragma once

#include <string_view>

namespace gridctl::job {

inline constexpr std::string_view k_owner_limit = "the owner of this machine ";

}  // namespace gridctl::job
