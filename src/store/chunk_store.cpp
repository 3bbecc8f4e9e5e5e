// SPDX-License-Identifier: Apache-2.0
#include "store/chunk_store.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/text.hpp"
#include "crypto/sha256.hpp"
#include "store/big_endian.hpp"
#include "store/store_state.hpp"
#include "store/tree.hpp"

namespace gridctl::store {
namespace {

constexpr std::string_view k_format_line = "gridctl-store 1";
constexpr std::size_t k_format_max = 64 * 1024;  // bytes

constexpr std::string_view k_key_setting = "Key ";
constexpr std::size_t k_key_digits = 2 * sizeof(KeyId);  // of its hexadecimal form; half a digest's

std::string text_of(const KeyId& key) { return to_hex(ByteView{key.bytes}); }

// Settings that begin with an upper-case letter must be understood. Returns the value of `Key`, or "".
Result<std::string> check_format(const os::Path& file, std::string_view text) {
  const auto lines = split_lines(text);
  if (lines.empty() || lines[0] != k_format_line) {
    return make_error(Code::state_unreadable, "store '" + file.parent_path().native() + "' has format '" +
                                                  sanitize(lines.empty() ? "" : lines[0], 80) +
                                                  "'; this gridctl knows '" + std::string(k_format_line) + "'");
  }
  std::string key;
  for (const std::string& line : lines) {
    if (line.starts_with(k_key_setting) && key.empty()) key = line.substr(k_key_setting.size());
    else if (!line.empty() && line[0] >= 'A' && line[0] <= 'Z')
      return make_error(Code::state_unreadable, "store uses the unknown setting '" + sanitize(line, 80) + "'");
  }
  return key;
}

Result<std::string> key_in(const os::Path& format) {
  TRY_ASSIGN(const std::string text, os::read_file(format, k_format_max));
  return check_format(format, text);
}

// The key must be the store's; a store without one gets it.
Result<void> agree_on_key(const os::Path& format, const Cipher* cipher) {
  TRY_ASSIGN(const std::string key, key_in(format));
  const std::string ours = cipher == nullptr ? "" : text_of(cipher->id());
  if (key == ours) return {};
  if (!key.empty()) {
    return make_error(Code::state_unreadable,
                      "it is encrypted with key " + sanitize(key, 40) + ", " +
                          (ours.empty() ? "which is missing here" : "and the key here is " + ours),
                      "gridctl key import FILE");
  }
  TRY_ASSIGN(const os::FileLock lock, os::FileLock::acquire(format.parent_path() / "write.lock"));
  TRY_ASSIGN(const std::string text, os::read_file(format, k_format_max));
  TRY_ASSIGN(const std::string now, check_format(format, text));
  if (now.empty()) return os::write_file_durably(format, text + std::string(k_key_setting) + ours + "\n");
  if (now == ours) return {};
  return make_error(Code::state_unreadable, "another key, " + sanitize(now, 40) + ", has just been set",
                    "gridctl key import FILE");
}

Result<void> prepare(const os::Path& directory, const Cipher* cipher) {
  const os::Path format = directory / "format";
  TRY(os::make_directories(directory));
  if (!os::exists(format)) {
    const bool has_packs = os::exists(directory / "packs");
    if (has_packs && !os::exists(format))  // looked for once more: another process makes the format first
      return make_error(Code::state_unreadable, "store '" + directory.native() + "' has packs but no format file");
    const std::string key = cipher == nullptr ? "" : std::string(k_key_setting) + text_of(cipher->id()) + "\n";
    if (!has_packs) TRY(os::write_file_durably(format, std::string(k_format_line) + "\n" + key));
  }
  TRY(agree_on_key(format, cipher));
  TRY(os::make_directories(directory / "packs"));
  TRY(os::make_directories(directory / "tmp"));
  return os::sync_directory(directory);
}

// Holds a blob in its form inside a pack.
struct Packed {
  PackEntry entry;
  Bytes made;
  ByteView stored;  // `made`, or the content itself
};
Packed pack(ByteView content, const Digest& digest, const StoreOptions& options, std::optional<Base> base) {
  Packed packed{{digest, 0, 0, static_cast<std::uint32_t>(content.size()), {}, {}}, {}, content};
  std::optional<Encoded> encoded;
  if (base) encoded = encode_difference(content, std::move(base->content));
  if (encoded) packed.entry.base = base->id;
  else if (options.encode) encoded = encode(content);
  if (encoded) {
    packed.entry.encoding = encoded->encoding;
    packed.made = std::move(encoded->bytes);
    packed.stored = packed.made;
  }
  if (options.cipher != nullptr) {
    packed.entry.id = options.cipher->storage_id(digest);
    packed.made = options.cipher->seal(packed.entry.id, packed.entry.plain_length, packed.stored);
    packed.stored = packed.made;
  }
  return packed;
}

}  // namespace

ChunkStore::ChunkStore(std::unique_ptr<State> state) : state_(std::move(state)) {}
ChunkStore::ChunkStore(ChunkStore&&) noexcept = default;
ChunkStore& ChunkStore::operator=(ChunkStore&& other) noexcept {
  if (this != &other) {
    discard();
    state_ = std::move(other.state_);
  }
  return *this;
}
ChunkStore::~ChunkStore() { discard(); }

void ChunkStore::discard() {
  if (!state_) return;
  const os::MutexLock lock(state_->mutex);
  state_->discard_unpublished();
}

Result<ChunkStore> ChunkStore::open(const os::Path& directory, const StoreOptions& options) {
  TRY(prepare(directory, options.cipher.get()).context("while opening the store '" + directory.native() + "'"));
  auto state = std::make_unique<State>();
  state->directory = directory;
  state->options = options;
  return ChunkStore(std::move(state));
}

Result<KeyId> ChunkStore::key_of(const os::Path& directory) {
  if (!os::exists(directory / "format")) return KeyId{};
  TRY_ASSIGN(const std::string key, key_in(directory / "format"));
  if (key.empty()) return KeyId{};
  TRY_ASSIGN(const Digest padded, parse_digest(key + std::string(k_key_digits, '0')));
  return KeyId{first_bytes<16>(padded.bytes)};
}

const os::Path& ChunkStore::directory() const { return state_->directory; }
const Cipher* ChunkStore::cipher() const { return state_->options.cipher.get(); }

Result<bool> ChunkStore::has(const Digest& digest) {
  const os::MutexLock lock(state_->mutex);
  TRY_ASSIGN(const std::optional<FoundBlob> blob, state_->find(digest));
  return blob.has_value();
}

Result<std::vector<std::uint32_t>> ChunkStore::missing(std::span<const Digest> digests) {
  const os::MutexLock lock(state_->mutex);
  TRY(state_->refresh(false));
  for (int round = 0; round < State::k_retries_max; ++round) {
    std::vector<std::uint32_t> absent;
    bool all_claimed = true;
    for (std::uint32_t i = 0; i < digests.size(); ++i) {
      const std::optional<FoundBlob> blob = state_->known(digests[i]);
      if (!blob) {
        absent.push_back(i);
      } else {
        TRY_ASSIGN(const bool claimed, state_->claim(blob->place.pack));
        all_claimed = all_claimed && claimed;
      }
    }
    if (all_claimed) return absent;
    TRY(state_->refresh(true));
  }
  return make_error(Code::busy, "packs of '" + directory().native() + "' keep disappearing while they are claimed");
}

Result<std::vector<std::optional<std::uint32_t>>> ChunkStore::lengths(std::span<const Digest> digests) {
  const os::MutexLock lock(state_->mutex);
  TRY(state_->refresh(false));
  std::vector<std::optional<std::uint32_t>> lengths;
  lengths.reserve(digests.size());
  for (const Digest& digest : digests) {
    const std::optional<FoundBlob> blob = state_->known(digest);
    lengths.push_back(blob ? std::optional{blob->place.plain_length} : std::nullopt);
  }
  return lengths;
}

Result<Bytes> ChunkStore::get(const Digest& digest) {
  auto content = state_->read([&] {
    state_->mutex.assert_held();
    return state_->find_written(digest);
  });
  if (content || content.error().code != Code::not_found) return content;
  return make_error(Code::not_found, "chunk " + to_hex(digest) + " is not in the store '" + directory().native() + "'");
}

Result<void> ChunkStore::put(const Digest& digest, ByteView content, const Digest* before) {
  if (content.empty() || content.size() > k_blob_max) {
    return make_error(Code::checkpoint_damaged,
                      "chunk of " + std::to_string(content.size()) + " bytes: 1 to 64 MiB are allowed");
  }
  if (crypto::sha256(content) != digest)
    return make_error(Code::checkpoint_damaged, "content does not hash to " + to_hex(digest));
  return put_hashed(digest, content, before);
}

Result<void> ChunkStore::put_hashed(const Digest& digest, ByteView content, const Digest* before) {
  TRY_ASSIGN(const bool here, state_->keep_locked(digest));
  if (here) return {};
  std::optional<Base> base;
  if (before != nullptr && state_->options.encode) {
    TRY_ASSIGN(base, state_->base_for(content, *before));
  }
  // The mutex is not held during this work, so that others need not wait.
  Packed packed = pack(content, digest, state_->options, std::move(base));
  const os::MutexLock lock(state_->mutex);
  TRY_ASSIGN(const bool here_now, state_->keep(digest));
  if (here_now) return {};
  return state_->append(packed.entry, packed.stored);
}

Result<Bytes> ChunkStore::get_base(const BaseId& base) { return state_->read_base(base); }

Result<void> ChunkStore::seal() {
  const os::MutexLock lock(state_->mutex);
  return state_->publish_all();
}

Result<StoreStats> ChunkStore::stats() {
  const os::MutexLock lock(state_->mutex);
  TRY(state_->refresh(false));
  StoreStats stats;
  stats.packs = state_->packs.size();
  for (const UnpublishedPtr& pack : state_->unpublished) stats.unsealed_blobs += pack->entries.size();
  for (const auto& [digest, place] : state_->index) {
    if (place.pack >= BlobPlace::k_unpublished) continue;
    ++stats.blobs;
    stats.blob_bytes += place.length;
  }
  stats.put_blobs = state_->put_blobs;
  stats.put_bytes = state_->put_bytes;
  return stats;
}

}  // namespace gridctl::store
