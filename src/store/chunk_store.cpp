// SPDX-License-Identifier: Apache-2.0
#include "store/chunk_store.hpp"

#include <utility>

#include "base/text.hpp"
#include "crypto/sha256.hpp"
#include "store/store_state.hpp"
#include "store/tree.hpp"

namespace gridctl::store {
namespace {

constexpr std::string_view k_format_line = "gridctl-store 1";
constexpr int k_retries_max = 3;  // a collection may replace packs under a reader; not so often

// Settings that begin with an upper-case letter must be understood.
Result<void> check_format(const os::Path& file, std::string_view text) {
  const auto lines = split_lines(text);
  if (lines.empty() || lines[0] != k_format_line) {
    return make_error(Code::state_unreadable, "store '" + file.parent_path().native() + "' has format '" +
                                                  sanitize(lines.empty() ? "" : lines[0], 80) +
                                                  "'; this gridctl knows '" + std::string(k_format_line) + "'");
  }
  for (const std::string& line : lines) {
    if (!line.empty() && line[0] >= 'A' && line[0] <= 'Z')
      return make_error(Code::state_unreadable, "store uses the unknown setting '" + sanitize(line, 80) + "'");
  }
  return {};
}

Result<void> prepare(const os::Path& directory) {
  const os::Path format = directory / "format";
  TRY(os::make_directories(directory));
  if (!os::exists(format)) {
    if (os::exists(directory / "packs"))
      return make_error(Code::state_unreadable, "store '" + directory.native() + "' has packs but no format file");
    TRY(os::write_file_durably(format, std::string(k_format_line) + "\n"));
  }
  TRY_ASSIGN(const std::string text, os::read_file(format, 64 * 1024));
  TRY(check_format(format, text));
  TRY(os::make_directories(directory / "packs"));
  TRY(os::make_directories(directory / "tmp"));
  return os::sync_directory(directory);
}

}  // namespace

ChunkStore::ChunkStore(std::unique_ptr<State> state) : state_(std::move(state)) {}
ChunkStore::ChunkStore(ChunkStore&&) noexcept = default;
ChunkStore& ChunkStore::operator=(ChunkStore&& other) noexcept {
  if (this != &other) {
    if (state_) state_->discard_unfinished();
    state_ = std::move(other.state_);
  }
  return *this;
}
ChunkStore::~ChunkStore() {
  if (state_) state_->discard_unfinished();
}

Result<ChunkStore> ChunkStore::open(const os::Path& directory, const StoreOptions& options) {
  TRY(prepare(directory).context("while opening the store '" + directory.native() + "'"));
  auto state = std::make_unique<State>();
  state->directory = directory;
  state->options = options;
  return ChunkStore(std::move(state));
}

const os::Path& ChunkStore::directory() const { return state_->directory; }

Result<bool> ChunkStore::has(const Digest& digest) {
  const std::lock_guard lock(state_->mutex);
  TRY_ASSIGN(const BlobPlace* place, state_->find(digest));
  return place != nullptr;
}

Result<std::vector<std::uint32_t>> ChunkStore::missing(std::span<const Digest> digests) {
  const std::lock_guard lock(state_->mutex);
  TRY(state_->refresh(false));
  for (int round = 0; round < k_retries_max; ++round) {
    std::vector<std::uint32_t> absent;
    bool all_claimed = true;
    for (std::uint32_t i = 0; i < digests.size(); ++i) {
      const auto place = state_->index.find(digests[i]);
      if (place == state_->index.end()) {
        absent.push_back(i);
      } else {
        TRY_ASSIGN(const bool claimed, state_->claim(place->second.pack));
        all_claimed = all_claimed && claimed;
      }
    }
    if (all_claimed) return absent;
    TRY(state_->refresh(true));
  }
  return make_error(Code::busy, "packs of '" + directory().native() + "' keep disappearing while they are claimed");
}

Result<Bytes> ChunkStore::get(const Digest& digest) {
  for (int round = 0;; ++round) {
    std::string pack = "an unsealed pack";
    SharedFd fd;
    BlobPlace place;
    {
      const std::lock_guard lock(state_->mutex);
      TRY_ASSIGN(const BlobPlace* found, state_->find(digest));
      if (found == nullptr) {
        return make_error(Code::not_found,
                          "chunk " + to_hex(digest) + " is not in the store '" + directory().native() + "'");
      }
      place = *found;
      if (place.pack == BlobPlace::k_unfinished) {
        fd = state_->unfinished.fd;
      } else {
        pack = state_->packs[place.pack].name;
        auto opened = state_->open_pack(pack);
        if (!opened && opened.error().code == Code::not_found && round < k_retries_max) {
          TRY(state_->refresh(true));
          continue;
        }
        TRY_ASSIGN(fd, std::move(opened));
      }
    }
    auto content = read_blob(fd->get(), pack, place, digest);
    if (content || content.error().code != Code::checkpoint_damaged) return content;
    // Another pack may hold a sound copy; this one is not looked at again.
    const std::lock_guard lock(state_->mutex);
    if (place.pack == BlobPlace::k_unfinished || !state_->distrusted.emplace(pack, place.offset).second) return content;
    state_->forget_all();
    TRY(state_->refresh(true));
    if (!state_->index.contains(digest)) return content;
  }
}

Result<void> ChunkStore::put(const Digest& digest, ByteView content) {
  if (content.empty() || content.size() > k_blob_max) {
    return make_error(Code::checkpoint_damaged,
                      "chunk of " + std::to_string(content.size()) + " bytes: 1 to 64 MiB are allowed");
  }
  if (crypto::sha256(content) != digest)
    return make_error(Code::checkpoint_damaged, "content does not hash to " + to_hex(digest));
  PackEntry entry{digest, 0, 0, static_cast<std::uint32_t>(content.size()), {}};
  ByteView stored = content;
  std::optional<Encoded> encoded;
  std::unique_lock lock(state_->mutex);
  TRY_ASSIGN(bool here, state_->keep(digest));
  if (here) return {};
  if (state_->options.encode) {
    lock.unlock();  // the others need not wait for the work
    encoded = encode(content);
    lock.lock();
    TRY_ASSIGN(here, state_->keep(digest));
    if (here) return {};
  }
  if (encoded) {
    entry.encoding = encoded->encoding;
    stored = encoded->bytes;
  }
  entry.length = static_cast<std::uint32_t>(stored.size());
  TRY(state_->append(entry, stored));
  const UnfinishedPack& pack = state_->unfinished;
  if (pack.end - k_pack_header_bytes >= state_->options.pack_bytes_max || pack.entries.size() >= k_pack_blobs_max)
    return state_->publish();
  return {};
}

Result<void> ChunkStore::seal() {
  const std::lock_guard lock(state_->mutex);
  return state_->publish();
}

Result<StoreStats> ChunkStore::stats() {
  const std::lock_guard lock(state_->mutex);
  TRY(state_->refresh(false));
  StoreStats stats;
  stats.packs = state_->packs.size();
  stats.damaged_packs = state_->damaged.size();
  stats.unsealed_blobs = state_->unfinished.entries.size();
  for (const auto& [digest, place] : state_->index) {
    if (place.pack == BlobPlace::k_unfinished) continue;
    ++stats.blobs;
    stats.blob_bytes += place.length;
  }
  stats.put_blobs = state_->put_blobs;
  stats.put_bytes = state_->put_bytes;
  return stats;
}

}  // namespace gridctl::store
