// SPDX-License-Identifier: Apache-2.0
#include "transfer/stream_hub.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <random>

#include "transfer/socket_link.hpp"
#include "wire/messages.hpp"

namespace gridctl::transfer::stream_hub_test {
namespace {

using std::chrono::milliseconds;

std::pair<os::Fd, os::Fd> sockets() {
  int pair[2];
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
  return {os::Fd(pair[0]), os::Fd(pair[1])};
}

// Both sides of a conversation, in one loop.
class Streams : public ::testing::Test {
 protected:
  struct Side {
    Side(os::Loop& loop, os::Fd socket, StreamHub::Side side)
        : link(loop, std::move(socket)),
          hub(loop, os::system_clock(),
              {[this](const wire::Frame& frame) { link.send(frame); }, [this] { return link.queued_bytes(); }}, side) {
      link.on_room = [this] { hub.flow(); };
      link.on_frame = [this](const wire::Frame& frame) {
        const auto taken = hub.take(frame);
        if (!taken) broken = taken.error();
      };
    }
    SocketLink link;
    StreamHub hub;
    std::optional<Error> broken;
  };

  // Runs the loop until `done`, or for five seconds.
  bool run_until(const std::function<bool()>& done) {
    const BootTime over = os::system_clock().boot() + std::chrono::seconds{5};
    const auto look = loop_.every(milliseconds{1}, [&] {
      if (done() || os::system_clock().boot() > over) loop_.stop();
    });
    loop_.run();
    return done();
  }

  // The far side joins each stream with a socket, of which we hold the other end.
  void answer_with_sockets() {
    far_.hub.on_open = [this](std::uint32_t id, const wire::StreamOpen&) {
      auto [ours, theirs] = sockets();
      StreamEnds ends;
      ends.source = std::move(theirs);
      ends.duplex = true;
      far_ends_[id] = std::move(ours);
      far_.hub.accept(id, {}, std::move(ends), {});
    };
  }
  std::pair<std::uint32_t, os::Fd> open(StreamEvents events = {}) {
    auto [ours, theirs] = sockets();
    StreamEnds ends;
    ends.source = std::move(theirs);
    ends.duplex = true;
    wire::StreamOpen request;
    request.kind = wire::StreamKind::port;
    return {near_.hub.open(request, std::move(ends), std::move(events)), std::move(ours)};
  }
  static std::string read_now(const os::Fd& fd, std::size_t wanted = 1 << 20) {
    std::string bytes(wanted, '\0');
    const ssize_t got = ::recv(fd.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    bytes.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return bytes;
  }
  static void write_to(const os::Fd& fd, std::string_view bytes) {
    EXPECT_EQ(::send(fd.get(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  }

  os::Loop loop_;
  std::pair<os::Fd, os::Fd> wires_ = sockets();
  Side near_{loop_, std::move(wires_.first), StreamHub::Side::dialler};
  Side far_{loop_, std::move(wires_.second), StreamHub::Side::answerer};
  std::map<std::uint32_t, os::Fd> far_ends_;
};

TEST_F(Streams, CarryBytesBothWaysAndEndEachWayByItself) {
  answer_with_sockets();
  std::optional<wire::StreamEnd> closed;
  StreamEvents events;
  events.closed = [&](const wire::StreamEnd& end) { closed = end; };
  const auto [id, local] = open(std::move(events));
  write_to(local, "question");
  ::shutdown(local.get(), SHUT_WR);
  std::string heard;
  ASSERT_TRUE(run_until([&] { return (heard += far_ends_.contains(1) ? read_now(far_ends_[1]) : "") == "question"; }));
  EXPECT_TRUE(near_.hub.has(id)) << "one way is open";
  write_to(far_ends_[1], "answer");
  std::string answer;
  ASSERT_TRUE(run_until([&] { return (answer += read_now(local)) == "answer"; }));
  far_ends_[1].reset();
  ASSERT_TRUE(run_until([&] { return closed.has_value(); }));
  EXPECT_FALSE(closed->error);
  EXPECT_EQ(near_.hub.count() + far_.hub.count(), 0u);
}

TEST_F(Streams, AReaderThatSleepsHoldsUpNobodyElse) {
  answer_with_sockets();
  const auto [slow, slow_local] = open();
  const auto [quick, quick_local] = open();
  ::fcntl(slow_local.get(), F_SETFL, O_NONBLOCK);
  const std::string piece(64 * 1024, 's');
  std::size_t given = 0;
  const auto feed = loop_.every(milliseconds{1}, [&] {
    const ssize_t sent = ::send(slow_local.get(), piece.data(), piece.size(), MSG_DONTWAIT);
    if (sent > 0) given += static_cast<std::size_t>(sent);
  });
  ASSERT_TRUE(run_until([&] { return given > 200'000 && far_ends_.size() == 2; }));
  write_to(quick_local, "hurry");
  std::string heard;
  EXPECT_TRUE(run_until([&] { return (heard += read_now(far_ends_[quick])) == "hurry"; }));
  EXPECT_LT(given, 8u << 20) << "what nobody reads must not pile up";
  (void)slow;
}

TEST_F(Streams, AThousandAtOnceAllArrive) {
  answer_with_sockets();
  std::vector<os::Fd> locals;
  for (int i = 0; i < 1000; ++i) {
    locals.push_back(open().second);
    write_to(locals.back(), "stream " + std::to_string(i));
  }
  std::size_t right = 0;
  ASSERT_TRUE(run_until([&] {
    if (far_ends_.size() < 1000) return false;
    for (auto& [id, end] : far_ends_)
      if (end.valid() && read_now(end, 100).starts_with("stream ")) ++right, write_to(end, "back");
    return right == 1000;
  }));
  std::size_t back = 0;
  EXPECT_TRUE(run_until([&] {
    for (const os::Fd& local : locals) back += read_now(local, 100) == "back" ? 1 : 0;
    return back == 1000;
  }));
}

TEST_F(Streams, CarryMoreThanTheirWindowsUnchanged) {
  answer_with_sockets();
  const auto [id, local] = open();
  std::string sent(10u << 20, '\0');
  std::mt19937 random(1);
  for (char& byte : sent) byte = static_cast<char>(random());
  std::string heard;
  std::size_t at = 0;
  EXPECT_TRUE(run_until([&] {
    for (int turn = 0; turn < 64 && at < sent.size(); ++turn) {
      const ssize_t some = ::send(local.get(), sent.data() + at, std::min<std::size_t>(65536, sent.size() - at), MSG_DONTWAIT);
      if (some <= 0) break;
      at += static_cast<std::size_t>(some);
    }
    if (far_ends_.contains(id)) heard += read_now(far_ends_[id]);
    return heard.size() == sent.size();
  }));
  EXPECT_TRUE(heard == sent);
}

TEST_F(Streams, AnOpenThatIsRefusedSaysWhy) {
  far_.hub.on_open = [&](std::uint32_t id, const wire::StreamOpen&) {
    far_.hub.reset(id, make_error(Code::refused, "the job does not declare port 22"));
  };
  std::optional<wire::StreamEnd> closed;
  StreamEvents events;
  events.closed = [&](const wire::StreamEnd& end) { closed = end; };
  const auto [id, local] = open(std::move(events));
  write_to(local, "bytes that follow at once");
  ASSERT_TRUE(run_until([&] { return closed.has_value(); }));
  ASSERT_TRUE(closed->error);
  EXPECT_EQ(closed->error->message, "the job does not declare port 22");
  EXPECT_FALSE(near_.broken || far_.broken) << "the bytes on their way are no violation";
}

TEST_F(Streams, AResetReachesTheOtherSideWithItsReason) {
  answer_with_sockets();
  const auto [id, local] = open();
  ASSERT_TRUE(run_until([&] { return far_ends_.contains(1); }));
  near_.hub.reset(id, make_error(Code::cancelled, "given up"));
  ASSERT_TRUE(run_until([&] { return far_.hub.count() == 0; }));
  char byte = 0;
  EXPECT_LE(::recv(far_ends_[1].get(), &byte, 1, 0), 0) << "its end is closed";
}

TEST_F(Streams, WhatBelongsToAStreamComesUnderItsOwnNumber) {
  auto [errors_read, errors_write] = sockets();
  far_.hub.on_open = [&](std::uint32_t id, const wire::StreamOpen& request) {
    StreamEnds aside;
    aside.source = std::move(errors_read);
    EXPECT_TRUE(far_.hub.attach(request.errors, std::move(aside), {}));
    EXPECT_FALSE(far_.hub.attach(id, {}, {})) << "the number is taken";
    EXPECT_FALSE(far_.hub.attach(2, {}, {})) << "the number is not the peer's";
    far_.hub.accept(id, {}, {}, {});
  };
  auto [ours, theirs] = sockets();
  StreamEnds ends;
  ends.sink = std::move(theirs);
  bool closed = false;
  StreamEvents events;
  events.closed = [&](const wire::StreamEnd&) { closed = true; };
  wire::StreamOpen request;
  request.errors = near_.hub.reserve(std::move(ends), std::move(events));
  near_.hub.open(request, {}, {});
  write_to(errors_write, "warning");
  errors_write.reset();
  std::string heard;
  EXPECT_TRUE(run_until([&] { return (heard += read_now(ours)) == "warning" && closed; }));
}

TEST_F(Streams, APeerThatSendsMoreThanItMayIsFoundOut) {
  far_.hub.on_open = [](std::uint32_t, const wire::StreamOpen&) {};  // answered later
  const auto [id, local] = open();
  ASSERT_TRUE(run_until([&] { return far_.hub.has(1); }));
  for (std::uint64_t sent = 0; sent <= wire::k_window_first; sent += 32 * 1024)
    near_.link.send({wire::FrameKind::data, id, std::string(32 * 1024, 'x')});
  EXPECT_TRUE(run_until([&] { return far_.broken.has_value(); }));
  EXPECT_EQ(far_.broken->code, Code::protocol_violation);
}

TEST_F(Streams, FramesOfAnyKindAndNumberAreTakenOrRefused) {
  answer_with_sockets();
  std::mt19937 random(4711);  // NOLINT: the same frames each time
  const std::vector<std::string> payloads{
      R"({"op":"open","kind":"port","port":1})", R"({"credit":70000})", R"({"ping":5})", R"({"pong":5})", "{}",
      R"({"ok":true,"bytes":1})", R"({"error":{"code":"refused","message":"m","hint":"","retry":"never"}})", "[]", "",
      R"({"credit":18446744073709551615})", R"({"signal":9,"terminal":{"columns":1,"rows":1}})", "bytes"};
  for (int round = 0; round < 20'000; ++round) {
    const auto kind = static_cast<wire::FrameKind>(1 + random() % 5);
    (void)far_.hub.take({kind, static_cast<std::uint32_t>(random() % 9), payloads[random() % payloads.size()]});
    if (round % 1000 == 0) run_until([&] { return true; });
  }
  EXPECT_LE(far_.hub.count(), 9u);
}

TEST_F(Streams, TheRoundTripIsMeasured) {
  EXPECT_TRUE(run_until([&] { return near_.hub.path().least().has_value(); }));
  EXPECT_LT(*near_.hub.path().least(), std::chrono::seconds{1});
}

}  // namespace
}  // namespace gridctl::transfer::stream_hub_test
