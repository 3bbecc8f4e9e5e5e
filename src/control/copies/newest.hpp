// SPDX-License-Identifier: Apache-2.0
// Finds out which checkpoint of a job is the newest: a remote can hide it from a machine that has no other source.
// Witnesses are the key file, what a remote has shown here before, and what other remotes show.
#pragma once

#include <string>
#include <vector>

#include "control/copies/remotes.hpp"
#include "control/reach/paths.hpp"
#include "store/newest.hpp"
#include "store/record.hpp"

namespace gridctl::control {

// Returns the newest checkpoints that this machine has seen and that its key file contained, or nothing.
[[nodiscard]] Result<std::vector<store::Newest>> seen_newest(const Paths& paths, const store::StoreKey& key);
// Keeps the highest number of each job. Safe against other processes.
[[nodiscard]] Result<void> remember_newest(const Paths& paths, const store::StoreKey& key,
                                           const std::vector<store::Newest>& more);
// Returns the list for a key file: the newest checkpoint of each job at any remote, and those seen earlier.
[[nodiscard]] Result<std::vector<store::Newest>> newest_to_export(registry::AllRecords& registry, const Paths& paths,
                                                                  const store::StoreKey& key, WallTime now);

struct Witness {
  std::string who;     // "the key file of 2026-11-25T10:00:00Z", "remote s3"
  std::string remote;  // where a newer one can be had; empty: not known
  JobId job;
  CheckpointSeq seq;  // the newest it knows; 0 = none of that job
  WallTime created_at;
  bool is_itself = false;  // what the remote in question said before: no second opinion
  [[nodiscard]] bool agrees_with(const store::CopyRecord& shown) const {
    return !is_itself && job == shown.job && seq == shown.seq;
  }
  [[nodiscard]] bool knows_newer_than(const store::CopyRecord& shown) const {
    return seq.value > 0 && (job == shown.job ? shown.seq < seq : shown.created_at.ms < created_at.ms);
  }
};
struct Testimony {
  std::vector<Witness> witnesses;
  std::vector<std::string> silent;  // remotes that could not be asked, and why
  [[nodiscard]] const Witness* newer_than(const store::CopyRecord& shown) const;  // the newest; nullptr: none
};
// Covers the job of that checkpoint, and others with its name. Lists every remote except `from` and reads its records
// of them; a record that does not open with the key is not evidence.
[[nodiscard]] Result<Testimony> ask_witnesses(registry::AllRecords& registry, const Paths& paths, AgentNetwork& net,
                                              const store::StoreKey& key, const std::string& from,
                                              const store::CopyRecord& shown, os::Clock& clock);

}  // namespace gridctl::control
