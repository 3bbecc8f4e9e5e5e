// SPDX-License-Identifier: Apache-2.0
#include "cmd/log_reader.hpp"

#include <fcntl.h>

#include <algorithm>

#include "base/numbers.hpp"
#include "control/follow/secrets.hpp"
#include "os/entries.hpp"

namespace gridctl::cmd {

namespace {
constexpr std::size_t k_piece = 256 * 1024;  // bytes given at once
constexpr std::string_view k_prefix = "attempt-", k_suffix = ".log", k_of_rank = ".rank-";

// Parses "attempt-2.log" and "attempt-2.rank-1.log".
std::optional<std::pair<AttemptNumber, int>> file_of(std::string_view name) {
  if (!name.starts_with(k_prefix) || !name.ends_with(k_suffix) || name.size() <= k_prefix.size() + k_suffix.size())
    return std::nullopt;
  std::string_view middle = name.substr(k_prefix.size(), name.size() - k_prefix.size() - k_suffix.size());
  int rank = 0;
  if (const std::size_t at = middle.find(k_of_rank); at != std::string_view::npos) {
    const auto found = parse_number<std::uint64_t>(middle.substr(at + k_of_rank.size()));
    if (!found || *found == 0 || *found > 1'000'000) return std::nullopt;
    rank = static_cast<int>(*found);
    middle = middle.substr(0, at);
  }
  const auto attempt = parse_number<std::uint64_t>(middle);
  if (!attempt || *attempt == 0) return std::nullopt;
  return std::pair{AttemptNumber{*attempt}, rank};
}

// Returns where the last `lines` lines of the file begin; subtracts the lines that it has.
Result<std::uint64_t> tail_offset(const os::Path& path, std::uint64_t& lines) {
  TRY_ASSIGN(const os::Fd fd, os::open_file(path, O_RDONLY));
  TRY_ASSIGN(const os::FileStatus status, os::status_of(fd.get()));
  Bytes block(k_piece);
  bool last_byte = true;  // a newline at the very end closes a line and begins none
  for (std::uint64_t end = status.size; end > 0;) {
    const std::uint64_t begin = end > k_piece ? end - k_piece : 0;
    const std::span<std::byte> part(block.data(), end - begin);
    TRY(os::read_exactly(fd.get(), part.data(), part.size(), begin));
    for (std::size_t i = part.size(); i > 0; --i) {
      const bool newline = part[i - 1] == std::byte{'\n'};
      if (newline && !last_byte && --lines == 0) return begin + i;
      last_byte = false;
    }
    end = begin;
  }
  if (status.size > 0) --lines;  // the first line has no newline before it
  return 0;
}
}  // namespace

LogReader::LogReader(control::Paths paths, JobId job, std::optional<AttemptNumber> only)
    : paths_(std::move(paths)), job_(std::move(job)), only_(only) {
  if (const auto secrets = control::read_secrets(paths_.secrets_of(job_))) masks_ = control::Masks(*secrets);
}

Result<std::vector<LogReader::File>> LogReader::files() const {
  std::vector<File> found;
  if (!os::exists(paths_.logs_of(job_))) return found;
  TRY_ASSIGN(const std::vector<std::string> names, os::list_directory(paths_.logs_of(job_)));
  for (const std::string& name : names)
    if (const auto file = file_of(name); file && (!only_ || file->first == *only_)) found.push_back(*file);
  std::ranges::sort(found);
  return found;
}

Result<std::vector<AttemptNumber>> LogReader::attempts() const {
  TRY_ASSIGN(const std::vector<File> all, files());
  std::vector<AttemptNumber> found;
  for (const File& file : all)
    if (found.empty() || found.back() != file.first) found.push_back(file.first);
  return found;
}

Result<void> LogReader::read_file(const File& file, bool whole_lines, bool all, const Sink& sink) {
  TRY_ASSIGN(const os::Fd fd, os::open_file(paths_.log_of(job_, file.first, file.second), O_RDONLY));
  Bytes block(k_piece);
  std::uint64_t& offset = offsets_[file];
  for (;;) {
    TRY_ASSIGN(const std::size_t count, os::read_at(fd.get(), block, offset));
    std::string_view text = as_text(ByteView(block).first(count));
    const std::size_t lines = whole_lines ? text.rfind('\n') + 1 : 0;
    if (whole_lines && (lines > 0 || count < k_piece)) text = text.substr(0, lines);  // no line is longer than a piece
    if (!all) text.remove_suffix(masks_.held(text));
    if (text.empty()) return {};
    place_ = {file, offset};
    offset += text.size();
    sink(file.first, text);
  }
}

Result<void> LogReader::read_new(const Sink& sink, bool all) {
  TRY_ASSIGN(const std::vector<File> found, files());
  for (const File& file : found) {
    if (file.first < current_) continue;
    current_ = file.first;
    const bool alone = std::ranges::count(found, file.first, &File::first) == 1;
    TRY(read_file(file, !all && !alone, all, sink));
  }
  return {};
}

Result<void> LogReader::begin_at_tail(std::uint64_t lines) {
  TRY_ASSIGN(const std::vector<AttemptNumber> all, attempts());
  TRY_ASSIGN(const std::vector<File> found, files());
  if (all.empty()) return {};
  for (auto attempt = all.rbegin(); attempt != all.rend(); ++attempt) {
    current_ = *attempt;
    std::uint64_t left = lines;
    for (const File& file : found) {
      if (file.first != *attempt) continue;
      const os::Path path = paths_.log_of(job_, file.first, file.second);
      if (lines == 0) {
        TRY_ASSIGN(const auto status, os::status_of(path));
        offsets_[file] = status ? status->size : 0;
        continue;
      }
      std::uint64_t mine = lines;
      TRY_ASSIGN(offsets_[file], tail_offset(path, mine));
      left = std::min(left, mine);
    }
    lines = left;
    if (lines == 0) return {};
  }
  return {};
}

}  // namespace gridctl::cmd
