// SPDX-License-Identifier: Apache-2.0
#include "store/store_state.hpp"

#include <fcntl.h>

#include <algorithm>
#include <utility>

#include "crypto/sha256.hpp"
#include "os/entries.hpp"
#include "os/random.hpp"
#include "store/big_endian.hpp"

namespace gridctl::store {
namespace {

constexpr std::size_t k_write_back_min = 256 * 1024;             // bytes: less is not worth a system call
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

namespace {
Error damaged_blob(const std::string& pack, const FoundBlob& blob, const std::string& how) {
  return make_error(Code::checkpoint_damaged, "chunk " + to_hex(blob.id) + " is damaged: its bytes in " + pack +
                                                  " at offset " + std::to_string(blob.place.offset) + " " + how);
}
}  // namespace

Result<Bytes> decode_blob(Bytes bytes, const std::string& pack, const FoundBlob& blob, const Cipher* cipher,
                          const ReadBase& read_base, Proof proof) {
  const BlobPlace& place = blob.place;
  if (bytes.size() != place.length) return damaged_blob(pack, blob, "are truncated");
  if (place.sealed) {
    auto opened = cipher->open(blob.id, place.plain_length, bytes);
    if (!opened) return damaged_blob(pack, blob, "do not decrypt");
    bytes = *std::move(opened);
  }
  if (place.encoding.codec != Codec::raw) {
    Bytes base;
    if (place.base) {
      auto found = read_base(place.base);
      if (!found && (found.error().code == Code::checkpoint_damaged || found.error().code == Code::not_found))
        return damaged_blob(pack, blob, "need a blob that is missing or damaged");
      TRY_ASSIGN(base, std::move(found));
    }
    auto decoded = decode(place.encoding, bytes, place.plain_length, base);
    if (!decoded && decoded.error().code == Code::checkpoint_damaged)
      return damaged_blob(pack, blob, "cannot be decoded");
    TRY_ASSIGN(bytes, std::move(decoded));
  }
  if (place.sealed && proof == Proof::tag) return bytes;
  const Digest digest = crypto::sha256(bytes);
  if ((place.sealed ? cipher->storage_id(digest) : digest) != blob.id)
    return damaged_blob(pack, blob, "do not match its hash");
  return bytes;
}

Result<Bytes> read_blob(int fd, const std::string& pack, const FoundBlob& blob, const Cipher* cipher,
                        const ReadBase& read_base, Proof proof, Bytes* stored) {
  Bytes bytes(blob.place.length);
  TRY_ASSIGN(const std::size_t got, os::read_at(fd, bytes, blob.place.offset));
  bytes.resize(got);
  if (stored != nullptr) *stored = bytes;
  return decode_blob(std::move(bytes), pack, blob, cipher, read_base, proof);
}

const os::Clock& ChunkStore::State::clock() const {
  return options.clock != nullptr ? *options.clock : os::system_clock();
}

void ChunkStore::State::forget_all() {
  packs.clear();
  known_names.clear();
  index.clear();
  open_packs.clear();
  for (const UnpublishedPtr& pack : unpublished)
    for (const PackEntry& entry : pack->entries) index[entry.id] = place_in(*pack, entry);
}

BlobPlace ChunkStore::State::place_in(const UnpublishedPack& pack, const PackEntry& entry) const {
  return {pack.number, entry, sealing()};
}

UnpublishedPack* ChunkStore::State::unpublished_with(std::uint32_t number) {
  const auto found =
      std::ranges::find_if(unpublished, [&](const UnpublishedPtr& pack) { return pack->number == number; });
  return found == unpublished.end() ? nullptr : found->get();
}

Digest ChunkStore::State::id_of(const Digest& digest) const {
  return sealing() ? options.cipher->storage_id(digest) : digest;
}

std::optional<FoundBlob> ChunkStore::State::known(const Digest& digest) const {
  const Digest id = id_of(digest);
  if (const auto place = index.find(id); place != index.end()) return FoundBlob{id, place->second};
  if (!sealing()) return std::nullopt;
  const auto plain = index.find(digest);
  return plain == index.end() ? std::nullopt : std::optional(FoundBlob{digest, plain->second});
}

std::optional<FoundBlob> ChunkStore::State::known(const BaseId& base) const {
  const std::size_t bucket = index.bucket({first_bytes<32>(base.bytes)});  // equal beginnings lie in one bucket
  for (auto at = index.begin(bucket); at != index.end(bucket); ++at)
    if (base_id(at->first) == base) return FoundBlob{at->first, at->second};
  return std::nullopt;
}

Result<std::optional<FoundBlob>> ChunkStore::State::keep_base(const Digest& digest) {
  std::optional<FoundBlob> blob = known(digest);
  if (blob && blob->place.base) blob = known(blob->place.base);
  if (!blob || blob->place.base || !blob->place.sealed || blob->place.pack >= BlobPlace::k_unpublished)
    return std::optional<FoundBlob>();
  TRY_ASSIGN(const bool kept, claim(blob->place.pack));
  return kept ? blob : std::nullopt;
}

// Lists again only if the directory's time changed, or changed so recently that a second change may be hidden.
Result<void> ChunkStore::State::refresh(bool force) {
  TRY_ASSIGN(const auto status, os::status_of(packs_directory()));
  if (!status)
    return make_error(Code::state_unreadable, "store '" + directory.native() + "' has lost its packs folder");
  if (!force && status->mtime_ns == listed_mtime_ns) return {};
  TRY_ASSIGN(std::vector<std::string> names, os::list_directory(packs_directory()));
  std::erase_if(names, [](const std::string& name) { return !name.ends_with(".pack"); });
  const bool some_gone = std::ranges::any_of(
      known_names, [&](const std::string& known) { return !std::ranges::binary_search(names, known); });
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
  if (!pack && pack.error().code != Code::checkpoint_damaged && pack.error().code != Code::unsupported)
    return std::move(pack).error();
  known_names.insert(name);
  if (!pack || !has_key_of(*pack)) return {};
  const auto number = static_cast<std::uint32_t>(packs.size());
  packs.emplace_back().name = name;
  for (const PackEntry& entry : pack->entries) {
    if (!distrusted.contains({name, entry.offset})) index[entry.id] = {number, entry, static_cast<bool>(pack->key)};
  }
  return {};
}

Result<std::optional<FoundBlob>> ChunkStore::State::find(const Digest& digest) {
  std::optional<FoundBlob> blob = known(digest);
  if (blob) return blob;
  TRY(refresh(false));
  return known(digest);
}

Result<std::optional<FoundBlob>> ChunkStore::State::find_written(const Digest& digest) {
  for (;;) {
    TRY_ASSIGN(std::optional<FoundBlob> blob, find(digest));
    const UnpublishedPack* const pack = blob ? unpublished_with(blob->place.pack) : nullptr;
    if (pack == nullptr || pack->writing == 0) return blob;
    changed.wait(mutex);
  }
}

Result<Bytes> ChunkStore::State::read(const Find& find_blob, Proof proof) {
  for (int round = 0;; ++round) {
    std::string pack = "an unsealed pack";
    SharedFd fd;
    std::optional<FoundBlob> blob;
    {
      const os::MutexLock lock(mutex);
      TRY_ASSIGN(blob, find_blob());
      if (!blob) return make_error(Code::not_found, "a blob is not in the store '" + directory.native() + "'");
      if (blob->place.pack >= BlobPlace::k_unpublished) {
        fd = unpublished_with(blob->place.pack)->fd;
      } else {
        pack = packs[blob->place.pack].name;
        auto opened = open_pack(pack);
        if (!opened && opened.error().code == Code::not_found && round < k_retries_max) {
          TRY(refresh(true));
          continue;
        }
        TRY_ASSIGN(fd, std::move(opened));
      }
    }
    auto content = read_blob(
        fd->get(), pack, *blob, options.cipher.get(), [this](const BaseId& base) { return read_base(base); }, proof);
    if (content || content.error().code != Code::checkpoint_damaged) return content;
    // Another pack may hold an intact copy; this one is not read again.
    const os::MutexLock lock(mutex);
    const BlobPlace& place = blob->place;
    if (place.pack >= BlobPlace::k_unpublished || !distrusted.emplace(pack, place.offset).second) return content;
    forget_all();
    TRY(refresh(true));
    TRY_ASSIGN(const std::optional<FoundBlob> again, find_blob());
    if (!again) return content;
  }
}

// A base is always a complete blob: the index says so and the writer guarantees it, but a reader that trusted them
// could be led in circles.
Result<Bytes> ChunkStore::State::read_base(const BaseId& base) {
  return read(
      [&]() -> Result<std::optional<FoundBlob>> {
        mutex.assert_held();
        std::optional<FoundBlob> blob = known(base);
        if (blob && blob->place.base)
          return make_error(Code::checkpoint_damaged, "a difference is based on another difference");
        return blob;
      },
      Proof::tag);
}

Result<std::optional<Base>> ChunkStore::State::base_for(ByteView content, const Digest& before) {
  std::optional<FoundBlob> blob;
  {
    const os::MutexLock lock(mutex);
    TRY_ASSIGN(blob, keep_base(before));
  }
  if (!blob || blob->place.plain_length != content.size()) return std::optional<Base>();
  const BaseId id = base_id(blob->id);
  auto found = read_base(id);
  if (!found) return std::optional<Base>();  // then it is kept whole
  return std::optional(Base{id, *std::move(found)});
}

Result<bool> ChunkStore::State::keep(const Digest& digest) {
  if (!loaded) TRY(refresh(true));
  const std::optional<FoundBlob> blob = known(digest);
  if (!blob) return false;
  TRY_ASSIGN(const bool kept, claim(blob->place.pack));
  if (kept) return true;
  TRY(refresh(true));
  return known(digest).has_value();
}

Result<bool> ChunkStore::State::keep_locked(const Digest& digest) {
  const os::MutexLock lock(mutex);
  return keep(digest);
}

Result<bool> ChunkStore::State::claim(std::uint32_t pack) {
  if (pack >= BlobPlace::k_unpublished) return true;
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
  auto pack = std::make_shared<UnpublishedPack>();
  pack->number = next_number++;
  pack->path = path;
  pack->fd = std::make_shared<os::Fd>(std::move(fd));
  unpublished.push_back(pack);
  open = std::move(pack);
  return {};
}

// The place is reserved under the lock and filled without it, so that threads write side by side.
Result<void> ChunkStore::State::append(PackEntry entry, ByteView stored) {
  if (!open) TRY(begin_pack());
  const UnpublishedPtr pack = open;
  entry.offset = pack->end;
  entry.length = static_cast<std::uint32_t>(stored.size());
  pack->end += stored.size();
  pack->entries.push_back(entry);
  index[entry.id] = place_in(*pack, entry);
  ++pack->writing;
  Result<void> written;
  {
    const os::MutexUnlock meanwhile(mutex);
    written = os::write_at(pack->fd->get(), stored, entry.offset);
    if (written && stored.size() >= k_write_back_min)
      os::start_writing_back(pack->fd->get(), entry.offset, stored.size());
  }
  --pack->writing;
  if (!written) give_up(*pack, written.error());
  changed.notify_all();
  if (!written) return std::move(written).context("while writing to the store '" + directory.native() + "'");
  ++put_blobs;
  put_bytes += stored.size();
  const bool full =
      pack->end - k_pack_header_bytes >= options.pack_bytes_max || pack->entries.size() >= k_pack_blobs_max;
  return full && open == pack ? publish() : Result<void>();
}

namespace {

// A failed fsync is not repeated, because the kernel may have dropped the pages. The complete pack is abandoned
// instead.
Result<void> finish(const UnpublishedPack& pack, const PackEnd& end, const KeyId& key) {
  const int fd = pack.fd->get();
  TRY(os::write_at(fd, pack_header(pack.entries, key), 0));
  TRY(os::write_at(fd, end.bytes, pack.end));
  TRY(os::set_size(fd, pack.end + end.bytes.size()));
  return os::sync_fd(fd);
}

}  // namespace

Result<void> ChunkStore::State::publish() {
  const UnpublishedPtr pack = std::exchange(open, nullptr);
  if (!pack) return {};
  while (pack->writing != 0) changed.wait(mutex);
  if (pack->failed) return {};  // whoever could not write has said so
  const PackEnd end = pack_end(pack->entries, key());
  const std::string name = pack_name(end.id);
  const auto appear = [&]() -> Result<void> {
    TRY(finish(*pack, end, key()));
    TRY_ASSIGN(const os::FileLock set_lock, lock_pack_set());
    TRY(os::rename_path(pack->path, pack_path(name)));
    return os::sync_directory(packs_directory());
  };
  Result<void> done;
  {
    const os::MutexUnlock meanwhile(mutex);
    done = appear();
  }
  if (!done) {
    give_up(*pack, done.error());
    changed.notify_all();
    return std::move(done).context("while sealing a pack of '" + directory.native() + "'");
  }
  // Another thread may have listed it in the meantime; and a damaged pack with the same content had the same name.
  const auto listed = std::ranges::find(packs, name, &PublishedPack::name);
  const auto number = static_cast<std::uint32_t>(listed - packs.begin());
  if (listed == packs.end()) packs.push_back({name, clock().boot()});
  known_names.insert(name);
  std::erase_if(open_packs, [&](const auto& one) { return one.first == name; });
  for (const PackEntry& entry : pack->entries) {
    distrusted.erase({name, entry.offset});
    index[entry.id] = {number, entry, sealing()};
  }
  pack->gone = true;
  std::erase(unpublished, pack);
  changed.notify_all();
  return {};
}

Result<void> ChunkStore::State::publish_all() {
  Result<void> published = publish();
  const std::vector<UnpublishedPtr> others = unpublished;
  for (const UnpublishedPtr& pack : others) {
    while (pack != open && !pack->gone) changed.wait(mutex);
  }
  const std::optional<Error> error = std::exchange(lost, std::nullopt);
  if (!published) return published;
  return error ? Result<void>(*error) : Result<void>();
}

// Its blobs no longer exist; its other writers learn that from seal().
void ChunkStore::State::give_up(UnpublishedPack& pack, const Error& why) {
  pack.failed = true;
  lost = why;
  if (pack.gone) return;
  pack.gone = true;
  static_cast<void>(os::remove_file(pack.path));  // left behind, it is swept later
  for (const PackEntry& entry : pack.entries) {
    const auto place = index.find(entry.id);
    if (place != index.end() && place->second.pack == pack.number) index.erase(place);
  }
  if (open.get() == &pack) open = nullptr;
  std::erase_if(unpublished, [&](const UnpublishedPtr& one) { return one.get() == &pack; });
}

void ChunkStore::State::discard_unpublished() {
  const std::vector<UnpublishedPtr> all = unpublished;
  for (const UnpublishedPtr& pack : all) give_up(*pack, {});
}

}  // namespace gridctl::store
