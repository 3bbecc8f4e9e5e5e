// SPDX-License-Identifier: Apache-2.0
// Keeps what hosts last reported about the use of running jobs, with the last minutes of it. In memory; loop thread
// only.
#pragma once

#include <map>
#include <string>

#include "control/fleet/fleet.hpp"
#include "control/follow/job_book.hpp"
#include "registry/use.hpp"

namespace gridctl::control {

class UseBook : public FleetListener, public JobListener {
 public:
  UseBook(os::Clock& clock, Fleet& fleet, JobBook& jobs);
  void polled(const FleetHost& host, const wire::PollReply& reply) override;
  void changed(const TrackedJob& job, const job::State& before) override;
  void forgotten(const JobId& id) override { jobs_.erase(id.value); }

  [[nodiscard]] registry::UseNow now() const;
  [[nodiscard]] std::uint64_t version() const { return version_; }  // grows with each measurement

 private:
  os::Clock& clock_;
  const JobBook& book_;
  std::map<std::string, registry::JobUse> jobs_;
  std::map<std::string, registry::HostLoad> hosts_;
  std::uint64_t version_ = 0;
};

}  // namespace gridctl::control
