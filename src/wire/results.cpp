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

GRIDCTL_REQUEST(ResultsRequest, parse_results, k_results_operation)
GRIDCTL_REPLY(ResultsReply, parse_results_reply, "results reply")

}  // namespace gridctl::wire
