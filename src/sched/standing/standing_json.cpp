// SPDX-License-Identifier: Apache-2.0
#include "base/record.hpp"
#include "sched/standing/standing.hpp"

namespace gridctl::sched {

namespace {
constexpr std::size_t k_units_max = 1024;  // GPUs of one host and the host
}

template <class R>
void fields(R& r, Of<R, UnitStanding>& m) {
  r.word_or("state", m.state, unit_state_name, scan(unit_state_name, UnitState::probation), UnitState::ok);
  r("code", m.code)("text", m.text)("since_ms", m.since)("until_ms", m.until)("strikes", m.strikes);
  r("struck_ms", m.struck_at)("clean", m.clean)("doubts", m.doubts);
}

template <class R>
void fields(R& r, Of<R, HostStanding>& m) {
  r("units", m.units, k_units_max)("boot_id", m.boot_id)("log_us", m.log_us)("busy", m.busy)("noted", m.noted);
  r("uncorrected", m.uncorrected)("file_system_errors", m.file_system_errors)("clock_base_ms", m.clock_base_ms);
}

std::string to_json(const HostStanding& standing) { return write_record(standing); }

Result<HostStanding> parse_standing(std::string_view text) {
  return read_record<HostStanding>(text, "the host's stored standing", k_own_rules, Code::protocol_violation);
}

}  // namespace gridctl::sched
