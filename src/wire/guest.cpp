// SPDX-License-Identifier: Apache-2.0
#include "wire/guest.hpp"

#include "base/names.hpp"
#include "base/record.hpp"

namespace gridctl::wire {

namespace {
constexpr Names<Egress, Egress::none> k_egress{"filtered", "open", "none"};
}  // namespace

std::string_view egress_name(Egress egress) { return k_egress(egress); }
Result<Egress> parse_egress(std::string_view name) {
  for (const Egress one : {Egress::filtered, Egress::open, Egress::none})
    if (egress_name(one) == name) return one;
  return make_error(Code::usage, "egress is filtered, open or none");
}

template <class R>
void fields(R& r, Of<R, GuestTerms>& m) {
  constexpr int k_day = 24 * 60;
  r.id("controller", m.controller.value)("who", m.who).maybe("paused_until_ms", m.paused_until_ms);
  r.maybe("from_minute", m.from_minute).maybe("to_minute", m.to_minute);
  r.word("egress", m.egress, egress_name, parse_egress)("reclaim", m.reclaim);
  r.check(m.from_minute.value_or(0) < k_day && m.to_minute.value_or(0) < k_day, "hours beyond a day");
}

bool GuestTerms::is_open_at(int minute) const {
  if (!from_minute || !to_minute || *from_minute == *to_minute) return true;
  const bool after = minute >= *from_minute, before = minute < *to_minute;
  return *from_minute < *to_minute ? after && before : after || before;
}

std::string encode(const GuestTerms& terms) { return write_record(terms); }
Result<GuestTerms> parse_guest_terms(std::string_view text) {
  return read_record<GuestTerms>(text, "terms of a lent host", k_lenient_rules, Code::state_unreadable);
}

}  // namespace gridctl::wire
