// SPDX-License-Identifier: Apache-2.0
#include "wire/gang.hpp"

#include "wire/coding.hpp"

namespace gridctl::wire {

template <class R>
void fields(R& r, Of<R, GangMember>& m) {
  r("name", m.name, 64)("address", m.address, 64)("ranks", m.ranks, k_gang_ranks_max);
  r.check(m.ranks > 0, "has a member without ranks");
}

template <class R>
void fields(R& r, Of<R, Gang>& m) {
  r("members", m.members, k_gang_members_max)("node_rank", m.node_rank, k_gang_members_max);
  r.check(m.node_rank < m.members.size(), "gives this host a rank that no member has");
  r("launcher", m.launcher, 64)("self_starting", m.self_starting);
  r("port", m.port)("ports", m.ports, 65'535u - m.port)("restarts", m.restarts, 1'000'000'000);
  r("spares", m.spares, k_gang_members_max)("token", m.token);
}
GRIDCTL_FIELDS(Gang)

std::uint32_t Gang::world_size() const {
  std::uint32_t all = 0;
  for (const GangMember& member : members) all += member.ranks;
  return all;
}

std::uint32_t Gang::first_rank() const {
  std::uint32_t before = 0;
  for (std::uint32_t i = 0; i < node_rank; ++i) before += members.at(i).ranks;
  return before;
}

}  // namespace gridctl::wire
