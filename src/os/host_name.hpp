// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace gridctl::os {

// Returns the name of this machine; "" when it does not say.
[[nodiscard]] std::string host_name();
[[nodiscard]] unsigned user_id();  // of whom this process runs as

}  // namespace gridctl::os
