// SPDX-License-Identifier: Apache-2.0
// Runs the command of one host of a gang. Processes that it leaves in the background, such as the worker of a cluster
// that the first host's program uses, live until the command of the first host has ended. The other hosts learn that
// from a connection to the first host, which breaks then.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <vector>

#include "agent/companion.hpp"
#include "agent/gang_door.hpp"
#include "agent/process_tree.hpp"
#include "os/process.hpp"
#include "os/ready.hpp"

namespace gridctl::agent {

namespace {
constexpr Duration k_hold_max = std::chrono::hours{24 * 366};  // no gang runs longer
constexpr Duration k_member_look = std::chrono::seconds{10};  // whether members are still connected
constexpr int k_connect_wait_ms = 5000;
constexpr std::array k_for_the_command{SIGTERM, SIGINT, SIGHUP, SIGQUIT};  // init sends them to all processes

// Starts one of our processes that ends with us, however we end.
template <class Work>
pid_t fork_bound(Work work) {
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() == parent) work();
  ::_exit(0);
}

void wait_for_the_end(PeerStream& peer) {
  peer.set_deadline(peer.clock().boot() + k_hold_max);
  std::array<std::byte, 1> byte;
  (void)peer.read(byte);
}

bool is_gone(const PeerStream& peer) {
  std::array<std::byte, 1> byte;
  const auto moved = os::read_now(peer.socket(), byte);
  return !moved || moved->closed;
}

// Runs on the first host: callers that prove that they belong to the gang may stay connected.
void hold(GangDoor& door, const os::Clock& clock) {
  for (std::vector<PeerStream> members;;) {
    auto peer = door.next(clock.boot() + k_member_look);
    if (!peer) return;
    std::erase_if(members, is_gone);
    if (*peer) members.push_back(*std::move(*peer));
  }
}

// Runs on another host: ends when the first host's command has ended or cannot be reached. Writes a byte once it is
// connected.
void follow_first(const GangFile& gang, int connected, const os::Clock& clock) {
  auto first = reach_member(gang, gang.addresses.front(), clock.boot() + k_companion_wait, clock);
  if (first && ::write(connected, "", 1) == 1) wait_for_the_end(*first);
}

pid_t start_watch(const GangFile& gang, int connected, const os::Clock& clock) {
  if (gang.node_rank > 0) return fork_bound([&] { follow_first(gang, connected, clock); });
  auto listener = PeerListener::open(gang.port);
  if (!listener) return -1;  // what the others leave running ends with their commands, which they say
  return fork_bound([&] {
    GangDoor door(*std::move(listener), gang.token, clock);
    hold(door, clock);
  });
}

// A caller that finds nothing on the first host after its own command has ended is too late: it would wait for ever.
bool is_connected(int connected) {
  pollfd news{connected, POLLIN, 0};
  return ::poll(&news, 1, k_connect_wait_ms) == 1 && (news.revents & POLLIN) != 0;
}

pid_t start_command(std::span<char* const> arguments) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  for (const int signal : k_for_the_command) ::signal(signal, SIG_DFL);
  std::vector<char*> words(arguments.begin(), arguments.end());
  words.push_back(nullptr);
  ::execvp(words.front(), words.data());
  ::_exit(127);
}

// Returns the remaining processes of the command, without our own watch.
std::vector<os::ProcessId> rest_of(pid_t watch) {
  std::vector<os::ProcessId> rest = os::descendants(::getpid());
  std::erase_if(rest, [&](const os::ProcessId& process) { return process.pid == watch; });
  return rest;
}

// Waits until nothing is left, or the first host's command has ended.
void stay(pid_t watch, bool& watching) {
  while (watching && !rest_of(watch).empty()) {
    const pid_t ended = ::waitpid(-1, nullptr, 0);
    if (ended == watch || (ended < 0 && errno != EINTR)) watching = false;
  }
}

int end_as(int status) {
  if (!WIFSIGNALED(status)) return WEXITSTATUS(status);
  ::signal(WTERMSIG(status), SIG_DFL);
  ::raise(WTERMSIG(status));
  return 128 + WTERMSIG(status);
}
}  // namespace

int gang_node(std::span<char* const> arguments, const os::Clock& clock) {
  const Result<GangFile> gang = own_gang();
  if (!gang || arguments.empty()) {
    std::fprintf(stderr, "gridctl: %s\n", gang ? "gang-node needs COMMAND…" : gang.error().one_line().c_str());
    return 2;
  }
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);  // what becomes a daemon is our child then
  for (const int signal : k_for_the_command) ::signal(signal, SIG_IGN);
  int news[2];
  if (::pipe2(news, O_CLOEXEC) != 0) {
    std::fprintf(stderr, "gridctl: %s\n", errno_error(errno, "cannot make a pipe").one_line().c_str());
    return 2;
  }
  const pid_t watch = start_watch(*gang, news[1], clock);
  ::close(news[1]);
  bool watching = watch > 0;
  const pid_t command = start_command(arguments);
  int status = 127 << 8;
  for (pid_t ended = 0; command > 0 && ended != command;) {
    int its = 0;
    ended = ::waitpid(-1, &its, 0);
    if (ended == command) status = its;
    if (ended == watch) watching = false;
    if (ended < 0 && errno != EINTR) break;
  }
  if (status != 0 || gang->node_rank == 0) return end_as(status);
  if (const std::size_t left = rest_of(watch).size(); left > 0) {
    if (watching && !is_connected(news[0])) {
      watching = false;
      ::kill(watch, SIGKILL);
    }
    const std::string what = std::to_string(left) + (left == 1 ? " process" : " processes");
    const std::string text = watching
                                 ? "the command has ended here; the processes it left running (" + what +
                                       ") keep running until the first host's command ends"
                                 : "the processes that the command left running (" + what +
                                       ") end with it, because the first host's command has ended or cannot be reached";
    std::fprintf(stderr, "gridctl: %s\n", text.c_str());
    stay(watch, watching);
    if (watching) ::kill(watch, SIGKILL);
    end_all_children();
  }
  return 0;
}

}  // namespace gridctl::agent
