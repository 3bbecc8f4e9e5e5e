// SPDX-License-Identifier: Apache-2.0
// Runs the command of a probe in a replica again and again, to decide whether the replica may get requests. For the
// loop's thread.
#pragma once

#include <cstdint>
#include <string>

#include "base/ids.hpp"
#include "control/serve/replica_way.hpp"
#include "job/service.hpp"
#include "os/loop.hpp"

namespace gridctl::control {

// Two runs in a row decide: a replica is fit after two that exit with 0, and unfit after two that do not. Pure.
class CommandVerdict {
 public:
  void passed();
  void failed(const std::string& why);
  // Returns why the replica gets no requests, for people; empty: it may get them.
  [[nodiscard]] const std::string& unfit() const { return unfit_; }

 private:
  std::string unfit_ = "the probe's command has not passed twice yet";
  int passes_ = 0, failures_ = 0;
};
// Describes an exit for people, with the last line that the command printed: "exit code 1: model is loading".
[[nodiscard]] std::string probe_failure(const wire::StreamEnd& end, std::string_view output);

class CommandProbe {
 public:
  // Does nothing when `service` has no command.
  CommandProbe(os::Loop& loop, const job::Service& service, ReplicaWay& way);
  CommandProbe(const CommandProbe&) = delete;
  CommandProbe& operator=(const CommandProbe&) = delete;

  void tick(BootTime now);
  [[nodiscard]] const std::string& unfit() const { return has_command() ? verdict_.unfit() : k_fit; }

 private:
  static const inline std::string k_fit{};
  [[nodiscard]] bool has_command() const { return !service_.probe_command.empty(); }
  void start(BootTime now);
  void give_up();
  void read_output();

  os::Loop& loop_;
  const job::Service& service_;
  ReplicaWay& way_;
  CommandVerdict verdict_;
  Epoch epoch_{};
  std::uint64_t run_ = 0;  // counts the runs: a late end is told from that of the present one
  std::uint32_t stream_ = 0;  // of the run under way; 0: none
  BootTime started_{};
  os::Fd output_;
  os::Loop::Watch output_watch_;
  std::string said_;  // the end of what the run has printed
};

}  // namespace gridctl::control
