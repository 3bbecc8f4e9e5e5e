// SPDX-License-Identifier: Apache-2.0
#include "control/daemon/gateways.hpp"

#include "control/fleet/fleet.hpp"
#include "control/serve/gateway_files.hpp"
#include "os/process.hpp"

namespace gridctl::control {

namespace {
constexpr Duration k_gateway_look = std::chrono::milliseconds{500};
constexpr Duration k_gateway_again = std::chrono::seconds{2};  // after a start, which may have come to nothing
}  // namespace

Gateways::Gateways(os::Executor& run, os::Clock& clock, const JobBook& jobs, Paths paths)
    : clock_(clock), jobs_(jobs), paths_(std::move(paths)) {
  timer_ = run.every(k_gateway_look, [this] { tick(); });
}

void Gateways::tick() {
  for (const auto& [id, job] : jobs_.all())
    if (job->spec().service && job->spec().twin_of.value.empty() && job->in<job::Done>() == nullptr &&
        !gateway_lives(gateway_files(paths_, job->id())))
      start(job->id());
}

void Gateways::start(const JobId& service) {
  const BootTime now = clock_.boot();
  const auto [last, first] = started_.try_emplace(service.value, now);
  if (!first && now - last->second < k_gateway_again) return;
  last->second = now;
  const Result<os::Path> self = os::executable_path();
  os::SpawnOptions options;
  options.detach = true;
  options.new_session = true;
  const Result<int> pid =
      self ? os::spawn({self->string(), "__gateway", service.value, "--state", paths_.root.string()}, options) : Result<int>(self.error());
  if (!pid) report(pid.error(), "while starting the gateway of a service");
}

}  // namespace gridctl::control
