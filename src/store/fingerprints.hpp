// SPDX-License-Identifier: Apache-2.0
// How a chunk that stands where it stood at the last save is recognised without hashing it: by a keyed hash, several
// times as fast as SHA-256 (crypto::PolyHash). Whoever knew its key could make a chunk that is taken for another: key
// and hashes stay in memory, or lie sealed with the store's key. Format: gridctl-store(5).
//
// Most of a checkpoint is often the one before, and SHA-256 was nine tenths of saving it again. Modification times
// would be quicker still, but a program that rewrites its file changes them, and one that maps it may not.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "os/files.hpp"
#include "store/cipher.hpp"
#include "store/tree.hpp"

namespace gridctl::store {

inline constexpr std::uint32_t k_fingerprint_min = 64u << 10;  // bytes of a chunk; smaller ones are just hashed

// The chunks of one state of a directory, for the scan of its next state. Without effect on processors that have no
// quick hash. recognise(), note() and keep() may be called by several threads at once.
class Fingerprints {
 public:
  Fingerprints();  // of nothing, with a key of its own
  Fingerprints(Fingerprints&&) noexcept;
  Fingerprints& operator=(Fingerprints&&) noexcept;
  ~Fingerprints();

  // Whether this is the content of `before`; false also when that is not known.
  [[nodiscard]] bool recognise(const Digest& before, ByteView content);
  // A chunk that had to be hashed, and what stood in its place before. One that differs from that is likely to differ
  // next time too, and is not worth it.
  void note(const Digest& digest, ByteView content, const Digest* before);
  // A file that was taken over unread.
  void keep(const Entry& entry);
  // With success, what was recognised, noted and kept is what is known from now on; else nothing has changed.
  void end_scan(bool success);

  // With those of the tree of this root, or of nothing when there is no such file, or a damaged one.
  [[nodiscard]] static Fingerprints load(const os::Path& store, const Cipher& cipher, const Digest& root);
  // Not durable: what a power cut takes is only hashed again.
  [[nodiscard]] Result<void> save(const os::Path& store, const Cipher& cipher, const Digest& root) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Removes the files of trees whose root, by its storage id, is not live.
[[nodiscard]] Result<void> sweep_fingerprints(const os::Path& store, const std::function<bool(const Digest& id)>& live);

}  // namespace gridctl::store
