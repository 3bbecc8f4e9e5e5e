// SPDX-License-Identifier: Apache-2.0
#include "agent/bag_output.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "agent/attempt_dir.hpp"

namespace gridctl::agent {

namespace {
constexpr std::size_t k_memory_bytes_max = 256 * 1024;  // of one task's output that is not in its file yet
constexpr std::size_t k_output_copy_bytes = 256 * 1024;
constexpr std::size_t k_last_lines_bytes = 8 * 1024;  // in which a program says why it failed
}  // namespace

os::Path output_piece(const os::Path& run, std::uint64_t number) { return run / ("out." + std::to_string(number)); }

void TaskOutput::add(std::string_view bytes, std::uint64_t bytes_max, const os::Path& folder) {
  const std::uint64_t room = bytes_max - std::min(bytes_max, size());
  std::string_view kept = bytes.substr(0, room);
  dropped_ += bytes.size() - kept.size();
  bytes_ += kept;
  if (bytes_.size() <= k_memory_bytes_max) return;
  if (!file_.valid())
    if (auto opened = os::open_file(folder, O_RDWR | O_TMPFILE)) file_ = std::move(*opened);
  if (file_.valid() && os::write_all(file_.get(), as_bytes(bytes_))) {
    spilled_ += bytes_.size();
  } else {
    [[maybe_unused]] const int cut = file_.valid() ? ::ftruncate(file_.get(), static_cast<off_t>(spilled_)) : 0;
    if (file_.valid()) ::lseek(file_.get(), static_cast<off_t>(spilled_), SEEK_SET);
    dropped_ += bytes_.size();
  }
  bytes_.clear();
}

bool TaskOutput::tells_of_a_full_disk() const {
  const std::string_view end = std::string_view(bytes_).substr(bytes_.size() - std::min(bytes_.size(), k_last_lines_bytes));
  return end.find("No space left on device") != end.npos || end.find("Disk quota exceeded") != end.npos;
}

// The controller removes pieces that it has.
bool OutputWriter::has_room(std::uint64_t bytes) {
  while (first_piece_ * k_output_piece_bytes + k_output_piece_bytes <= end_ &&
         !os::exists(output_piece(run_, first_piece_)))
    ++first_piece_;
  return end_ + bytes - first_piece_ * k_output_piece_bytes <= total_max_;
}

bool OutputWriter::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::uint64_t number = end_ / k_output_piece_bytes, at = end_ % k_output_piece_bytes;
    if (number_ != number) {
      auto opened = os::open_file(output_piece(run_, number), O_WRONLY | O_CREAT | O_NOFOLLOW);
      if (!opened) return false;
      piece_ = std::move(*opened);
      number_ = number;
    }
    const std::size_t part = std::min<std::uint64_t>(bytes.size(), k_output_piece_bytes - at);
    const ssize_t wrote = ::pwrite(piece_.get(), bytes.data(), part, static_cast<off_t>(at));
    if (wrote <= 0) return false;
    end_ += static_cast<std::uint64_t>(wrote);
    bytes.remove_prefix(static_cast<std::size_t>(wrote));
  }
  return true;
}

bool OutputWriter::copy(const os::Fd& from, std::uint64_t bytes) {
  std::string part(std::min<std::uint64_t>(bytes, k_output_copy_bytes), '\0');
  for (std::uint64_t at = 0; at < bytes; at += part.size()) {
    part.resize(std::min<std::uint64_t>(bytes - at, k_output_copy_bytes));
    if (!os::read_exactly(from.get(), reinterpret_cast<std::byte*>(part.data()), part.size(), at) || !write(part))
      return false;
  }
  return true;
}

bool OutputWriter::append(TaskOutput& output) {
  if (output.size() == 0) return true;
  const std::uint64_t before = end_;
  if (has_room(output.size()) && copy(output.file_, output.spilled_) && write(output.bytes_)) return true;
  end_ = before;  // what is there of it is written over
  output.dropped_ += output.size();
  return false;
}

Result<OutputSlice> read_output(const os::Path& run, std::uint64_t begin, std::uint64_t offset,
                                std::uint32_t bytes_max) {
  OutputSlice slice{std::max(begin, offset), {}};
  const auto file = open_hostile(run, output_piece("", slice.offset / k_output_piece_bytes).filename().string());
  const std::uint64_t at = slice.offset % k_output_piece_bytes;
  if (!file || file->size <= at) return slice;
  slice.bytes.resize(std::min<std::uint64_t>(bytes_max, std::min(file->size, k_output_piece_bytes) - at));
  TRY(os::read_exactly(file->fd.get(), reinterpret_cast<std::byte*>(slice.bytes.data()), slice.bytes.size(), at));
  return slice;
}

std::uint64_t drop_output(const os::Path& control, const os::Path& run, std::uint64_t from) {
  const auto stored = read_number(control / k_output_from_file);
  const std::uint64_t begun = stored && stored->has_value() ? static_cast<std::uint64_t>(**stored) : 0;
  const std::uint64_t wanted = from / k_output_piece_bytes, end = begun / k_output_piece_bytes;
  if (wanted <= end || from > INT64_MAX) return begun;
  // The new start is recorded first: a leftover piece is removed with the attempt.
  if (!os::write_file_atomically(control / k_output_from_file, std::to_string(wanted * k_output_piece_bytes) + "\n"))
    return begun;
  for (std::uint64_t number = end; number < wanted; ++number)
    if (::unlink(output_piece(run, number).c_str()) != 0) break;
  return wanted * k_output_piece_bytes;
}

}  // namespace gridctl::agent
