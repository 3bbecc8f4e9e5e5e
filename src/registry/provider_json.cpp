// SPDX-License-Identifier: Apache-2.0
#include "registry/provider_json.hpp"

#include "base/record.hpp"

namespace gridctl::registry {

template <class R>
void fields(R& r, Of<R, Provider>& m) {
  r("name", m.name)("engine", m.engine)("price", m.price_per_hour);
  r("region", m.region)("site", m.site)("class", m.host_class)("labels", m.labels);
  r.added("declared_gpus", m.declared_gpus).added("drain_within_ms", m.drain_within).maybe("until_ms", m.until).added("peer_key", m.peer_key);
  r("registered_ms", m.registered_at);
  std::string inventory;
  if constexpr (!R::reads) inventory = gridctl::to_json(m.inventory);
  r("inventory", inventory);
  if constexpr (R::reads) {
    Result<Inventory> read = parse_inventory(inventory);
    if (!read) r.fail(read.error().message);
    m.inventory = *std::move(read);
  }
}

template <class R>
void fields(R& r, Of<R, Way>& m) {
  r("user", m.user)("host", m.host)("port", m.port)("identities", m.identities)("jump", m.jump)("alias", m.alias);
  r("transport", m.transport);
}

std::string to_json(const Way& way) { return write_record(way); }

Result<Way> parse_way(std::string_view text) {
  return read_record<Way>(text, "the stored way to a host", k_own_rules, Code::state_unreadable);
}

std::string to_json(const Provider& provider) { return write_record(provider); }

Result<Provider> parse_provider(std::string_view text) {
  return read_record<Provider>(text, "the stored provider", k_own_rules, Code::state_unreadable);
}

}  // namespace gridctl::registry
