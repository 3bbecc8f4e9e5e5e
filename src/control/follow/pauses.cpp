// SPDX-License-Identifier: Apache-2.0
#include "control/follow/pauses.hpp"

#include "control/reach/request.hpp"

namespace gridctl::control {

namespace {
constexpr std::uint32_t k_pause_stream = 2;
constexpr Duration k_connect_wait = std::chrono::seconds{30};
constexpr const char* k_report_kind = "pause";
constexpr const char* k_paused_body = "{\"paused\":true}";
constexpr const char* k_released_body = "{\"paused\":false}";
}  // namespace

Result<wire::PauseReply> pause_on(const HostAccess& host, const wire::PauseRequest& request) {
  os::Clock& clock = *host.clock;
  TRY_ASSIGN(const auto link, host.open(k_connect_wait));
  TRY_ASSIGN(const std::string reply,
             ask(*link, k_pause_stream, wire::encode(request), clock.boot() + wire::k_pause_wait_max + k_connect_wait));
  return wire::parse_pause_reply(reply);
}

job::Record paused_in_place(const job::Attempt& attempt, const HostName& host) {
  return {"paused", "paused on " + host.value + ": its state stays in the memory there", attempt.epoch, host};
}

job::Record resumed_in_place(const job::Attempt& attempt, const HostName& host) {
  return {"resumed_in_place", "resumed on " + host.value + ", where it was paused", attempt.epoch, host};
}

Result<void> set_host_paused(registry::HostRecords& records, const HostName& name, bool paused, WallTime at) {
  return records.save_host_report({name, k_report_kind, at, paused ? k_paused_body : k_released_body});
}

Result<void> apply_pauses(registry::HostRecords& records, std::vector<sched::HostFacts>& hosts) {
  TRY_ASSIGN(const auto reports, records.host_reports(k_report_kind));
  for (const registry::HostReport& report : reports) {
    if (report.body != k_paused_body) continue;
    for (sched::HostFacts& host : hosts)
      if (host.name == report.provider && host.quarantined.empty())
        host.quarantined = "it is paused; `gridctl provider unpause " + host.name.value + "` releases it";
  }
  return {};
}

}  // namespace gridctl::control
