// SPDX-License-Identifier: Apache-2.0
#include "agent/log_ring.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include "base/numbers.hpp"
#include "os/entries.hpp"

namespace gridctl::agent {
namespace {

constexpr std::uint64_t k_ring_bytes_min = 64 * 1024;      // below this a ring could not hold a stack trace
constexpr std::size_t k_take_bytes = 256 * 1024;           // at once from a pipe
constexpr double k_bytes_per_second = 32.0 * 1024 * 1024;  // sustained; spares the host's disk, bursts of one ring pass

std::string piece_name(std::uint64_t offset) {
  std::string digits = std::to_string(offset);
  return std::string(20 - digits.size(), '0') + digits;
}

// Maps the offset of every piece to its size.
std::map<std::uint64_t, std::uint64_t> pieces(const os::Path& folder) {
  std::map<std::uint64_t, std::uint64_t> found;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(folder, failed)) {
    const std::string name = entry.path().filename().string();
    const auto offset = parse_number<std::uint64_t>(name);
    struct stat info {};
    if (offset && ::lstat(entry.path().c_str(), &info) == 0) found[*offset] = static_cast<std::uint64_t>(info.st_size);
  }
  return found;
}

}  // namespace

Result<LogRing> LogRing::open(const os::Path& folder, std::uint64_t bytes_max) {
  TRY(os::make_directories(folder));
  LogRing ring(folder, std::max(bytes_max, k_ring_bytes_min));
  ring.tokens_ = static_cast<double>(ring.bytes_max_);
  ring.end_ = log_end(folder);
  return ring;
}

void LogRing::refill(BootTime now) {
  const double passed = refilled_.ns == 0 ? 0.0 : seconds(now - refilled_);
  refilled_ = now;
  tokens_ = std::min(static_cast<double>(bytes_max_), tokens_ + passed * k_bytes_per_second);
}

bool LogRing::take(int pipe, BootTime now) {
  int waiting = 0;
  if (::ioctl(pipe, FIONREAD, &waiting) != 0 || waiting <= 0) return false;
  const std::size_t bytes = std::min(static_cast<std::size_t>(waiting), k_take_bytes);
  refill(now);
  if (tokens_ >= static_cast<double>(bytes) && tell_dropped()) {
    if (const std::size_t moved = move_from(pipe, bytes); moved > 0) {
      tokens_ -= static_cast<double>(moved);
      return true;
    }
  }
  std::string passing(bytes, '\0');
  const ssize_t got = ::read(pipe, passing.data(), passing.size());
  if (got > 0) append(std::string_view(passing).substr(0, static_cast<std::size_t>(got)), now);
  return got > 0;
}

std::size_t LogRing::move_from(int pipe, std::size_t bytes) {
  if (!has_room()) return 0;
  const std::size_t room = bytes_max_ / k_pieces - piece_bytes_;
  const ssize_t moved = ::splice(pipe, nullptr, piece_.get(), nullptr, std::min(bytes, room), SPLICE_F_NONBLOCK);
  if (moved <= 0) return 0;
  count(static_cast<std::size_t>(moved));
  return static_cast<std::size_t>(moved);
}

void LogRing::append(std::string_view output, BootTime now) {
  refill(now);
  if (tokens_ < static_cast<double>(output.size())) {
    dropped_ += output.size();
    return;
  }
  const std::size_t kept = tell_dropped() ? store(output) : 0;
  tokens_ -= static_cast<double>(kept);
  unwritten_ += output.size() - kept;
}

Result<void> LogRing::take_file(const os::Path& file, std::uint64_t bytes_max) {
  TRY_ASSIGN(const auto status, os::status_of(file));
  if (!status) return {};
  if (status->kind != os::FileKind::regular || status->size > bytes_max) {
    TRY(os::remove_tree(file));
    return make_error(Code::refused, "'" + file.native() + "' is not an output file");
  }
  (void)tell_dropped();
  TRY(os::rename_path(file, folder_ / piece_name(end_)));
  piece_.reset();
  end_ += status->size;
  return {};
}

bool LogRing::finish() { return tell_dropped(); }

// The line counts only once it is written completely: a disk may fill up, or be emptied, in its middle.
bool LogRing::tell_dropped() {
  if (!notice_.empty()) {
    notice_.erase(0, store(notice_));
  } else {
    if (unwritten_ == 0 && dropped_ == 0) return true;
    std::uint64_t& count = unwritten_ > 0 ? unwritten_ : dropped_;
    const std::string line = "\n[gridctl: " + std::to_string(count) + " bytes of output " +
                             (unwritten_ > 0 ? "lost: the host's disk was full]\n" : "dropped]\n");
    const std::size_t kept = store(line);
    if (kept == 0) return false;
    count = 0;
    notice_ = line.substr(kept);
  }
  return notice_.empty() && tell_dropped();
}

std::size_t LogRing::store(std::string_view output) {
  const std::size_t whole = output.size();
  while (!output.empty()) {
    if (!has_room()) break;
    const auto part = output.substr(0, bytes_max_ / k_pieces - piece_bytes_);
    const ssize_t wrote = ::write(piece_.get(), part.data(), part.size());
    out_of_space_ = wrote < 0 && (errno == ENOSPC || errno == EDQUOT);
    if (wrote <= 0) break;
    count(static_cast<std::size_t>(wrote));
    output.remove_prefix(static_cast<std::size_t>(wrote));
  }
  return whole - output.size();
}

void LogRing::count(std::size_t wrote) {
  piece_bytes_ += wrote;
  end_ += wrote;
}

bool LogRing::next_piece() {
  trim_oldest();
  auto file = os::open_file(folder_ / piece_name(end_), O_WRONLY | O_CREAT);  // O_APPEND forbids splice
  if (!file) {
    out_of_space_ = file.error().code == Code::no_space;
    return false;
  }
  piece_ = std::move(*file);
  piece_bytes_ = 0;
  return true;
}

void LogRing::trim_oldest() {
  auto all = pieces(folder_);
  std::uint64_t total = 0;
  for (const auto& [offset, size] : all) total += size;
  while (!all.empty() && total + bytes_max_ / k_pieces > bytes_max_) {
    ::unlink((folder_ / piece_name(all.begin()->first)).c_str());
    total -= all.begin()->second;
    all.erase(all.begin());
  }
}

Result<LogSlice> read_log(const os::Path& folder, std::uint64_t offset, std::uint32_t bytes_max) {
  const auto all = pieces(folder);
  LogSlice slice;
  if (all.empty()) return slice;
  slice.end_offset = all.rbegin()->first + all.rbegin()->second;
  slice.offset = std::clamp(offset, all.begin()->first, slice.end_offset);
  auto piece = std::prev(all.upper_bound(slice.offset));
  for (; piece != all.end() && slice.bytes.size() < bytes_max; ++piece) {
    const std::uint64_t position = slice.offset + slice.bytes.size();
    if (position < piece->first && !slice.bytes.empty()) break;  // a gap: the next request begins behind it
    if (position < piece->first) slice.offset = piece->first;
    const std::uint64_t from = slice.offset + slice.bytes.size() - piece->first;
    if (from >= piece->second) continue;
    const auto count = std::min<std::uint64_t>(piece->second - from, bytes_max - slice.bytes.size());
    auto file = os::open_file(folder / piece_name(piece->first), O_RDONLY);
    if (!file) continue;
    const std::size_t had = slice.bytes.size();
    slice.bytes.resize(had + count);
    TRY(os::read_exactly(file->get(), reinterpret_cast<std::byte*>(slice.bytes.data() + had), count, from));
  }
  return slice;
}

std::uint64_t log_end(const os::Path& folder) {
  const auto all = pieces(folder);
  return all.empty() ? 0 : all.rbegin()->first + all.rbegin()->second;
}

}  // namespace gridctl::agent
