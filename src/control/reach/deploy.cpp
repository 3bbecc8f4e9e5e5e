// SPDX-License-Identifier: Apache-2.0
#include "control/reach/deploy.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "base/text.hpp"
#include "control/reach/peer.hpp"
#include "os/random.hpp"
#include "ssh/connect.hpp"

namespace gridctl::control {
namespace {
// Stages of the script that puts the agent there.
constexpr std::string_view k_stage_ok = "ok", k_stage_exec = "exec";

// Lines of our own shell commands; they begin with '\n' like the preamble, because login noise may precede them.
constexpr std::string_view k_missing = "\nGRIDCTL-MISSING/1 ";
constexpr std::string_view k_stored = "\nGRIDCTL-STORED/1 ";
constexpr std::uint32_t k_hello_stream = 1;
// The limits for a host that answers: each step has its own, so that a hang is reported soon, and only the transfer of
// the agent's bytes may take long, as long as they move.
constexpr Duration k_first_word = std::chrono::seconds{8};  // from the login, or the last noise, to our shell's answer
constexpr Duration k_noise_wait = std::chrono::minutes{1};  // for all noise before that answer: it may not drip for ever
constexpr Duration k_hello_wait = std::chrono::seconds{15};
constexpr Duration k_stall = std::chrono::seconds{20};    // no byte of the agent was taken for so long
constexpr std::size_t k_send_rate = 2048;                      // bytes a second; slower, as of one who drips, is given up
constexpr Duration k_send_extra = std::chrono::minutes{2};
constexpr Duration k_verdict = std::chrono::seconds{60};  // what systems between keep of it arrives; sync, and a start
constexpr std::size_t k_answer_max = wire::k_noise_max + 64 * 1024;  // noise, and one line of a shell's error text

// Any login shell must understand it: fish and csh know `exec` and single quotes. Hence one line, and sh inside.
// Start-up files may have left PATH or HOME without what we need.
std::string in_sh(const std::string& script) {
  return "exec /bin/sh -c " + shell_quote(
                                  "PATH=\"$PATH:/usr/bin:/bin\"; export PATH; "
                                  "[ -n \"$HOME\" ] || { eval HOME=\"~$(id -un)\"; export HOME; }; " +
                                  script);
}

std::string start_command(const std::vector<AgentImage>& images) {
  std::string cases;
  for (const AgentImage& image : images)
    cases += std::string{image.arch} + ") h=" + std::string{image.sha256_hex} + ";; ";
  return in_sh("a=$(uname -m); case $a in " + cases +
               "*) h=none;; esac; f=\"${GRIDCTL_AGENT_HOME:-$HOME/.gridctl}/bin/$h/gridctl-agent\"; "
               "[ -s \"$f\" ] && [ -x \"$f\" ] && exec \"$f\" connect; z=; command -v gzip >/dev/null && z=gzip; "
               "printf \"\\nGRIDCTL-MISSING/1 %s %s\\n\" \"$a\" \"$z\"");
}

// Reports "STAGE TEXT"; whatever fails, nothing but a whole, proven file ever gets the final name. A cut connection
// ends `cat` like a whole file would: hence the size.
std::string store_command(const AgentImage& image, bool compressed) {
  const std::string hash{image.sha256_hex};
  return in_sh(
      "umask 077; d=\"${GRIDCTL_AGENT_HOME:-$HOME/.gridctl}/bin/" + hash +
      "\"; t=\"$d/gridctl-agent.tmp.$$\"; "
      "say() { printf \"\\nGRIDCTL-STORED/1 %s %s\\n\" \"$1\" \"$(printf %s \"$2\" | tr \"\\n\\r\" \"  \")\"; }; "
      "no() { rm -f \"$t\"; say \"$1\" \"$2\"; exit 1; }; "
      "e=$(mkdir -p \"$d\" 2>&1) || no mkdir \"$e\"; "
      "e=$(" +
      std::string(compressed ? "gzip -dc" : "cat") +
      " 2>&1 >\"$t\") || no write \"$e\"; "
      "n=$(($(wc -c <\"$t\"))); [ \"$n\" -eq " +
      std::to_string(image.bytes.size()) +
      " ] || no size \"$n\"; "
      "chmod 700 \"$t\"; sync \"$t\" 2>/dev/null; "
      "h=$(\"$t\" --self-hash 2>&1) || no exec \"$h\"; [ \"$h\" = " +
      hash +
      " ] || no hash \"$h\"; "
      "e=$(mv -f \"$t\" \"$d/gridctl-agent\" 2>&1) || no move \"$e\"; say ok \"\"");
}

// The rest of the line after the last `mark`, once it is complete.
std::optional<std::string> line_after(std::string_view text, std::string_view mark) {
  const std::size_t at = text.rfind(mark);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view rest = text.substr(at + mark.size());
  const std::size_t end = rest.find('\n');
  if (end == std::string_view::npos) return std::nullopt;
  return std::string{trim(rest.substr(0, end))};
}

bool speaks_of(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return lower(text).find(word) != std::string::npos; });
}

// "user@host:port" as arguments of ssh.
std::string ssh_command(const std::string& peer) {
  const std::size_t at = peer.find('@'), colon = peer.rfind(':');
  const std::string user = at == std::string::npos ? "" : peer.substr(0, at + 1);
  std::string host = peer.substr(user.size(), colon - user.size());
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return "ssh -p " + peer.substr(colon + 1) + " " + shell_quote(user + host);
}

std::string words_of(const ssh::Channel& channel, std::string_view noise) {
  std::string said = sanitize(trim(noise), 200);
  const std::string words = sanitize(trim(channel.stderr_tail()), 300);
  if (!words.empty()) said += (said.empty() ? "" : " / ") + words;
  return said;
}

Error noise_error(const ssh::Channel& channel, std::string_view noise) {
  const std::string said = words_of(channel, noise);
  const std::string ended =
      "the login shell there ended without a word: it runs no commands (nologin, a restricted shell), or a start-up "
      "file of it exits";
  return make_error(Code::protocol_violation,
                    "the agent does not start on " + channel.peer() + ": " + (said.empty() ? ended : said),
                    ssh_command(channel.peer()) + " true   # must print nothing and end at once");
}

// Logged in, and then nothing more.
Error silent_error(const ssh::Channel& channel, std::string_view noise) {
  const std::string said = words_of(channel, noise);
  return make_error(Code::timed_out,
                    "the login shell on " + channel.peer() +
                        " let us in but runs no command: a start-up file of it does not end (~/.bashrc, ~/.zshenv, "
                        "~/.config/fish/config.fish; an 'exec fish' or 'tmux' there must be for terminals only)" +
                        (said.empty() ? "" : "; it said: " + said),
                    ssh_command(channel.peer()) + " true   # must print nothing and end at once");
}

// Faults of the host: a person there mends them.
Error place_error(const std::string& peer, const std::string& stage, const std::string& detail) {
  const auto refused = [](std::string message, std::string hint = {}) {
    Error error = make_error(Code::refused, std::move(message), std::move(hint));
    error.retry = Retry::needs_user;
    return error;
  };
  const std::string text = sanitize(detail, 300), cannot = "the agent cannot be put on " + peer;
  const auto elsewhere = [&](const char* what) {
    return ssh_command(peer) + " 'ln -s DIR ~/.gridctl'   # DIR: a directory of yours there " + what +
           "; or set GRIDCTL_AGENT_HOME in sshd's SetEnv";
  };
  if (speaks_of(text, {"no space", "quota"}))
    return refused(
        "the disk, its inodes or the quota of " + peer + " are used up, the agent cannot be put there: " + text,
        ssh_command(peer) + " 'df -h ~; df -i ~'");
  if (stage == k_stage_exec && speaks_of(text, {"permission denied", "cannot execute"}))
    return refused("the home directory on " + peer + " forbids execution (noexec): " + text,
                   elsewhere("that allows execution"));
  if (stage == k_stage_exec)
    return refused("the agent does not run on " + peer + ": " + (text.empty() ? "no reason given" : text));
  if (is_one_of(stage, {"size", "hash"}))
    return make_error(Code::protocol_violation,
                      "the agent arrived damaged on " + peer + " (" + stage + " " + text + ")");
  const std::string reason = text.empty() ? "it was cut short, as by a limit on the size of files (ulimit -f)" : text;
  return refused(cannot + " (" + stage + "): " + reason, elsewhere("that can be written"));
}

Error machine_error(const std::vector<AgentImage>& images, const std::string& peer, const std::string& machine) {
  std::string carried;
  for (const AgentImage& image : images) carried += (carried.empty() ? "" : " and ") + std::string{image.arch};
  return make_error(Code::refused,
                    "this gridctl carries no agent for " + peer + ", which is a " + sanitize(machine, 64) +
                        " machine, but only for " + carried,
                    is_one_of(machine, {"aarch64"}) ? "scripts/install-deps cross   # then build gridctl again" : "");
}

// Reads until `found` is satisfied with the text so far; false at the end of the stream. timed_out when nothing came
// for `stall`.
template <class Found>
Result<bool> read_until(ssh::Channel& channel, std::string& text, Duration stall, BootTime deadline, os::Clock& clock,
                        Found found) {
  std::array<std::byte, 16 * 1024> buffer;
  while (!found(text)) {
    if (text.size() > k_answer_max) return noise_error(channel, text.substr(0, 400));
    TRY_ASSIGN(const std::size_t count,
               read_blocking(channel, buffer, std::min(deadline, clock.boot() + stall), clock));
    if (count == 0) return false;
    text += as_text(ByteView{buffer}.first(count));
  }
  return true;
}

struct Started {
  std::unique_ptr<ssh::Channel> channel;
  std::string bytes;         // with the preamble; all that came so far
  std::string missing_arch;  // set when the agent is not there
  bool has_gzip = false;     // that host
};

// "x86_64 gzip"
void read_missing(const std::string& line, Started& into) {
  const std::vector<std::string> words = split(line, ' ');
  into.missing_arch = words.front();
  into.has_gzip = words.size() > 1 && is_one_of(words[1], {"gzip"});
}

Result<Started> start(const Connector& connector, const AgentCall& call, BootTime deadline, os::Clock& clock) {
  Started started;
  TRY_ASSIGN(started.channel, connector(start_command(call.images), std::min(deadline, clock.boot() + call.login_wait)));
  const auto answered =
      read_until(*started.channel, started.bytes, k_first_word, std::min(deadline, clock.boot() + k_noise_wait), clock,
                 [](std::string_view text) {
        return text.find(wire::k_preamble) != std::string_view::npos || line_after(text, k_missing).has_value();
      });
  if (!answered && answered.error().code == Code::timed_out) return silent_error(*started.channel, started.bytes);
  if (!answered) return answered.error();
  if (!*answered) return noise_error(*started.channel, started.bytes);
  if (started.bytes.find(wire::k_preamble) == std::string::npos)
    read_missing(line_after(started.bytes, k_missing).value_or(""), started);
  return started;
}

// Sends all of it, or until the host has said why it takes no more. False when it has ended its output.
Result<bool> send_image(ssh::Channel& channel, std::string_view image, std::string& told,
                        const UploadProgress& progress, BootTime deadline, os::Clock& clock) {
  ByteView left = as_bytes(image);
  std::array<std::byte, 16 * 1024> buffer;
  BootTime moved = clock.boot();
  deadline = std::min(deadline, moved + k_send_extra + std::chrono::seconds{image.size() / k_send_rate});
  while (!left.empty() || !channel.flushed()) {
    TRY_ASSIGN(const auto wrote, channel.write(left));
    if (wrote && *wrote > 0) {
      left = left.subspan(*wrote);
      moved = clock.boot();
      if (progress) progress(image.size() - left.size(), image.size());
    }
    TRY_ASSIGN(const auto read, channel.read(buffer));
    if (read && *read == 0) return false;
    if (read) told += as_text(ByteView{buffer}.first(*read));
    if (line_after(told, k_stored)) return true;
    if (told.size() > k_answer_max) return noise_error(channel, told.substr(0, 400));
    if ((wrote && *wrote > 0) || read) continue;
    const BootTime now = clock.boot();
    if (now >= deadline || now - moved > k_stall)
      return make_error(Code::timed_out, channel.peer() + " took " + format_size(image.size() - left.size()) + " of " +
                                             format_size(image.size()) + ", and then nothing for " +
                                             format_duration(std::chrono::floor<std::chrono::seconds>(now - moved)));
    TRY(wait_for_channel(channel, !left.empty() || !channel.flushed(), std::min(deadline, moved + k_stall), clock));
  }
  return true;
}

Result<void> store(const Connector& connector, const AgentImage& image, bool has_gzip, const UploadProgress& progress,
                   BootTime deadline, os::Clock& clock) {
  const bool compressed = has_gzip && !image.gzip.empty();
  TRY_ASSIGN(const auto channel,
             connector(store_command(image, compressed), std::min(deadline, clock.boot() + k_login_wait)));
  std::string text;
  const BootTime began = clock.boot();
  const auto sent = send_image(*channel, compressed ? image.gzip : image.bytes, text, progress, deadline, clock);
  if (!sent && sent.error().code == Code::timed_out) return sent.error();
  channel->close_write();  // also after a failure: the host may have told why it stopped reading
  // Bytes that sockets on the way still hold move as fast as those before.
  const Duration verdict = std::max<Duration>(k_verdict, (clock.boot() - began) * 2);
  const auto told = read_until(*channel, text, verdict, std::min(deadline, clock.boot() + verdict), clock,
                               [](std::string_view seen) { return line_after(seen, k_stored).has_value(); });
  if (const auto line = line_after(text, k_stored)) {
    const std::size_t space = line->find(' ');
    const std::string stage = line->substr(0, space);
    if (stage == k_stage_ok) return {};
    return place_error(channel->peer(), stage, space == std::string::npos ? "" : line->substr(space + 1));
  }
  if (!sent) return sent.error();
  if (!told) return told.error();
  return noise_error(*channel, text);
}

Result<AgentSession> greet(Started started, const AgentCall& call, BootTime deadline, os::Clock& clock) {
  const std::string peer = started.channel->peer();
  deadline = std::min(deadline, clock.boot() + k_hello_wait);
  wire::Decoder decoder{true};
  decoder.feed(as_bytes(started.bytes));
  BlockingLink link{std::move(started.channel), std::move(decoder), clock};
  wire::ControllerHello hello;
  hello.controller = call.controller;
  hello.features = call.features;
  const Digest nonce = os::random_digest();
  hello.nonce = nonce;
  TRY(link.send({wire::FrameKind::request, k_hello_stream, wire::encode(hello)}, deadline));
  TRY_ASSIGN(const wire::Frame answer, link.receive(deadline));
  if (answer.kind != wire::FrameKind::reply || answer.stream != k_hello_stream)
    return make_error(Code::protocol_violation, "the agent on " + peer + " did not answer our hello with a reply");
  if (auto error = wire::payload_error(answer.payload)) return *std::move(error);
  TRY_ASSIGN(wire::AgentHello agent, wire::parse_agent_hello(answer.payload));
  if (agent.version < wire::k_version_min || agent.version > wire::k_version_max)
    return make_error(Code::protocol_violation, "the agent on " + peer + " speaks version " +
                                                    std::to_string(agent.version) +
                                                    " of the protocol, which we do not");
  TRY(proved_key(agent, nonce).context("while asking the agent on " + peer + " which host it is"));
  return std::move(link).release(std::move(agent));
}

}  // namespace

Result<AgentSession> open_agent(const Connector& connector, const AgentCall& call, BootTime deadline,
                                os::Clock& clock) {
  TRY_ASSIGN(Started started, start(connector, call, deadline, clock));
  if (!started.missing_arch.empty()) {
    const std::string peer = started.channel->peer();
    started.channel.reset();
    const auto image = std::ranges::find(call.images, started.missing_arch, &AgentImage::arch);
    if (image == call.images.end()) return machine_error(call.images, peer, started.missing_arch);
    TRY(store(connector, *image, started.has_gzip, call.progress, deadline, clock)
            .context("while putting the agent on " + peer));
    TRY_ASSIGN(started, start(connector, call, deadline, clock));
    if (!started.missing_arch.empty())
      return make_error(Code::host_unreachable, "the agent that was just put on " + peer + " is gone again");
  }
  return greet(std::move(started), call, deadline, clock);
}

Connector over_ssh(const ssh::Target& target, os::Clock& clock) {
  return [target, &clock](const std::string& command, BootTime by) { return ssh::connect(target, command, by, clock); };
}

}  // namespace gridctl::control
