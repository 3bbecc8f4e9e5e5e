// SPDX-License-Identifier: Apache-2.0
#include "store/file_chunks.hpp"

#include <fcntl.h>

#include <utility>

#include "base/text.hpp"
#include "crypto/sha256.hpp"
#include "os/entries.hpp"
#include "os/files.hpp"

namespace gridctl::store {

namespace {
Result<os::Fd> open_source(const os::Fd& directory, const Entry& entry) {
  return os::open_beneath(directory.get(), entry.path, O_RDONLY | O_NONBLOCK);
}
}  // namespace

void FileChunks::add(os::Fd directory, Tree tree) {
  const Source& source = sources_.emplace_back(std::move(directory), std::move(tree));
  for (const Entry& entry : source.tree.entries) {
    if (entry.chunks.empty()) continue;
    const Result<os::Fd> file = open_source(source.directory, entry);
    const Result<os::FileStatus> status = file ? os::status_of(file->get()) : Result<os::FileStatus>(file.error());
    if (!status || status->kind != os::FileKind::regular || status->size != entry.size) continue;
    std::uint64_t offset = 0;
    for (const Chunk& chunk : entry.chunks) {
      places_.try_emplace(chunk.digest, Place{&source, &entry, offset, chunk.size});
      offset += chunk.size;
    }
  }
}

Result<Bytes> FileChunks::read(const Digest& digest) {
  const auto place = places_.find(digest);
  if (place == places_.end()) return make_error(Code::not_found, "chunk " + to_hex(digest) + " is in none of the files");
  const auto& [source, entry, offset, size] = place->second;
  TRY_ASSIGN(const os::Fd file, open_source(source->directory, *entry));
  Bytes content(size);
  TRY_ASSIGN(const std::size_t got, os::read_at(file.get(), content, offset));
  if (got == size && crypto::sha256(content) == digest) return content;
  return make_error(Code::checkpoint_damaged, "file '" + sanitize(entry->path) + "' of a snapshot is damaged");
}

bool FileChunks::share(const Entry& entry, int to_fd) const {
  const auto place = entry.chunks.empty() ? places_.end() : places_.find(entry.chunks.front().digest);
  if (place == places_.end() || place->second.entry->chunks != entry.chunks) return false;
  const Result<os::Fd> file = open_source(place->second.source->directory, *place->second.entry);
  return file && os::share_extents(file->get(), to_fd);
}

Result<Bytes> EitherReader::read(const Digest& digest) {
  Result<Bytes> content = first_.read(digest);
  return content ? std::move(content) : second_.read(digest);
}

}  // namespace gridctl::store
