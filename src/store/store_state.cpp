// SPDX-License-Identifier: Apache-2.0
#include "store/store_state.hpp"

#include <fcntl.h>

#include <algorithm>
#include <utility>

#include "crypto/sha256.hpp"
#include "os/entries.hpp"
#include "os/random.hpp"

namespace gridctl::store {
namespace {

constexpr std::size_t k_open_packs_max = 8;                      // descriptors kept for readers
constexpr Duration k_claim_period = std::chrono::minutes{10};    // a pack is touched at most so often by one instance
constexpr Duration k_listing_settles = std::chrono::seconds{2};  // a directory's time may be this coarse

}  // namespace

ReadAt reader_of(int fd) {
  return [fd](std::uint64_t offset, std::size_t size) -> Result<Bytes> {
    Bytes bytes(size);
    TRY_ASSIGN(const std::size_t got, os::read_at(fd, bytes, offset));
    bytes.resize(got);
    return bytes;
  };
}

Result<PackIndex> read_pack(int fd, const std::string& name) {
  TRY_ASSIGN(const os::FileStatus status, os::status_of(fd));
  TRY_ASSIGN(PackIndex index, read_pack_index(status.size, reader_of(fd)));
  if (pack_name(index.id) != name) return make_error(Code::checkpoint_damaged, "pack's name is not its index digest");
  return index;
}

Result<Bytes> read_blob(int fd, const std::string& pack, const BlobPlace& place, const Digest& digest, Bytes* stored) {
  Bytes bytes(place.length);
  TRY_ASSIGN(const std::size_t got, os::read_at(fd, bytes, place.offset));
  const auto damaged = [&](const std::string& how) {
    return make_error(Code::checkpoint_damaged, "chunk " + to_hex(digest) + " is damaged: its bytes in " + pack +
                                                    " at offset " + std::to_string(place.offset) + " " + how);
  };
  if (got != place.length) return damaged("are cut off");
  const bool raw = place.encoding.codec == Codec::raw;
  Bytes plain;
  if (raw) {
    if (stored != nullptr) *stored = bytes;
    plain = std::move(bytes);
  } else {
    auto decoded = decode(place.encoding, bytes, place.plain_length);
    if (!decoded && decoded.error().code == Code::checkpoint_damaged) return damaged("cannot be decoded");
    TRY_ASSIGN(plain, std::move(decoded));
    if (stored != nullptr) *stored = std::move(bytes);
  }
  if (crypto::sha256(plain) != digest) return damaged("do not hash to its name");
  return plain;
}

const os::Clock& ChunkStore::State::clock() const {
  return options.clock != nullptr ? *options.clock : os::system_clock();
}

void ChunkStore::State::forget_all() {
  packs.clear();
  known_names.clear();
  damaged.clear();
  index.clear();
  open_packs.clear();
  for (const PackEntry& entry : unfinished.entries) index[entry.id] = {BlobPlace::k_unfinished, entry};
}

// Lists again only when the directory's time moved, or moved so lately that a second change may hide behind it.
Result<void> ChunkStore::State::refresh(bool force) {
  TRY_ASSIGN(const auto status, os::status_of(packs_directory()));
  if (!status)
    return make_error(Code::state_unreadable, "store '" + directory.native() + "' has lost its packs folder");
  if (!force && status->mtime_ns == listed_mtime_ns) return {};
  TRY_ASSIGN(std::vector<std::string> names, os::list_directory(packs_directory()));
  std::erase_if(names, [](const std::string& name) { return !name.ends_with(".pack"); });
  const bool some_gone = std::any_of(known_names.begin(), known_names.end(), [&](const std::string& known) {
    return !std::binary_search(names.begin(), names.end(), known);
  });
  if (some_gone) forget_all();
  for (const std::string& name : names) {
    if (!known_names.contains(name)) TRY(load(name));
  }
  loaded = true;
  const Duration age{clock().wall().ms * 1'000'000 - status->mtime_ns};
  listed_mtime_ns = age > k_listing_settles ? status->mtime_ns : -1;
  return {};
}

Result<void> ChunkStore::State::load(const std::string& name) {
  auto fd = os::open_file(pack_path(name), O_RDONLY);
  if (!fd && fd.error().code == Code::not_found) return {};  // collected since the listing
  if (!fd) return std::move(fd).error();
  auto pack = read_pack(fd->get(), name);
  if (!pack) {
    const Code code = pack.error().code;
    if (code != Code::checkpoint_damaged && code != Code::unsupported) return std::move(pack).error();
    damaged[name] = pack.error().one_line();
    known_names.insert(name);
    return {};
  }
  const auto number = static_cast<std::uint32_t>(packs.size());
  packs.emplace_back().name = name;
  known_names.insert(name);
  for (const PackEntry& entry : pack->entries) {
    if (!distrusted.contains({name, entry.offset})) index[entry.id] = {number, entry};
  }
  return {};
}

Result<const BlobPlace*> ChunkStore::State::find(const Digest& digest) {
  auto place = index.find(digest);
  if (place == index.end()) {
    TRY(refresh(false));
    place = index.find(digest);
  }
  return place == index.end() ? nullptr : &place->second;
}

Result<bool> ChunkStore::State::keep(const Digest& digest) {
  if (!loaded) TRY(refresh(true));
  const auto place = index.find(digest);
  if (place == index.end()) return false;
  TRY_ASSIGN(const bool kept, claim(place->second.pack));
  if (kept) return true;
  TRY(refresh(true));
  return index.contains(digest);
}

Result<bool> ChunkStore::State::claim(std::uint32_t pack) {
  if (pack == BlobPlace::k_unfinished) return true;
  PublishedPack& published = packs[pack];
  const BootTime now = clock().boot();
  if (now - published.claimed_at < k_claim_period) return true;
  TRY_ASSIGN(const os::FileLock lock, lock_pack_set());
  TRY_ASSIGN(const bool there, os::touch_file(pack_path(published.name)));
  if (there) published.claimed_at = now;
  return there;
}

Result<SharedFd> ChunkStore::State::open_pack(const std::string& name) {
  for (const auto& [open_name, fd] : open_packs) {
    if (open_name == name) return fd;
  }
  TRY_ASSIGN(os::Fd fd, os::open_file(pack_path(name), O_RDONLY));
  if (open_packs.size() == k_open_packs_max) open_packs.erase(open_packs.begin());
  open_packs.emplace_back(name, std::make_shared<os::Fd>(std::move(fd)));
  return open_packs.back().second;
}

Result<void> ChunkStore::State::begin_pack() {
  const os::Path path = directory / "tmp" / (os::random_id(20) + ".part");
  TRY_ASSIGN(os::Fd fd, os::open_file(path, O_RDWR | O_CREAT | O_EXCL, 0600));
  unfinished = {path, std::make_shared<os::Fd>(std::move(fd)), k_pack_header_bytes, {}};
  auto written = os::write_at(unfinished.fd->get(), pack_header({}), 0);
  if (!written) discard_unfinished();
  return written;
}

Result<void> ChunkStore::State::append(PackEntry entry, ByteView stored) {
  if (!unfinished.fd) TRY(begin_pack());
  TRY(os::write_at(unfinished.fd->get(), stored, unfinished.end)
          .context("while writing to the store '" + directory.native() + "'"));
  entry.offset = unfinished.end;
  unfinished.entries.push_back(entry);
  unfinished.end += stored.size();
  index[entry.id] = {BlobPlace::k_unfinished, entry};
  ++put_blobs;
  put_bytes += stored.size();
  return {};
}

// A failed fsync is not repeated: the kernel may have dropped the pages. The whole pack is given up instead.
Result<void> ChunkStore::State::publish() {
  if (unfinished.entries.empty()) return {};
  const PackEnd end = pack_end(unfinished.entries);
  const std::string name = pack_name(end.id);
  const auto finish = [&]() -> Result<void> {
    const int fd = unfinished.fd->get();
    TRY(os::write_at(fd, pack_header(unfinished.entries), 0));
    TRY(os::write_at(fd, end.bytes, unfinished.end));
    TRY(os::set_size(fd, unfinished.end + end.bytes.size()));
    TRY(os::sync_fd(fd));
    TRY_ASSIGN(const os::FileLock lock, lock_pack_set());
    TRY(os::rename_path(unfinished.path, pack_path(name)));
    return os::sync_directory(packs_directory());
  };
  if (auto done = finish(); !done) {
    discard_unfinished();
    return std::move(done).context("while sealing a pack of '" + directory.native() + "'");
  }
  const auto number = static_cast<std::uint32_t>(packs.size());
  packs.push_back({name, clock().boot()});
  known_names.insert(name);
  for (const PackEntry& entry : unfinished.entries) index[entry.id] = {number, entry};
  unfinished = {};
  return {};
}

void ChunkStore::State::discard_unfinished() {
  if (!unfinished.fd) return;
  static_cast<void>(os::remove_file(unfinished.path));  // left behind, it is swept later
  for (const PackEntry& entry : unfinished.entries) index.erase(entry.id);
  unfinished = {};
}

}  // namespace gridctl::store
