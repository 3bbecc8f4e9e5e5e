// SPDX-License-Identifier: Apache-2.0
// Supervises one attempt: launches or adopts the job, follows it to its end, and leaves nothing behind.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "agent/attempt_dir.hpp"
#include "agent/checkpoints.hpp"
#include "agent/engine.hpp"
#include "agent/folder_watch.hpp"
#include "agent/guest_disk.hpp"
#include "agent/guest_receipts.hpp"
#include "agent/job_view.hpp"
#include "agent/ledger.hpp"
#include "agent/log_ring.hpp"
#include "agent/pause.hpp"
#include "agent/prepare.hpp"
#include "agent/stop_clock.hpp"
#include "agent/up_watch.hpp"

namespace gridctl::agent {

class AttemptRunner {
 public:
  AttemptRunner(AttemptDir attempt, os::Clock& clock);
  ~AttemptRunner();
  // Returns when the attempt has ended, or at once if another supervisor has it. Returns the exit status of the
  // process.
  int run();

 private:
  // Describes the state in which an earlier supervisor left the newest launch folder.
  enum class Found { nothing, alive, ended, in_doubt };

  Result<void> begin();  // reads everything, decides nothing
  [[nodiscard]] wire::EndReason why_not_begun(const Error& error);
  // Returns true if its end is known, from an earlier supervisor or an earlier boot: only the conclusion is left.
  [[nodiscard]] bool is_over() const { return status_.end != wire::EndReason::none; }
  Result<void> live();  // up to the end of the payload
  [[nodiscard]] Found examine();
  Result<void> prepare();     // folders and image, on a thread, watching for stop
  Result<void> launch();      // payload_id_ is set when init lives
  Result<void> await_init();  // until init began or provably never will
  void adopt();               // init lives: hold on to it
  void follow();              // until init ended
  void conclude();            // kill what is left, final checkpoint, release, record

  // The following are parts of follow().
  void read_control();
  void keep_limits();
  void keep_owners_limits();
  void keep_shutdown();
  void end_by_host(wire::EndReason why, std::string_view notice, Duration grace);
  void warn_payload(std::string_view reason);
  [[nodiscard]] bool holds_gpus() const { return !pause_.off_gpus(); }
  [[nodiscard]] bool is_paused() const { return pause_.stage != PauseStage::running; }
  void read_tempo();
  void read_phase();
  void read_log();
  void arm_timer();
  void act_on_time();
  void kill_payload();
  void begin_stop(StopStep step);
  void publish();
  void update_lease(bool launching);

  // pausing.cpp
  void read_pause();
  void adopt_pause();
  void leave_pause();
  void say_pause();
  Result<void> pause(bool gpu_only);
  Result<void> resume();
  Result<void> look_at_gpus();
  Result<void> lease_memory();
  Result<void> leave_gpus();
  Result<void> look_for_room();
  Result<void> put_back();
  Result<void> note_pause(PauseStage stage);
  [[nodiscard]] std::vector<os::ProcessId> members();

  // The following are parts of launch() and conclude().
  [[nodiscard]] Result<std::string> get_image();
  [[nodiscard]] Result<LaunchPlan> plan_launch() const;
  void kill_rest();
  void end_what_is_unknown();
  void finish_log();
  void decide_end();
  void release_lease();
  void note_full_disk();
  void final_checkpoint();

  [[nodiscard]] Lease lease() const;
  [[nodiscard]] std::string name() const { return attempt_name(attempt_.job(), attempt_.epoch(), attempt_.agent_home()); }
  [[nodiscard]] bool claim_once() const;  // true: no init can ever begin in the newest launch folder
  [[nodiscard]] bool stop_wanted() const { return stop_.is_stopping(); }
  [[nodiscard]] BootTime now() const { return clock_.boot(); }

  AttemptDir attempt_;
  os::Clock& clock_;
  std::optional<os::FileLock> lock_;
  wire::AttemptSpec spec_;
  wire::AttemptStatus status_;
  JobView view_;
  Ledger ledger_;
  std::unique_ptr<Engine> engine_;
  Prepared prepared_;
  std::vector<Gpu> gpus_;
  std::string image_;
  unsigned launch_ = 0;           // newest launch folder
  std::int64_t interval_ms_ = 0;  // what the job was told last, after its start

  FolderWatch changes_;  // of control and run folder
  os::Fd payload_, log_pipe_, timer_, checkpoints_changed_;
  std::optional<os::ProcessId> payload_id_;
  Path memory_group_;
  std::optional<LogRing> ring_;
  std::optional<CheckpointWatch> checkpoints_;
  std::unique_ptr<UseAccount> account_;    // of a guest's attempt, while its processes live
  std::unique_ptr<DiskWatch> disk_watch_;  // while its processes live
  std::unique_ptr<UpWatch> up_watch_;      // while its processes live
  BootTime owner_look_at_{};               // at limits of the machine's owner
  bool warned_ = false;                    // the job knows that its host ends it
  bool owner_ended_ = false;               // by a limit of the machine's owner, which status_.detail names
  StopClock stop_;
  HostLimits limits_;
  std::optional<BootTime> started_at_;
  std::optional<BootTime> running_since_;  // `run`, after `setup`
  std::optional<BootTime> tell_again_at_;  // the status could not be written
  PauseRecord pause_;
  std::unique_ptr<HelperProcess> pause_helper_;  // that took it off its GPUs
  std::optional<BootTime> harmed_at_;  // the driver failed while it took the job off its GPUs or put it back
  bool nothing_began_ = false;  // it could not be started
  bool image_failed_ = false;   // because of its image
};

// Returns the machine's GPUs with these ids; a missing one is an error. Asks only GPU tools, not the engines.
[[nodiscard]] Result<std::vector<Gpu>> find_gpus(const std::vector<std::string>& uuids);

// Implements `gridctl-agent supervise DIR`.
[[nodiscard]] int run_supervisor(const Path& directory, os::Clock& clock);
// Starts a supervisor in its own session. Returns its pid.
[[nodiscard]] Result<int> spawn_supervisor(const AttemptDir& attempt);

}  // namespace gridctl::agent
