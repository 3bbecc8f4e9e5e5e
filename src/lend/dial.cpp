// SPDX-License-Identifier: Apache-2.0
#include "lend/dial.hpp"

#include <algorithm>
#include <array>
#include <memory>

#include "lend/keys.hpp"
#include "lend/lines.hpp"
#include "lend/pace.hpp"
#include "os/net.hpp"
#include "os/process.hpp"
#include "os/shared_rate.hpp"
#include "ssh/connect.hpp"
#include "ssh/process_channel.hpp"
#include "ssh/sealed_channel.hpp"
#include "wire/relay.hpp"

namespace gridctl::lend {

namespace {

constexpr Duration k_login_wait = std::chrono::seconds{15};
constexpr Duration k_answer_wait = std::chrono::seconds{10};
constexpr Duration k_seal_wait = std::chrono::seconds{15};
constexpr std::size_t k_noise_max = 256 * 1024;
constexpr std::size_t k_piece = 64 * 1024;
constexpr Duration k_terms_age = std::chrono::seconds{1};
constexpr std::uint64_t k_bits = 8;
// A researcher's daemon asks every few seconds while it uses the machine; a connection that is silent for so long is
// one whose other end has gone without a word.
constexpr Duration k_idle_max = std::chrono::minutes{10};

Result<ssh::Target> target_of(const Lent& lent, const Token& token) {
  TRY_ASSIGN(const ssh::Address address, ssh::parse_address(token.relay));
  ssh::Target target;
  target.alias = target.host = address.host;
  target.user = address.user;
  target.port = address.port.value_or(target.port);
  target.identities = {lent.key_file()};
  target.identities_only = true;
  target.known_hosts = lent.known_hosts();
  target.connect_timeout = std::chrono::seconds{3};
  TRY(ssh::pin(target, {&token.relay_key, 1}));
  return target;
}

// Logged in, and accepted as the machine that the invitation is for. `rest`: what came after that.
Result<std::unique_ptr<ssh::Channel>> enter_relay(const Lent& lent, const Token& token, std::string& rest,
                                                  BootTime deadline, os::Clock& clock) {
  TRY_ASSIGN(const ssh::Target target, target_of(lent, token));
  TRY_ASSIGN(const std::string claim, lent.claim());
  TRY_ASSIGN(auto channel,
             ssh::connect(target, "gridctl-agent relay host " + token.id, std::min(deadline, clock.boot() + k_login_wait),
                          clock));
  std::string machine = os::host_name();
  std::ranges::replace_if(machine, [](char c) { return c <= ' '; }, '_');
  if (machine.empty()) machine = "unnamed";
  TRY(write_all(*channel, std::string(wire::k_relay_hello) + " " + claim + " " + machine + "\n", deadline, clock));
  std::string text;
  deadline = std::min(deadline, clock.boot() + k_answer_wait);
  for (;;) {
    if (const auto why = line_after(text, wire::k_relay_refused)) {
      Error refused = make_error(Code::refused, "the invitation cannot be used: " + *why,
                                 "ask " + token.who + " for a new token: gridctl provider invite");
      refused.retry = Retry::needs_user;
      return refused;
    }
    if (const std::size_t at = text.find(wire::k_relay_ready); at != std::string::npos) {
      rest = text.substr(at + wire::k_relay_ready.size());
      return channel;
    }
    TRY_ASSIGN(const bool more, read_more(*channel, text, deadline, clock));
    if (!more || text.size() > k_noise_max)
      return make_error(Code::protocol_violation, target.peer() + " does not answer as a relay of gridctl does");
  }
}

// Answers beats until somebody calls.
Result<void> await_call(ssh::Channel& channel, std::string seen, os::Clock& clock) {
  for (;;) {
    std::string answer;
    for (const char c : seen)
      if (c == wire::k_relay_beat_byte) answer += c;
    const bool called = seen.ends_with(wire::k_relay_go);
    if (called) answer += wire::k_relay_go;
    if (!answer.empty()) TRY(write_all(channel, answer, clock.boot() + wire::k_relay_silence, clock));
    if (called) return {};
    // A line that is not complete may go on with the next bytes.
    const std::size_t begun = seen.find(wire::k_relay_go.front());
    seen = begun == std::string::npos ? "" : seen.substr(begun);
    TRY_ASSIGN(const bool more, read_more(channel, seen, clock.boot() + wire::k_relay_silence, clock));
    if (!more) return make_error(Code::host_unreachable, channel.peer() + " has gone silent");
    if (seen.size() > k_noise_max) return make_error(Code::protocol_violation, channel.peer() + " floods us");
  }
}

// One way of a connection.
struct Flow {
  ssh::Channel& from;
  ssh::Channel& to;
  Pace* pace = nullptr;  // of what leaves this machine
  std::array<std::byte, k_piece> piece{};
  std::size_t begin = 0, end = 0;

  // True: something moved. host_unreachable at the end.
  Result<bool> move() {
    bool moved = false;
    if (begin == end) {
      begin = end = 0;
      TRY_ASSIGN(const auto got, from.read(piece));
      if (got && *got == 0) return make_error(Code::host_unreachable, "the end");
      if (got) end = *got, moved = true;
    }
    if (begin < end) {
      const std::size_t most = pace != nullptr ? pace->may_send(end - begin) : end - begin;
      TRY_ASSIGN(const auto took, to.write(ByteView{piece}.subspan(begin, most)));
      if (took && *took > 0) begin += *took, moved = true;
      if (took && pace != nullptr) pace->sent(*took);
    }
    return moved;
  }
};

void pass(ssh::Channel& caller, ssh::Channel& agent, Pace& pace, os::Clock& clock) {
  const auto down = std::make_unique<Flow>(Flow{caller, agent}), up = std::make_unique<Flow>(Flow{agent, caller, &pace});
  for (BootTime moved_at = clock.boot(); clock.boot() - moved_at < k_idle_max;) {
    const Result<bool> one = down->move(), other = up->move();
    if (!one || !other) return;
    if (*one || *other) {
      moved_at = clock.boot();
      continue;
    }
    caller.keepalive(clock.boot());
    std::vector<os::Poll> polls;
    const bool held = up->begin < up->end && pace.again();
    for (const ssh::Watched& watched : caller.wants((up->begin < up->end && !held) || !caller.flushed()))
      if (watched.interest.write || down->begin == down->end) polls.push_back({watched.fd, watched.interest, {}});
    for (const ssh::Watched& watched : agent.wants(down->begin < down->end))
      if (watched.interest.write || up->begin == up->end) polls.push_back({watched.fd, watched.interest, {}});
    const BootTime turn = clock.boot() + k_turn;
    if (!os::wait_any(polls, held ? std::min(turn, *pace.again()) : turn, clock)) return;
  }
}

// Its part of what the owner lets guests send. The owner may change that at any time.
PaceSource source_of(const Lent& lent, os::Clock& clock) {
  struct Known {
    explicit Known(os::Clock& its) : shared(agent_home() / wire::k_up_file, "dial." + std::to_string(os::process_id()), os::SharedRate::Kind::exact, its) {}
    os::SharedRate shared;
    BootTime read_at{};
    std::optional<std::uint64_t> limit{};  // bytes a second
  };
  const auto known = std::make_shared<Known>(clock);
  return [lent, known, &clock](std::uint64_t used, bool held) -> std::optional<std::uint64_t> {
    if (clock.boot() >= known->read_at) {
      known->read_at = clock.boot() + k_terms_age;
      if (const auto terms = lent.terms()) known->limit = terms->up_bits ? std::optional{*terms->up_bits / k_bits} : std::nullopt;
    }
    if (known->limit) return known->shared.share_of(*known->limit, used, held);
    known->shared.leave();
    return std::nullopt;
  };
}

// The token's key serves until the researcher has used the one that both have agreed on.
ssh::SealedWith keys_of(const Lent& lent, const Token& token) {
  ssh::SealedWith with = sealing(crypto::TlsSide::server, token.secret, token.id);
  const std::optional<Digest> agreed = lent.session();
  if (!agreed) return with;
  ssh::SealedWith own = sealing(crypto::TlsSide::server, *agreed, session_identity(token.id));
  if (lent.session_proven()) return own;
  with.others.push_back({own.key, own.identity});
  with.agreed = [lent, identity = own.identity](const std::string& used) {
    if (used == identity) lent.prove_session();
  };
  return with;
}

}  // namespace

Result<void> try_relay(const Lent& lent, BootTime deadline, os::Clock& clock) {
  TRY_ASSIGN(const Token token, lent.token());
  std::string rest;
  TRY(enter_relay(lent, token, rest, deadline, clock));
  return {};
}

Result<void> dial(const Lent& lent, const std::function<void(DialNews)>& tell, os::Clock& clock) {
  TRY_ASSIGN(const Token token, lent.token());
  TRY_ASSIGN(const os::Path agent_program, lent.agent());
  std::string rest;
  TRY_ASSIGN(auto relay, enter_relay(lent, token, rest, clock.boot() + k_login_wait + k_answer_wait, clock));
  tell(DialNews::ready);
  TRY(await_call(*relay, std::move(rest), clock));
  tell(DialNews::called);
  TRY_ASSIGN(const auto caller, ssh::seal(std::move(relay), keys_of(lent, token), clock.boot() + k_seal_wait, clock));
  ssh::ProcessChannelOptions options;
  options.peer = "the agent of this machine";
  TRY_ASSIGN(const auto agent, ssh::ProcessChannel::open(
                                   {agent_program.string(), "connect", "--guest", lent.terms_file().string()}, options,
                                   clock));
  Pace pace(source_of(lent, clock), clock);
  pass(*caller, *agent, pace, clock);
  return {};
}

}  // namespace gridctl::lend
