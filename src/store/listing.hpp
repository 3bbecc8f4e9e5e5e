// SPDX-License-Identifier: Apache-2.0
// Describes the content of a checkpoint directory at one moment, as values: the input of the decisions in `whole`.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "store/formats.hpp"

namespace gridctl::store {

inline constexpr std::string_view k_commit_marker = ".commit";      // directly in the checkpoint directory
inline constexpr std::string_view k_how_marker = "commit-marker";  // how a checkpoint is recorded that the marker made

struct FileFact {
  std::string path;
  std::uint64_t size = 0;
  std::int64_t mtime_ns = 0, ctime_ns = 0;
  std::uint64_t inode = 0;
  bool operator==(const FileFact&) const = default;
};

// Lists the regular files (and links) of the checkpoint directory at one moment, ascending by path, without the marker.
struct Listing {
  std::vector<FileFact> files;
  std::optional<FileFact> marker;  // `.commit`
  std::vector<std::string> unreadable{};  // "PATH: why" of what cannot be read; foreign text
  bool operator==(const Listing&) const = default;
};
[[nodiscard]] const FileFact* find_file(std::span<const FileFact> files, std::string_view path);

enum class FileState : std::uint8_t { unknown, whole, torn };  // unknown: no format we know
struct Inspection {
  FileState state = FileState::unknown;
  std::string why;  // with torn
};
using Inspect = std::function<Inspection(const FileFact&)>;
// Inspects one file: guesses the format and checks it. `read` reads that file.
[[nodiscard]] Inspection inspect_file(std::string_view path, std::uint64_t size, const ReadAt& read);

// Reads `size` bytes at `offset` of a listed file; fewer only at its end.
using ReadListed = std::function<Result<Bytes>(const FileFact&, std::uint64_t offset, std::size_t size)>;

// Selects the files of a listing that make up a checkpoint. A file in none of these sets is taken as listed.
struct Selection {
  std::set<std::string> growing;        // appended to meanwhile: the listed length is taken
  std::set<std::string> left_out;       // not taken at all
  std::set<std::string> from_previous;  // taken as the previous snapshot has it; need not be listed any more
  bool operator==(const Selection&) const = default;
};

}  // namespace gridctl::store
