// SPDX-License-Identifier: Apache-2.0
#include "agent/companion.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>

#include "agent/gang_door.hpp"
#include "agent/peer_exchange.hpp"
#include "agent/process_tree.hpp"
#include "base/numbers.hpp"
#include "base/text.hpp"
#include "os/process.hpp"

namespace gridctl::agent {

namespace {
constexpr Duration k_proof_wait = std::chrono::seconds{5};
constexpr Duration k_try_wait = std::chrono::seconds{3};  // for one connection
constexpr Duration k_end_wait = std::chrono::seconds{5};  // a member that does not hear it is stopped by the controller
constexpr Duration k_call_age_max = std::chrono::hours{24 * 366};  // a call lasts as long as its command
constexpr int k_pushed_out_max = 20;
constexpr int k_try_pause_ms = 200, k_peer_look_ms = 200;
constexpr int k_lost = 255;           // as ssh: the call itself failed
constexpr std::uint64_t k_file_bytes = 128 * 1024;

enum class Word : std::uint8_t { run = 'R', end = 'E' };

int told(const Result<int>& status) {
  if (status) return *status;
  std::fprintf(stderr, "gridctl: %s\n", sanitize(status.error().one_line()).c_str());
  return k_lost;
}

template <class Number>
Result<Number> number_in(std::string_view text, const char* what) {
  if (const auto number = parse_number<Number>(text)) return *number;
  return make_error(Code::usage, std::string(what).append(" is not a number"));
}

// --- One call: a word, a length, so many bytes. The answer is one byte: the exit status. ----------------------------

Result<void> say(PeerStream& peer, Word word, std::string_view text) {
  std::array<std::byte, 5> head{static_cast<std::byte>(word)};
  for (std::size_t i = 0; i < 4; ++i) head[1 + i] = static_cast<std::byte>(text.size() >> (24 - 8 * i));
  TRY(peer.write(head));
  return peer.write(as_bytes(text));
}

struct Call {
  Word word = Word::run;
  std::string text;
};
Result<Call> hear_call(PeerStream& peer) {
  std::array<std::byte, 5> head;
  TRY(peer.read(head));
  std::size_t size = 0;
  for (std::size_t i = 1; i < head.size(); ++i) size = size << 8 | std::to_integer<std::size_t>(head[i]);
  if (size > k_call_bytes_max) return make_error(Code::protocol_violation, "a call longer than 128 KiB");
  Call call{static_cast<Word>(head[0]), std::string(size, '\0')};
  TRY(peer.read(std::as_writable_bytes(std::span(call.text))));
  if (call.word != Word::run && call.word != Word::end) return make_error(Code::protocol_violation, "an unknown call");
  return call;
}

int status_of(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

pid_t start_shell(const std::string& command) {
  const char* arguments[] = {"/bin/sh", "-c", command.c_str(), nullptr};
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::setpgid(0, 0);
  ::signal(SIGPIPE, SIG_DFL);
  const int nothing = ::open("/dev/null", O_RDONLY);
  ::dup2(nothing, 0);
  ::execv("/bin/sh", const_cast<char**>(arguments));
  ::_exit(127);
}

// Runs in its own process: runs the command until it ends or the caller is gone.
[[noreturn]] void serve_run(PeerStream& peer, const std::string& command, const os::Clock& clock) {
  const pid_t child = start_shell(command);
  if (child < 0) ::_exit(1);
  int status = 0;
  for (;;) {
    if (::waitpid(child, &status, WNOHANG) == child) break;
    std::array<std::byte, 1> byte;
    peer.set_deadline(clock.boot() + std::chrono::milliseconds{k_peer_look_ms});
    const auto got = peer.read(byte);
    if (got || got.error().code == Code::timed_out) continue;
    ::kill(-child, SIGTERM);
    for (int looks = 0; looks < 25 && ::waitpid(child, nullptr, WNOHANG) != child; ++looks)
      ::poll(nullptr, 0, k_peer_look_ms);
    ::kill(-child, SIGKILL);
    ::_exit(1);
  }
  peer.set_deadline(clock.boot() + k_proof_wait);
  const std::array<std::byte, 1> answer{static_cast<std::byte>(status_of(status))};
  (void)peer.write(answer);
  ::_exit(0);
}

// Runs in its own process, for a caller that has the token: a call lasts as long as its command. `over` tells the
// server about the end.
[[noreturn]] void serve_one(PeerStream& peer, int over, const os::Clock& clock) {
  peer.set_deadline(clock.boot() + k_proof_wait);
  const auto call = hear_call(peer);
  if (!call) ::_exit(1);
  if (call->word == Word::run) serve_run(peer, call->text, clock);
  const auto status = number_in<int>(call->text, "the status");
  const auto byte = static_cast<unsigned char>(status ? *status : 1);
  const bool told = ::write(over, &byte, 1) == 1;
  const std::array<std::byte, 1> answer{static_cast<std::byte>(told ? 0 : 1)};
  (void)peer.write(answer);
  ::_exit(0);
}

Result<int> serve(const os::Clock& clock) {
  TRY_ASSIGN(const GangFile gang, own_gang());
  TRY_ASSIGN(PeerListener listener, PeerListener::open(gang.port));
  std::optional<GangDoor> door(std::in_place, std::move(listener), gang.token, clock);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  ::signal(SIGPIPE, SIG_IGN);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return errno_error(errno, "cannot make a pipe");
  const os::Fd over(ends[0]), tell(ends[1]);
  for (;;) {
    while (::waitpid(-1, nullptr, WNOHANG) > 0) continue;
    unsigned char status = 0;
    if (::read(over.get(), &status, 1) == 1) {
      end_all_children();
      return status;
    }
    TRY_ASSIGN(std::optional<PeerStream> peer, door->next(clock.boot() + std::chrono::milliseconds{k_peer_look_ms}));
    if (!peer || ::fork() != 0) continue;
    door.reset();
    serve_one(*peer, tell.get(), clock);
  }
}

Result<int> run(std::span<char* const> arguments, const os::Clock& clock) {
  if (arguments.size() < 2) return make_error(Code::usage, "gang-run needs HOST COMMAND…");
  TRY_ASSIGN(const GangFile gang, own_gang());
  const std::string host = arguments[0];
  std::vector<std::string> words(arguments.begin() + 1, arguments.end());
  const std::string command = join(words, " ");  // as rsh and ssh: the shell over there splits it again
  if (command.size() > k_call_bytes_max) return make_error(Code::usage, "the command is longer than 128 KiB");
  if (std::ranges::find(gang.addresses, host) == gang.addresses.end())
    return make_error(Code::refused, "'" + sanitize(host) + "' is not a member of this gang");
  if (host == gang.addresses[gang.node_rank]) {
    ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    return errno_error(errno, "cannot run /bin/sh");
  }
  TRY_ASSIGN(PeerStream peer, reach_member(gang, host, clock.boot() + k_companion_wait, clock));
  TRY(say(peer, Word::run, command));
  peer.set_deadline(clock.boot() + k_call_age_max);
  std::array<std::byte, 1> answer;
  TRY(peer.read(answer));
  return std::to_integer<int>(answer[0]);
}

Result<int> end(std::span<char* const> arguments, const os::Clock& clock) {
  if (arguments.size() != 1) return make_error(Code::usage, "gang-end needs STATUS");
  TRY_ASSIGN(const GangFile gang, own_gang());
  for (std::size_t i = 0; i < gang.addresses.size(); ++i) {
    if (i == gang.node_rank) continue;
    auto peer = reach_member(gang, gang.addresses[i], clock.boot() + k_end_wait, clock);
    if (!peer) continue;  // it has ended, or is stopped by the controller
    peer->set_deadline(clock.boot() + k_end_wait);
    std::array<std::byte, 1> answer;
    if (say(*peer, Word::end, arguments[0])) (void)peer->read(answer);
  }
  return 0;
}
}  // namespace

Result<GangFile> own_gang() {
  const auto path = os::environment("GRIDCTL_GANG_FILE");
  if (!path) return make_error(Code::usage, "this process does not belong to a gang: GRIDCTL_GANG_FILE is not set");
  TRY_ASSIGN(const std::string text, os::read_file(*path, k_file_bytes));
  return parse_gang_file(text);
}

Result<PeerStream> reach_member(const GangFile& gang, const std::string& address, BootTime give_up,
                                const os::Clock& clock) {
  for (int pushed_out = 0;;) {
    auto connected = connect_numeric(address, gang.port, std::min(give_up, clock.boot() + k_try_wait), clock);
    if (connected) {
      PeerStream peer(std::move(connected->socket), address, clock.boot() + k_proof_wait, clock);
      Result<void> proved = prove_as_connector(peer, gang.token);
      if (proved) return peer;
      // A flood of unknown peers may have pushed us out.
      if (proved.error().code != Code::host_unreachable || ++pushed_out > k_pushed_out_max) return std::move(proved).error();
      connected = std::move(proved).error();
    }
    if (clock.boot() >= give_up)
      return std::move(connected).error().with_context("while calling " + address + " port " + std::to_string(gang.port));
    ::poll(nullptr, 0, k_try_pause_ms);
  }
}

void end_all_children() {
  for (const int signal : {SIGTERM, SIGKILL}) {
    signal_each(os::descendants(::getpid()), signal);
    for (int looks = 0; looks < 25; ++looks) {
      while (::waitpid(-1, nullptr, WNOHANG) > 0) continue;
      if (os::descendants(::getpid()).empty()) return;
      ::poll(nullptr, 0, k_peer_look_ms);
    }
  }
}

Result<GangFile> parse_gang_file(std::string_view text) {
  const std::vector<std::string> lines = split_lines(text);
  if (lines.size() < 4) return make_error(Code::state_unreadable, "the gang's file is truncated");
  GangFile gang;
  TRY_ASSIGN(gang.token, parse_digest(lines[0]));
  TRY_ASSIGN(gang.port, number_in<std::uint16_t>(lines[1], "the gang's port"));
  TRY_ASSIGN(gang.node_rank, number_in<std::size_t>(lines[2], "the gang's node rank"));
  gang.addresses.assign(lines.begin() + 3, lines.end());
  if (gang.node_rank >= gang.addresses.size())
    return make_error(Code::state_unreadable, "the gang's file does not name this host");
  return gang;
}

int gang_serve(const os::Clock& clock) { return told(serve(clock)); }
int gang_run(std::span<char* const> arguments, const os::Clock& clock) { return told(run(arguments, clock)); }
int gang_end(std::span<char* const> arguments, const os::Clock& clock) { return told(end(arguments, clock)); }

}  // namespace gridctl::agent
