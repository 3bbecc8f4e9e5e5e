// SPDX-License-Identifier: Apache-2.0
// Describes a service's present state: what the registry says about its replicas, and what its gateway says about their
// answers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cmd/context.hpp"
#include "control/serve/balancer_text.hpp"
#include "control/serve/gateway_files.hpp"
#include "registry/job_records.hpp"

namespace gridctl::cmd {

struct ReplicaNow {
  registry::JobRow job;
  std::optional<control::ServerLine> told{};  // nullopt: the gateway says nothing of it
  std::string unfit{};                        // why the probe's command says no; empty: it does not
  [[nodiscard]] bool is_ready() const { return told && told->is_up(); }
  [[nodiscard]] std::string words() const;  // "ready", "starting", "not ready: L4CON", …
};
struct ServiceNow {
  registry::Job leader;  // the first replica
  std::optional<control::GatewayInfo> gateway;
  std::vector<ReplicaNow> replicas;  // by number; those that were not made yet are missing
  std::optional<control::ServerLine> all;
  [[nodiscard]] int wanted() const;       // replicas, now
  [[nodiscard]] std::string url() const;  // empty: nobody answers there
  [[nodiscard]] int ready() const;
};
// Finds a service by its name or id, or by those of a replica. not_found if it is not a service.
[[nodiscard]] Result<JobId> resolve_service(registry::JobRecords& registry, const std::string& name);
[[nodiscard]] Result<ServiceNow> service_now(Context& context, registry::JobRecords& registry, const JobId& id);
// Sends commands to its HAProxy.
[[nodiscard]] Result<std::string> ask_service(Context& context, const JobId& id, const std::string& command);

}  // namespace gridctl::cmd
