// SPDX-License-Identifier: Apache-2.0
// Manages the folders of jobs and attempts on the host; layout in gridctl-agent(7), FILES.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/host_limits.hpp"
#include "agent/host_state.hpp"
#include "agent/verdict.hpp"
#include "base/ids.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "os/clock.hpp"
#include "os/files.hpp"
#include "wire/messages.hpp"

namespace gridctl::agent {

using os::Path;

[[nodiscard]] Path agent_home();       // $GRIDCTL_AGENT_HOME, default ~/.gridctl
// Distinguishes this agent's control groups, containers and secrets, which are not in its home, from those of another
// agent of the same user on the same machine. Empty for the usual home.
[[nodiscard]] std::string home_mark(const Path& home);
[[nodiscard]] Path lease_directory();  // $GRIDCTL_LEASE_DIR, default /var/tmp

// An id that may become a path component: [a-z0-9-]{1,64}, not beginning with '-'. `refused` otherwise.
[[nodiscard]] Result<void> check_component(std::string_view what, std::string_view id);

// Beside the folders of the jobs: where supervisors tell the controller's connections of news. No job has this id.
inline constexpr std::string_view k_notify_folder = "notify";

// jobs/CONTROLLER/JOB
struct JobDir {
  ControllerId controller;
  JobId job;
  Path path;

  // Checks both ids; touches nothing on disk.
  [[nodiscard]] static Result<JobDir> at(const Path& home, const ControllerId& controller, const JobId& job);
  [[nodiscard]] Path attempt(Epoch epoch) const { return path / std::to_string(epoch.value); }
  // Creates the folder if needed, and waits for the job's lock.
  [[nodiscard]] Result<os::FileLock> lock() const;
  // Returns the epochs that have a folder here, ascending.
  [[nodiscard]] Result<std::vector<Epoch>> epochs() const;
};

// Names the paths in jobs/CONTROLLER/JOB/EPOCH.
struct AttemptDir {
  Path path;

  [[nodiscard]] Path spec_file() const { return path / "spec.json"; }
  [[nodiscard]] Path op_file() const { return path / "op"; }
  [[nodiscard]] Path boot_file() const { return path / "boot"; }
  [[nodiscard]] Path supervisor_lock() const { return path / "supervisor.lock"; }
  [[nodiscard]] Path status_file() const { return path / "status"; }
  [[nodiscard]] Path control() const { return path / "ctl"; }
  [[nodiscard]] Path deadline_file() const { return control() / "deadline"; }
  [[nodiscard]] Path limits_file() const { return control() / "limits"; }
  [[nodiscard]] Path stop_file() const { return control() / "stop"; }
  [[nodiscard]] Path notice_file() const { return control() / "notice"; }  // why its host ends it
  [[nodiscard]] Path bases_file() const { return control() / "bases"; }
  [[nodiscard]] Path kept_file() const { return control() / "kept_from"; }
  [[nodiscard]] Path interval_file() const { return control() / "interval_ms"; }
  [[nodiscard]] Path pause_file() const { return control() / "pause_ms"; }
  [[nodiscard]] Path runs() const { return path / "run"; }
  [[nodiscard]] Path run(unsigned launch) const { return runs() / std::to_string(launch); }
  [[nodiscard]] Path work() const { return path / "work"; }
  [[nodiscard]] Path checkpoints() const { return path / "ckpt"; }
  [[nodiscard]] Path home() const { return path / "home"; }
  [[nodiscard]] Path mounts() const { return path / "mounts"; }
  [[nodiscard]] Path snapshots() const { return path / "snap"; }
  [[nodiscard]] Path log() const { return path / "log"; }

  [[nodiscard]] Epoch epoch() const;
  [[nodiscard]] JobId job() const;
  [[nodiscard]] ControllerId controller() const;
  [[nodiscard]] Path agent_home() const;
  // Returns the folder of this attempt's secrets on a tmpfs, which may not exist.
  [[nodiscard]] Result<Path> secrets() const;
};

// Lists the files that a start leaves on disk before it is answered.
struct NewAttempt {
  OpId op;
  std::string boot_id;
  BootTime deadline;
  wire::AttemptSpec spec;
  HostLimits limits{};
  std::map<std::string, std::string> secrets{};  // onto the tmpfs, 0600 in a 0700 folder
};
// Creates the folder under a temporary name and renames it, so that it is complete or absent. Secrets without a folder
// have a draft beside it. unsupported if there are secrets and no tmpfs for us. REQUIRES: the job's lock.
[[nodiscard]] Result<void> create_attempt(const AttemptDir& attempt, const NewAttempt& content);
// Removes drafts of creations that were killed, with their secrets. REQUIRES: the job's lock.
void remove_drafts(const JobDir& job);
[[nodiscard]] bool has_drafts(const JobDir& job);
[[nodiscard]] Result<wire::AttemptSpec> read_spec(const AttemptDir& attempt);

// Reads small numbers from our own files (ctl/…, fence): nullopt if the file does not exist.
[[nodiscard]] Result<std::optional<std::int64_t>> read_number(const Path& path);

// Stores the highest epoch of a job that this host accepted or refused. A refusal is a promise because it is on disk
// first. Reading returns 0 if the job was never seen; a fence that cannot be read is an error, never 0.
[[nodiscard]] Result<Epoch> read_fence(const JobDir& job);
// The fence is on disk when this returns, whatever happens next. REQUIRES: the job's lock; a fence only rises.
[[nodiscard]] Result<void> write_fence(const JobDir& job, Epoch epoch);

// --- status -------------------------------------------------------------------------------------------------------

// `status` has ages as of now. A final status is on disk before this returns. With `announce`, tells the connections of
// the controller (notify folder).
[[nodiscard]] Result<void> write_status(const AttemptDir& attempt, const wire::AttemptStatus& status, os::Clock& clock,
                                        bool announce);
// An attempt without a status file is `starting` under the boot that accepted it. nullopt: no such attempt.
[[nodiscard]] Result<std::optional<StoredStatus>> read_stored_status(const AttemptDir& attempt, os::Clock& clock);
// Returns the last status written, with its ages as of now and log_bytes from the ring. An attempt of another boot that
// had not ended is reported as ended: from its exit record, otherwise host_rebooted. nullopt: nothing was written yet.
[[nodiscard]] Result<std::optional<wire::AttemptStatus>> read_status(const AttemptDir& attempt, os::Clock& clock);

// --- init's records (written inside the job: hostile)
// -----------------------------------------------------------------

[[nodiscard]] std::string to_text(const ExitRecord& record);
[[nodiscard]] std::optional<ExitRecord> parse_exit_record(std::string_view text);
// Returns nullopt if there is no record (or none that can be trusted).
[[nodiscard]] std::optional<ExitRecord> read_exit_record(const Path& run);
// Reads a file that the job could have replaced: no link is followed, regular files only.
struct HostileFile {
  os::Fd fd;
  std::uint64_t size = 0;  // as it was when it was opened
};
[[nodiscard]] std::optional<HostileFile> open_hostile(const Path& directory, std::string_view name);
// Returns the text of a small file: at most 4 KiB.
[[nodiscard]] std::optional<std::string> read_hostile(const Path& directory, std::string_view name);

// Returns the newest launch folder, or 0 if there is none.
[[nodiscard]] unsigned newest_launch(const AttemptDir& attempt);

}  // namespace gridctl::agent
