// SPDX-License-Identifier: Apache-2.0
// Texts of a host's kernel, tools and packages; queries over hosts.
#include <cmath>
#include <string>

#include "agent/metrics.hpp"
#include "fuzz/target.hpp"
#include "probe/facts.hpp"
#include "probe/health_log.hpp"
#include "probe/health_machine.hpp"
#include "probe/health_nvidia.hpp"
#include "probe/health_packages.hpp"
#include "sched/catalogue/gpu_spec.hpp"
#include "sched/query/query.hpp"
#include "sched/standing/standing.hpp"

namespace gridctl {

FUZZ_TARGET(health_text) {
  for (const auto form : {probe::LogForm::kmsg, probe::LogForm::journal})
    static_cast<void>(probe::read_kernel_log(input, form, 1'000'000'000));
  static_cast<void>(probe::parse_ras_count(input));
  static_cast<void>(probe::parse_fdinfo(input));
  static_cast<void>(probe::parse_pressure(input));
  static_cast<void>(probe::mount_of_path(input, "/var/lib"));
  static_cast<void>(probe::whole_disk(input));
  probe::ToolAnswer answer;
  answer.tool = "nvidia-smi";
  answer.found = answer.answered = true;
  answer.exit_code = 0;
  answer.out = input;
  static_cast<void>(probe::read_nvidia_health(answer));
}

FUZZ_TARGET(package_versions) {
  const std::size_t middle = std::min(input.find('\n'), input.size());
  const std::string_view a = input.substr(0, middle), b = input.substr(std::min(middle + 1, input.size()));
  const auto sign = [](int value) { return value < 0 ? -1 : value > 0 ? 1 : 0; };
  PROMISE(sign(probe::compare_debian(a, b)) == -sign(probe::compare_debian(b, a)));
  PROMISE(probe::compare_debian(a, a) == 0);
  static_cast<void>(probe::upstream_version(input));
}

FUZZ_TARGET(metrics) {
  const Metrics told = agent::parse_metrics(input);
  PROMISE(told.size() <= k_metrics_max);
  for (const auto& [name, value] : told) PROMISE(is_metric_name(name) && std::isfinite(value));
}

FUZZ_TARGET(query) {
  static_cast<void>(sched::Query::parse(input));
  static_cast<void>(sched::Order::parse(input));
  static_cast<void>(sched::parse_gpu_spec(input));
}

FUZZ_TARGET(standing_json) {
  if (const Result<sched::HostStanding> standing = sched::parse_standing(input)) {
    const std::string said = sched::to_json(*standing);
    const Result<sched::HostStanding> again = sched::parse_standing(said);
    PROMISE(again && sched::to_json(*again) == said);
  }
}

}  // namespace gridctl
