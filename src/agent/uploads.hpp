// SPDX-License-Identifier: Apache-2.0
// The host's side of uploads: makes a pack again from the host's own checkpoints and puts it where the controller's
// signed request says, by the host's curl, for the agent speaks no TLS: that would make it twice as large, and a host
// without curl loses speed only. The request binds the hash of the pack: with another body the place refuses it.
#pragma once

#include "agent/snapshots.hpp"
#include "store/recipe.hpp"
#include "transfer/stream.hpp"
#include "wire/upload.hpp"

namespace gridctl::agent {

class Uploads {
 public:
  // All must outlive it.
  Uploads(wire::Link& link, HostSnapshots& snapshots, const os::Clock& clock)
      : with_{link, clock}, snapshots_(snapshots) {}

  // Serves one request, reading its recipe from the link. An operation that fails is answered with its error; an error
  // returned from here means that the link is of no more use. A request that is under way ends with its link.
  [[nodiscard]] Result<void> handle(const wire::Frame& frame);

 private:
  [[nodiscard]] Result<os::Fd> make(const wire::CheckpointRef& checkpoint, const store::PackRecipe& recipe);

  transfer::Conversation with_;
  HostSnapshots& snapshots_;
};

}  // namespace gridctl::agent
