// SPDX-License-Identifier: Apache-2.0
// Connections at their edges: over a channel by hand, under budgets, with answers that nobody asked for.
#include <gmock/gmock.h>
#include <unistd.h>

#include <deque>

#include "control/reach/agent_link.hpp"
#include "control/reach/connect_agent.hpp"
#include "control/reach/host_chunks.hpp"
#include "control/reach/link_meter.hpp"
#include "control/reach/peer.hpp"
#include "control/reach/request.hpp"
#include "control/reach/work_budget.hpp"
#include "crypto/ed25519.hpp"
#include "hand_clock.hpp"
#include "os/process.hpp"
#include "support/results.hpp"
#include "support/temp_dir.hpp"
#include "wire/peer.hpp"

namespace gridctl::control::reach_edges_test {
namespace {

using namespace std::chrono_literals;
using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;
using testing::HandClock;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// What a test wrote down of a command: what it says, and how much it takes.
struct Wire {
  std::deque<std::string> says;  // a piece for each read
  bool ended = false;            // after that; else nothing comes now
  std::size_t takes = SIZE_MAX;  // bytes for each write; 0: none now
  bool flushed = true;
  std::optional<Error> broken;
  std::string stderr_tail, got;
  int alive = 0;  // keepalives
  bool closed = false;
};
class HandChannel final : public ssh::Channel {
 public:
  HandChannel(Wire& wire, HandClock& clock) : wire_(wire), clock_(clock) {
    EXPECT_EQ(::pipe(pipe_), 0);
    EXPECT_EQ(::write(pipe_[1], "x", 1), 1);  // always ready: nobody waits in a test
  }
  ~HandChannel() override {
    ::close(pipe_[0]), ::close(pipe_[1]);
    wire_.closed = true;
  }
  Result<std::optional<std::size_t>> read(std::span<std::byte> into) override {
    if (wire_.broken) return *wire_.broken;
    clock_.pass(1ms);
    if (wire_.says.empty()) return wire_.ended ? std::optional<std::size_t>(0) : std::nullopt;
    std::string& first = wire_.says.front();
    const std::size_t count = std::min(first.size(), into.size());
    std::copy_n(as_bytes(first).begin(), count, into.begin());
    first.erase(0, count);
    if (first.empty()) wire_.says.pop_front();
    return std::optional(count);
  }
  Result<std::optional<std::size_t>> write(ByteView bytes) override {
    if (wire_.broken) return *wire_.broken;
    clock_.pass(1ms);
    if (wire_.takes == 0 || bytes.empty()) return std::optional<std::size_t>();
    const std::size_t count = std::min(bytes.size(), wire_.takes);
    wire_.got += as_text(bytes.first(count));
    return std::optional(count);
  }
  [[nodiscard]] bool flushed() const override { return wire_.flushed; }
  void close_write() override {}
  [[nodiscard]] std::vector<ssh::Watched> wants(bool) const override { return {{pipe_[0], {true, false}}}; }
  void keepalive(BootTime) override { ++wire_.alive; }
  [[nodiscard]] std::string stderr_tail() const override { return wire_.stderr_tail; }
  [[nodiscard]] ssh::TransportKind transport() const override { return ssh::TransportKind::automatic; }
  [[nodiscard]] const std::string& peer() const override { return peer_; }

 private:
  Wire& wire_;
  HandClock& clock_;
  int pipe_[2] = {-1, -1};
  const std::string peer_ = "me@ada:22";
};

class OverAChannel : public ::testing::Test {
 protected:
  [[nodiscard]] std::unique_ptr<HandChannel> channel() { return std::make_unique<HandChannel>(wire, clock); }
  [[nodiscard]] BlockingLink link() { return {channel(), wire::Decoder{false}, clock}; }
  [[nodiscard]] BootTime soon() const { return clock.boot() + 50ms; }
  static std::string bytes_of(const wire::Frame& frame) { return wire::encode(frame); }

  HandClock clock;
  Wire wire;
  const wire::Frame frame{wire::FrameKind::reply, 7, "{}"};
};

TEST_F(OverAChannel, ReadingWaitsUntilTheDeadlineAndKeepsTheConnectionAlive) {
  const auto one = channel();
  std::array<std::byte, 8> into;
  EXPECT_THAT(read_blocking(*one, into, soon(), clock), FailsWith(Code::timed_out));
  EXPECT_THAT(read_blocking(*one, into, soon(), clock).error().message, HasSubstr("me@ada:22 did not answer in time"));
  EXPECT_GT(wire.alive, 0);
  wire.says = {"abc"};
  EXPECT_EQ(*read_blocking(*one, into, clock.boot(), clock), 3u) << "what is there is read, however late it is";
  wire.ended = true;
  EXPECT_EQ(*read_blocking(*one, into, soon(), clock), 0u);
  wire.broken = make_error(Code::host_unreachable, "reset");
  EXPECT_THAT(read_blocking(*one, into, soon(), clock), FailsWith(Code::host_unreachable));
}

TEST_F(OverAChannel, WritingGoesOnUntilAllHasLeft) {
  const auto one = channel();
  wire.takes = 2;
  EXPECT_THAT(write_blocking(*one, as_bytes(std::string_view("hello")), clock.boot() + 1s, clock), IsOk());
  EXPECT_EQ(wire.got, "hello");
  wire.takes = 0;
  EXPECT_THAT(write_blocking(*one, as_bytes(std::string_view("more")), soon(), clock).error().message,
              HasSubstr("did not take what we sent in time"));
  wire.takes = 100;
  wire.flushed = false;
  EXPECT_THAT(write_blocking(*one, as_bytes(std::string_view("more")), soon(), clock), FailsWith(Code::timed_out))
      << "taken is not sent";
}

TEST_F(OverAChannel, AFrameIsReceivedHoweverItIsCut) {
  const std::string bytes = bytes_of(frame);
  for (const char byte : bytes) wire.says.emplace_back(1, byte);
  BlockingLink one = link();
  EXPECT_EQ(*one.receive(clock.boot() + 10s), frame);
  EXPECT_EQ(std::exchange(wire.alive, 0), 0) << "nothing was waited for";
  EXPECT_THAT(one.receive(soon()), FailsWith(Code::timed_out));
  EXPECT_GT(wire.alive, 0);
  wire.says = {bytes + bytes};
  EXPECT_EQ(*one.receive(soon()), frame) << "the link can still be used";
  EXPECT_EQ(*one.receive(clock.boot()), frame) << "it is here already";
}

TEST_F(OverAChannel, AnAgentThatEndsSaysWhy) {
  wire.says = {bytes_of(frame)};
  wire.ended = true;
  wire.stderr_tail = "\n out of \x1b memory \n";
  BlockingLink one = link();
  EXPECT_EQ(*one.receive(soon()), frame) << "first what it said before";
  const auto ended = one.receive(soon());
  ASSERT_THAT(ended, FailsWith(Code::host_unreachable));
  EXPECT_EQ(ended.error().message, "the agent on me@ada:22 closed the connection: out of ^[ memory");
  wire.stderr_tail.clear();
  EXPECT_EQ(one.receive(soon()).error().message, "the agent on me@ada:22 closed the connection");
}

TEST_F(OverAChannel, SendingTakesInWhatComesMeanwhile) {
  wire.takes = 0;
  wire.says = {bytes_of(frame)};
  BlockingLink one = link();
  EXPECT_THAT(one.send({wire::FrameKind::request, 1, "{}"}, soon()), FailsWith(Code::timed_out));
  EXPECT_THAT(wire.says, IsEmpty());
  EXPECT_EQ(*one.receive(clock.boot()), frame);
  wire.takes = 3;
  EXPECT_THAT(one.send({wire::FrameKind::request, 2, "{}"}, clock.boot() + 1s), IsOk());
  EXPECT_EQ(wire.got, bytes_of({wire::FrameKind::request, 2, "{}"}));
  wire.flushed = false;
  EXPECT_THAT(one.send({wire::FrameKind::request, 3, "{}"}, soon()), FailsWith(Code::timed_out));
  wire.broken = make_error(Code::host_unreachable, "reset");
  EXPECT_THAT(one.send(frame, soon()), FailsWith(Code::host_unreachable));
  EXPECT_THAT(one.receive(soon()), FailsWith(Code::host_unreachable));
}

// --- In the loop -----------------------------------------------------------------------------------------------------

class InTheLoop : public OverAChannel {
 protected:
  void open() {
    AgentSession session;
    session.channel = channel();
    session.decoder = wire::Decoder{false};
    session.hello.build = "b";
    link_.emplace(loop, clock, std::move(session));
    link_->on_frame = [this](const wire::Frame& one) { heard.push_back(one.payload); };
    link_->on_closed = [this](const Error& error) { closed.push_back(error.message); };
  }
  // Some turns of the loop.
  void turn() {
    int left = 5;
    const auto timer = loop.every(1ms, [&] {
      if (--left == 0) loop.stop();
    });
    loop.run();
  }

  os::Loop loop;
  std::optional<LoopLink> link_;
  std::vector<std::string> heard, closed;
};

TEST_F(InTheLoop, WhatWasThereIsHeardAfterTheLinkWasMade) {
  wire.says = {bytes_of({wire::FrameKind::reply, 1, "one"}) + bytes_of({wire::FrameKind::event, 0, "two"})};
  open();
  EXPECT_THAT(heard, IsEmpty());
  turn();
  EXPECT_THAT(heard, ElementsAre("one", "two"));
  EXPECT_EQ(link_->hello().build, "b");
}

TEST_F(InTheLoop, WhatIsSentLeavesInItsOrderAsItIsTaken) {
  open();
  wire.takes = 0;
  link_->send({wire::FrameKind::request, 1, "one"});
  link_->send({wire::FrameKind::request, 2, "two"});
  turn();
  const std::string all = bytes_of({wire::FrameKind::request, 1, "one"}) + bytes_of({wire::FrameKind::request, 2, "two"});
  EXPECT_EQ(link_->queued_bytes(), all.size());
  wire.takes = 5;
  turn();
  EXPECT_EQ(wire.got, all);
  EXPECT_EQ(link_->queued_bytes(), 0u);
}

TEST_F(InTheLoop, ItsEndIsToldOnceAndNothingIsSentThen) {
  open();
  wire.ended = true;
  turn();
  EXPECT_THAT(closed, ElementsAre(HasSubstr("closed the connection")));
  link_->send({wire::FrameKind::request, 1, "late"});
  turn();
  EXPECT_THAT(closed, SizeIs(1));
  EXPECT_EQ(link_->queued_bytes(), 0u);
  EXPECT_EQ(wire.got, "");
}

TEST_F(InTheLoop, AConnectionThatBreaksIsToldOfWhetherReadOrWritten) {
  open();
  wire.broken = make_error(Code::host_unreachable, "reset by peer");
  turn();
  EXPECT_THAT(closed, ElementsAre("reset by peer"));
}

TEST_F(InTheLoop, NobodyIsToldOfAnythingWhenItIsGone) {
  wire.says = {bytes_of(frame)};
  open();
  link_.reset();
  EXPECT_TRUE(wire.closed);
  turn();
  EXPECT_THAT(heard, IsEmpty());
  EXPECT_THAT(closed, IsEmpty());
}

// --- Questions -------------------------------------------------------------------------------------------------------

struct Answers final : wire::Link {
  Result<void> send(const wire::Frame& frame, BootTime deadline) override {
    sent.push_back(frame);
    deadlines.push_back(deadline);
    return {};
  }
  Result<wire::Frame> receive(BootTime deadline) override {
    deadlines.push_back(deadline);
    if (frames.empty()) return make_error(Code::timed_out, "no answer in time");
    const wire::Frame first = frames.front();
    frames.pop_front();
    return first;
  }
  std::deque<wire::Frame> frames;
  std::vector<wire::Frame> sent;
  std::vector<BootTime> deadlines;
};

TEST(Ask, PassesOverEventsAndALateLookAndNothingElse) {
  Answers link;
  const auto answer = [&](std::deque<wire::Frame> frames, std::uint32_t stream = 3) {
    link.frames = std::move(frames);
    return ask(link, stream, "{\"op\":\"poll\"}", {5});
  };
  using enum wire::FrameKind;
  EXPECT_EQ(*answer({{event, 0, ""}, {reply, k_health_stream, "late"}, {reply, 3, "{}"}}), "{}");
  EXPECT_EQ(link.sent.back().kind, request);
  EXPECT_EQ(link.sent.back().stream, 3u);
  EXPECT_EQ(link.sent.back().payload, "{\"op\":\"poll\"}");
  EXPECT_THAT(answer({{reply, 4, "{}"}}), FailsWith(Code::protocol_violation));
  EXPECT_THAT(answer({{data, 3, "{}"}}), FailsWith(Code::protocol_violation));
  EXPECT_THAT(answer({{data, k_health_stream, "{}"}}), FailsWith(Code::protocol_violation));
  EXPECT_EQ(*answer({{reply, k_health_stream, "{}"}}, k_health_stream), "{}") << "now it is what was asked";
  EXPECT_THAT(answer({{reply, 3, wire::error_payload(make_error(Code::busy, "held"))}}), FailsWith(Code::busy));
  EXPECT_THAT(answer({}), FailsWith(Code::timed_out));
}

TEST(LinkUnderABudget, CountsWhatIsMovedAndEndsWithIt) {
  HandClock clock;
  auto budget = std::make_shared<WorkBudget>(clock, WorkBudget::Limits{10s, 1000, 1h});
  auto owned = std::make_unique<Answers>();
  Answers& link = *owned;
  const auto bounded = under(budget, std::move(owned));
  const BootTime began = clock.boot();
  using enum wire::FrameKind;
  ASSERT_THAT(bounded->send({request, 1, std::string(5000, 'x')}, began + 1h), IsOk());
  EXPECT_EQ(link.deadlines.back(), began + 10s) << "no question takes longer than the work";
  EXPECT_EQ(budget->until(), began + 10s) << "a question moves nothing";
  ASSERT_THAT(bounded->send({data, 1, std::string(5000, 'x')}, began + 3s), IsOk());
  EXPECT_EQ(link.deadlines.back(), began + 3s);
  EXPECT_EQ(budget->until(), began + 15s);
  link.frames = {{reply, 1, std::string(5000, 'x')}, {data, 1, std::string(2000, 'x')}};
  ASSERT_THAT(bounded->receive(began + 1h), IsOk());
  EXPECT_EQ(budget->until(), began + 15s);
  ASSERT_THAT(bounded->receive(began + 1h), IsOk());
  EXPECT_EQ(link.deadlines.back(), began + 15s);
  EXPECT_EQ(budget->until(), began + 17s);
  budget->allow(3s);
  EXPECT_EQ(budget->until(), began + 20s);
  clock.pass(20s - 1ns);
  EXPECT_FALSE(budget->is_over());
  clock.pass(1ns);
  EXPECT_TRUE(budget->is_over());
  EXPECT_THAT(bounded->send({request, 1, ""}, began + 1h), FailsWith(Code::timed_out));
  const auto late = bounded->receive(began + 1h);
  ASSERT_THAT(late, FailsWith(Code::timed_out));
  EXPECT_THAT(late.error().message, HasSubstr("the host moves too little: 6.8 KiB in 20"));
  EXPECT_EQ(late.error().retry, Retry::same_host_later);
}

// --- What is remembered of hosts -------------------------------------------------------------------------------------

TEST(HostChunks, WhatAHostWastedIsForgottenAfterADay) {
  HostChunks host;
  const BootTime began{1};
  host.wasted(11, began);
  EXPECT_THAT(host.may_send(11, began), IsOk());
  EXPECT_THAT(host.may_send(10, began), FailsWith(Code::refused));
  EXPECT_THAT(host.may_send(10, began + 24h), FailsWith(Code::refused));
  EXPECT_THAT(host.may_send(10, began + 24h + 1ns), IsOk());
  host.wasted(5, began + 24h);
  EXPECT_THAT(host.may_send(15, began + 24h), FailsWith(Code::refused)) << "it adds up";
  host.wasted(5, began + 48h + 1ns);
  EXPECT_THAT(host.may_send(5, began + 48h + 1ns), IsOk()) << "and begins anew";
}

TEST(LinkMeter, NotesTransfersThatTellOfTheRate) {
  HandClock clock;
  LinkMeter meter;
  EXPECT_FALSE(meter.is_busy());
  {
    LinkMeter::Transfer one(&meter, {"ada"}, true, clock);
    LinkMeter::Transfer two(&meter, {"bob"}, false, clock);
    EXPECT_TRUE(meter.is_busy());
    clock.pass(2s);
    one.moved(k_telling_bytes);
    two.moved(k_telling_bytes - 1);
  }
  EXPECT_FALSE(meter.is_busy());
  const auto notes = meter.take();
  ASSERT_THAT(notes, SizeIs(1));
  EXPECT_EQ(notes[0].host.value, "ada");
  EXPECT_TRUE(notes[0].to_host);
  EXPECT_EQ(notes[0].bytes, k_telling_bytes);
  EXPECT_EQ(notes[0].time, 2s);
  EXPECT_THAT(meter.take(), IsEmpty());
  LinkMeter::Transfer nobody(nullptr, {"ada"}, true, clock);
  nobody.moved(k_telling_bytes);
}

TEST(TargetOf, IsReachedAsItWasRegistered) {
  const gridctl::testing::TempDir dir;
  const Paths paths{dir.path()};
  ASSERT_THAT(os::write_file_durably(dir / "key", "k"), IsOk());
  registry::Provider provider;
  provider.address = "me@192.0.2.7:2222";
  provider.identities = {(dir / "key").string()};
  provider.transport = "ssh";
  const auto target = target_of(provider, paths);
  ASSERT_THAT(target, IsOk());
  EXPECT_EQ(target->user, "me");
  EXPECT_EQ(target->host, "192.0.2.7");
  EXPECT_EQ(target->port, 2222);
  EXPECT_THAT(target->identities, ElementsAre(os::Path(dir / "key")));
  EXPECT_EQ(target->known_hosts, paths.known_hosts());
  EXPECT_EQ(target->transport, *ssh::parse_transport("ssh"));
  provider.jump = "gate@192.0.2.1";
  EXPECT_EQ(target_of(provider, paths)->jump, "gate@192.0.2.1");
  provider.transport = "pigeon";
  EXPECT_EQ(target_of(provider, paths)->transport, ssh::TransportKind::automatic);
}

Digest filled(unsigned char with) {
  Digest digest;
  digest.bytes.fill(std::byte{with});
  return digest;
}

wire::AgentHello proving(const Digest& seed, const Digest& nonce) {
  wire::AgentHello hello;
  hello.machine_id = "m1";
  hello.peer_key = crypto::ed25519_public(seed);
  hello.peer_proof = to_hex(crypto::ed25519_sign(seed, as_bytes(wire::peer_statement(nonce, "m1"))));
  return hello;
}

TEST(PeerProof, IsForThisConnectionKeyAndMachineAlone) {
  const Digest seed = filled(1), nonce = filled(2);
  const wire::AgentHello good = proving(seed, nonce);
  EXPECT_EQ(*proved_key(good, nonce), to_hex(crypto::ed25519_public(seed)));
  EXPECT_EQ(*proved_key({}, nonce), "") << "an agent of before says nothing";
  EXPECT_THAT(proved_key(good, filled(3)), FailsWith(Code::protocol_violation)) << "heard in another connection";
  wire::AgentHello bad = good;
  bad.machine_id = "m2";
  EXPECT_THAT(proved_key(bad, nonce), FailsWith(Code::protocol_violation));
  bad = good;
  bad.peer_key = crypto::ed25519_public(filled(4));
  EXPECT_THAT(proved_key(bad, nonce), FailsWith(Code::protocol_violation)) << "another's key";
  for (const std::string& proof : {std::string(), good.peer_proof.substr(2), good.peer_proof + "00", std::string(128, 'x')}) {
    bad = good;
    bad.peer_proof = proof;
    EXPECT_THAT(proved_key(bad, nonce), FailsWith(Code::protocol_violation)) << proof;
  }
}

TEST(PeerProof, HoldsAHostToTheIdentityThatIsPinned) {
  registry::Provider ada;
  ada.name = {"ada"};
  ada.address = "me@ada";
  const wire::AgentHello hello = proving(filled(1), filled(2));
  EXPECT_THAT(check_peer(ada, ada, hello), IsOk()) << "nothing is pinned yet";
  EXPECT_THAT(check_peer(ada, ada, {}), IsOk());
  ada.peer_key = to_hex(*hello.peer_key);
  EXPECT_THAT(check_peer(ada, ada, hello), IsOk());
  const wire::AgentHello other = proving(filled(5), filled(2));
  const auto refused = check_peer(ada, ada, other);
  ASSERT_THAT(refused, FailsWith(Code::host_key_mismatch));
  EXPECT_THAT(refused.error().message, HasSubstr("another host answers at me@ada"));
  EXPECT_EQ(refused.error().hint, "if it was reinstalled: gridctl provider check ada --accept-identity " + to_hex(*other.peer_key));
  EXPECT_THAT(check_peer(ada, ada, {}).error().hint, HasSubstr("--accept-identity none"));
}

TEST(WayMemory, KeepsToAWayThatHelpedForTenMinutes) {
  registry::Provider provider;
  provider.name = {"ada"};
  provider.address = "first";
  provider.more_ways.resize(2);
  provider.more_ways[0].address = "second";
  provider.more_ways[1].address = "third";
  WayMemory memory;
  const auto order = [&](BootTime now) {
    std::string all;
    for (const registry::Way& way : memory.in_order(provider, now)) all += way.address[0];
    return all;
  };
  EXPECT_EQ(order({1}), "fst");
  memory.answered(provider.name, "third", {1});
  EXPECT_EQ(order({2}), "tfs");
  memory.answered(provider.name, "third", BootTime{1} + std::chrono::minutes{9});
  EXPECT_EQ(order(BootTime{1} + std::chrono::minutes{10}), "tfs");
  EXPECT_EQ(order(BootTime{2} + std::chrono::minutes{10}), "fst") << "the first may be back";
  memory.answered(provider.name, "first", BootTime{1} + std::chrono::minutes{1});
  EXPECT_EQ(order(BootTime{1} + std::chrono::minutes{2}), "fst");
  EXPECT_EQ(parse_used_way(to_json(UsedWay{"me@\"ada\""}))->address, "me@\"ada\"");
  EXPECT_FALSE(parse_used_way("no"));
}

TEST(AgentImages, AreThoseThatAreCarried) {
  for (const AgentImage& image : agent_images()) {
    EXPECT_TRUE(image.arch == "x86_64" || image.arch == "aarch64") << image.arch;
    EXPECT_EQ(image.sha256_hex.size(), 64u);
  }
}

}  // namespace
}  // namespace gridctl::control::reach_edges_test
