// SPDX-License-Identifier: Apache-2.0
#include "cmd/log_reader.hpp"

#include <fcntl.h>

#include <algorithm>
#include <charconv>

#include "os/entries.hpp"

namespace gridctl::cmd {

namespace {
constexpr std::size_t k_piece = 256 * 1024;  // bytes given at once
constexpr std::string_view k_prefix = "attempt-", k_suffix = ".log";

std::optional<AttemptNumber> attempt_of(std::string_view name) {
  if (!name.starts_with(k_prefix) || !name.ends_with(k_suffix) || name.size() <= k_prefix.size() + k_suffix.size())
    return std::nullopt;
  const std::string_view digits = name.substr(k_prefix.size(), name.size() - k_prefix.size() - k_suffix.size());
  std::uint64_t number = 0;
  const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (problem != std::errc{} || end != digits.data() + digits.size() || number == 0) return std::nullopt;
  return AttemptNumber{number};
}

// Where the last `lines` lines of the file begin; takes off those that it has.
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

Result<std::vector<AttemptNumber>> LogReader::attempts() const {
  std::vector<AttemptNumber> found;
  if (!os::exists(paths_.logs_of(job_))) return found;
  TRY_ASSIGN(const std::vector<std::string> names, os::list_directory(paths_.logs_of(job_)));
  for (const std::string& name : names)
    if (const std::optional<AttemptNumber> number = attempt_of(name); number && (!only_ || *number == *only_))
      found.push_back(*number);
  std::sort(found.begin(), found.end());
  return found;
}

Result<void> LogReader::read_new(const Sink& sink) {
  TRY_ASSIGN(const std::vector<AttemptNumber> all, attempts());
  Bytes block(all.empty() ? 0 : k_piece);
  for (const AttemptNumber attempt : all) {
    if (attempt < current_) continue;
    if (attempt > current_) current_ = attempt, offset_ = 0;
    TRY_ASSIGN(const os::Fd fd, os::open_file(paths_.log_of(job_, attempt), O_RDONLY));
    for (;;) {
      TRY_ASSIGN(const std::size_t count, os::read_at(fd.get(), block, offset_));
      if (count == 0) break;
      offset_ += count;
      sink(attempt, as_text(ByteView(block).first(count)));
    }
  }
  return {};
}

Result<void> LogReader::begin_at_tail(std::uint64_t lines) {
  TRY_ASSIGN(const std::vector<AttemptNumber> all, attempts());
  if (all.empty()) return {};
  if (lines == 0) {
    current_ = all.back();
    TRY_ASSIGN(const auto status, os::status_of(paths_.log_of(job_, current_)));
    offset_ = status ? status->size : 0;
    return {};
  }
  for (auto attempt = all.rbegin(); attempt != all.rend() && lines > 0; ++attempt) {
    current_ = *attempt;
    TRY_ASSIGN(offset_, tail_offset(paths_.log_of(job_, current_), lines));
  }
  return {};
}

}  // namespace gridctl::cmd
