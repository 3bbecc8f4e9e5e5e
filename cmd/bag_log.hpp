// SPDX-License-Identifier: Apache-2.0
// Files of GNU parallel's formats: the log of jobs (--joblog), read and written, and the folders of --results.
#pragma once

#include <string>
#include <vector>

#include "cmd/bag_reader.hpp"
#include "job/spec.hpp"
#include "os/files.hpp"

namespace gridctl::cmd {

// The items of a bag, in order; none of a bag without.
[[nodiscard]] Result<std::vector<std::string>> bag_items(const os::Path& folder);

// A line of the log. `item`: empty where the bag has none.
[[nodiscard]] std::string joblog_line(const job::Spec& spec, const TaskEnded& task, const std::string& item);

// Records of a journal by which the tasks that a log names are over, as they ended there. A missing file names none.
[[nodiscard]] Result<std::string> records_of_joblog(const os::Path& file, const job::Spec& spec);
// The worker that such records tell of: it is none.
inline constexpr bag::Worker k_logged_worker{0, 0};

// FOLDER/1/ITEM/stdout and stderr and seq, as `parallel --results FOLDER` has them.
[[nodiscard]] Result<void> keep_results(const os::Path& folder, const BagReader& reader, const TaskEnded& task,
                                        const std::string& item);

// How many tasks may fail by `--halt soon,fail=3` or `now,fail=10%`; a negative number: any. Errors are Code::usage.
[[nodiscard]] Result<int> fails_of_halt(std::string_view text, int tasks);

}  // namespace gridctl::cmd
