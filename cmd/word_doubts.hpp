// SPDX-License-Identifier: Apache-2.0
// Words in requests that no host can answer to: a GPU that does not exist, a country written out. Each is told with what
// was meant.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "job/spec.hpp"
#include "sched/query/host_facts.hpp"

namespace gridctl::cmd {

// "no GPU is called 'A1000'; did you mean 'A100'?"; empty for what the catalogue knows.
[[nodiscard]] std::string gpu_doubt(std::string_view name);
// "regions are codes such as DE; did you mean 'DE' for 'Germany'?"; empty for what may be one.
[[nodiscard]] std::string region_doubt(std::string_view name);

// Refused with `code` when neither the catalogue nor a host knows any of the GPUs that the job asks for. What is unknown
// beside known ones, regions that are none, and programs that need ssh between hosts become lines of `warnings`.
[[nodiscard]] Result<void> check_words(const job::Spec& spec, const std::vector<sched::HostFacts>& hosts, Code code,
                                       std::vector<std::string>& warnings);

}  // namespace gridctl::cmd
