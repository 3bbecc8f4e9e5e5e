// SPDX-License-Identifier: Apache-2.0
#include "agent/bag_outputs.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>

#include "os/entries.hpp"

namespace gridctl::agent {

namespace {
constexpr std::size_t k_entries_max = 200'000;  // of one walk: a working directory with more is not looked through
constexpr int k_depth_max = 64;
constexpr std::size_t k_pack_piece = 256 * 1024;

std::string below_of(const std::string& folder, const std::string& name) { return folder.empty() ? name : folder + "/" + name; }

// A file that shrinks in the meantime is padded, because its size was already written.
void pack_file(const os::Path& file, const std::string& path, const struct stat& info, std::uint64_t bytes_max,
               const os::Path& run, TaskOutput& into) {
  const auto opened = os::open_file(file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (!opened) return;
  const auto size = static_cast<std::uint64_t>(info.st_size);
  std::array<char, 64> head{};
  std::snprintf(head.data(), head.size(), "%zu %o %llu\n", path.size(), static_cast<unsigned>(info.st_mode & 0777),
                static_cast<unsigned long long>(size));
  into.add(head.data() + path, bytes_max, run);
  std::string piece;
  for (std::uint64_t at = 0; at < size; at += piece.size()) {
    piece.assign(std::min<std::uint64_t>(k_pack_piece, size - at), '\0');
    (void)os::read_exactly(opened->get(), reinterpret_cast<std::byte*>(piece.data()), piece.size(), at);
    into.add(piece, bytes_max, run);
  }
}
}  // namespace

TaskFiles::TaskFiles(os::Path work, const std::vector<std::string>& patterns) : work_(std::move(work)) {
  for (const std::string& text : patterns) {
    store::IgnorePattern pattern;
    if (store::IgnorePattern::parse(text, pattern)) patterns_.push_back(pattern);
  }
}

void TaskFiles::walk(const os::Path& root, const std::string& below, bool all, int depth, const Take& take) {
  const auto names = os::list_directory(below.empty() ? root : root / below);
  if (!names || depth > k_depth_max) return;
  for (const std::string& name : *names) {
    if (left_ == 0) return;
    --left_;
    const std::string path = below_of(below, name);
    struct stat info {};
    if (::lstat((root / path).c_str(), &info) != 0) continue;
    const bool folder = S_ISDIR(info.st_mode);
    const bool named = all || std::ranges::any_of(patterns_, [&](const auto& one) { return one.matches(path, folder); });
    if (folder) walk(root, path, named, depth + 1, take);
    else if (named && S_ISREG(info.st_mode)) take(path, info);
  }
}

void TaskFiles::begin() {
  if (!wanted()) return;
  TaskOutput none;
  pack("", 0, work_, none);
}

void TaskFiles::pack(const std::string& folder, std::uint64_t bytes_max, const os::Path& run, TaskOutput& into) {
  left_ = k_entries_max;
  const os::Path root = folder.empty() ? work_ : os::Path(folder);
  walk(root, "", false, 0, [&](const std::string& path, const struct stat& info) {
    if (folder.empty()) {
      const Stamp stamp{static_cast<std::uint64_t>(info.st_ino), static_cast<std::uint64_t>(info.st_size),
                        std::int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec};
      if (std::exchange(seen_[path], stamp) == stamp) return;
    }
    if (bytes_max > 0) pack_file(root / path, path, info, bytes_max, run, into);
  });
}

}  // namespace gridctl::agent
