// SPDX-License-Identifier: Apache-2.0
// Handles registered hosts that are not one group of equal machines: measurements between them, training on several
// kinds of GPU at once, and over slow links.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cmd/plan_question.hpp"
#include "plan/mixed.hpp"
#include "plan/search.hpp"
#include "registry/hosts.hpp"

namespace gridctl::cmd {

// Below this rate, a tightly coupled training job waits for its network most of the time, whatever the parallelism.
inline constexpr double k_slow_link = 125e6;  // bytes a second

// The slowest measured pair of a group's hosts replaces the catalogue's network, unless they have RDMA, which is not
// measured. Notes that in `sources`.
void apply_links(const std::vector<registry::HostLink>& links, std::vector<Machines>& all);

// Holds one group's part of the answer.
struct Tried {
  Machines machines;
  plan::Question question;
  plan::Answer answer;
};

// Describes the quickest training on all kinds of GPU at one site.
struct TogetherAtSite {
  std::vector<const Tried*> groups;  // in the order of mixed.parts
  plan::Mixed mixed;
};
// Returns nullopt if no site has several kinds, or they cannot train together.
[[nodiscard]] std::optional<TogetherAtSite> together(const std::vector<Tried>& tried);
// Returns text such as "H100 SXM5 80GB and A100 together: …"; `alone` is the best of one kind, if one can run it.
[[nodiscard]] std::string together_text(const TogetherAtSite& found, const plan::Plan* alone);

// States whether groups far from each other, or hosts with slow links, can train separately and exchange occasionally
// (DiLoCo), with the numbers. Empty: there is one island.
[[nodiscard]] std::string over_wan(const std::vector<Tried>& tried, const std::vector<registry::HostLink>& links,
                                   double bytes_per_param);

}  // namespace gridctl::cmd
