// SPDX-License-Identifier: Apache-2.0
// Registered hosts that are not one group of like machines: what was measured between them, trainings on several kinds of
// GPU at once, and over slow links.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cmd/plan_question.hpp"
#include "plan/mixed.hpp"
#include "plan/search.hpp"
#include "registry/hosts.hpp"

namespace gridctl::cmd {

// Below this a tightly coupled training waits for its network most of the time, whatever the parallelism.
inline constexpr double k_slow_link = 125e6;  // bytes a second

// The slowest measured pair of a group's hosts takes the place of the catalogue's network, unless they have RDMA, which
// nobody measures. Says so in `sources`.
void apply_links(const std::vector<registry::HostLink>& links, std::vector<Machines>& all);

// One group's part of the answer.
struct Tried {
  Machines machines;
  plan::Question question;
  plan::Answer answer;
};

// The quickest training on all kinds of GPU at one site.
struct TogetherAtSite {
  std::vector<const Tried*> groups;  // in the order of mixed.parts
  plan::Mixed mixed;
};
// nullopt: no site has several kinds, or they cannot train together.
[[nodiscard]] std::optional<TogetherAtSite> together(const std::vector<Tried>& tried);
// "H100 SXM5 80GB and A100 together: …"; `alone` is the best of one kind, if one can run it.
[[nodiscard]] std::string together_text(const TogetherAtSite& found, const plan::Plan* alone);

// Groups far from each other, or hosts with slow links, train apart and exchange now and then (DiLoCo), or cannot, with
// the number. Empty: there is one island.
[[nodiscard]] std::string over_wan(const std::vector<Tried>& tried, const std::vector<registry::HostLink>& links,
                                   double bytes_per_param);

}  // namespace gridctl::cmd
