// SPDX-License-Identifier: Apache-2.0
// Does the work at one remote: copies what it lacks and removes what is no longer kept. A lock allows one process of a
// state directory at a time. The remote's mark keeps other state directories out, so that removal needs no lock that a
// remote could lose or forge. Blocks; for worker threads and commands.
#pragma once

#include <memory>
#include <string>

#include "control/copies/host_uploads.hpp"
#include "control/copies/remotes.hpp"
#include "control/reach/paths.hpp"
#include "os/files.hpp"
#include "store/copying.hpp"

namespace gridctl::control {

class RemoteWork {
 public:
  // Takes the lock (busy when another process has it and `wait` is false), checks the mark, and lists the remote.
  // `uploads` remembers, also for later work, the hosts that could not upload packs themselves.
  [[nodiscard]] static Result<RemoteWork> open(const Paths& paths, AgentNetwork& net, registry::AllRecords& registry,
                                              const registry::Remote& remote, os::Clock& clock, bool wait,
                                              std::shared_ptr<UploadMemory> uploads = {},
                                              const OpenRemote& open = open_marked_remote);

  // Returns after the copy is acknowledged and recorded; the job's history mentions it. checkpoint_damaged: the
  // checkpoint is incomplete here, and the remote is not to blame.
  [[nodiscard]] Result<store::CopyStats> copy(const registry::CopyWanted& wanted,
                                              const store::CopyProgress& progress = {});
  // Removes records of copies whose checkpoints were removed here. Returns their number.
  [[nodiscard]] Result<std::uint64_t> forget_obsolete();
  // Removes packs that no record at the remote needs.
  [[nodiscard]] Result<store::RemotePruned> prune();
  [[nodiscard]] Result<store::RemoteCheck> check(double share, const store::CopyProgress& progress = {});
  // Rewrites these checkpoints' records at the remote, and their packs that are missing or damaged there, from the
  // local store; restores from the remote what is damaged here. Returns a line for each thing done or not possible.
  struct Repair {
    std::vector<std::string> done, failed;
  };
  [[nodiscard]] Result<Repair> repair(const store::RemoteCheck& found);

  [[nodiscard]] const store::RemoteListing& listing() const { return there_; }
  [[nodiscard]] const store::RemoteLink& link() const { return link_; }

 private:
  RemoteWork(Paths paths, AgentNetwork& net, registry::AllRecords& registry, registry::Remote remote, os::Clock& clock, os::FileLock lock,
            store::StoreKey key, store::ChunkStore chunks);
  [[nodiscard]] Result<void> replace_copy(const registry::CopyWanted& wanted);
  [[nodiscard]] Result<bool> heal_here(const registry::CopyWanted& wanted, Repair& report);

  Paths paths_;
  AgentNetwork* net_;
  registry::AllRecords* registry_;
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

// Returns the mark that remotes of this state directory carry.
[[nodiscard]] Result<store::RemoteMark> own_mark(const Paths& paths, registry::HostRecords& registry);

}  // namespace gridctl::control
