// SPDX-License-Identifier: Apache-2.0
// Texts that must not stand in the diagnostic log, whoever writes there.
#pragma once

#include <functional>
#include <string>

namespace gridctl::os {

// Each line goes through it from now on, in the thread that writes. It must not log.
void filter_log(std::function<std::string(std::string)> filter);

}  // namespace gridctl::os
