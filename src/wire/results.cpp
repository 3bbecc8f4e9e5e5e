// SPDX-License-Identifier: Apache-2.0
#include "wire/results.hpp"

#include "wire/coding.hpp"

namespace gridctl::wire {

template <class R>
void fields(R& r, Of<R, ResultsRequest>& m) {
  r("job", m.job)("epoch", m.epoch)("patterns", m.patterns, k_result_patterns_max)("tree", m.tree);
}

template <class R>
void fields(R& r, Of<R, ResultsReply>& m) {
  r("files", m.files)("bytes", m.bytes)("names", m.names, k_result_names_max).null_or("root", m.root);
  r("notes", m.notes, k_result_notes_max);
}

std::string encode(const ResultsRequest& m) { return encode_request(k_results_operation, m); }
std::string encode(const ResultsReply& m) { return write_record(m); }

Result<ResultsRequest> parse_results(std::string_view text) {
  return parse_request<ResultsRequest>(text, k_results_operation);
}
Result<ResultsReply> parse_results_reply(std::string_view text) {
  return parse_message<ResultsReply>(text, "results reply");
}

}  // namespace gridctl::wire
