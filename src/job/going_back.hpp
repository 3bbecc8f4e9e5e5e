// SPDX-License-Identifier: Apache-2.0
// When a checkpoint is to blame for a failure, and which one comes instead. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "job/state.hpp"

namespace gridctl::job {

// The last lines of an output without what differs from run to run (numbers, addresses): equal for equal failures.
[[nodiscard]] std::string gist_of(std::string_view output);

// Whether the attempt began from a checkpoint and has saved nothing since.
[[nodiscard]] bool has_saved_nothing(const State& state, const Attempt& attempt);

// Where attempts failed from `bad` and saved nothing newer, when this is enough to blame it: on two hosts, or twice on
// one with the same gist. Else empty. The failure `end` is among the state's failures already, as the last one.
[[nodiscard]] std::vector<std::string> failed_from(const State& state, CheckpointSeq bad, const End& end);

// Returns the checkpoint to go back to from `bad`: first the newest before it; when that fails as well, the newest that
// another host made or that was restored with success. nullopt: there is none, or that was tried already.
[[nodiscard]] std::optional<CheckpointSeq> earlier_than(const State& state, CheckpointSeq bad);

// The newest that is not suspect; of those that nobody is sure of, only when there is no other.
[[nodiscard]] std::optional<CheckpointSeq> newest_trusted(const State& state);

// The newest trusted one before `bad`, which is damaged and cannot be restored at all.
[[nodiscard]] std::optional<CheckpointSeq> newest_before(const State& state, CheckpointSeq bad);

// Something was saved by an attempt that had begun from `from`.
void note_progress(State& state, CheckpointSeq from);

// The job failed from earlier checkpoints as well, so that nothing speaks against the later ones: they are not suspect
// any more, and the head is what it is resumed from. What to tell people, or nothing.
std::string withdraw_marks(State& state);

// Returns the newest saved checkpoint of the state that was restored with success, or that another host made than the
// newest's: it is kept whatever the job file says, for the newer ones may all be bad.
[[nodiscard]] std::optional<CheckpointSeq> newest_proven(const State& state);

}  // namespace gridctl::job
