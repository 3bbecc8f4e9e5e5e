// SPDX-License-Identifier: Apache-2.0
// The files that attempts leave in their working directories: selected, counted, made a tree, and kept for a while when
// the attempt's folder goes. Layout in gridctl-agent(7), FILES ON THE HOST.
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

// Where the working directory of an attempt is, and which of its files the job made.
struct Workplace {
  Path work;
  Path manifest;                // of the tree that was made of it last
  std::int64_t began_ns = 0;    // what has changed since is the job's: by the kernel's ctime
  std::string checkpoint_path;  // relative to `work`, or empty: that is no result
  std::vector<std::string> known_as{};  // the absolute paths by which the job may name `work`
};
// nullopt: its payload has never begun.
[[nodiscard]] Result<std::optional<Workplace>> workplace_of(const AttemptDir& attempt, const wire::AttemptSpec& spec);

// Selects, and makes the tree when that is asked for. What cannot be read is left out with a note. `on_progress` is asked
// now and then with the bytes read so far; its error ends the work.
[[nodiscard]] Result<wire::ResultsReply> gather_results(
    const Workplace& place, const wire::ResultsRequest& request,
    const std::function<Result<void>(std::uint64_t bytes)>& on_progress = {});

// Working directories that outlive their attempts, one for each job of a controller, below HOME/kept.
class KeptWork {
 public:
  explicit KeptWork(Path home) : all_(std::move(home) / "kept") {}

  // Takes the working directory out of the attempt's folder if the specification wants that and the job has left
  // something there, or if it is to stay for `at_least`; in place of what the job had here from an earlier epoch.
  [[nodiscard]] Result<void> take(const AttemptDir& attempt, Duration at_least = {});
  // nullopt: nothing is kept of it.
  [[nodiscard]] Result<std::optional<Workplace>> find(const ControllerId& controller, const JobId& job, Epoch epoch);
  // Removes what has lain here for longer than its specification says, of all controllers.
  void sweep(WallTime now);

 private:
  [[nodiscard]] Path folder(const ControllerId& controller, const JobId& job, Epoch epoch) const;
  Path all_;
};

// Where it is now: in the attempt's folder, or kept. not_found when it is not here.
[[nodiscard]] Result<Workplace> find_workplace(const AttemptDir& attempt);

}  // namespace gridctl::agent
