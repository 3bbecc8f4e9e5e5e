// SPDX-License-Identifier: Apache-2.0
// Restores a checkpoint that is damaged or missing here from the nearest remote with an intact copy. Works blob by
// blob, before a launch fails: one bad sector must not cost a job its progress, nor the link a complete checkpoint.
#pragma once

#include <string>
#include <vector>

#include "control/copies/remotes.hpp"
#include "control/reach/paths.hpp"
#include "store/copying.hpp"

namespace gridctl::control {

struct HealedFrom {
  store::Healed healed;
  std::string remote;  // the one that gave the last of it
};

// Tries the remotes in order until every blob is here and intact; each gives what it can. checkpoint_damaged, with each
// remote's answer, if all of them together could not. Blobs that are intact here are read, not fetched.
[[nodiscard]] Result<HealedFrom> heal_from(const Paths& paths, AgentNetwork& net, store::ChunkStore& chunks,
                                           const std::vector<RemoteAccess>& nearest_first,
                                           const store::RecordName& checkpoint, const Digest& root, os::Clock& clock);

// Returns "2 chunks, 3.1 MiB, from NAME".
[[nodiscard]] std::string describe(const HealedFrom& healed);

}  // namespace gridctl::control
