// SPDX-License-Identifier: Apache-2.0
#include "control/follow/log_file.hpp"

#include <fcntl.h>

#include <algorithm>
#include <string>

#include "base/numbers.hpp"
#include "base/text.hpp"
#include "control/follow/log_times.hpp"
#include "control/reach/disk_reserve.hpp"
#include "os/clock.hpp"
#include "os/entries.hpp"

namespace gridctl::control {

namespace {

constexpr std::uint64_t k_tail_bytes = 4096;            // enough for a stack trace
constexpr std::uint64_t k_log_offset_max = 1ull << 60;  // an exabyte; sums of two stay numbers

// Path of the file beside the log that counts the bytes of output seen. Without it, the log has neither gaps nor a cut
// end.
os::Path seen_path(const os::Path& path) { return path.string() + ".seen"; }

Result<std::uint64_t> read_seen(const os::Path& path) {
  if (os::exists(seen_path(path))) {
    TRY_ASSIGN(const std::string text, os::read_file(seen_path(path), 64));
    if (const auto seen = leading_number<std::uint64_t>(text)) return *seen;
  }
  TRY_ASSIGN(const auto status, os::status_of(path));
  return status ? status->size : 0;
}

Result<void> append(const os::Path& path, std::string_view bytes) {
  TRY_ASSIGN(const os::Fd fd, os::open_file(path, O_WRONLY | O_APPEND | O_CREAT, 0600));
  return os::write_all(fd.get(), as_bytes(bytes));
}

// A secret may have begun in the existing bytes: those are masked before the rest is appended.
Result<void> append_masked(const os::Path& path, std::string bytes, std::uint64_t kept, const Masks& masks) {
  if (masks.empty()) return append(path, bytes);
  const std::size_t back = std::min<std::uint64_t>(kept, masks.reach());
  Bytes end(back);
  if (back > 0) {
    TRY_ASSIGN(const os::Fd fd, os::open_file(path, O_RDWR));
    TRY(os::read_exactly(fd.get(), end.data(), back, kept - back));
    const std::string before(as_text(end));
    std::string both = before + bytes;
    masks.mask(both);
    if (both.compare(0, back, before) != 0)
      TRY(os::write_at(fd.get(), as_bytes(std::string_view(both).substr(0, back)), kept - back));
    bytes = both.substr(back);
  } else {
    masks.mask(bytes);
  }
  return append(path, bytes);
}

}  // namespace

Result<std::uint64_t> log_next_offset(const os::Path& path) { return read_seen(path); }

Result<void> log_append(const os::Path& path, std::uint64_t offset, std::string_view bytes, const Masks& masks) {
  if (offset > k_log_offset_max || bytes.size() > k_log_offset_max)
    return make_error(Code::protocol_violation, "output at an offset that no job can have reached");
  TRY(os::make_directories(path.parent_path()));
  TRY_ASSIGN(const os::FileLock lock, os::FileLock::acquire(path.string() + ".lock"));
  TRY_ASSIGN(const std::uint64_t seen, read_seen(path));
  if (offset + bytes.size() <= seen) return {};
  std::string hole;
  if (offset < seen) {
    bytes.remove_prefix(seen - offset);
    offset = seen;
  } else if (offset > seen) {
    hole = "\n[gridctl: " + std::to_string(offset - seen) + " bytes of output were dropped by the host's log ring]\n";
  }
  TRY_ASSIGN(const auto status, os::status_of(path));
  const std::uint64_t kept = status ? status->size : 0;
  const bool full = kept + bytes.size() > k_log_bytes_max || !check_room(path.parent_path(), bytes.size());
  if (!full) {
    TRY(append_masked(path, hole + std::string(bytes), kept, masks));
    note_log_time(path, kept, os::system_clock().wall());
  }
  const std::uint64_t now_seen = offset + bytes.size();
  if (full || !hole.empty() || os::exists(seen_path(path)))
    return os::write_file_atomically(seen_path(path), std::to_string(now_seen));
  return {};
}

Result<void> log_leave_out(const os::Path& path, std::uint64_t offset, std::size_t bytes, std::string_view why) {
  if (offset > k_log_offset_max || bytes > k_log_offset_max)
    return make_error(Code::protocol_violation, "output at an offset that no job can have reached");
  TRY(os::make_directories(path.parent_path()));
  TRY_ASSIGN(const os::FileLock lock, os::FileLock::acquire(path.string() + ".lock"));
  TRY_ASSIGN(const std::uint64_t seen, read_seen(path));
  if (offset + bytes <= seen) return {};
  TRY(os::write_file_atomically(seen_path(path), std::to_string(offset + bytes)));
  return append(path, "\n[gridctl: " + std::to_string(offset + bytes - seen) +
                          " bytes of output are omitted: " + std::string(why) + "]\n");
}

Result<std::string> log_tail(const os::Path& path, std::size_t lines) {
  TRY_ASSIGN(const os::Fd fd, os::open_file(path, O_RDONLY));
  TRY_ASSIGN(const os::FileStatus status, os::status_of(fd.get()));
  Bytes piece(std::min<std::uint64_t>(status.size, k_tail_bytes));
  TRY_ASSIGN(const std::size_t count, os::read_at(fd.get(), piece, status.size - piece.size()));
  std::string_view text = trim(as_text(ByteView{piece.data(), count}));
  std::size_t begin = text.size();
  for (std::size_t found = 0; begin > 0 && found < lines; ++found) {
    const std::size_t line_break = text.rfind('\n', begin - 1);
    begin = line_break == std::string_view::npos ? 0 : line_break;
  }
  text.remove_prefix(begin);
  return std::string(trim(text));
}

}  // namespace gridctl::control
