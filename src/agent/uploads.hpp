// SPDX-License-Identifier: Apache-2.0
// Implements the host's side of uploads: rebuilds a pack from the host's own checkpoints and puts it where the
// controller's signed request says, with the host's curl. The agent does not speak TLS, which would double its size; a
// host without curl only loses speed. The request binds the hash of the pack: the remote refuses another body.
#pragma once

#include "agent/snapshots.hpp"
#include "store/recipe.hpp"
#include "transfer/stream.hpp"
#include "wire/upload.hpp"

namespace gridctl::agent {

class Uploads {
 public:
  // All must outlive the object.
  Uploads(wire::Link& link, HostSnapshots& snapshots, const os::Clock& clock)
      : with_{link, clock}, snapshots_(snapshots) {}

  // Serves one request, and reads its recipe from the link. An operation that fails is answered with its error; an
  // error returned from here means that the link is no longer usable. A request in progress ends with its link.
  [[nodiscard]] Result<void> handle(const wire::Frame& frame);

 private:
  [[nodiscard]] Result<os::Fd> make(const wire::CheckpointRef& checkpoint, const store::PackRecipe& recipe);

  transfer::Conversation with_;
  HostSnapshots& snapshots_;
};

}  // namespace gridctl::agent
