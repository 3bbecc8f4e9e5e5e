// SPDX-License-Identifier: Apache-2.0
#include "cmd/image_digests.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "images/ask_digest.hpp"
#include "job/image_reference.hpp"
#include "sched/geo/residency.hpp"

namespace gridctl::cmd {

namespace {

constexpr Duration k_registries_wait = std::chrono::seconds{10};  // somebody waits for it

bool would_suit_a_lent_host(job::Spec spec, const std::vector<sched::HostFacts>& hosts) {
  spec.num_nodes = 1;
  spec.constraints.image_tags = true;
  std::set<HostName> never;
  for (const sched::Rejection& one : sched::place(spec, hosts, {}).rejections)
    if (!one.temporary) never.insert(one.host);
  return std::ranges::any_of(hosts, [&](const sched::HostFacts& host) {
    return sched::is_lent(host.host_class, host.labels) && !never.contains(host.name);
  });
}

}  // namespace

void find_image_digests(Context& context, job::Spec& spec, std::vector<sched::HostFacts>& hosts) {
  const std::vector<std::string> images = job::images_without_digest(spec);
  if (images.empty() || !would_suit_a_lent_host(spec, hosts)) return;
  const BootTime until = context.clock.boot() + k_registries_wait;
  std::map<std::string, std::string> problems;
  for (const std::string& image : images) {
    const auto read = job::parse_image_reference(image);
    if (!read) continue;
    const auto digest = images::ask_digest(*read, until - context.clock.boot(), context.clock);
    if (digest) spec.image_digests[image] = *digest;
    else problems[image] = digest.error().one_line();
  }
  for (sched::HostFacts& host : hosts) host.image_problems = problems;
}

}  // namespace gridctl::cmd
