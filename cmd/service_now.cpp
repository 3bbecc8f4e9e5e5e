// SPDX-License-Identifier: Apache-2.0
#include "cmd/service_now.hpp"

#include <fcntl.h>

#include <algorithm>

#include "base/text.hpp"
#include "control/serve/balancer.hpp"
#include "os/files.hpp"

namespace gridctl::cmd {

namespace {
// HAProxy's word for the result of a probe: "L7STS/503", "L7RSP", "L4CON", "L7TOUT".
std::string probe_words(std::string_view probe, const JobId& replica) {
  if (probe.empty() || probe == "INI") return "not probed yet";
  if (probe.starts_with("L7STS/")) return "not ready, the probe is answered with status " + std::string(probe.substr(6));
  if (probe.starts_with("L7TOUT") || probe.starts_with("L4TOUT")) return "not ready, no answer within the probe's timeout";
  if (probe.starts_with("L7RSP") || probe.starts_with("L4CON"))
    return "not ready, no HTTP server answers at its port; see gridctl job logs " + replica.value;
  return "not ready, the probe says " + std::string(probe);
}
}  // namespace

std::string ReplicaNow::words() const {
  if (is_ready()) return told->status == "UP" ? "ready" : "ready, one probe failed";
  if (job.state != job::JobState::running) return "not running";
  if (!told) return "the gateway does not answer";
  if (told->status.starts_with("MAINT")) return "no way to it yet";
  if (!unfit.empty()) return "not ready, " + sanitize(unfit);
  if (told->status.starts_with("DRAIN")) return "finishes its requests";
  return probe_words(told->probe, job.id);
}

std::string ServiceNow::url() const { return gateway && gateway->port != 0 ? control::gateway_url(*gateway) : ""; }

int ServiceNow::wanted() const {
  return leader.spec.service->replicas_min > 0 && gateway && gateway->wanted > 0 ? gateway->wanted : leader.spec.twins;
}

int ServiceNow::ready() const {
  return static_cast<int>(std::ranges::count_if(replicas, [](const ReplicaNow& one) { return one.is_ready(); }));
}

Result<JobId> resolve_service(registry::JobRecords& registry, const std::string& name) {
  TRY_ASSIGN(const JobId id, registry.resolve(name));
  TRY_ASSIGN(const registry::Job job, registry.job(id));
  if (!job.spec.service)
    return make_error(Code::not_found,
                      "job " + job.name + " (" + id.value + ") is not a service: its file has no 'service'",
                      "gridctl service ls");
  return job.spec.twin_of.value.empty() ? id : job.spec.twin_of;
}

Result<std::string> ask_service(Context& context, const JobId& id, const std::string& command) {
  const control::GatewayFiles files = control::gateway_files(context.paths(), id);
  TRY_ASSIGN(const os::Fd folder, os::open_file(files.folder, O_PATH | O_DIRECTORY));
  // The path of a socket is limited to 107 bytes, and that of a state directory is sometimes longer.
  const os::Path socket = "/proc/self/fd/" + std::to_string(folder.get()) + "/" + std::string(control::k_admin_socket);
  return control::ask_balancer(socket, command, context.clock);
}

Result<ServiceNow> service_now(Context& context, registry::JobRecords& registry, const JobId& id) {
  TRY_ASSIGN(registry::Job leader, registry.job(id));
  ServiceNow now{std::move(leader), {}, {}, {}};
  const control::GatewayFiles files = control::gateway_files(context.paths(), id);
  now.gateway = control::read_gateway(files);
  std::vector<control::ServerLine> lines;
  if (control::gateway_lives(files)) {
    const Result<std::string> stats = ask_service(context, id, "show stat");
    if (stats) lines = control::parse_stats(*stats);
  } else if (now.gateway && now.gateway->trouble.empty()) {
    now.gateway.reset();
  }
  const auto line = [&](const std::string& name) {
    const auto found = std::ranges::find(lines, name, &control::ServerLine::name);
    return found == lines.end() ? std::nullopt : std::optional(*found);
  };
  now.all = line("BACKEND");
  const auto replica = [&](registry::JobRow row, unsigned number) {
    ReplicaNow one{std::move(row), line(control::server_name(static_cast<int>(number)))};
    if (one.told && now.gateway && number <= now.gateway->replicas.size()) one.unfit = now.gateway->replicas[number - 1].unfit;
    return one;
  };
  now.replicas.push_back(replica(now.leader, 1));
  TRY_ASSIGN(const std::vector<registry::JobRow> twins, registry.twins(id));
  for (const registry::JobRow& twin : twins)
    if (registry::twin_number(twin.id) <= static_cast<unsigned>(now.wanted()) || !job::is_final(twin.state))
      now.replicas.push_back(replica(twin, static_cast<unsigned>(registry::twin_number(twin.id))));
  return now;
}

}  // namespace gridctl::cmd
