// SPDX-License-Identifier: Apache-2.0
#include "wire/gang.hpp"

#include <nlohmann/json.hpp>

#include "wire/fields.hpp"

namespace gridctl::wire {

using nlohmann::json;

namespace {
GangMember read_member(const Fields& fields) {
  GangMember member;
  member.name = fields.text("name", 64);
  member.address = fields.text("address", 64);
  member.ranks = static_cast<std::uint32_t>(fields.number("ranks", k_gang_ranks_max));
  if (member.ranks == 0) fields.fail("has a member without ranks");
  return member;
}
}  // namespace

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

json gang_json(const Gang& gang) {
  json members = json::array();
  for (const GangMember& member : gang.members)
    members.push_back({{"name", member.name}, {"address", member.address}, {"ranks", member.ranks}});
  return {{"node_rank", gang.node_rank},
          {"members", std::move(members)},
          {"launcher", gang.launcher},
          {"self_starting", gang.self_starting},
          {"port", gang.port},
          {"ports", gang.ports},
          {"restarts", gang.restarts},
          {"spares", gang.spares},
          {"token", to_hex(gang.token)}};
}

Gang read_gang(const Fields& fields) {
  Gang gang;
  gang.members = fields.list("members", k_gang_members_max, &read_member);
  gang.node_rank = static_cast<std::uint32_t>(fields.number("node_rank", k_gang_members_max));
  if (gang.node_rank >= gang.members.size()) fields.fail("gives this host a rank that no member has");
  gang.launcher = fields.text("launcher", 64);
  gang.self_starting = fields.flag("self_starting");
  gang.port = static_cast<std::uint16_t>(fields.number("port", 65'535));
  gang.ports = static_cast<std::uint16_t>(fields.number("ports", 65'535u - gang.port));
  gang.restarts = static_cast<std::uint32_t>(fields.number("restarts", 1'000'000'000));
  gang.spares = static_cast<std::uint32_t>(fields.number("spares", k_gang_members_max));
  gang.token = fields.digest("token");
  return gang;
}

}  // namespace gridctl::wire
