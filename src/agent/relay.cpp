// SPDX-License-Identifier: Apache-2.0
#include "agent/relay.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <string>
#include <string_view>

#include "agent/attempt_dir.hpp"
#include "agent/enter.hpp"
#include "base/names.hpp"
#include "base/numbers.hpp"
#include "base/text.hpp"
#include "os/entries.hpp"
#include "os/files.hpp"
#include "os/listener.hpp"
#include "os/net.hpp"
#include "os/process.hpp"
#include "os/random.hpp"
#include "os/ready.hpp"
#include "wire/relay.hpp"

namespace gridctl::agent {

namespace {

constexpr Duration k_relay_hello_wait = std::chrono::seconds{10};
constexpr Duration k_relay_call_wait = std::chrono::seconds{8};    // for a host that dials again after a cut, or a former call
constexpr Duration k_relay_look = std::chrono::milliseconds{100};  // for the socket of a host
constexpr std::size_t k_line_max = 512;
constexpr std::uint64_t k_keys_max = 4u << 20;  // bytes of authorized_keys
constexpr mode_t k_others_write = S_IWGRP | S_IWOTH;

os::Path relay_home() {
  if (const auto told = os::environment("GRIDCTL_RELAY_HOME"); told && !told->empty()) return *told;
  return os::home_directory() / ".gridctl-relay";
}

enum class Verb : std::uint8_t { add, rm, host, call };
constexpr Names<Verb, Verb::call> k_verbs{"add", "rm", "host", "call"};

struct Meeting {
  std::string id;
  os::Path folder;
  [[nodiscard]] os::Path socket() const { return folder / "socket"; }
  [[nodiscard]] os::Path claim() const { return folder / "claim"; }
  [[nodiscard]] os::Path expiry() const { return folder / "expires"; }
};

Result<Meeting> meeting_of(std::string_view id) {
  TRY(check_component("the id of a lent host", id));
  return Meeting{std::string(id), relay_home() / std::string(id)};
}

void say(std::string_view text) { (void)os::write_all(STDOUT_FILENO, as_bytes(text)); }
int turn_away(std::string_view why) {
  say(std::string(wire::k_relay_refused) + sanitize(why, k_line_max) + "\n");
  return 1;
}

// Returns one byte of standard input; nullopt: it ended, or the deadline came first.
std::optional<char> next_byte(BootTime deadline, os::Clock& clock) {
  std::array<std::byte, 1> one{};
  os::Poll poll{STDIN_FILENO, {.read = true}, {}};
  const auto ready = os::wait_any({&poll, 1}, deadline, clock);
  if (!ready || !*ready || ::read(STDIN_FILENO, one.data(), 1) != 1) return std::nullopt;
  return static_cast<char>(one.front());
}

std::optional<std::string> next_line(BootTime deadline, os::Clock& clock) {
  std::string line;
  while (line.size() < k_line_max) {
    const std::optional<char> byte = next_byte(deadline, clock);
    if (!byte) return std::nullopt;
    if (*byte == '\n') return line;
    line += *byte;
  }
  return std::nullopt;
}

// An invitation is for the first machine that uses it: the claim is a number which that machine has drawn. Returns
// empty if this is that machine; otherwise why it is refused.
std::string check_claim(const Meeting& meeting, const std::string& claim, const std::string& machine,
                        os::Clock& clock) {
  const Result<os::FileLock> lock = os::FileLock::acquire(meeting.folder / "lock");
  if (!lock) return lock.error().message;
  const Result<std::string> known = os::read_file(meeting.claim());
  if (known) {
    const std::string_view drawn = std::string_view(*known).substr(0, known->find(' '));
    const std::string_view by = std::string_view(*known).substr(std::min(known->size(), drawn.size() + 1));
    return drawn == claim ? "" : "used already, by " + sanitize(trim(by), k_line_max);
  }
  const auto expires = parse_number<std::int64_t>(trim(os::read_file(meeting.expiry()).value_or("")));
  if (!expires || clock.wall() >= WallTime{*expires}) return "expired";
  const Result<void> kept = os::write_file_durably(meeting.claim(), claim + " " + machine);
  return kept ? "" : kept.error().message;
}

struct FileIdentity {
  dev_t device = 0;
  ino_t inode = 0;
  bool operator==(const FileIdentity&) const = default;
};
FileIdentity identity_of(const os::Path& path) {
  struct stat found{};
  return ::lstat(path.c_str(), &found) == 0 ? FileIdentity{found.st_dev, found.st_ino} : FileIdentity{};
}

// The host confirms that it is still there, and reads the call before the caller's bytes arrive.
bool host_takes_the_call(os::Clock& clock) {
  say(wire::k_relay_go);
  const BootTime deadline = clock.boot() + wire::k_relay_silence;
  std::string answer;
  while (!answer.ends_with(wire::k_relay_go)) {
    const std::optional<char> byte = next_byte(deadline, clock);
    if (!byte || answer.size() > k_line_max) return false;
    answer += *byte;  // beats may precede it
  }
  return true;
}

int pass(const Meeting& meeting, os::Fd other, int in, int out) {
  for (const int fd : {in, out})
    if (!os::set_nonblocking(fd)) return 1;
  relay(in, out, std::move(other), [&] { return os::exists(meeting.folder); });
  return 0;
}

// The newest waiting host holds the socket, so an older connection of a host that broke unnoticed is skipped.
int wait_as_host(const Meeting& meeting, os::Clock& clock) {
  const std::optional<std::string> hello = next_line(clock.boot() + k_relay_hello_wait, clock);
  if (!hello) return 1;
  const std::vector<std::string> words = split(*hello, ' ');
  if (words.size() != 3 || words[0] != wire::k_relay_hello || words[1].size() != wire::k_claim_digits)
    return turn_away("not understood: this relay speaks " + std::string(wire::k_relay_hello));
  if (const std::string why = check_claim(meeting, words[1], words[2], clock); !why.empty()) return turn_away(why);
  const os::Path mine = meeting.folder / ("s." + os::random_id(8));
  Result<os::Listener> listener = os::listen_at(mine);
  if (!listener) return turn_away(listener.error().message);
  const FileIdentity socket = identity_of(mine);
  if (::rename(mine.c_str(), meeting.socket().c_str()) != 0) return turn_away("the relay cannot write its own folder");
  say(wire::k_relay_ready);
  BootTime heard = clock.boot(), told = clock.boot();
  while (identity_of(meeting.socket()) == socket) {
    std::array<os::Poll, 2> polls{os::Poll{STDIN_FILENO, {.read = true}, {}},
                                  os::Poll{listener->fd.get(), {.read = true}, {}}};
    if (!os::wait_any(polls, told + wire::k_relay_beat, clock)) return 1;
    if (std::optional<os::Fd> caller = os::accept_local(*listener)) {
      ::unlink(meeting.socket().c_str());
      listener->fd.reset();
      if (!host_takes_the_call(clock)) return 1;
      if (!os::write_now(caller->get(), as_bytes(wire::k_relay_go))) return 1;
      return pass(meeting, std::move(*caller), STDIN_FILENO, STDOUT_FILENO);
    }
    if (polls[0].ready.read) {
      std::array<std::byte, 64> beats{};
      if (::read(STDIN_FILENO, beats.data(), beats.size()) <= 0) break;
      heard = clock.boot();
    }
    if (clock.boot() - heard > wire::k_relay_silence) break;
    if (clock.boot() - told < wire::k_relay_beat) continue;
    told = clock.boot();
    say(std::string_view(&wire::k_relay_beat_byte, 1));
  }
  if (identity_of(meeting.socket()) == socket) ::unlink(meeting.socket().c_str());
  return 1;
}

// Reads the line with which the host took the call. Returns false if it did not.
bool is_taken(const os::Fd& host, os::Clock& clock) {
  const BootTime deadline = clock.boot() + wire::k_relay_silence;
  std::string line;
  while (line.size() < wire::k_relay_go.size()) {
    os::Poll poll{host.get(), {.read = true}, {}};
    const auto ready = os::wait_any({&poll, 1}, deadline, clock);
    if (!ready || !*ready) return false;
    std::array<std::byte, 1> byte{};
    const auto moved = os::read_now(host.get(), byte);
    if (!moved || moved->closed) return false;
    if (moved->bytes == 1) line += static_cast<char>(byte.front());
  }
  return line == wire::k_relay_go;
}

int call(const Meeting& meeting, os::Clock& clock) {
  const BootTime until = clock.boot() + k_relay_call_wait;
  while (clock.boot() < until) {
    Result<os::Fd> host = os::connect_local(meeting.socket());
    if (host && is_taken(*host, clock)) {
      say(wire::k_relay_connected);
      return pass(meeting, std::move(*host), STDIN_FILENO, STDOUT_FILENO);
    }
    os::pause_for(k_relay_look);
  }
  const char* why = !os::exists(meeting.folder)  ? "removed"
                    : os::exists(meeting.claim()) ? "away"
                                                  : "never";
  say(std::string(wire::k_relay_nobody) + why + "\n");
  return 1;
}

os::Path keys_file() {
  const os::Path file = os::home_directory() / ".ssh" / "authorized_keys";
  std::error_code failed;
  const os::Path real = std::filesystem::canonical(file, failed);
  return failed ? file : real;
}

std::string mark_of(const Meeting& meeting) { return " gridctl-lend-" + meeting.id; }

// Replaces the line of this meeting; an empty one removes it.
Result<void> write_key_line(const Meeting& meeting, const std::string& line) {
  const os::Path file = keys_file();
  TRY(os::make_directories(file.parent_path()));
  TRY(os::make_directories(relay_home()));
  TRY_ASSIGN(const os::FileLock lock, os::FileLock::acquire(relay_home() / "lock"));
  Result<std::string> before = os::read_file(file, k_keys_max);
  if (!before && before.error().code != Code::not_found) return before.error();
  struct stat found{};
  const mode_t mode = ::stat(file.c_str(), &found) == 0 ? found.st_mode & 07777 & ~k_others_write : 0600;
  std::string text;
  std::vector<std::string> lines = split(before ? *before : std::string{}, '\n');
  if (!lines.empty() && lines.back().empty()) lines.pop_back();  // what follows the last line's end
  for (const std::string& one : lines)
    if (!one.ends_with(mark_of(meeting))) text += one + "\n";
  return os::write_file_durably(file, text + line, mode);
}

// Keeps the program that the key starts: a copy, because the agents of hosts are replaced with gridctl.
Result<os::Path> keep_program() {
  const os::Path to = relay_home() / "gridctl-agent";
  TRY_ASSIGN(const os::Path from, os::executable_path());
  TRY_ASSIGN(const std::string bytes, os::read_file(from, 256u << 20));
  TRY(os::write_file_durably(to, bytes, 0700));
  return to;
}

Result<void> add(const Meeting& meeting, std::string_view expires, std::string_view key) {
  if (!parse_number<std::int64_t>(expires) || key.find_first_of(" \"\\\n\r") != std::string_view::npos)
    return make_error(Code::usage, "relay add ID EXPIRES_MS KEY");
  TRY(os::make_directories(meeting.folder));
  TRY(os::write_file_durably(meeting.expiry(), expires));
  TRY_ASSIGN(const os::Path program, keep_program());
  const std::string home = os::environment("GRIDCTL_RELAY_HOME").value_or("");
  const std::string with_home = home.empty() ? "" : "GRIDCTL_RELAY_HOME=" + shell_quote(home) + " ";
  return write_key_line(meeting, "restrict,command=\"" + with_home + shell_quote(program.string()) + " relay host " +
                                     meeting.id + "\" ssh-ed25519 " + std::string(key) + mark_of(meeting) + "\n");
}

// Moves the folder away first: a host that is just logging in writes files into it, and would keep it from being
// removed. Its connections notice that it is gone.
Result<void> remove(const Meeting& meeting) {
  TRY(write_key_line(meeting, ""));
  const os::Path gone = relay_home() / (".removing-" + os::random_id(8));
  if (!os::exists(meeting.folder)) return {};
  TRY(os::rename_path(meeting.folder, gone));
  return os::remove_tree(gone);
}

int told(const Result<void>& outcome) {
  if (outcome) {
    say("\nGRIDCTL-RELAY/1 done\n");
    return 0;
  }
  return turn_away(outcome.error().message);
}

}  // namespace

int relay_command(std::span<char* const> arguments, os::Clock& clock) {
  os::ignore_broken_pipes();
  const std::optional<Verb> verb = k_verbs.find(arguments.empty() ? "" : arguments[0]);
  const std::size_t wanted = verb == Verb::add ? 4 : 2;
  if (!verb || arguments.size() != wanted) return turn_away("relay add, rm, host or call");
  const Result<Meeting> meeting = meeting_of(arguments[1]);
  if (!meeting) return turn_away(meeting.error().message);
  switch (*verb) {
    case Verb::add: return told(add(*meeting, arguments[2], arguments[3]));
    case Verb::rm: return told(remove(*meeting));
    case Verb::call: return call(*meeting, clock);
    case Verb::host: break;
  }
  return os::exists(meeting->folder) ? wait_as_host(*meeting, clock) : turn_away("withdrawn");
}

}  // namespace gridctl::agent
