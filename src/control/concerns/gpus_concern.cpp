// SPDX-License-Identifier: Apache-2.0
// Moves a job whose GPU is gone from its last checkpoint; it would wait for ever otherwise.
#include <algorithm>

#include "control/concerns/table.hpp"
#include "os/log.hpp"

namespace gridctl::control {

namespace {

class GpusConcern : public Concern {
 public:
  explicit GpusConcern(const Controls& controls) : controls_(controls) {}

  void gpu_lost(const FleetHost& host, const std::string& gpu, const std::string& why) override {
    const HostName name = host.provider.name;
    controls_.book.each_placed([&](TrackedJob& job) {
      const auto* running = job.in<job::Running>();
      if (running == nullptr) return;
      const bool is_used = std::ranges::any_of(running->attempt.members, [&](const job::Member& member) {
        return member.host == name && std::ranges::count(member.gpu_uuids, gpu) > 0;
      });
      if (!is_used) return;
      os::log(os::LogLevel::info, "job " + job.id().value + " leaves " + name.value + ": " + gpu + ": " + why);
      controls_.mover.ask(job, {.why = "gpu_gone", .host = name, .at_once = true});
    });
  }

 private:
  const Controls controls_;
};

}  // namespace

std::unique_ptr<Concern> make_gpus(const Controls& controls) { return std::make_unique<GpusConcern>(controls); }

}  // namespace gridctl::control
