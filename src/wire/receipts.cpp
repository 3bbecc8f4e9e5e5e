// SPDX-License-Identifier: Apache-2.0
#include "wire/receipts.hpp"

#include "base/rates_record.hpp"
#include "base/record.hpp"
#include "wire/coding.hpp"

namespace gridctl::wire {

template <class R>
void fields(R& r, Of<R, ReceiptAnswer>& m) {
  r("number", m.number)("line", m.line, k_receipt_bytes_max);
}

template <class R>
void fields(R& r, Of<R, ReceiptsRequest>& m) {
  r("key", m.researcher_key)("after", m.after).maybe("accepts", m.accepts)("answers", m.answers, k_receipts_most);
}

template <class R>
void fields(R& r, Of<R, ReceiptsReply>& m) {
  r.maybe("key", m.host_key)("rates", m.rates)("head", m.head)("answered", m.answered);
  r("receipts", m.receipts, k_receipts_most, k_receipt_bytes_max)("pending", m.pending);
}

template <class R>
void fields(R& r, Of<R, UseMark>& m) {
  r("job", m.job)("epoch", m.epoch)("rates", m.rates)("gpus", m.gpus)("cpus_milli", m.cpus_milli)("use", m.use);
  r("began_ms", m.began)("ended_ms", m.ended)("boot_id", m.boot_id)("done", m.done)("seen_up", m.seen_up)("seen_down", m.seen_down);
}

GRIDCTL_REQUEST(ReceiptsRequest, parse_receipts, k_receipts_operation)
GRIDCTL_REPLY(ReceiptsReply, parse_receipts_reply, k_receipts_operation)

std::string encode(const UseMark& mark) { return write_record(mark); }
Result<UseMark> parse_use_mark(std::string_view text) {
  return read_record<UseMark>(text, "the use of an attempt", k_own_rules, Code::state_unreadable);
}
std::string encode(const Rates& rates) { return write_record(rates); }
Result<Rates> parse_stored_rates(std::string_view text) {
  return read_record<Rates>(text, "rates", k_own_rules, Code::state_unreadable);
}

}  // namespace gridctl::wire
