// SPDX-License-Identifier: Apache-2.0
// The stored form of a Workload. For .cpp files that know nlohmann's json.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "job/workload.hpp"

namespace gridctl::job {

[[nodiscard]] nlohmann::json workload_json(const Workload& workload);
// Takes missing keys as not said. An error for words that this gridctl does not know; throws json's exceptions for
// wrong types.
[[nodiscard]] Result<Workload> workload_of(const nlohmann::json& in);

}  // namespace gridctl::job
