// SPDX-License-Identifier: Apache-2.0
// Where things of an attempt are: on the host, and as the job sees them.
#pragma once

#include <string>

#include "agent/attempt_dir.hpp"
#include "agent/engine.hpp"
#include "base/result.hpp"

namespace gridctl::agent {

struct JobView {
  Path work, checkpoints, run, control, home, secrets;  // as the job sees them; home empty: the user's own
  // On the host the checkpoint directory is `checkpoint_base` / `checkpoint_relative`; no component of the latter may
  // be a symbolic link, for the job can write there.
  Path checkpoint_base;
  std::string checkpoint_relative;
};

// Limits and names of a spec from a controller, which the host does not trust. `refused` otherwise.
[[nodiscard]] Result<void> check_spec(const wire::AttemptSpec& spec);
[[nodiscard]] Result<void> check_secrets(const wire::AttemptSpec& spec,
                                         const std::map<std::string, std::string>& secrets);

// Whether a plain process gets a home of its own: it has mounts below `~/`.
[[nodiscard]] bool has_own_home(const wire::AttemptSpec& spec);
[[nodiscard]] JobView view_of(const AttemptDir& attempt, const wire::AttemptSpec& spec, unsigned launch);

// The checkpoint directory, opened without following any link; made when `make`.
[[nodiscard]] Result<os::Fd> open_checkpoint_directory(const JobView& view, bool make);

// The job's variables, NUL-separated: the spec's, and those that only the host knows.
[[nodiscard]] std::string job_environment(const wire::AttemptSpec& spec, const JobView& view,
                                          const std::vector<Gpu>& gpus);

// The file that $GRIDCTL_CKPT_INTERVAL_FILE names: seconds between checkpoints, as wished now.
inline constexpr const char* k_interval_file = "ckpt_interval";
[[nodiscard]] Result<void> tell_interval(const AttemptDir& attempt, unsigned launch, const std::string& seconds);

// Fills run/K: scripts, environment, log pipe.
[[nodiscard]] Result<void> make_run_folder(const AttemptDir& attempt, const wire::AttemptSpec& spec,
                                           const JobView& view, unsigned launch, const std::vector<Gpu>& gpus);

}  // namespace gridctl::agent
