// SPDX-License-Identifier: Apache-2.0
// Reads the results of a bag's tasks from its journal, which may be written at the same time; their output, and the
// files that they left.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "bag/bag.hpp"
#include "control/reach/job_folders.hpp"
#include "control/reach/paths.hpp"

namespace gridctl::control {

// Describes a task that is done, or has failed for good.
struct TaskEnded {
  bag::Index index = 0;
  bag::Worker worker;
  wire::TaskResult result;  // of the run that counts; empty when its worker died of it
  std::string host;
};

class BagResults {
 public:
  explicit BagResults(os::Path folder) : folder_(std::move(folder)) {}
  BagResults(const BagResults&) = delete;
  BagResults& operator=(const BagResults&) = delete;
  virtual ~BagResults() = default;

  // Reports the tasks that have ended since the last call, in the order of the journal. A task reported as failed may
  // have succeeded since.
  [[nodiscard]] Result<void> read_on(const std::function<void(TaskEnded)>& take);
  [[nodiscard]] const bag::Bag& bag() const { return bag_; }
  // Returns whether all kept data of the task is here.
  [[nodiscard]] Result<bool> has_all_of(const TaskEnded& task) const;
  // Returns bytes of the task's kept data, starting `from` bytes after its offset. not_found: not all of them are here.
  [[nodiscard]] Result<std::string> read(const TaskEnded& task, std::uint64_t from, std::uint64_t most) const;

 protected:
  virtual void seen(const bag::Record&) {}

 private:
  void take(const bag::Record& record, const std::function<void(TaskEnded)>& ended);

  os::Path folder_;
  bag::Bag bag_;
  std::uint64_t at_ = 0;  // bytes of the journal that were read
};

// Describes one file after the output of a task, in the format of gridctl-agent(7). A host wrote it and may lie: the
// path is checked to stay inside the destination.
struct TaskFile {
  std::string path;
  std::uint32_t mode = 0;
  std::uint64_t size = 0, begin = 0;  // of its content, behind the offset of the task
};
[[nodiscard]] Result<void> each_file(const BagResults& results, const TaskEnded& task,
                                     const std::function<Result<void>(const TaskFile&)>& visit);

// Name of the file in which the last step of a bag finds the tasks' output, in the order of the tasks.
inline constexpr const char* k_tasks_printed = "tasks.out";
// See JobFolders::bag_gather.
[[nodiscard]] Result<GatheredTasks> gather_tasks(const Paths& paths, const JobId& job, const job::Spec& spec,
                                                 const std::optional<Digest>& below);

}  // namespace gridctl::control
