// SPDX-License-Identifier: Apache-2.0
// The simulated process that supervises one attempt: the agent's own StopClock and judge_end, in the order of its real
// supervisor (agent/supervise.cpp, follow.cpp, conclude.cpp). It may be killed between any two of its acts.
#pragma once

#include "host.hpp"

namespace gridctl::sim {

class Supervision {
 public:
  Supervision(Host& host, Host::Key key, std::uint64_t pid) : host_(host), key_(std::move(key)), pid_(pid) {}

  // Each of these is one turn of the process; a kill inside ends it quietly.
  void begin();
  void control_changed();
  void payload_ended();
  void timer();
  void prepared();
  void look_for_checkpoint();

  [[nodiscard]] std::uint64_t pid() const { return pid_; }

 private:
  enum class Stage : std::uint8_t { born, preparing, launching, following, concluding, gone };

  template <class Act>
  void turn(Act act);
  void kill_point();
  [[nodiscard]] Folder& folder() { return *host_.folder(key_); }
  [[nodiscard]] bool payload_lives();
  void live();
  void prepare();
  void launch();
  void init_begins(std::size_t launch);
  void follow();
  void read_control();
  void keep_limits();
  void act(agent::StopStep step);
  void kill_payload();
  void arm_timer();
  void publish();
  void write_status();
  void snapshot();
  void take_left();
  void take(wire::HostCheckpoint checkpoint, Content content);
  void conclude();
  void give_back();
  void keep_last();
  [[nodiscard]] Fate pass(Point point);
  void write_end(int tries);
  [[nodiscard]] Result<void> update_lease(bool launching);
  // Runs `work` as a later turn of this very process.
  void later(Nanos delay, void (Supervision::*what)());

  Host& host_;
  const Host::Key key_;
  const std::uint64_t pid_;
  Stage stage_ = Stage::born;
  bool untold_ = false;  // the status could not be written
  wire::AttemptStatus status_;
  agent::StopClock clock_;
  std::uint64_t timer_ = 0;
};

}  // namespace gridctl::sim
