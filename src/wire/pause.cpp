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

GRIDCTL_REQUEST(PauseRequest, parse_pause, k_pause_operation)
GRIDCTL_REPLY(PauseReply, parse_pause_reply, "pause reply")

}  // namespace gridctl::wire
