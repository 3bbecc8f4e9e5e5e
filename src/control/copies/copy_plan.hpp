// SPDX-License-Identifier: Apache-2.0
// Which checkpoint is to be copied where. Pure.
#pragma once

#include <string>
#include <vector>

#include "registry/records.hpp"

namespace gridctl::control {

struct PlaceOffer {
  std::string name;
  std::string failure_domain;  // places of the same one are lost together
  bool in_trouble = false;     // asked last, but asked: which one comes back first is not known
  std::string region{};        // where it is; empty: not known
  bool lent = false;           // it belongs to others
};

// Why the job that wants it does not want it there, for people; empty when it may lie there.
[[nodiscard]] std::string copy_refusal(const registry::CopyWanted& wanted, const PlaceOffer& place);

// A job that asks for copies, and has none at a place because they must not be there.
struct RefusedJob {
  JobId job;
  std::string why;
};
[[nodiscard]] std::vector<RefusedJob> refused_at(const PlaceOffer& place,
                                                 const std::vector<registry::CopyWanted>& newest_first);

// What `place` is due to get, newest first, so that each checkpoint comes to as many independent places as its job asks
// for. Of those that may take one, places without trouble come first, then those that were added first.
[[nodiscard]] std::vector<registry::CopyWanted> due_at(const std::string& place, const std::vector<PlaceOffer>& places,
                                                       const std::vector<registry::CopyWanted>& newest_first,
                                                       const std::vector<registry::Copy>& copies);

// Everything that is kept, may lie there, and does not.
[[nodiscard]] std::vector<registry::CopyWanted> missing_at(const PlaceOffer& place,
                                                           const std::vector<registry::CopyWanted>& newest_first,
                                                           const std::vector<registry::Copy>& copies);

// Copies at `place` of checkpoints that are not kept here any more. Only those that we know to have copied and then
// removed here: a new or an older registry knows too little to remove anything.
[[nodiscard]] std::vector<registry::Copy> obsolete_at(const std::string& place,
                                                      const std::vector<registry::CheckpointRef>& kept,
                                                      const std::vector<registry::Copy>& copies);

}  // namespace gridctl::control
