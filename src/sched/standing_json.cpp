// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "sched/standing.hpp"

namespace gridctl::sched {

using nlohmann::json;

namespace {
constexpr std::size_t k_units_max = 1024;  // GPUs of one host and the host

UnitState read_state(const std::string& name) {
  for (const UnitState state : {UnitState::quarantined, UnitState::probation})
    if (name == unit_state_name(state)) return state;
  return UnitState::ok;
}

UnitStanding read_unit(const json& from) {
  UnitStanding unit;
  unit.state = read_state(from.at("state").get<std::string>());
  unit.code = from.at("code").get<std::string>();
  unit.text = from.at("text").get<std::string>();
  unit.since.ms = from.at("since_ms").get<std::int64_t>();
  unit.until.ms = from.at("until_ms").get<std::int64_t>();
  unit.strikes = from.at("strikes").get<int>();
  unit.struck_at.ms = from.at("struck_ms").get<std::int64_t>();
  unit.clean = from.at("clean").get<int>();
  unit.doubts = from.at("doubts").get<int>();
  return unit;
}
}  // namespace

std::string to_json(const HostStanding& standing) {
  json units = json::object();
  for (const auto& [name, unit] : standing.units)
    units[name] = {{"state", unit_state_name(unit.state)},
                   {"code", unit.code},
                   {"text", unit.text},
                   {"since_ms", unit.since.ms},
                   {"until_ms", unit.until.ms},
                   {"strikes", unit.strikes},
                   {"struck_ms", unit.struck_at.ms},
                   {"clean", unit.clean},
                   {"doubts", unit.doubts}};
  const json whole = {{"units", std::move(units)},
                      {"boot_id", standing.boot_id},
                      {"log_us", standing.log_us},
                      {"busy", standing.busy},
                      {"noted", standing.noted},
                      {"uncorrected", standing.uncorrected},
                      {"file_system_errors", standing.file_system_errors},
                      {"clock_base_ms", standing.clock_base_ms}};
  return whole.dump(-1, ' ', false, json::error_handler_t::replace);
}

Result<HostStanding> parse_standing(std::string_view text) {
  HostStanding standing;
  try {
    const json from = json::parse(text);
    if (from.at("units").size() > k_units_max)
      return make_error(Code::protocol_violation, "a host's standing names too many GPUs");
    for (const auto& [name, unit] : from.at("units").items()) standing.units[name] = read_unit(unit);
    standing.boot_id = from.at("boot_id").get<std::string>();
    standing.log_us = from.at("log_us").get<std::uint64_t>();
    standing.busy = from.at("busy").get<std::map<std::string, std::string>>();
    standing.noted = from.at("noted").get<std::set<std::string>>();
    standing.uncorrected = from.at("uncorrected").get<std::map<std::string, std::uint64_t>>();
    standing.file_system_errors = from.at("file_system_errors").get<std::uint64_t>();
    standing.clock_base_ms = from.at("clock_base_ms").get<std::int64_t>();
  } catch (const json::exception& problem) {
    return make_error(Code::protocol_violation, std::string("a host's standing cannot be read: ") + problem.what());
  }
  return standing;
}

}  // namespace gridctl::sched
