// SPDX-License-Identifier: Apache-2.0
#include "wire/results.hpp"

#include <nlohmann/json.hpp>

#include "wire/fields.hpp"

namespace gridctl::wire {

using nlohmann::json;

namespace {
ResultsRequest read_request(const Fields& fields) {
  return {fields.job(), fields.epoch(), fields.texts("patterns", k_result_patterns_max), fields.flag("tree")};
}

ResultsReply read_reply(const Fields& fields) {
  return {fields.number("files"), fields.number("bytes"), fields.texts("names", k_result_names_max),
          fields.optional_digest("root"), fields.texts("notes", k_result_notes_max)};
}
}  // namespace

std::string encode(const ResultsRequest& request) {
  return dump({{"op", k_results_operation},
               {"job", request.job.value},
               {"epoch", request.epoch.value},
               {"patterns", request.patterns},
               {"tree", request.tree}});
}

std::string encode(const ResultsReply& reply) {
  json out{{"files", reply.files}, {"bytes", reply.bytes}, {"names", reply.names}, {"notes", reply.notes}};
  out["root"] = reply.root ? json(to_hex(*reply.root)) : json(nullptr);
  return dump(out);
}

Result<ResultsRequest> parse_results(std::string_view text) {
  return parse_request(text, k_results_operation, &read_request);
}

Result<ResultsReply> parse_results_reply(std::string_view text) {
  return parse_message(text, "results reply", &read_reply);
}

}  // namespace gridctl::wire
