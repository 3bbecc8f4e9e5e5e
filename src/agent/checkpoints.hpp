// SPDX-License-Identifier: Apache-2.0
// Watches the checkpoint directory of a running attempt on its own thread and keeps snapshots of it in snap/N.
#pragma once

#include <atomic>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "agent/job_view.hpp"
#include "os/clock.hpp"
#include "os/mutex.hpp"
#include "store/snapshot.hpp"
#include "whole/stall.hpp"
#include "whole/watch.hpp"

namespace gridctl::agent {

// Describes a snapshot in snap/NUMBER: files/ manifest info.
struct HeldSnapshot {
  wire::HostCheckpoint checkpoint;  // age_ms is not filled in
  BootTime taken_at;
};
[[nodiscard]] Path snapshot_files(const AttemptDir& attempt, std::uint64_t number);
[[nodiscard]] Path snapshot_manifest(const AttemptDir& attempt, std::uint64_t number);
// Returns complete snapshots, ascending; with `tidy`, removes unfinished ones.
[[nodiscard]] std::vector<HeldSnapshot> held_snapshots(const AttemptDir& attempt, bool tidy);

// Reports about snapshot `of` are differences to these bases: they stay, while there is room, until `of` itself is old.
// More calls add bases for the same one.
[[nodiscard]] Result<void> note_bases(const AttemptDir& attempt, std::uint64_t of, std::set<std::uint64_t> bases);

class CheckpointWatch {
 public:
  // `changed_fd` is an eventfd, written when list() or problem() changed. All arguments outlive this.
  CheckpointWatch(const AttemptDir& attempt, const wire::AttemptSpec& spec, JobView view, os::Clock& clock,
                  int changed_fd);
  ~CheckpointWatch();

  // Marks the present content as restored and not new. Call this before the job starts, which may save at once. Without
  // it, after another supervisor's death, old content is recognised by its root.
  void restored();
  void start();
  // Stops the thread; then takes the last snapshot of what is complete, and one of everything there, in any state, if
  // that is more. Waits for it.
  void finish(whole::Writer writer);
  void release(std::uint64_t kept_from);
  void set_pause(Duration pause) { pause_ = pause; }  // between two snapshots
  void set_interval(Duration interval) { interval_ = interval; }  // at which the job is told to save
  [[nodiscard]] std::vector<wire::HostCheckpoint> list() const;
  [[nodiscard]] std::string problem() const;  // empty = none
  // Returns why nothing has been taken for too long, with the file to blame; empty = all is well.
  [[nodiscard]] std::string stalled() const;
  [[nodiscard]] bool out_of_space() const { return out_of_space_; }

 private:
  void watch();
  bool look(whole::Writer writer, bool last);  // false: the disk failed, and may not always
  [[nodiscard]] Result<whole::Verdict> judge(int directory, whole::Writer writer, store::Listing& listing);
  // Takes what the verdict selects; without a verdict, takes everything there as it is, because no program writes there
  // any more.
  [[nodiscard]] static bool any_torn(int directory, const store::Listing& listing);
  [[nodiscard]] Result<void> take(int directory, const store::Listing& listing, const whole::Verdict* verdict);
  void keep_what_is_left();
  void watch_folders(const os::Fd& events) const;
  void note_stall(bool taken);
  [[nodiscard]] bool is_known(const Digest& root) const;
  [[nodiscard]] std::uint64_t next_number() const;
  [[nodiscard]] std::uint64_t held_bytes() const GRIDCTL_REQUIRES(mutex_);
  void prune(std::size_t keep_newest);
  void set_problem(std::string problem);

  const AttemptDir& attempt_;
  const wire::AttemptSpec& spec_;
  const JobView view_;
  os::Clock& clock_;
  const int changed_fd_;
  os::Fd wake_;
  std::thread thread_;
  std::atomic<bool> stop_ = false, out_of_space_ = false;
  std::atomic<Duration> pause_, interval_{Duration{}};
  whole::WholeWatch whole_;
  store::Listing listed_;  // at the last look
  std::optional<store::Snapshot> previous_;
  store::Fingerprints fingerprints_;  // of it
  std::uint64_t previous_number_ = 0;
  std::optional<BootTime> taken_at_;
  store::Listing saved_;             // as it was seen last
  std::uint64_t metrics_until_ = 0;  // bytes that the job had told when that was saved
  whole::Verdict last_verdict_;
  whole::Stall stall_;

  mutable os::Mutex mutex_;
  std::vector<HeldSnapshot> held_ GRIDCTL_GUARDED_BY(mutex_);
  std::uint64_t next_ GRIDCTL_GUARDED_BY(mutex_) = 1;
  std::uint64_t kept_from_ GRIDCTL_GUARDED_BY(mutex_) = 0;
  std::string problem_ GRIDCTL_GUARDED_BY(mutex_), stalled_ GRIDCTL_GUARDED_BY(mutex_);
};

}  // namespace gridctl::agent
