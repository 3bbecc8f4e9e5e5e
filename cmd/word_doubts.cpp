// SPDX-License-Identifier: Apache-2.0
#include "cmd/word_doubts.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "plan/device.hpp"
#include "sched/catalogue/catalogue.hpp"
#include "sched/catalogue/gpu_match.hpp"
#include "sched/geo/region_words.hpp"
#include "sched/ranks.hpp"

namespace gridctl::cmd {

namespace {
constexpr std::size_t k_shown_max = 60;  // bytes of a word

bool is_on_a_host(const std::string& name, const std::vector<sched::HostFacts>& hosts) {
  job::GpuRequest request;
  request.names = {name};
  return std::ranges::any_of(hosts, [&](const sched::HostFacts& host) {
    return std::ranges::any_of(host.inventory->gpus, [&](const Gpu& gpu) {
      return sched::match_gpu(request, gpu) == sched::GpuMismatch::none;
    });
  });
}

// Looks for a similar name among the names of one vendor's catalogue, and their first words.
std::string near_gpu(std::string_view name) {
  std::vector<std::string> known;
  for (const sched::GpuModel& model : sched::catalogue()) {
    known.push_back(model.key.substr(0, model.key.find(' ')));
    known.push_back(model.key);
    known.insert(known.end(), model.aliases.begin(), model.aliases.end());
  }
  return nearest(name, known);
}
}  // namespace

std::string gpu_doubt(std::string_view name) {
  if (plan::gpu_named(name)) return "";
  const std::string near = near_gpu(name);
  return "no GPU is called '" + sanitize(name, k_shown_max) + "'" + (near.empty() ? "" : "; did you mean '" + near + "'?");
}

std::string region_doubt(std::string_view name) {
  if (name.size() <= 2) return "";
  const std::string code = sched::region_code(name);
  return code.empty() ? ""
                      : "regions are codes such as DE; did you mean '" + code + "' for '" + sanitize(name, k_shown_max) + "'?";
}

Result<void> check_words(const job::Spec& spec, const std::vector<sched::HostFacts>& hosts, Code code,
                         std::vector<std::string>& warnings) {
  std::vector<std::string> unknown;
  bool any_known = spec.resources.gpus.empty();
  for (const job::GpuRequest& request : spec.resources.gpus) {
    any_known = any_known || request.names.empty();
    for (const std::string& name : request.names) {
      std::string doubt = gpu_doubt(name);
      if (doubt.empty() || is_on_a_host(name, hosts)) any_known = true;
      else unknown.push_back(std::move(doubt));
    }
  }
  if (!any_known)
    return make_error(code, join(unknown, "; "), "gridctl provider ls");
  warnings.insert(warnings.end(), unknown.begin(), unknown.end());
  for (const auto* regions : {&spec.constraints.region_in, &spec.constraints.region_not})
    for (const std::string& region : *regions)
      if (std::string doubt = region_doubt(region); !doubt.empty()) warnings.push_back(std::move(doubt));
  if (std::string doubt = sched::ssh_doubt(spec); !doubt.empty()) warnings.push_back(std::move(doubt));
  return {};
}

}  // namespace gridctl::cmd
