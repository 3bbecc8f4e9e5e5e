// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace gridctl::sched {

[[nodiscard]] std::string_view catalogue_csv();  // data/gpus.csv as it was when this was built

}  // namespace gridctl::sched
