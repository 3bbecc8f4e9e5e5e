// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace gridctl::os {

// Returns the name of this machine; "" if it is unknown.
[[nodiscard]] std::string host_name();
[[nodiscard]] unsigned user_id();  // of whom this process runs as

}  // namespace gridctl::os
