// SPDX-License-Identifier: Apache-2.0
#include "agent/init_door.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdio>

namespace gridctl::agent {

namespace {
constexpr int k_waiting_max = 16;  // connections; init takes each as soon as it wakes up
constexpr int k_oom_score = 200;     // a daemon of the host has 0
}  // namespace

void offer_to_oom_killer() {
  const os::Fd score(::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC));
  if (score.valid()) ::dprintf(score.get(), "%d", k_oom_score);
}

void Door::open(const os::Path& run) {
  // A path to the run folder may be too long for an address; one that begins with a descriptor is not.
  const os::Fd folder(::open(run.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  os::Fd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!folder.valid() || !listener.valid()) return;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%s", folder.get(), k_door);
  const mode_t mask = ::umask(0177);
  const bool bound = ::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  ::umask(mask);
  if (bound && ::listen(listener.get(), k_waiting_max) == 0) listener_ = std::move(listener);
}

void Door::let_in(const InitPlan& plan, std::vector<std::string> environment) const {
  const os::Fd visitor(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!visitor.valid()) return;
  std::vector<std::string> words{"gridctl-agent", "inside"};
  for (std::string& word : to_arguments(plan)) words.push_back(std::move(word));
  std::vector<char*> arguments, variables;
  for (std::string& word : words) arguments.push_back(word.data());
  for (std::string& assignment : environment) variables.push_back(assignment.data());
  arguments.push_back(nullptr);
  variables.push_back(nullptr);
  if (::fork() != 0) return;
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  const int nothing = ::open("/dev/null", O_RDWR);
  ::dup2(visitor.get(), 0);
  ::dup2(nothing, 1);
  ::dup2(nothing, 2);
  if (nothing > 2) ::close(nothing);
  offer_to_oom_killer();
  ::setsid();
  ::execve("/proc/self/exe", arguments.data(), variables.data());
  ::_exit(127);
}

}  // namespace gridctl::agent
