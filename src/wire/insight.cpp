// SPDX-License-Identifier: Apache-2.0
#include "wire/insight.hpp"

#include "wire/coding.hpp"

namespace gridctl::wire {

namespace {
constexpr std::uint64_t k_ranks_max = 1024 * 256;  // members times ranks of one
constexpr std::int64_t k_step_max = 1'000'000'000'000'000;
}  // namespace

template <class R>
void fields(R& r, Of<R, StacksRequest>& m) {
  r("job", m.job)("epoch", m.epoch);
}

template <class R>
void fields(R& r, Of<R, StepsRequest>& m) {
  r("job", m.job)("epoch", m.epoch);
}

template <class R>
void fields(R& r, Of<R, ToldStep>& m) {
  r("rank", m.rank, k_ranks_max)("step", m.step, -k_step_max, k_step_max).maybe("step_s", m.step_s);
}

template <class R>
void fields(R& r, Of<R, StepsReply>& m) {
  r("steps", m.steps, k_steps_max)("log_bytes", m.log_bytes);
}

GRIDCTL_REQUEST(StacksRequest, parse_stacks, k_stacks_operation)
GRIDCTL_REQUEST(StepsRequest, parse_steps, k_steps_operation)
GRIDCTL_REPLY(StepsReply, parse_steps_reply, "steps reply")

}  // namespace gridctl::wire
