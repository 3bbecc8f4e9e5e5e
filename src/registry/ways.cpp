// SPDX-License-Identifier: Apache-2.0
// Ways to hosts: a row each, in the order in which they are tried.
#include "base/text.hpp"
#include "registry/impl.hpp"
#include "registry/provider_json.hpp"

namespace gridctl::registry {

namespace {
constexpr char k_between_ways = '\x1e', k_after_address = '\x1f';  // JSON escapes them, and no address has them
}

Result<void> Registry::Impl::save_ways(const Provider& p) {
  TRY(db.prepare("DELETE FROM ways WHERE provider = ?").bind(p.name.value).run());
  std::int64_t n = 0;
  for (const Way& way : p.ways())
    TRY(db.prepare("INSERT INTO ways(provider, n, kind, address, facts) VALUES(?,?,?,?,?)")
            .bind(p.name.value, n++, std::string(way.kind()), way.address, to_json(way))
            .run());
  return {};
}

Result<void> read_ways(std::string_view text, Provider& p) {
  std::vector<Way> ways;
  for (const std::string& one : split(text, k_between_ways)) {
    const std::size_t end = one.find(k_after_address);
    if (end == std::string::npos) continue;
    TRY_ASSIGN(Way way, parse_way(std::string_view(one).substr(end + 1)));
    way.address = one.substr(0, end);
    ways.push_back(std::move(way));
  }
  if (!ways.empty()) p.set_ways(std::move(ways));
  return {};
}

}  // namespace gridctl::registry
