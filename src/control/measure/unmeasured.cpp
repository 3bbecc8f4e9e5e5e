// SPDX-License-Identifier: Apache-2.0
#include "control/measure/unmeasured.hpp"

#include "base/record.hpp"

namespace gridctl::control {

namespace {
constexpr std::string_view k_unmeasured_report = "unmeasured", k_unmeasured_event = "bench";

struct Unmeasured {
  std::string why;
};
template <class R>
void fields(R& r, Of<R, Unmeasured>& m) {
  r("why", m.why);
}
}  // namespace

Result<void> save_unmeasured(registry::HostRecords& records, const HostName& name, const std::string& why, WallTime at) {
  TRY(records.save_host_report({name, std::string(k_unmeasured_report), at, write_record(Unmeasured{why})}));
  return records.add_host_event({0, name, at, std::string(k_unmeasured_event),
                                 "not measured before its first job: " + why + "; jobs use its GPUs all the same"});
}

Result<std::map<std::string, std::string>> load_unmeasured(registry::HostRecords& records) {
  TRY_ASSIGN(const auto reports, records.host_reports(std::string(k_unmeasured_report)));
  std::map<std::string, std::string> found;
  for (const registry::HostReport& one : reports) {
    const auto read = read_record<Unmeasured>(one.body, "why a host was not measured", k_lenient_rules, Code::state_unreadable);
    found[one.provider.value] = read ? read->why : "";
  }
  return found;
}

}  // namespace gridctl::control
