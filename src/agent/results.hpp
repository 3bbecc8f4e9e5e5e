// SPDX-License-Identifier: Apache-2.0
// Manages the files that attempts leave in their working directories: selects and counts them, makes a tree of them,
// and keeps them for a while after the attempt's folder is removed. Layout in gridctl-agent(7), FILES ON THE HOST.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "agent/attempt_dir.hpp"
#include "base/ids.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "wire/results.hpp"

namespace gridctl::agent {

// States where the working directory of an attempt is, and which of its files the job made.
struct Workplace {
  Path work;
  Path manifest;                // of the tree that was made of it last
  std::int64_t began_ns = 0;    // what has changed since is the job's: by the kernel's ctime
  std::string checkpoint_path;  // relative to `work`, or empty: that is no result
  std::vector<std::string> known_as{};  // the absolute paths by which the job may name `work`
};
// Returns nullopt if its payload has never started.
[[nodiscard]] Result<std::optional<Workplace>> workplace_of(const AttemptDir& attempt, const wire::AttemptSpec& spec);

// Selects the files, and makes the tree if requested. Unreadable files are skipped with a note. `on_progress` is called
// from time to time with the bytes read so far; its error ends the work.
[[nodiscard]] Result<wire::ResultsReply> gather_results(
    const Workplace& place, const wire::ResultsRequest& request,
    const std::function<Result<void>(std::uint64_t bytes)>& on_progress = {});

// Manages working directories that outlive their attempts, one for each job of a controller, below HOME/kept.
class KeptWork {
 public:
  explicit KeptWork(Path home) : all_(std::move(home) / "kept") {}

  // Moves the working directory out of the attempt's folder if the specification wants that and the job has left files
  // there, or if it has to stay for `at_least`; replaces the job's earlier one.
  [[nodiscard]] Result<void> take(const AttemptDir& attempt, Duration at_least = {});
  // Returns nullopt if nothing is kept.
  [[nodiscard]] Result<std::optional<Workplace>> find(const ControllerId& controller, const JobId& job, Epoch epoch);
  // Removes, for all controllers, what has been here longer than its specification says.
  void sweep(WallTime now);

 private:
  [[nodiscard]] Path folder(const ControllerId& controller, const JobId& job, Epoch epoch) const;
  Path all_;
};

// Returns where it is now: in the attempt's folder, or kept. not_found if it is not here.
[[nodiscard]] Result<Workplace> find_workplace(const AttemptDir& attempt);

}  // namespace gridctl::agent
