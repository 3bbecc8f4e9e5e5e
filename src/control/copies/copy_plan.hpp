// SPDX-License-Identifier: Apache-2.0
// Which checkpoint is to be copied where. Pure.
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

// Why the job that wants it does not want it there, for people; empty when it may lie there.
[[nodiscard]] std::string copy_refusal(const registry::CopyWanted& wanted, const RemoteOffer& remote);

// A job that asks for copies, and has none at a remote because they must not be there.
struct RefusedJob {
  JobId job;
  std::string why;
};
[[nodiscard]] std::vector<RefusedJob> refused_at(const RemoteOffer& remote,
                                                 const std::vector<registry::CopyWanted>& newest_first);

// Returns the copies that `remote` is due to get, newest first, so that each checkpoint comes to as many independent
// remotes as its job asks for. Of the remotes that may take one, those without trouble come first, then those that were
// added first.
[[nodiscard]] std::vector<registry::CopyWanted> due_at(const std::string& remote, const std::vector<RemoteOffer>& remotes,
                                                       const std::vector<registry::CopyWanted>& newest_first,
                                                       const std::vector<registry::Copy>& copies);

// Everything that is kept, may lie there, and does not.
[[nodiscard]] std::vector<registry::CopyWanted> missing_at(const RemoteOffer& remote,
                                                           const std::vector<registry::CopyWanted>& newest_first,
                                                           const std::vector<registry::Copy>& copies);

// Copies at `remote` of checkpoints that are not kept here any more. Only those that we know to have copied and then
// removed here: a new or an older registry knows too little to remove anything.
[[nodiscard]] std::vector<registry::Copy> obsolete_at(const std::string& remote,
                                                      const std::vector<registry::CheckpointRef>& kept,
                                                      const std::vector<registry::Copy>& copies);

}  // namespace gridctl::control
