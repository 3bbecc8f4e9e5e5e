// SPDX-License-Identifier: Apache-2.0
// A checkpoint as a remote has it, whether or not this state directory knows of it.
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

// All packs that it needs are listed.
[[nodiscard]] bool is_whole(const store::CopyRecord& record, const store::RemoteListing& there);

// "JOB[@NUMBER]", JOB an id, the beginning of one or a name; without a number the newest whole one. checkpoint_damaged
// when this state directory knows it, and the remote gives another one under its name.
[[nodiscard]] Result<RemoteCheckpoint> find_remote(Context& context, registry::Registry& registry,
                                                   const std::string& remote, const std::string& text);

}  // namespace gridctl::cmd
