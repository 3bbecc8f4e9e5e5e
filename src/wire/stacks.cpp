// SPDX-License-Identifier: Apache-2.0
#include "wire/stacks.hpp"

#include <nlohmann/json.hpp>

#include "wire/fields.hpp"

namespace gridctl::wire {

namespace {
StacksRequest read_stacks(const Fields& fields) { return {fields.job(), fields.epoch()}; }
}  // namespace

std::string encode(const StacksRequest& request) {
  return dump({{"op", k_stacks_operation}, {"job", request.job.value}, {"epoch", request.epoch.value}});
}

Result<StacksRequest> parse_stacks(std::string_view text) {
  return parse_request(text, k_stacks_operation, &read_stacks);
}

}  // namespace gridctl::wire
