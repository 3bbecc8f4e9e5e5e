// SPDX-License-Identifier: Apache-2.0
#include "control/reach/deploy.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "base/text.hpp"
#include "ssh/connect.hpp"

namespace gridctl::control {
namespace {

// Lines of our own shell commands; they begin with '\n' like the preamble, because login noise may precede them.
constexpr std::string_view k_missing = "\nGRIDCTL-MISSING/1 ";
constexpr std::string_view k_stored = "\nGRIDCTL-STORED/1 ";
constexpr std::uint32_t k_hello_stream = 1;
constexpr std::size_t k_answer_max = wire::k_noise_max + 64 * 1024;  // noise, and one line of a shell's error text

// Any login shell must understand it: fish and csh know `exec` and single quotes. Hence one line, and sh inside.
std::string in_sh(const std::string& script) { return "exec /bin/sh -c " + shell_quote(script); }

std::string start_command(const std::vector<AgentImage>& images) {
  std::string cases;
  for (const AgentImage& image : images)
    cases += std::string{image.arch} + ") h=" + std::string{image.sha256_hex} + ";; ";
  return in_sh("a=$(uname -m); case $a in " + cases +
               "*) h=none;; esac; f=\"${GRIDCTL_AGENT_HOME:-$HOME/.gridctl}/bin/$h/gridctl-agent\"; "
               "[ -s \"$f\" ] && [ -x \"$f\" ] && exec \"$f\" connect; printf \"\\nGRIDCTL-MISSING/1 %s\\n\" \"$a\"");
}

// Reports "STAGE TEXT"; whatever fails, nothing but a whole, proven file ever gets the final name. A cut connection
// ends `cat` like a whole file would: hence the size.
std::string store_command(const AgentImage& image) {
  const std::string hash{image.sha256_hex};
  return in_sh(
      "umask 077; d=\"${GRIDCTL_AGENT_HOME:-$HOME/.gridctl}/bin/" + hash +
      "\"; t=\"$d/gridctl-agent.tmp.$$\"; "
      "say() { printf \"\\nGRIDCTL-STORED/1 %s %s\\n\" \"$1\" \"$(printf %s \"$2\" | tr \"\\n\\r\" \"  \")\"; }; "
      "no() { rm -f \"$t\"; say \"$1\" \"$2\"; exit 1; }; "
      "e=$(mkdir -p \"$d\" 2>&1) || no mkdir \"$e\"; "
      "e=$(cat 2>&1 >\"$t\") || no write \"$e\"; "
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

Error noise_error(const ssh::Channel& channel, std::string_view noise) {
  std::string said = sanitize(trim(noise), 200);
  const std::string words = sanitize(trim(channel.stderr_tail()), 300);
  if (!words.empty()) said += (said.empty() ? "" : " / ") + words;
  return make_error(Code::protocol_violation,
                    "the agent does not start on " + channel.peer() + ": " + (said.empty() ? "it said nothing" : said),
                    "ssh " + channel.peer() + " true   # must print nothing and end at once");
}

Error place_error(const std::string& peer, const std::string& stage, const std::string& detail) {
  const std::string text = sanitize(detail, 300);
  const std::string elsewhere =
      "set GRIDCTL_AGENT_HOME on the host (e.g. in ~/.ssh/environment or sshd's SetEnv) to a ";
  if (speaks_of(text, {"no space", "quota"}))
    return make_error(Code::no_space,
                      "the disk or quota of " + peer + " is full, the agent cannot be put there: " + text,
                      "free some MiB in its ~/.gridctl, or " + elsewhere + "directory with room");
  if (stage == "exec" && speaks_of(text, {"permission denied", "cannot execute"}))
    return make_error(Code::unsupported, "the home directory on " + peer + " forbids execution (noexec): " + text,
                      elsewhere + "directory that allows it");
  if (stage == "exec")
    return make_error(Code::unsupported,
                      "the agent does not run on " + peer + ": " + (text.empty() ? "no reason given" : text));
  if (stage == "size" || stage == "hash")
    return make_error(Code::protocol_violation,
                      "the agent arrived damaged on " + peer + " (" + stage + " " + text + ")");
  return make_error(Code::io, "the agent cannot be put on " + peer + " (" + stage + "): " + text,
                    elsewhere + "writable directory");
}

Error machine_error(const std::vector<AgentImage>& images, const std::string& peer, const std::string& machine) {
  std::string carried;
  for (const AgentImage& image : images) carried += (carried.empty() ? "" : " and ") + std::string{image.arch};
  return make_error(Code::unsupported,
                    "this gridctl carries no agent for " + peer + ", which is a " + sanitize(machine, 64) +
                        " machine, but only for " + carried,
                    machine == "aarch64" ? "scripts/install-deps cross   # then build gridctl again" : "");
}

// Reads until `found` is satisfied with the text so far; false at the end of the stream.
template <class Found>
Result<bool> read_until(ssh::Channel& channel, std::string& text, BootTime deadline, os::Clock& clock, Found found) {
  std::array<std::byte, 16 * 1024> buffer;
  while (!found(text)) {
    if (text.size() > k_answer_max) return noise_error(channel, text.substr(0, 400));
    TRY_ASSIGN(const std::size_t count, read_blocking(channel, buffer, deadline, clock));
    if (count == 0) return false;
    text += as_text(ByteView{buffer}.first(count));
  }
  return true;
}

struct Started {
  std::unique_ptr<ssh::Channel> channel;
  std::string bytes;         // with the preamble; all that came so far
  std::string missing_arch;  // set when the agent is not there
};

Result<Started> start(const Connector& connector, const std::vector<AgentImage>& images, BootTime deadline,
                      os::Clock& clock) {
  Started started;
  TRY_ASSIGN(started.channel, connector(start_command(images), deadline));
  TRY_ASSIGN(const bool answered,
             read_until(*started.channel, started.bytes, deadline, clock, [](std::string_view text) {
               return text.find(wire::k_preamble) != std::string_view::npos || line_after(text, k_missing).has_value();
             }));
  if (!answered) return noise_error(*started.channel, started.bytes);
  if (started.bytes.find(wire::k_preamble) == std::string::npos)
    started.missing_arch = line_after(started.bytes, k_missing).value_or("");
  return started;
}

Result<void> store(const Connector& connector, const AgentImage& image, BootTime deadline, os::Clock& clock) {
  TRY_ASSIGN(const auto channel, connector(store_command(image), deadline));
  std::string text;
  const auto wrote = write_blocking(*channel, as_bytes(image.bytes), deadline, clock);
  if (!wrote && wrote.error().code == Code::timed_out) return wrote.error();
  channel->close_write();  // also after a failure: the host may have told why it stopped reading
  const auto told = read_until(*channel, text, deadline, clock,
                               [](std::string_view seen) { return line_after(seen, k_stored).has_value(); });
  const auto verdict = line_after(text, k_stored);
  if (verdict) {
    const std::size_t space = verdict->find(' ');
    const std::string stage = verdict->substr(0, space);
    if (stage == "ok") return {};
    return place_error(channel->peer(), stage, space == std::string::npos ? "" : verdict->substr(space + 1));
  }
  if (!wrote) return wrote.error();
  if (!told) return told.error();
  return noise_error(*channel, text);
}

Result<AgentSession> greet(Started started, const AgentCall& call, BootTime deadline, os::Clock& clock) {
  const std::string peer = started.channel->peer();
  wire::Decoder decoder{true};
  decoder.feed(as_bytes(started.bytes));
  BlockingLink link{std::move(started.channel), std::move(decoder), clock};
  wire::ControllerHello hello;
  hello.controller = call.controller;
  hello.features = call.features;
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
  return std::move(link).release(std::move(agent));
}

}  // namespace

Result<AgentSession> open_agent(const Connector& connector, const AgentCall& call, BootTime deadline,
                                os::Clock& clock) {
  TRY_ASSIGN(Started started, start(connector, call.images, deadline, clock));
  if (!started.missing_arch.empty()) {
    const std::string peer = started.channel->peer();
    started.channel.reset();
    const auto image = std::find_if(call.images.begin(), call.images.end(),
                                    [&](const AgentImage& one) { return one.arch == started.missing_arch; });
    if (image == call.images.end()) return machine_error(call.images, peer, started.missing_arch);
    TRY(store(connector, *image, deadline, clock).context("while putting the agent on " + peer));
    TRY_ASSIGN(started, start(connector, call.images, deadline, clock));
    if (!started.missing_arch.empty())
      return make_error(Code::io, "the agent that was just put on " + peer + " is gone again");
  }
  return greet(std::move(started), call, deadline, clock);
}

Result<AgentSession> open_agent(const ssh::Target& target, const AgentCall& call, BootTime deadline, os::Clock& clock) {
  const Connector connector = [&](const std::string& command, BootTime by) {
    return ssh::connect(target, command, by, clock);
  };
  return open_agent(connector, call, deadline, clock);
}

}  // namespace gridctl::control
