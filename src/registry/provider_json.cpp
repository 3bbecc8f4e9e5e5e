// SPDX-License-Identifier: Apache-2.0
#include "registry/provider_json.hpp"

#include <nlohmann/json.hpp>

namespace gridctl::registry {

using nlohmann::json;

std::string to_json(const Provider& p) {
  const json out{{"name", p.name.value},
                 {"address", p.address},
                 {"user", p.user},
                 {"host", p.host},
                 {"port", p.port},
                 {"identities", p.identities},
                 {"jump", p.jump},
                 {"alias", p.alias},
                 {"transport", p.transport},
                 {"engine", p.engine},
                 {"price", p.price_per_hour},
                 {"region", p.region},
                 {"site", p.site},
                 {"class", p.host_class},
                 {"labels", p.labels},
                 {"declared_gpus", p.declared_gpus},
                 {"drain_within_ms", std::chrono::duration_cast<std::chrono::milliseconds>(p.drain_within).count()},
                 {"registered_ms", p.registered_at.ms},
                 {"inventory", gridctl::to_json(p.inventory)}};
  return out.dump(-1, ' ', false, json::error_handler_t::replace);
}

Result<Provider> parse_provider(std::string_view text) {
  try {
    const json in = json::parse(text);
    Provider p;
    p.name = {in.at("name").get<std::string>()};
    p.address = in.at("address").get<std::string>();
    p.user = in.at("user").get<std::string>();
    p.host = in.at("host").get<std::string>();
    p.port = in.at("port").get<int>();
    p.identities = in.at("identities").get<std::vector<std::string>>();
    p.jump = in.at("jump").get<std::string>();
    p.alias = in.at("alias").get<std::string>();
    p.transport = in.at("transport").get<std::string>();
    p.engine = in.at("engine").get<std::string>();
    p.price_per_hour = in.at("price").get<double>();
    p.region = in.at("region").get<std::string>();
    p.site = in.at("site").get<std::string>();
    p.host_class = in.at("class").get<std::string>();
    p.labels = in.at("labels").get<std::map<std::string, std::string>>();
    p.declared_gpus = in.value("declared_gpus", "");
    if (in.contains("drain_within_ms"))  // later than version 1 of the schema
      p.drain_within = std::chrono::milliseconds{in.at("drain_within_ms").get<std::int64_t>()};
    p.registered_at = {in.at("registered_ms").get<std::int64_t>()};
    TRY_ASSIGN(p.inventory, parse_inventory(in.at("inventory").get<std::string>()));
    return p;
  } catch (const json::exception& e) {
    return make_error(Code::state_unreadable, std::string("a stored provider cannot be read: ") + e.what());
  }
}

}  // namespace gridctl::registry
