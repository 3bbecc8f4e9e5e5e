// SPDX-License-Identifier: Apache-2.0
// Decides when a checkpoint is to blame for a failure, and which one replaces it. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "job/state.hpp"

namespace gridctl::job {

// Returns the last lines of an output without what differs from run to run (numbers, addresses): equal for equal
// failures.
[[nodiscard]] std::string gist_of(std::string_view output);

// Returns whether the attempt started from a checkpoint and has saved nothing since.
[[nodiscard]] bool has_saved_nothing(const State& state, const Attempt& attempt);

// Returns where attempts failed from `bad` and saved nothing newer, if this is enough to blame it: on two hosts, or
// twice on one with the same gist. Otherwise empty. The failure `end` is already the last of the state's failures.
[[nodiscard]] std::vector<std::string> failed_from(const State& state, CheckpointSeq bad, const End& end);

// Returns the checkpoint to go back to from `bad`: first the newest before it; if that fails as well, the newest that
// another host made or that was restored with success. nullopt: there is none, or it was already tried.
[[nodiscard]] std::optional<CheckpointSeq> earlier_than(const State& state, CheckpointSeq bad);

// Returns the newest that is not suspect; a provisional one only if there is no other.
[[nodiscard]] std::optional<CheckpointSeq> newest_trusted(const State& state);

// Returns the newest trusted one before `bad`, which is damaged and cannot be restored at all.
[[nodiscard]] std::optional<CheckpointSeq> newest_before(const State& state, CheckpointSeq bad);

// Notes that an attempt that had started from `from` saved something.
void note_progress(State& state, CheckpointSeq from);

// Withdraws suspicions: the job failed from earlier checkpoints too, so nothing speaks against the later ones, and it
// resumes from the head. Returns what to tell people, or nothing.
std::string withdraw_marks(State& state);

// Returns the newest saved checkpoint of the state that was restored with success, or that another host than the
// newest's made: it is kept whatever the job file says, because the newer ones may all be bad.
[[nodiscard]] std::optional<CheckpointSeq> newest_proven(const State& state);

}  // namespace gridctl::job
