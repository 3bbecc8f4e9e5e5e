// SPDX-License-Identifier: Apache-2.0
// Reads bags from the command line: --array as in sbatch, --each as in GNU parallel.
#pragma once

#include "cmd/command.hpp"
#include "config/job_file.hpp"

namespace gridctl::cmd {

// Reads the command and its items: from standard input, or after `:::` (`::::` names files of items).
[[nodiscard]] Result<config::ParsedJob> each_from_command(const Parsed& parsed, const config::Context& context);
// Implements `job submit --append BAG`: more tasks for a bag that runs, or that continues with them.
[[nodiscard]] Result<int> append_to_bag(Context& context, const Parsed& parsed);
// Applies --array, --jobs, --retries and the other options of tasks.
[[nodiscard]] Result<void> apply_bag_options(const Parsed& parsed, config::ParsedJob& job);

}  // namespace gridctl::cmd
