// SPDX-License-Identifier: Apache-2.0
// Recognises a chunk that is at the same place as in the last save without SHA-256: by a keyed hash several times as
// fast (crypto::PolyHash). Anyone who knew its key could make a chunk that is mistaken for another, so key and hashes
// stay in memory, or are stored sealed with the store's key. Format: gridctl-store(5).
//
// Most of a checkpoint is often the same as the previous one, and SHA-256 was nine tenths of the time to save it again.
// Modification times would be quicker still, but a program that rewrites its file changes them, and one that maps it
// may not.
#pragma once

#include <functional>
#include <memory>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "os/files.hpp"
#include "store/cipher.hpp"
#include "store/tree.hpp"

namespace gridctl::store {

inline constexpr std::uint32_t k_fingerprint_min = 64u << 10;  // bytes of a chunk; smaller ones are just hashed

// Holds the chunks of one state of a directory, for the scan of its next state. Has no effect on processors without a
// quick hash. recognise(), note() and keep() may be called by several threads at once.
class Fingerprints {
 public:
  Fingerprints();  // of nothing, with a key of its own
  Fingerprints(Fingerprints&&) noexcept;
  Fingerprints& operator=(Fingerprints&&) noexcept;
  ~Fingerprints();

  // Returns whether this is the content of `before`; false if that is not known.
  [[nodiscard]] bool recognise(const Digest& before, ByteView content);
  // Notes a chunk that had to be hashed, and the earlier chunk at its place. A chunk that differs from it is likely to
  // differ next time too, and is not worth a fingerprint.
  void note(const Digest& digest, ByteView content, const Digest* before);
  // Notes a file that was taken over unread.
  void keep(const Entry& entry);
  // After a success, the recognised, noted and kept chunks are the known ones; otherwise nothing changes.
  void end_scan(bool success);

  // Loads the fingerprints of the tree with this root, or none if the file is missing or damaged.
  [[nodiscard]] static Fingerprints load(const os::Path& store, const Cipher& cipher, const Digest& root);
  // Saves without durability: data lost in a power cut is simply hashed again.
  [[nodiscard]] Result<void> save(const os::Path& store, const Cipher& cipher, const Digest& root) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Removes the files of trees whose root, by its storage id, is not live.
[[nodiscard]] Result<void> sweep_fingerprints(const os::Path& store, const std::function<bool(const Digest& id)>& live);

}  // namespace gridctl::store
