// SPDX-License-Identifier: Apache-2.0
// The part of the registry that is about hosts: as they are registered, were seen, and were measured.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "registry/hosts.hpp"
#include "registry/records.hpp"

namespace gridctl::registry {

class HostRecords {
 public:
  virtual ~HostRecords() = default;

  [[nodiscard]] virtual Result<ControllerId> controller_id() = 0;  // by which hosts know this state directory
  // Makes everything that `writes` writes one transaction: each of its own costs a synced file.
  [[nodiscard]] virtual Result<void> together(const std::function<Result<void>()>& writes) = 0;
  [[nodiscard]] virtual Result<void> add_provider(const Provider& provider) = 0;  // exists when the name is taken
  [[nodiscard]] virtual Result<void> update_provider(const Provider& provider) = 0;
  [[nodiscard]] virtual Result<void> set_liveness(const HostName& name, const std::string& liveness,
                                                  std::optional<WallTime> seen) = 0;
  [[nodiscard]] virtual Result<void> remove_provider(const HostName& name) = 0;
  [[nodiscard]] virtual Result<Provider> provider(const HostName& name) = 0;  // not_found names the nearest
  [[nodiscard]] virtual Result<std::vector<Provider>> providers() = 0;  // by name
  // Returns the providers that `wanted` takes, by name, with as much of their inventories as queries and listings need.
  // Ten thousand take some 30 ms. `wanted` may add to the figures of the providers that it takes.
  [[nodiscard]] virtual Result<std::vector<Provider>> rows(const std::function<bool(Provider&)>& wanted) = 0;
  // Keeps the others. nullopt forgets one. Names are words.
  [[nodiscard]] virtual Result<void> save_figures(const HostName& name,
                                                  const std::map<std::string, std::optional<double>>& figures) = 0;
  // Jobs that have something on this host (current attempt or loose end).
  [[nodiscard]] virtual Result<std::vector<JobId>> jobs_on(const HostName& name) = 0;
  // The oldest beyond k_host_events_max go.
  [[nodiscard]] virtual Result<void> add_host_event(const HostEvent& event) = 0;
  // The newest `limit` (0 = all kept), oldest first; of all hosts when `name` is empty.
  [[nodiscard]] virtual Result<std::vector<HostEvent>> host_events(const HostName& name, std::size_t limit) = 0;
  // Replaces the former one of its kind.
  [[nodiscard]] virtual Result<void> save_host_report(const HostReport& report) = 0;
  [[nodiscard]] virtual Result<std::optional<HostReport>> host_report(const HostName& name,
                                                                      const std::string& kind) = 0;
  // Returns those of every host, by name.
  [[nodiscard]] virtual Result<std::vector<HostReport>> host_reports(const std::string& kind) = 0;
  // Inserts the span, or replaces the one with the same beginning; the oldest beyond k_host_spans_max go.
  [[nodiscard]] virtual Result<void> save_host_span(const HostSpan& span) = 0;
  [[nodiscard]] virtual Result<std::vector<HostSpan>> host_spans(const HostName& name) = 0;  // oldest first
  // Keeps the former value of what `link` leaves out.
  [[nodiscard]] virtual Result<void> save_link(const HostLink& link) = 0;
  [[nodiscard]] virtual Result<std::vector<HostLink>> links() = 0;
};

}  // namespace gridctl::registry
