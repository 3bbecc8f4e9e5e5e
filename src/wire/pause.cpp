// SPDX-License-Identifier: Apache-2.0
#include "wire/pause.hpp"

#include "wire/coding.hpp"

namespace gridctl::wire {

template <class R>
void fields(R& r, Of<R, PauseRequest>& m) {
  r("epoch", m.epoch).unless("gpu_only", m.gpu_only, false)("id", m.op)("job", m.job);
  r.unless("resume", m.resume, false);
}

template <class R>
void fields(R& r, Of<R, PauseReply>& m) {
  r("gpu_bytes", m.gpu_bytes)("took_ms", m.took);
}

std::string encode(const PauseRequest& request) { return encode_request(k_pause_operation, request); }
std::string encode(const PauseReply& reply) { return write_record(reply); }
Result<PauseRequest> parse_pause(std::string_view text) { return parse_request<PauseRequest>(text, k_pause_operation); }
Result<PauseReply> parse_pause_reply(std::string_view text) { return parse_message<PauseReply>(text, "pause reply"); }

}  // namespace gridctl::wire
