// SPDX-License-Identifier: Apache-2.0
#include "control/follow/bag_files.hpp"

#include <fcntl.h>

#include <algorithm>
#include <span>

#include "bag/journal.hpp"
#include "control/reach/disk_reserve.hpp"
#include "os/entries.hpp"

namespace gridctl::control {

namespace {
constexpr std::uint64_t k_journal_bytes_max = 1ull << 30;
constexpr std::uint64_t k_output_offset_max = 1ull << 40;  // bytes: more than any worker prints

os::Path journal_in(const os::Path& folder) { return folder / "journal"; }
os::Path items_in(const os::Path& folder) { return folder / "items"; }
}  // namespace

Result<std::string> read_bag_journal(const os::Path& folder, std::uint64_t from) {
  if (!os::exists(journal_in(folder))) return std::string();
  TRY_ASSIGN(const os::Fd fd, os::open_file(journal_in(folder), O_RDONLY));
  TRY_ASSIGN(const os::FileStatus status, os::status_of(fd.get()));
  if (status.size > k_journal_bytes_max) return make_error(Code::io, "the journal of the bag is larger than 1 GiB");
  std::string text(status.size - std::min(status.size, from), '\0');
  TRY(os::read_exactly(fd.get(), std::as_writable_bytes(std::span(text)).data(), text.size(), from));
  return text;
}

Result<void> append_bag_journal(const os::Path& folder, std::string_view records) {
  const os::Path path = journal_in(folder);
  if (!os::exists(path)) {
    TRY(os::make_directories(folder));
    return os::write_file_durably(path, std::string(bag::k_magic) + std::string(records));
  }
  TRY_ASSIGN(const os::Fd fd, os::open_file(path, O_WRONLY | O_APPEND));
  TRY(os::write_all(fd.get(), as_bytes(records)));
  return os::sync_fd(fd.get());
}

Result<void> replace_bag_journal(const os::Path& folder, std::string_view journal) {
  TRY(os::make_directories(folder));
  return os::write_file_durably(journal_in(folder), journal);
}

os::Path bag_output_path(const os::Path& folder, std::uint32_t worker, Epoch epoch) {
  return folder / ("output-" + std::to_string(worker) + "-" + std::to_string(epoch.value));
}

Result<std::uint64_t> bag_output_size(const os::Path& path) {
  TRY_ASSIGN(const auto status, os::status_of(path));
  return status ? status->size : 0;
}

// A secret may have begun in the existing bytes: those are masked before the rest is appended.
Result<void> append_bag_output(const os::Path& path, std::uint64_t offset, std::string_view bytes, const Masks& masks) {
  TRY_ASSIGN(const std::uint64_t kept, bag_output_size(path));
  if (offset > k_output_offset_max || offset + bytes.size() <= kept) return {};
  if (offset < kept) {
    bytes.remove_prefix(kept - offset);
    offset = kept;
  }
  TRY(check_room(path.parent_path(), bytes.size()));
  TRY_ASSIGN(const os::Fd fd, os::open_file(path, O_RDWR | O_CREAT));
  std::string text(bytes);
  if (!masks.empty()) {
    const std::size_t back = offset == kept ? std::min<std::uint64_t>(kept, masks.reach()) : 0;
    Bytes before(back);
    TRY(os::read_exactly(fd.get(), before.data(), back, offset - back));
    text.insert(0, as_text(before));
    offset -= back;
    masks.mask(text);
  }
  TRY(os::write_at(fd.get(), as_bytes(text), offset));
  return os::sync_fd(fd.get());
}

Result<std::string> read_bag_items(const os::Path& folder) {
  if (!os::exists(items_in(folder))) return std::string();
  return os::read_file(items_in(folder), k_bag_items_bytes_max);
}

Result<void> write_bag_items(const os::Path& folder, std::string_view items) {
  TRY(os::make_directories(folder));
  return os::write_file_durably(items_in(folder), items);
}

}  // namespace gridctl::control
