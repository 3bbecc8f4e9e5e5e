// SPDX-License-Identifier: Apache-2.0
// Parses the hosts of a simulation from a file (gridctl-sim(5)):
//   hosts:
//     - {name: spot, count: 2, gpus: "A100:1", class: market, price: 1.1, mtbf: 6h, outage: 20m, start: 90s}
//     - {name: lab, price: 0.4, mtbf: 30d, speed: 0.5, uplink: 100}
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "forecast/model.hpp"

namespace gridctl::forecast {

inline constexpr std::size_t k_hosts_max = 1000;

// If a host omits its hardware, it has the hardware that `job` asks for. `upload` and `restore` are left at 0. Errors:
// bad_job_file, "FILE:LINE:COLUMN: key 'hosts[1].mtbf': expected …, got …".
[[nodiscard]] Result<std::vector<HostModel>> parse_hosts_file(std::string_view text, const std::string& file,
                                                              const job::Spec& job);
// Returns a host that has exactly the resources that the job asks for.
[[nodiscard]] HostModel host_for(const job::Spec& job, const std::string& name, const std::string& host_class);

}  // namespace gridctl::forecast
