// SPDX-License-Identifier: Apache-2.0
// Reads and writes files in GNU parallel's formats: the log of jobs (--joblog), and the folders of --results.
#pragma once

#include <string>
#include <vector>

#include "cmd/bag_reader.hpp"
#include "job/spec.hpp"
#include "os/files.hpp"

namespace gridctl::cmd {

// Returns the items of a bag, in order; none for a bag without items.
[[nodiscard]] Result<std::vector<std::string>> bag_items(const os::Path& folder);

// Returns a line of the log. `item`: empty if the bag has none.
[[nodiscard]] std::string joblog_line(const job::Spec& spec, const TaskEnded& task, const std::string& item);

// Returns journal records that mark the tasks in a log as over, with their results. A missing file names none.
[[nodiscard]] Result<std::string> records_of_joblog(const os::Path& file, const job::Spec& spec);
// The worker in such records, which does not exist.
inline constexpr bag::Worker k_logged_worker{0, 0};

// Writes FOLDER/1/ITEM/stdout and stderr and seq, like `parallel --results FOLDER`.
[[nodiscard]] Result<void> keep_results(const os::Path& folder, const BagReader& reader, const TaskEnded& task,
                                        const std::string& item);

// Returns how many tasks may fail by `--halt soon,fail=3` or `now,fail=10%`; a negative number: any. Errors are
// Code::usage.
[[nodiscard]] Result<int> fails_of_halt(std::string_view text, int tasks);

}  // namespace gridctl::cmd
