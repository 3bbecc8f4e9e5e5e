// SPDX-License-Identifier: Apache-2.0
// Finds words in requests that no host can satisfy: a GPU that does not exist, a country written out. Each message
// suggests the intended word.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "job/spec.hpp"
#include "sched/query/host_facts.hpp"

namespace gridctl::cmd {

// Returns "no GPU is called 'A1000'; did you mean 'A100'?", or nothing for a GPU of the catalogue.
[[nodiscard]] std::string gpu_doubt(std::string_view name);
// Returns "regions are codes such as DE; did you mean 'DE' for 'Germany'?", or nothing for a possible code.
[[nodiscard]] std::string region_doubt(std::string_view name);

// Refused with `code` if neither the catalogue nor a host knows any of the GPUs that the job asks for. Unknown GPUs
// beside known ones, words that are not regions, and programs that need ssh between hosts become lines of `warnings`.
[[nodiscard]] Result<void> check_words(const job::Spec& spec, const std::vector<sched::HostFacts>& hosts, Code code,
                                       std::vector<std::string>& warnings);

}  // namespace gridctl::cmd
