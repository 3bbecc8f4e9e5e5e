// SPDX-License-Identifier: Apache-2.0
// Records how a job was submitted: its original file, and the command. Kept beside the job's logs, without secrets.
#pragma once

#include <map>
#include <string>

#include "cmd/command.hpp"
#include "control/reach/paths.hpp"

namespace gridctl::cmd {

struct JobOrigin {
  std::string file;     // text of the job file; empty: it was submitted as a command
  std::string command;  // "gridctl job submit --gpu 1 -- nvidia-smi"
};

// Reads the job file that the command names again; `typed` is what was read from standard input. Secrets become
// asterisks.
[[nodiscard]] JobOrigin origin_of(const Command& command, const Parsed& parsed, std::string typed,
                                  const std::map<std::string, std::string>& secrets);
[[nodiscard]] Result<void> write_origin(const control::Paths& paths, const JobId& id, const JobOrigin& origin);
// Returns empty for a job of an earlier gridctl.
[[nodiscard]] JobOrigin read_origin(const control::Paths& paths, const JobId& id);

}  // namespace gridctl::cmd
