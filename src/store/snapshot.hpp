// SPDX-License-Identifier: Apache-2.0
// Makes a private copy of a checkpoint directory at a moment when it was complete, and its tree.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "os/files.hpp"
#include "store/listing.hpp"
#include "store/scan.hpp"
#include "store/tree.hpp"

namespace gridctl::store {

// Lists the directory for whole::WholeWatch. busy if entries vanish in the meantime. Links count as files; `.commit` is
// the marker. Unreadable files are not listed, but noted.
[[nodiscard]] Result<Listing> list_checkpoint(int directory_fd);
// Looks into files of this directory, which must stay open. A link is data, and complete.
[[nodiscard]] Inspect inspect_in(int directory_fd);
[[nodiscard]] ReadListed read_in(int directory_fd);

struct Snapshot {
  Tree tree;
  Bytes manifest;
  Digest root;
  Listing listing;                 // of the source, as it was copied
  std::vector<std::string> notes;  // what was left out and why; foreign text
};

struct SnapshotOptions {
  std::uint64_t bytes_max = 0;  // no_space beyond; 0 = no limit
  // Points to an earlier snapshot of the same source: its unchanged files are hard-linked and not hashed again.
  const Snapshot* previous = nullptr;
  os::Path previous_directory;
  Fingerprints* fingerprints = nullptr;  // of `previous`; of this one when it succeeds. May be null
  unsigned threads = 1;                  // that hash
  Selection selection{};                 // not_found when it wants of the previous what that does not have
  std::vector<std::string> known_as{};   // as ScanOptions::known_as, of the source
  // Copies everything without judging it: files may change, appear and disappear while they are copied, and a file that
  // cannot be copied is noted.
  bool as_left = false;
  bool is_still = false;  // nobody writes there any more: files get a second name instead of being copied
};

// Copies (sharing extents if the file system can) into `into`, which must not exist, then hashes the copy. The source
// is listed before and after: if the selection differs from `expected` either time, busy (look again later), and `into`
// is removed.
[[nodiscard]] Result<Snapshot> take_snapshot(int source_fd, const Listing& expected, const os::Path& into,
                                             const SnapshotOptions& options = {});

}  // namespace gridctl::store
