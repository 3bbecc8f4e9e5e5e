// SPDX-License-Identifier: Apache-2.0
#include "lend/lines.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "base/text.hpp"
#include "os/net.hpp"

namespace gridctl::lend {

namespace {

constexpr std::size_t k_words_max = 200;  // of a relay, as people see them

Result<void> wait_for(const ssh::Channel& channel, bool output_pending, BootTime deadline, os::Clock& clock) {
  std::vector<os::Poll> polls;
  for (const ssh::Watched& one : channel.wants(output_pending)) polls.push_back({one.fd, one.interest, {}});
  TRY(os::wait_any(polls, std::min(deadline, clock.boot() + k_turn), clock));
  return {};
}

}  // namespace

std::optional<std::string> line_after(std::string_view text, std::string_view mark) {
  const std::size_t at = text.find(mark);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view rest = text.substr(at + mark.size());
  const std::size_t end = rest.find('\n');
  if (end == std::string_view::npos) return std::nullopt;
  return sanitize(rest.substr(0, end), k_words_max);
}

Result<void> write_all(ssh::Channel& channel, std::string_view text, BootTime deadline, os::Clock& clock) {
  ByteView bytes = as_bytes(text);
  while (!bytes.empty() || !channel.flushed()) {
    TRY_ASSIGN(const auto took, channel.write(bytes));
    if (took) bytes = bytes.subspan(*took);
    if (took && *took > 0) continue;
    if (clock.boot() >= deadline) return make_error(Code::timed_out, channel.peer() + " takes no bytes");
    TRY(wait_for(channel, true, deadline, clock));
  }
  return {};
}

// Adds what comes next to `text`. False: nothing came until the deadline. host_unreachable at the end.
Result<bool> read_more(ssh::Channel& channel, std::string& text, BootTime deadline, os::Clock& clock) {
  std::array<std::byte, 4096> piece{};
  for (;;) {
    channel.keepalive(clock.boot());
    TRY_ASSIGN(const auto got, channel.read(piece));
    if (got && *got == 0) return make_error(Code::host_unreachable, channel.peer() + " has ended the connection");
    if (got) {
      text += as_text(ByteView{piece}.first(*got));
      return true;
    }
    if (clock.boot() >= deadline) return false;
    TRY(wait_for(channel, false, deadline, clock));
  }
}

}  // namespace gridctl::lend
