// SPDX-License-Identifier: Apache-2.0
#include "agent/bag_task.hpp"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace gridctl::agent {

namespace {

constexpr int k_reads_at_once = 64;    // of one task, then others have their turn; as much as a pipe holds
constexpr int k_task_oom_score = 200;  // as for every process of a job; the runner has its own

void offer_task(pid_t pid) {
  const std::string path = "/proc/" + std::to_string(pid) + "/oom_score_adj";
  const os::Fd score(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (score.valid()) ::dprintf(score.get(), "%d", k_task_oom_score);
}

bool drain_pipe(os::Fd& pipe, TaskOutput& into, std::uint64_t bytes_max, const os::Path& folder) {
  static std::array<char, 64 * 1024> bytes;
  for (int reads = 0; pipe.valid() && reads < k_reads_at_once; ++reads) {
    const ssize_t got = ::read(pipe.get(), bytes.data(), bytes.size());
    if (got < 0) return errno != EINTR;
    if (got == 0) pipe.reset();
    else into.add({bytes.data(), static_cast<std::size_t>(got)}, bytes_max, folder);
  }
  return true;
}

std::uint32_t capped(std::int64_t value) {
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(value, 0, UINT32_MAX));
}

}  // namespace

int spawn_task(pid_t& pid, const TaskLaunch& launch, int out, int err) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawn_file_actions_adddup2(&actions, launch.input, 0);
  ::posix_spawn_file_actions_adddup2(&actions, out, 1);
  ::posix_spawn_file_actions_adddup2(&actions, err, 2);
  sigset_t none, pipe;
  ::sigemptyset(&none);
  ::sigemptyset(&pipe);
  ::sigaddset(&pipe, SIGPIPE);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &pipe);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  std::vector<char*> arguments;
  for (std::size_t i = 1; i < launch.words.size(); ++i) arguments.push_back(const_cast<char*>(launch.words[i].c_str()));
  arguments.push_back(nullptr);
  const int failed = ::posix_spawn(&pid, launch.words[0].c_str(), &actions, &attributes, arguments.data(),
                                   const_cast<char* const*>(launch.variables.data()));
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  if (failed == 0) offer_task(pid);
  return failed;
}

int RunningTask::start(const TaskLaunch& launch, os::Clock& clock) {
  os::Fd writers[2];
  for (int i = 0; i < (launch.split ? 2 : 1); ++i) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return errno;
    (i == 0 ? out_ : err_) = os::Fd(ends[0]);
    writers[i] = os::Fd(ends[1]);
    ::fcntl(ends[0], F_SETFL, O_NONBLOCK);  // of our end alone
  }
  began_ = clock.boot();
  began_wall_ = clock.wall();
  return spawn_task(pid_, launch, writers[0].get(), writers[launch.split ? 1 : 0].get());
}

void RunningTask::add_polls(std::vector<pollfd>& polls) const {
  for (const os::Fd* pipe : {&out_, &err_})
    if (pipe->valid()) polls.push_back({pipe->get(), POLLIN, 0});
}

bool RunningTask::is_among(const std::vector<int>& descriptors) const {
  const auto holds = [&](const os::Fd& pipe) {
    return pipe.valid() && std::ranges::find(descriptors, pipe.get()) != descriptors.end();
  };
  return holds(out_) || holds(err_);
}

void RunningTask::drain(std::uint64_t bytes_max, const os::Path& folder) {
  while (!drain_pipe(out_, output_, bytes_max, folder)) continue;
  while (!drain_pipe(err_, errors_, bytes_max, folder)) continue;
}

void RunningTask::ask_to_end(wire::TaskEnd as, BootTime kill_at) {
  if (!is_ending()) end_ = as;
  ::kill(-pid_, SIGTERM);
  kill_at_ = std::min(kill_at_.value_or(kill_at), kill_at);
}

void RunningTask::kill(BootTime again_at) {
  ::kill(-pid_, SIGKILL);
  kill_at_ = again_at;
}

wire::TaskResult RunningTask::finish(std::uint64_t bytes_max, const os::Path& folder, os::Clock& clock) {
  ::kill(-pid_, SIGKILL);  // the rest of its session; its pid is still taken, so that the group can be no other
  drain(bytes_max, folder);
  int status = 0;
  rusage usage{};
  while (::wait4(pid_, &status, 0, &usage) < 0 && errno == EINTR) continue;
  wire::TaskResult result{task_.index, 1, task_.order, end_};
  if (WIFEXITED(status)) result.exit_code = static_cast<std::uint8_t>(WEXITSTATUS(status));
  else result.signal = static_cast<std::uint8_t>(WTERMSIG(status));
  result.began = began_wall_;
  result.ms = capped((clock.boot() - began_) / std::chrono::milliseconds{1});
  result.peak_kib = capped(usage.ru_maxrss);
  return result;
}

}  // namespace gridctl::agent
