// SPDX-License-Identifier: Apache-2.0
#include "whole/read_cache.hpp"

namespace gridctl::whole {
namespace {
constexpr std::size_t k_cache_max = 32u << 20;  // bytes; beyond, everything is read anew
}  // namespace

Result<Bytes> ReadCache::read(const store::FileFact& file, std::uint64_t offset, std::size_t size,
                              const store::ReadListed& read) {
  Known& known = known_[file.path];
  if (!(known.fact == file)) known = {file, {}};
  const auto at = known.pieces.find({offset, size});
  if (at != known.pieces.end()) return at->second;
  TRY_ASSIGN(Bytes bytes, read(file, offset, size));
  if (bytes_ + bytes.size() > k_cache_max) {
    known_.clear();
    bytes_ = 0;
    return bytes;
  }
  bytes_ += bytes.size();
  known.pieces.emplace(std::pair{offset, size}, bytes);
  return bytes;
}

void ReadCache::keep_only(const std::vector<store::FileFact>& files) {
  std::erase_if(known_, [&](const auto& one) {
    const store::FileFact* file = store::find_file(files, one.first);
    return file == nullptr || !(*file == one.second.fact);
  });
  bytes_ = 0;
  for (const auto& [path, known] : known_)
    for (const auto& [place, piece] : known.pieces) bytes_ += piece.size();
}

}  // namespace gridctl::whole
