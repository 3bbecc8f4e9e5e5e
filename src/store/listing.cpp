// SPDX-License-Identifier: Apache-2.0
#include "store/listing.hpp"

#include <algorithm>

namespace gridctl::store {
namespace {

constexpr std::size_t k_note_max = 1024;  // bytes: a pointer of git-lfs, a sentence

// A few lines of text under the name of an archive are not an archive being written.
bool is_note(std::uint64_t size, const ReadAt& read) {
  if (size == 0 || size > k_note_max) return false;
  const Result<Bytes> bytes = read(0, size);
  if (!bytes || bytes->size() != size) return false;
  const std::string_view text = as_text(*bytes);
  return text.ends_with('\n') && std::ranges::all_of(text, [](char c) { return (c >= ' ' && c < 0x7f) || c == '\n'; });
}

}  // namespace

const FileFact* find_file(std::span<const FileFact> files, std::string_view path) {
  const auto at = std::lower_bound(files.begin(), files.end(), path,
                                   [](const FileFact& file, std::string_view wanted) { return file.path < wanted; });
  return at != files.end() && at->path == path ? &*at : nullptr;
}

Inspection inspect_file(std::string_view path, std::uint64_t size, const ReadAt& read) {
  const Result<Bytes> first = read(0, 4);
  if (!first) return {FileState::torn, first.error().one_line()};
  const Format format = guess_format(path.substr(path.rfind('/') + 1), size, *first);
  if ((format == Format::safetensors || format == Format::truncated) && is_note(size, read)) return {};
  switch (format) {
    case Format::safetensors:
    case Format::zip: {
      const auto tensors = tensors_of(format, size, read);
      return tensors ? Inspection{FileState::whole, ""} : Inspection{FileState::torn, tensors.error().message};
    }
    case Format::hdf5: {
      const auto checked = check_hdf5(size, read);
      return checked ? Inspection{FileState::whole, ""} : Inspection{FileState::torn, checked.error().message};
    }
    case Format::json:  // invalid: perhaps torn, perhaps lines of JSON under that name; only quiet time can tell
      if (check_json(size, read)) return {FileState::whole, ""};
      break;
    case Format::truncated: return {FileState::torn, "only " + std::to_string(size) + " bytes so far"};
    case Format::unknown: break;
  }
  return {};
}

}  // namespace gridctl::store
