// SPDX-License-Identifier: Apache-2.0
// Work at one remote: copying what it lacks, removing what is not kept any more. By one process of a state directory at
// a time, which a lock sees to; another state directory keeps out of it by the remote's mark, so that removing needs no
// lock that a remote could lose or forge. Blocks; for worker threads and commands.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "control/copies/host_uploads.hpp"
#include "control/copies/open_remote.hpp"
#include "control/reach/paths.hpp"
#include "os/files.hpp"
#include "store/copying.hpp"

namespace gridctl::control {

class RemoteWork {
 public:
  // Takes the lock (busy when another process has it and `wait` is false), checks the mark, lists the remote.
  // `uploads`: so that hosts that could not send packs themselves are left alone, by later work too.
  [[nodiscard]] static Result<RemoteWork> open(const Paths& paths, AgentNetwork& net, registry::Registry& registry,
                                              const registry::Remote& remote, os::Clock& clock, bool wait,
                                              std::shared_ptr<UploadMemory> uploads = {},
                                              const OpenRemote& open = open_marked_remote);

  // The copy is acknowledged and recorded when it returns; the job's history says so. checkpoint_damaged: it is not
  // whole here, and the remote is not to blame.
  [[nodiscard]] Result<store::CopyStats> copy(const registry::CopyWanted& wanted,
                                              const store::CopyProgress& progress = {});
  // Records of copies whose checkpoints were removed here. Returns how many.
  [[nodiscard]] Result<std::uint64_t> forget_obsolete();
  // Packs that no record there needs.
  [[nodiscard]] Result<store::RemotePruned> prune();
  [[nodiscard]] Result<store::RemoteCheck> check(double share, const store::CopyProgress& progress = {});
  // Makes the records of these checkpoints, and the packs that they need and are not what they should be, anew from
  // what is here, and takes from there what is damaged here. A line for each thing done or not to be done.
  struct Repair {
    std::vector<std::string> done, failed;
  };
  [[nodiscard]] Result<Repair> repair(const store::RemoteCheck& found);

  [[nodiscard]] const store::RemoteListing& listing() const { return there_; }
  [[nodiscard]] const store::RemoteLink& link() const { return link_; }

 private:
  RemoteWork(Paths paths, AgentNetwork& net, registry::Registry& registry, registry::Remote remote, os::Clock& clock, os::FileLock lock,
            store::StoreKey key, store::ChunkStore chunks);
  [[nodiscard]] Result<void> replace_copy(const registry::CopyWanted& wanted);
  [[nodiscard]] Result<bool> heal_here(const registry::CopyWanted& wanted, Repair& report);

  Paths paths_;
  AgentNetwork* net_;
  registry::Registry* registry_;
  registry::Remote remote_;
  os::Clock* clock_;
  os::FileLock lock_;
  std::unique_ptr<store::StoreKey> key_;
  std::unique_ptr<store::Backend> backend_;
  store::RemoteLink link_;
  store::ChunkStore chunks_;
  store::RemoteListing there_;
  std::shared_ptr<UploadMemory> uploads_;
};

// ", 12 MiB sent, 10 MiB of them by its host", as far as there is something to say.
[[nodiscard]] std::string describe(const store::CopyStats& copied);

// The mark that remotes of this state directory carry.
[[nodiscard]] Result<store::RemoteMark> own_mark(const Paths& paths, registry::Registry& registry);

}  // namespace gridctl::control
