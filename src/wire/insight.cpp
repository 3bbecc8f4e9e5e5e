// SPDX-License-Identifier: Apache-2.0
#include "wire/insight.hpp"

#include <nlohmann/json.hpp>

#include "wire/fields.hpp"

namespace gridctl::wire {

using nlohmann::json;

namespace {
constexpr std::uint64_t k_ranks_max = 1024 * 256;  // members times ranks of one
constexpr std::int64_t k_step_max = 1'000'000'000'000'000;

StacksRequest read_stacks(const Fields& fields) { return {fields.job(), fields.epoch()}; }
StepsRequest read_steps(const Fields& fields) { return {fields.job(), fields.epoch()}; }

ToldStep read_step(const Fields& fields) {
  ToldStep step{static_cast<std::uint32_t>(fields.number("rank", k_ranks_max)),
                fields.integer("step", -k_step_max, k_step_max), std::nullopt};
  if (fields.has("step_s")) step.step_s = fields.real("step_s");
  return step;
}

StepsReply read_steps_reply(const Fields& fields) {
  return {fields.list("steps", k_steps_max, &read_step), fields.number("log_bytes")};
}
}  // namespace

std::string encode(const StacksRequest& request) {
  return dump({{"op", k_stacks_operation}, {"job", request.job.value}, {"epoch", request.epoch.value}});
}

std::string encode(const StepsRequest& request) {
  return dump({{"op", k_steps_operation}, {"job", request.job.value}, {"epoch", request.epoch.value}});
}

std::string encode(const StepsReply& reply) {
  json steps = json::array();
  for (const ToldStep& step : reply.steps) {
    json one{{"rank", step.rank}, {"step", step.step}};
    if (step.step_s) one["step_s"] = *step.step_s;
    steps.push_back(std::move(one));
  }
  return dump({{"steps", std::move(steps)}, {"log_bytes", reply.log_bytes}});
}

Result<StacksRequest> parse_stacks(std::string_view text) {
  return parse_request(text, k_stacks_operation, &read_stacks);
}

Result<StepsRequest> parse_steps(std::string_view text) { return parse_request(text, k_steps_operation, &read_steps); }

Result<StepsReply> parse_steps_reply(std::string_view text) {
  return parse_message(text, "steps reply", &read_steps_reply);
}

}  // namespace gridctl::wire
