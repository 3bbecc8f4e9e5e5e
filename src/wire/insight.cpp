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

std::string encode(const StacksRequest& m) { return encode_request(k_stacks_operation, m); }
std::string encode(const StepsRequest& m) { return encode_request(k_steps_operation, m); }
std::string encode(const StepsReply& m) { return write_record(m); }

Result<StacksRequest> parse_stacks(std::string_view text) {
  return parse_request<StacksRequest>(text, k_stacks_operation);
}
Result<StepsRequest> parse_steps(std::string_view text) { return parse_request<StepsRequest>(text, k_steps_operation); }
Result<StepsReply> parse_steps_reply(std::string_view text) { return parse_message<StepsReply>(text, "steps reply"); }

}  // namespace gridctl::wire
