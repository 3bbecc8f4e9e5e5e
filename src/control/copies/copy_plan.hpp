// SPDX-License-Identifier: Apache-2.0
// Plans which checkpoint is copied to which remote. Pure.
#pragma once

#include <string>
#include <vector>

#include "registry/records.hpp"

namespace gridctl::control {

struct RemoteOffer {
  std::string name;
  std::string failure_domain;  // remotes of the same one are lost together
  bool in_trouble = false;     // asked last, but asked: which one comes back first is not known
  std::string region{};        // where it is; empty: not known
  bool lent = false;           // it belongs to others
};

// Returns why the job does not allow a copy at the remote, for people; empty if it does.
[[nodiscard]] std::string copy_refusal(const registry::CopyWanted& wanted, const RemoteOffer& remote);

// Describes a job that asks for copies and has none at a remote that it does not allow.
struct RefusedJob {
  JobId job;
  std::string why;
};
[[nodiscard]] std::vector<RefusedJob> refused_at(const RemoteOffer& remote,
                                                 const std::vector<registry::CopyWanted>& newest_first);

// Returns the copies that `remote` is due to get, newest first, so that each checkpoint reaches as many independent
// remotes as its job asks for. Among remotes that may take one, those without trouble come first, then those added
// first.
[[nodiscard]] std::vector<registry::CopyWanted> due_at(const std::string& remote, const std::vector<RemoteOffer>& remotes,
                                                       const std::vector<registry::CopyWanted>& newest_first,
                                                       const std::vector<registry::Copy>& copies);

// Returns all kept checkpoints that may be copied to the remote and are not there.
[[nodiscard]] std::vector<registry::CopyWanted> missing_at(const RemoteOffer& remote,
                                                           const std::vector<registry::CopyWanted>& newest_first,
                                                           const std::vector<registry::Copy>& copies);

// Returns copies at `remote` whose checkpoints are no longer kept here. Lists only checkpoints that we copied and later
// removed: a new or older registry knows too little to remove anything.
[[nodiscard]] std::vector<registry::Copy> obsolete_at(const std::string& remote,
                                                      const std::vector<registry::CheckpointRef>& kept,
                                                      const std::vector<registry::Copy>& copies);

}  // namespace gridctl::control
