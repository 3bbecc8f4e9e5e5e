// SPDX-License-Identifier: Apache-2.0
// Describes a checkpoint on a remote, whether or not this state directory knows of it.
#pragma once

#include <memory>
#include <string>

#include "cmd/context.hpp"
#include "cmd/network.hpp"
#include "store/remote.hpp"
#include "store/remote_source.hpp"
#include "store/record.hpp"
#include "store/tree.hpp"

namespace gridctl::cmd {

struct RemoteCheckpoint {
  store::CopyRecord record;
  CheckpointSeq newest_seq;  // of the records there, also of one whose packs are not all there
  WallTime newest_at;
  std::unique_ptr<control::SshNetwork> net;  // that the next uses
  std::unique_ptr<store::Backend> backend;
  std::unique_ptr<store::StoreKey> key;
  std::unique_ptr<store::RemoteSource> source;
  [[nodiscard]] Result<store::Tree> tree() const;
};

// Returns true if all packs that it needs are listed.
[[nodiscard]] bool is_whole(const store::CopyRecord& record, const store::RemoteListing& there);

// Parses "JOB[@NUMBER]", where JOB is an id, the beginning of one or a name; without a number, the newest complete one.
// Fails with checkpoint_damaged if this state directory knows it, and the remote returns another one under its name.
[[nodiscard]] Result<RemoteCheckpoint> find_remote(Context& context, registry::Registry& registry,
                                                   const std::string& remote, const std::string& text);

}  // namespace gridctl::cmd
