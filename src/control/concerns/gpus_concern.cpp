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
      const auto uses = [&](const job::Member& member) {
        return member.host == name &&
               std::find(member.gpu_uuids.begin(), member.gpu_uuids.end(), gpu) != member.gpu_uuids.end();
      };
      const auto& members = running->attempt.members;
      if (std::none_of(members.begin(), members.end(), uses)) return;
      os::log(os::LogLevel::info, "job " + job.id().value + " leaves " + name.value + ": " + gpu + ": " + why);
      MoveWish wish{std::string("gpu_gone")};
      wish.host = name;
      wish.at_once = true;
      controls_.mover.ask(job, wish);
    });
  }

 private:
  const Controls controls_;
};

}  // namespace

std::unique_ptr<Concern> make_gpus(const Controls& controls) { return std::make_unique<GpusConcern>(controls); }

}  // namespace gridctl::control
