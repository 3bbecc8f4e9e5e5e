// SPDX-License-Identifier: Apache-2.0
#include "control/deploy.hpp"

#include <utility>

#include "base/text.hpp"
#include "ssh/connect.hpp"

namespace gridctl::control {

namespace {

constexpr std::string_view k_missing = "GRIDCTL-NO-AGENT ";   // then the processor's name
constexpr std::string_view k_stored = "GRIDCTL-STORED";       // the only proof that the upload is whole
constexpr std::size_t k_said_max = 16 * 1024;                 // of what the shell says before the agent speaks
constexpr std::uint32_t k_hello_stream = 1;

// For any login shell: one word of it is the script for sh.
std::string in_sh(const std::string& script) { return "exec sh -c " + shell_quote(script); }

std::string choose_hash(const std::vector<AgentImage>& images) {
  std::string script = "case \"$(uname -m)\" in ";
  for (const AgentImage& image : images) script += std::string(image.arch) + ") h=" + std::string(image.sha256_hex) + ";; ";
  return script + "*) h=none;; esac; d=\"${GRIDCTL_AGENT_HOME:-$HOME/.gridctl}/bin/$h\"; ";
}

std::string start_command(const std::vector<AgentImage>& images) {
  return in_sh(choose_hash(images) +
               "if [ -x \"$d/gridctl-agent\" ]; then exec \"$d/gridctl-agent\" connect; fi; "
               "echo; echo \"" + std::string(k_missing) + "$(uname -m)\"");
}

// The file is complete before it gets its name, and it proves by its own hash that it arrived whole and can run here.
std::string store_command(const AgentImage& image) {
  const std::string hash(image.sha256_hex);
  return in_sh("umask 077; d=\"${GRIDCTL_AGENT_HOME:-$HOME/.gridctl}/bin/" + hash +
               "\"; t=\"$d/upload.$$\"; mkdir -p \"$d\" && cat > \"$t\" && chmod 700 \"$t\" && h=\"$(\"$t\" --self-hash)\" && "
               "if [ \"$h\" = " + hash + " ]; then mv -f \"$t\" \"$d/gridctl-agent\" && echo && echo " +
               std::string(k_stored) + "; else echo \"the uploaded agent is damaged\" >&2; fi; rm -f \"$t\"");
}

Error classify_upload(const std::string& peer, const std::string& complaint) {
  const std::string said = sanitize(std::string(trim(complaint)), 300);
  const std::string text = "cannot put the agent on " + peer + (said.empty() ? "" : ": " + said);
  const auto has = [&](const char* word) { return said.find(word) != std::string::npos; };
  if (has("No space left") || has("quota"))
    return make_error(Code::no_space, text, "free some space in the home directory there, or set GRIDCTL_AGENT_HOME");
  if (has("Permission denied"))
    return make_error(Code::io, text, "the home directory there must be writable and not mounted noexec");
  return make_error(Code::io, text);
}

Result<void> store_agent(const ssh::Target& target, const AgentImage& image, BootTime deadline, os::Clock& clock) {
  TRY_ASSIGN(auto channel, ssh::connect(target, store_command(image), deadline, clock));
  BlockingLink link(std::move(channel), wire::Decoder(true), clock);
  Result<void> sent = link.send_bytes(as_bytes(image.bytes), deadline);
  if (sent) link.channel().close_write();
  std::string said;
  std::vector<std::byte> piece(4096);
  for (;;) {
    const Result<std::size_t> count = link.receive_bytes(piece, deadline);
    if (!count && sent) return count.error();
    if (!count || *count == 0) break;
    said += as_text(ByteView{piece.data(), *count});
    if (said.size() > k_said_max) break;
  }
  if (said.find(k_stored) != std::string::npos) return {};
  return classify_upload(target.peer(), link.channel().stderr_tail());
}

// Reads up to the agent's preamble. Gives the processor's name instead when there is no agent.
struct Answer {
  bool agent = false;
  std::string arch;
};
Result<Answer> await_agent(BlockingLink& link, wire::Decoder& decoder, const std::string& peer, BootTime deadline) {
  std::string said;
  std::vector<std::byte> piece(4096);
  for (;;) {
    TRY_ASSIGN(const std::size_t count, link.receive_bytes(piece, deadline));
    const ByteView bytes{piece.data(), count};
    said += as_text(bytes);
    decoder.feed(bytes);
    if (said.find(wire::k_preamble) != std::string::npos) return Answer{true, ""};
    const std::size_t missing = said.find("\n" + std::string(k_missing));
    const std::size_t line_end = missing == std::string::npos ? missing : said.find('\n', missing + 1);
    if (line_end != std::string::npos) {
      const std::size_t name = missing + 1 + k_missing.size();
      return Answer{false, std::string(trim(said.substr(name, line_end - name)))};
    }
    if (count != 0 && said.size() <= k_said_max) continue;
    const std::string quote = sanitize(std::string(trim(said + "\n" + link.channel().stderr_tail())), 300);
    return make_error(Code::protocol_violation, "no agent answers on " + peer +
                                                    (quote.empty() ? "" : "; the host says: " + quote.substr(0, 600)));
  }
}

Result<wire::AgentHello> greet(BlockingLink& link, const AgentCall& call, BootTime deadline) {
  wire::ControllerHello hello;
  hello.controller = call.controller;
  hello.features = call.features;
  TRY(link.send({wire::FrameKind::request, k_hello_stream, wire::encode(hello)}, deadline));
  TRY_ASSIGN(const wire::Frame frame, link.receive(deadline));
  if (frame.kind != wire::FrameKind::reply || frame.stream != k_hello_stream)
    return make_error(Code::protocol_violation, "the agent did not answer the greeting");
  if (std::optional<Error> error = wire::payload_error(frame.payload)) return *error;
  return wire::parse_agent_hello(frame.payload);
}

}  // namespace

Result<AgentSession> open_agent(const ssh::Target& target, const AgentCall& call, BootTime deadline, os::Clock& clock) {
  for (bool stored = false;; stored = true) {
    TRY_ASSIGN(auto channel, ssh::connect(target, start_command(call.images), deadline, clock));
    // What is read before the preamble goes through a decoder of its own, which the link then takes over.
    BlockingLink raw(std::move(channel), wire::Decoder(true), clock);
    wire::Decoder decoder(true);
    TRY_ASSIGN(const Answer answer, await_agent(raw, decoder, target.peer(), deadline));
    if (answer.agent) {
      BlockingLink link(std::move(std::move(raw).release({}).channel), std::move(decoder), clock);
      TRY_ASSIGN(wire::AgentHello hello, greet(link, call, deadline).context("while greeting the agent on " + target.peer()));
      return std::move(link).release(std::move(hello));
    }
    const AgentImage* fitting = nullptr;
    for (const AgentImage& image : call.images)
      if (image.arch == answer.arch) fitting = &image;
    if (fitting == nullptr)
      return make_error(Code::unsupported, target.peer() + " has a processor of type '" + sanitize(answer.arch, 40) +
                                               "', for which this gridctl carries no agent");
    if (stored)
      return make_error(Code::io, "the agent was put on " + target.peer() + " but is not found there a moment later");
    TRY(store_agent(target, *fitting, deadline, clock));
  }
}

}  // namespace gridctl::control
