// SPDX-License-Identifier: Apache-2.0
// What libssh2 cannot send at once, it must be asked to send again. Here that happens often: sockets that are full,
// keys that the server renews, processors that are busy.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <thread>

#include "os/net.hpp"
#include "os/ready.hpp"
#include "ssh/connect.hpp"
#include "support/loopback.hpp"
#include "support/ssh_server.hpp"

namespace gridctl::ssh::libssh2_load_test {
namespace {

using test::SshServer;

os::Clock& clock() { return os::system_clock(); }
BootTime in(Duration duration) { return clock().boot() + duration; }

std::string pattern(std::size_t size) {
  std::string text(size, '\0');
  std::uint32_t state = 12345;
  for (char& c : text) c = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  return text;
}

// Threads that do nothing but take time from the others.
class BusyThreads {
 public:
  explicit BusyThreads(int count) {
    for (int i = 0; i < count; ++i)
      threads_.emplace_back([this] {
        while (!done_) continue;
      });
  }
  ~BusyThreads() {
    done_ = true;
    for (std::thread& thread : threads_) thread.join();
  }
  BusyThreads(const BusyThreads&) = delete;
  BusyThreads& operator=(const BusyThreads&) = delete;

 private:
  std::atomic<bool> done_ = false;
  std::vector<std::thread> threads_;
};

// Passes one connection after another on to a port of this machine, slowly towards it.
class SlowWay {
 public:
  SlowWay(std::uint16_t to, std::size_t piece_bytes) : to_(to), piece_bytes_(piece_bytes) {
    auto listening = os::listen_loopback().value();
    listener_ = std::move(listening.first);
    port_ = listening.second;
    const int small = static_cast<int>(piece_bytes * 2);
    setsockopt(listener_.get(), SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    thread_ = std::thread{[this] { serve(); }};
  }
  ~SlowWay() {
    done_ = true;
    os::shut_down(listener_.get());
    thread_.join();
  }
  SlowWay(const SlowWay&) = delete;
  SlowWay& operator=(const SlowWay&) = delete;
  [[nodiscard]] std::uint16_t port() const { return port_; }

 private:
  void serve() {
    while (!done_) {
      const os::Fd from{::accept(listener_.get(), nullptr, nullptr)};
      if (!from.valid()) return;
      const auto to = os::connect_tcp("127.0.0.1", to_, in(std::chrono::seconds{5}), clock());
      if (to) pass(from.get(), to->get());
    }
  }

  void pass(int from, int to) {
    std::array<char, 65536> buffer;
    while (!done_) {
      os::Poll polls[] = {{from, {.read = true}, {}}, {to, {.read = true}, {}}};
      if (!os::wait_any(polls, in(std::chrono::milliseconds{200}), clock()).value_or(false)) continue;
      for (const auto& [here, there, bytes] : {std::tuple{0, to, piece_bytes_}, {1, from, buffer.size()}}) {
        if (!polls[here].ready.read) continue;
        const ssize_t count = ::recv(polls[here].fd, buffer.data(), bytes, 0);
        if (count <= 0) return;
        for (ssize_t sent = 0; sent < count;) {
          const ssize_t now = ::send(there, buffer.data() + sent, static_cast<std::size_t>(count - sent), MSG_NOSIGNAL);
          if (now > 0) sent += now;
          if (now < 0 && errno != EAGAIN) return;
        }
      }
      os::pause_for(std::chrono::microseconds{400});
    }
  }

  std::uint16_t to_, port_ = 0;
  std::size_t piece_bytes_;
  os::Fd listener_;
  std::atomic<bool> done_ = false;
  std::thread thread_;
};

class Libssh2UnderLoad : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!os::exists("/usr/sbin/sshd")) GTEST_SKIP() << "there is no sshd";
  }
  Target serve(const std::string& config, std::optional<std::uint16_t> port = {}) {
    if (!server_) server_ = SshServer::start(dir_.path(), "server", {.config = config});
    Target target = server_->target(TransportKind::libssh2);
    if (port) target.port = *port;
    const HostKey key = server_->host_key("ed25519");
    EXPECT_TRUE(pin(target, {&key, 1}).has_value());
    return target;
  }
  static std::unique_ptr<Channel> open(const Target& target, const std::string& command) {
    auto channel = connect(target, command, in(std::chrono::seconds{20}), clock());
    EXPECT_TRUE(channel.has_value()) << channel.error().one_line();
    return channel ? std::move(channel).value() : nullptr;
  }
  // libssh2 tells a packet that goes on from another one by its address, which may be on the stack.
  __attribute__((noinline)) static void close_from_elsewhere(Channel& channel) {
    volatile char room[4096] = {};
    room[0] = 1;
    channel.close_write();
    room[1] = room[0];
  }
  // All that the command says to `input`, or what went wrong.
  static std::string answer(Channel& channel, std::string_view input, Duration patience) {
    std::string heard;
    std::vector<std::byte> buffer(256 * 1024);
    bool closed = false;
    for (const BootTime deadline = in(patience); clock().boot() < deadline;) {
      if (!input.empty()) {
        const auto wrote = channel.write(as_bytes(input.substr(0, 300'000)));
        if (!wrote) return wrote.error().one_line();
        if (*wrote) input.remove_prefix(**wrote);
      }
      if (input.empty() && !std::exchange(closed, true)) close_from_elsewhere(channel);
      const auto got = channel.read(buffer);
      if (!got) return got.error().one_line();
      if (*got && **got == 0) return heard;
      if (*got) heard += as_text(ByteView{buffer}.first(**got));
      if (*got) continue;
      std::vector<os::Poll> polls;
      for (const Watched& watched : channel.wants(!input.empty())) polls.push_back({watched.fd, watched.interest, {}});
      (void)os::wait_any(polls, in(std::chrono::milliseconds{500}), clock());
    }
    return "no end after " + std::to_string(heard.size()) + " bytes";
  }

  test::TempDir dir_;
  std::unique_ptr<SshServer> server_;
};

// The way to the host is slow, so that a key exchange lasts many calls. GRIDCTL_LONG_TESTS=ROUNDS runs it as often.
TEST_F(Libssh2UnderLoad, LosesNothingWhileTheServerRenewsItsKeys) {
  const char* wanted = std::getenv("GRIDCTL_LONG_TESTS");
  const int rounds = wanted != nullptr ? std::max(1, std::atoi(wanted)) : 4;
  const std::string input = pattern(8u << 20);
  (void)serve("RekeyLimit 1M\n");
  const SlowWay way{server_->port(), 8192};
  const Target target = serve("", way.port());
  const BusyThreads busy{3};
  for (int round = 0; round < rounds; ++round) {
    const auto channel = open(target, "tee /dev/stderr | cat");
    ASSERT_TRUE(channel);
    const std::string heard = answer(*channel, input, std::chrono::seconds{150});
    ASSERT_TRUE(heard == input) << "round " << round << ": " << heard.size() << " bytes; " << heard.substr(0, 100);
  }
}

// A heartbeat's connection, whose keys are renewed by time. GRIDCTL_LONG_SECONDS=86400 lets it live for a day.
TEST_F(Libssh2UnderLoad, LivesOnWhileKeysAreRenewedByTime) {
  const char* wanted = std::getenv("GRIDCTL_LONG_SECONDS");
  const Duration life = std::chrono::seconds{wanted != nullptr ? std::max(1, std::atoi(wanted)) : 4};
  const auto channel = open(serve("RekeyLimit default 1s\n"), "cat");
  ASSERT_TRUE(channel);
  std::array<std::byte, 64> reply;
  int beats = 0;
  for (const BootTime end = in(life); clock().boot() < end; ++beats) {
    ASSERT_TRUE(channel->write(as_bytes("ping\n")).value_or(std::nullopt));
    std::size_t heard = 0;
    for (const BootTime late = in(std::chrono::seconds{10}); heard < 5;) {
      ASSERT_LT(clock().boot(), late) << "beat " << beats;
      const auto got = channel->read(reply);
      ASSERT_TRUE(got.has_value()) << "beat " << beats << ": " << got.error().one_line();
      if (*got) heard += **got;
      if (*got) continue;
      std::vector<os::Poll> polls;
      for (const Watched& watched : channel->wants(!channel->flushed()))
        polls.push_back({watched.fd, watched.interest, {}});
      (void)os::wait_any(polls, in(std::chrono::milliseconds{500}), clock());
    }
    ASSERT_EQ(heard, 5u);
    channel->keepalive(clock().boot());
    os::pause_for(std::chrono::milliseconds{20});
  }
  EXPECT_GT(beats, 10);
}

// The end of the input is a packet that libssh2 cannot send in two pieces. If it is lost, the command waits for ever.
TEST_F(Libssh2UnderLoad, EndsItsInputThoughTheSocketIsFull) {
  (void)serve("");
  const SlowWay way{server_->port(), 2048};
  const Target target = serve("", way.port());
  for (std::size_t size = 40'000; size < 42'048; size += 128) {
    const auto channel = open(target, "wc -c");
    ASSERT_TRUE(channel);
    const int small = 4096;
    setsockopt(channel->wants(false).front().fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
    const std::string input(size, 'x');
    EXPECT_EQ(answer(*channel, input, std::chrono::seconds{30}), std::to_string(size) + "\n");
  }
}

}  // namespace
}  // namespace gridctl::ssh::libssh2_load_test
