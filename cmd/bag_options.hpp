// SPDX-License-Identifier: Apache-2.0
// Bags from the command line: --array as sbatch has it, --each as GNU parallel has it.
#pragma once

#include "cmd/command.hpp"
#include "config/job_file.hpp"

namespace gridctl::cmd {

// The command and its items: from standard input, or after `:::` (`::::` names files of items).
[[nodiscard]] Result<config::ParsedJob> each_from_command(const Parsed& parsed, const config::Context& context);
// --array, --jobs, --retries and what else goes with tasks.
[[nodiscard]] Result<void> apply_bag_options(const Parsed& parsed, config::ParsedJob& job);

}  // namespace gridctl::cmd
