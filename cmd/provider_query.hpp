// SPDX-License-Identifier: Apache-2.0
// The part of Vast.ai's query language that speaks of what the registry knows. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "registry/records.hpp"

namespace gridctl::cmd {

// "gpu_name=RTX_4090 num_gpus>=2 region in [DE,FI]": every term must hold. Fields: name, state, region, site, class,
// engine, gpu_name, gpu_ram (GiB), num_gpus, cpus, ram (GiB), disk (GiB), price, label.KEY. Operators: = == != > >= <
// <= in notin. Text is compared without case, '_' counts as a space; a GPU's name may be a part of the full name.
struct QueryTerm {
  std::string field, op;
  std::vector<std::string> values;
};
[[nodiscard]] Result<std::vector<QueryTerm>> parse_query(std::string_view text);
[[nodiscard]] bool matches(const std::vector<QueryTerm>& query, const registry::Provider& provider);
// "price" or "price-" (descending); usage names the fields.
[[nodiscard]] Result<void> sort_by(std::vector<registry::Provider>& providers, const std::string& order);

}  // namespace gridctl::cmd
