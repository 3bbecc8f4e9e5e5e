// SPDX-License-Identifier: Apache-2.0
#include "agent/rank_output.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "agent/init.hpp"

namespace gridctl::agent {

namespace {
constexpr std::size_t k_pending_bytes_max = 1 << 20;  // then the ranks wait for the log to be read
constexpr std::size_t k_read_bytes = 64 * 1024;
constexpr int k_rank_pipe_bytes = 256 * 1024;
}  // namespace

void LabelledLines::feed(std::string_view bytes, BootTime now, std::string& into) {
  while (!bytes.empty()) {
    const std::size_t end = bytes.find_first_of("\n\r");
    const std::size_t room = k_line_bytes_max - line_.size();
    const std::size_t take = std::min(end == std::string_view::npos ? bytes.size() : end + 1, room);
    if (line_.empty()) since_ = now;
    line_ += bytes.substr(0, take);
    bytes.remove_prefix(take);
    const bool whole = line_.back() == '\n' || line_.back() == '\r';
    if (!whole && line_.size() < k_line_bytes_max) continue;
    if (!whole) line_ += '\n';
    // "\r\n" split across two reads leaves a lone '\n', which is not a separate line.
    if (line_ != "\n" || into.empty() || into.back() != '\r') into += label_;
    into += line_;
    line_.clear();
  }
}

void LabelledLines::flush(BootTime now, bool over, std::string& into) {
  if (line_.empty() || (!over && now - since_ < k_line_patience)) return;
  into += label_ + line_ + "\n";
  line_.clear();
}

RankOutput::RankOutput(const std::vector<std::string>& labels) {
  for (const std::string& label : labels) pipes_.push_back({os::Fd(), os::Fd(), LabelledLines(label)});
}

bool RankOutput::open() {
  for (Pipe& pipe : pipes_) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return false;
    pipe.read = os::Fd(ends[0]);
    pipe.write = os::Fd(ends[1]);
    ::fcntl(ends[0], F_SETFL, O_NONBLOCK);  // of our end alone: the ranks' writes wait
    ::fcntl(ends[1], F_SETPIPE_SZ, k_rank_pipe_bytes);
  }
  return true;
}

void RankOutput::close_writers() {
  for (Pipe& pipe : pipes_) pipe.write.reset();
}

void RankOutput::add_polls(std::vector<pollfd>& polls, int log) const {
  for (const Pipe& pipe : pipes_)
    if (pipe.read.valid() && pending_.size() < k_pending_bytes_max) polls.push_back({pipe.read.get(), POLLIN, 0});
  if (!pending_.empty()) polls.push_back({log, POLLOUT, 0});
}

int RankOutput::patience_ms() const {
  const bool waits = std::ranges::any_of(pipes_, [](const Pipe& pipe) { return pipe.lines.is_waiting(); });
  return waits ? static_cast<int>(k_line_patience / std::chrono::milliseconds{1}) : -1;
}

void RankOutput::read_all(BootTime now) {
  std::string bytes(k_read_bytes, '\0');
  for (Pipe& pipe : pipes_) {
    while (pipe.read.valid() && pending_.size() < k_pending_bytes_max) {
      const ssize_t got = ::read(pipe.read.get(), bytes.data(), bytes.size());
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) break;
      if (got == 0) pipe.read.reset();  // nobody holds the other end: no poll shall wake for it
      else pipe.lines.feed(std::string_view(bytes).substr(0, static_cast<std::size_t>(got)), now, pending_);
    }
    pipe.lines.flush(now, !pipe.read.valid(), pending_);
  }
}

void RankOutput::pump(int log, BootTime now) {
  read_all(now);
  while (!pending_.empty()) {
    const ssize_t wrote = ::write(log, pending_.data(), std::min<std::size_t>(pending_.size(), k_pipe_bytes));
    if (wrote <= 0) return;
    pending_.erase(0, static_cast<std::size_t>(wrote));
  }
}

std::string RankOutput::take_rest(BootTime now) {
  read_all(now);
  for (Pipe& pipe : pipes_) pipe.lines.flush(now, true, pending_);
  return std::exchange(pending_, {});
}

}  // namespace gridctl::agent
