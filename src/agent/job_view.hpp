// SPDX-License-Identifier: Apache-2.0
// Locates the parts of an attempt: on the host, and as the job sees them.
#pragma once

#include <optional>
#include <string>

#include "agent/attempt_dir.hpp"
#include "agent/confine.hpp"
#include "agent/engine.hpp"
#include "base/result.hpp"

namespace gridctl::agent {

inline constexpr std::string_view k_run_in_container = "/gridctl/run";  // the run's folder, as the job sees it there
struct JobView {
  Path work, checkpoints, run, control, home, secrets;  // as the job sees them; home empty: the user's own
  // On the host, the checkpoint directory is `checkpoint_base` / `checkpoint_relative`; no component of the latter may
  // be a symbolic link, because the job can write there.
  Path checkpoint_base;
  std::string checkpoint_relative;
  // Names what the job may not read: its checkpoint directory may be a link to anything else. Only plain processes see
  // the host's own paths.
  std::optional<Confinement> confinement;
};

// Checks limits and names of a spec from a controller, which the host does not trust. `refused` otherwise.
[[nodiscard]] Result<void> check_spec(const wire::AttemptSpec& spec);
[[nodiscard]] Result<void> check_secrets(const wire::AttemptSpec& spec,
                                         const std::map<std::string, std::string>& secrets);

// Returns whether a plain process gets its own home: it has mounts below `~/`.
[[nodiscard]] bool has_own_home(const wire::AttemptSpec& spec);
[[nodiscard]] JobView view_of(const AttemptDir& attempt, const wire::AttemptSpec& spec, unsigned launch);

// Opens the checkpoint directory; creates it if `make`. If the job has replaced it with a link, the link is followed
// only to what the job itself can read; not_found if nothing is there.
[[nodiscard]] Result<os::Fd> open_checkpoint_directory(const JobView& view, bool make);
// Returns the absolute paths by which the job may name its checkpoint directory.
[[nodiscard]] std::vector<std::string> names_of_checkpoints(const JobView& view);

// Returns the job's variables, NUL-separated: the spec's, and those that only the host knows.
[[nodiscard]] std::string job_environment(const wire::AttemptSpec& spec, const JobView& view,
                                          const std::vector<Gpu>& gpus);

// Names the file of $GRIDCTL_CKPT_INTERVAL_FILE: the currently wanted seconds between checkpoints.
inline constexpr const char* k_interval_file = "ckpt_interval";
[[nodiscard]] Result<void> tell_interval(const AttemptDir& attempt, unsigned launch, const std::string& seconds);

// Names the file of $GRIDCTL_NOTICE_FILE: it appears when the job's host is about to end the job. One line of JSON:
// {"seconds": until it is killed, "reason": a word, "time": Unix time of writing}.
inline constexpr const char* k_notice_file = "notice";
[[nodiscard]] Result<void> tell_notice(const AttemptDir& attempt, unsigned launch, std::string_view reason, Duration left, WallTime now);

// Fills run/K: scripts, environment, log pipe.
[[nodiscard]] Result<void> make_run_folder(const AttemptDir& attempt, const wire::AttemptSpec& spec,
                                           const JobView& view, unsigned launch, const std::vector<Gpu>& gpus);

}  // namespace gridctl::agent
