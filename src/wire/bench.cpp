// SPDX-License-Identifier: Apache-2.0
#include "wire/bench.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "wire/fields.hpp"

namespace gridctl::wire {

using nlohmann::json;

namespace {

constexpr std::size_t k_name_max = 64;

// {"name","value"} objects: names from the other side never become keys.
template <class Map>
json values_json(const Map& map) {
  json list = json::array();
  for (const auto& [name, value] : map) list.push_back({{"name", name}, {"value", value}});
  return list;
}
std::pair<std::string, double> read_number(const Fields& fields) {
  return {fields.text("name", k_name_max), fields.real("value")};
}
std::pair<std::string, std::uint64_t> read_whole(const Fields& fields) {
  return {fields.text("name", k_name_max), fields.number("value")};
}
std::pair<std::string, std::string> read_text(const Fields& fields) {
  return {fields.text("name", k_name_max), fields.text("value", k_bench_text_max)};
}
std::pair<std::string, std::string> read_words(const Fields& fields) {
  return {fields.text("name", k_name_max), fields.text("value", k_bench_words_max)};
}
template <class Value>
std::map<std::string, Value> as_map(std::vector<std::pair<std::string, Value>> list) {
  return {std::make_move_iterator(list.begin()), std::make_move_iterator(list.end())};
}

json to_value(const BenchStage& stage) {
  return {{"done", stage.done},
          {"numbers", values_json(stage.numbers)},
          {"texts", values_json(stage.texts)},
          {"words", values_json(stage.words)}};
}

BenchStage read_stage(const Fields& fields) {
  BenchStage stage;
  stage.done = fields.flag("done");
  stage.numbers = as_map(fields.list("numbers", k_bench_values_max, &read_number));
  stage.texts = as_map(fields.list("texts", k_bench_values_max, &read_text));
  stage.words = as_map(fields.list("words", k_bench_values_max, &read_words));
  return stage;
}

BenchDevices read_devices(const Fields& fields) {
  return {fields.list("devices", k_bench_devices_max, &read_stage),
          as_map(fields.list("problems", k_bench_values_max, &read_text))};
}

BenchBegin read_begin(const Fields& fields) {
  BenchBegin begin;
  begin.test = fields.id("test");
  begin.backend = fields.id("backend");
  begin.index = static_cast<std::uint32_t>(fields.number("index", k_bench_devices_max));
  begin.gpu = fields.text("gpu", 256);
  begin.peer = fields.text("peer", 256);
  begin.parameters = as_map(fields.list("parameters", k_bench_values_max, &read_whole));
  begin.deadline = std::min(fields.duration("deadline_ms"), k_bench_stage_max);
  return begin;
}

BenchSeed read_seed(const Fields& fields) { return {fields.number("seed")}; }
BenchHost read_host(const Fields& fields) { return {std::min(fields.duration("part_ms"), k_bench_stage_max)}; }

}  // namespace

double BenchStage::number(const std::string& name) const {
  const auto found = numbers.find(name);
  return found == numbers.end() ? 0 : found->second;
}
std::string BenchStage::text(const std::string& name) const {
  const auto found = texts.find(name);
  return found == texts.end() ? "" : found->second;
}

std::string encode(const BenchStage& stage) { return dump(to_value(stage)); }
std::string encode(const BenchDevices& devices) {
  json list = json::array();
  for (const BenchStage& device : devices.devices) list.push_back(to_value(device));
  return dump({{"devices", std::move(list)}, {"problems", values_json(devices.problems)}});
}
std::string encode(const BenchBegin& begin) {
  return dump({{"op", "bench-begin"},
               {"test", begin.test},
               {"backend", begin.backend},
               {"index", begin.index},
               {"gpu", begin.gpu},
               {"peer", begin.peer},
               {"parameters", values_json(begin.parameters)},
               {"deadline_ms", to_ms(begin.deadline)}});
}
std::string encode(const BenchSeed& seed) { return dump({{"op", "bench-seed"}, {"seed", seed.seed}}); }
std::string encode(const BenchHost& host) { return dump({{"op", "bench-host"}, {"part_ms", to_ms(host.part)}}); }

Result<BenchStage> parse_bench_stage(std::string_view text) {
  return parse_message(text, "a stage of a test", &read_stage);
}
Result<BenchDevices> parse_bench_devices(std::string_view text) {
  return parse_message(text, "a list of devices", &read_devices);
}
Result<BenchBegin> parse_bench_begin(std::string_view text) { return parse_request(text, "bench-begin", &read_begin); }
Result<BenchSeed> parse_bench_seed(std::string_view text) { return parse_request(text, "bench-seed", &read_seed); }
Result<BenchHost> parse_bench_host(std::string_view text) { return parse_request(text, "bench-host", &read_host); }

}  // namespace gridctl::wire
