// SPDX-License-Identifier: Apache-2.0
#include "agent/helper_process.hpp"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "agent/self.hpp"
#include "base/numbers.hpp"
#include "base/text.hpp"
#include "os/process.hpp"
#include "os/ready.hpp"

// Embeds the stripped helper; GRIDCTL_GPUBENCH is its path during the build.
__asm__(
    ".section .rodata\n.balign 16\n.globl gridctl_gpubench_begin\ngridctl_gpubench_begin:\n.incbin \"" GRIDCTL_GPUBENCH
    "\"\n.globl gridctl_gpubench_end\ngridctl_gpubench_end:\n.byte 0\n.previous\n");
extern "C" const char gridctl_gpubench_begin[], gridctl_gpubench_end[];

namespace gridctl::agent {
namespace {

constexpr std::size_t k_reply_line_max = wire::k_bench_words_max + 1024;
constexpr std::size_t k_names_max = 64;

}  // namespace

std::string_view embedded_gpubench() {
  return {gridctl_gpubench_begin, static_cast<std::size_t>(gridctl_gpubench_end - gridctl_gpubench_begin)};
}

Result<os::Path> install_gpubench(const os::Path& home) {
  const os::Path folder = home / "bin" / self_hash();
  const os::Path path = folder / "gridctl-gpubench";
  const auto there = os::read_file(path, 2 * embedded_gpubench().size());
  if (there && *there == embedded_gpubench()) return path;
  TRY(os::make_directories(folder));
  TRY(os::write_file_atomically(path, embedded_gpubench(), 0700));
  return path;
}

void take_line(wire::BenchStage& stage, std::string_view line) {
  const std::size_t first = line.find(' ');
  if (first == std::string_view::npos) return;
  const std::size_t second = std::min(line.find(' ', first + 1), line.size());
  const std::string_view kind = line.substr(0, first);
  const std::string name(line.substr(first + 1, second - first - 1));
  const std::string_view value = second < line.size() ? line.substr(second + 1) : "";
  if (name.empty() || name.size() > k_names_max) return;
  if (is_one_of(kind, {"number"}) && stage.numbers.size() < wire::k_bench_values_max) {
    if (const auto number = leading_number<double>(value); number && *number >= 0 && *number < 1e300)
      stage.numbers[name] = *number;
  } else if (is_one_of(kind, {"text"}) && stage.texts.size() < wire::k_bench_values_max) {
    stage.texts[name] = sanitize(value.substr(0, wire::k_bench_text_max / 4));
  } else if (is_one_of(kind, {"words"}) && stage.words.size() < wire::k_bench_values_max) {
    std::size_t digits = value.size();
    for (const auto& [other, words] : stage.words) digits += words.size();
    if (digits <= wire::k_bench_words_max) stage.words[name] = std::string(value);
  }
}

Error error_of_line(std::string_view line) {
  const auto words = split(line, ' ');
  const std::string name = words.size() > 1 ? words[1] : "";
  for (const Code code : {Code::unsupported, Code::not_found, Code::no_space, Code::usage, Code::busy, Code::protocol_violation})
    if (name == code_name(code))
      return make_error(code, sanitize(line.substr(std::min(line.size(), 7 + name.size())), 600));
  return make_error(Code::io, sanitize(line, 600));
}

Result<std::unique_ptr<HelperProcess>> HelperProcess::start(const std::vector<std::string>& argv) {
  std::unique_ptr<HelperProcess> helper(new HelperProcess);
  TRY_ASSIGN(auto input, os::make_pipe());
  TRY_ASSIGN(auto output, os::make_pipe());
  os::SpawnOptions options;
  options.stdin_fd = input.first.get();
  options.stdout_fd = output.second.get();
  options.new_group = true;
  options.die_with_parent = true;
  options.directory = "/";
  TRY_ASSIGN(helper->pid_, os::spawn(argv, options).context("while starting the GPU helper"));
  helper->to_ = std::move(input.second);
  helper->from_ = std::move(output.first);
  TRY(os::set_nonblocking(helper->from_.get()));
  return helper;
}

void HelperProcess::end() {
  const int pid = std::exchange(pid_, -1);
  if (pid <= 0) return;
  ::kill(-pid, SIGKILL);
  // A process stuck in a driver cannot be reaped now; init gets it when we end.
  for (int turn = 0; turn < 50; ++turn) {
    const auto ended = os::try_wait(pid);
    if (!ended || *ended) return;
    os::pause_for(std::chrono::milliseconds{10});
  }
}

Result<void> HelperProcess::send(std::string_view line) {
  return os::write_all(to_.get(), as_bytes(std::string(line) + "\n"));
}

Result<std::string> HelperProcess::receive(BootTime deadline, os::Clock& clock) {
  std::array<std::byte, 64 * 1024> piece;
  for (;;) {
    if (const std::size_t end = buffer_.find('\n'); end != std::string::npos) {
      std::string line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      return line;
    }
    if (buffer_.size() > k_reply_line_max)
      return make_error(Code::protocol_violation, "the GPU helper sends endless output");
    TRY_ASSIGN(const os::Moved moved, os::read_now(from_.get(), piece));
    buffer_ += as_text(ByteView{piece}.first(moved.bytes));
    if (moved.closed) return make_error(Code::io, "the GPU helper ended without an answer: the driver crashed it");
    if (!moved.blocked) continue;
    const Duration left = deadline - clock.boot();
    if (left.count() <= 0) return make_error(Code::timed_out, "the GPU did not answer in time: its driver is hung");
    TRY(os::wait_ready(from_.get(), true, false, left));
  }
}

}  // namespace gridctl::agent
