// SPDX-License-Identifier: Apache-2.0
// Removes texts that must not appear in the diagnostic log, from every writer.
#pragma once

#include <functional>
#include <string>

namespace gridctl::os {

// Passes each line through `filter` from now on, in the thread that writes. The filter must not log.
void filter_log(std::function<std::string(std::string)> filter);

}  // namespace gridctl::os
