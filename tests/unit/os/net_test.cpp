// SPDX-License-Identifier: Apache-2.0
#include "os/net.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>

#include "os/ready.hpp"
#include "support/loopback.hpp"
#include "support/results.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::os::net_test {
namespace {

using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;
using gridctl::testing::TempDir;
using ::testing::HasSubstr;

BootTime now() { return system_clock().boot(); }
BootTime soon() { return now() + std::chrono::seconds{20}; }

std::pair<Fd, Fd> socket_pair() {
  int ends[2] = {-1, -1};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  return {Fd{ends[0]}, Fd{ends[1]}};
}

// What is ready of one descriptor, as "rw"; "late" when nothing is.
std::string ready(int fd, Interest want, BootTime deadline = now()) {
  Poll poll{fd, want, {}};
  if (!wait_any({&poll, 1}, deadline, system_clock()).value()) return "late";
  return std::string(poll.ready.read ? "r" : "") + (poll.ready.write ? "w" : "");
}

TEST(WaitAny, TellsWhatIsReadyAndNothingElse) {
  const auto [a, b] = socket_pair();
  EXPECT_EQ(ready(a.get(), {.read = true}), "late");
  EXPECT_EQ(ready(a.get(), {.write = true}), "w");
  EXPECT_EQ(ready(a.get(), {.read = true, .write = true}), "w");
  ASSERT_THAT(write_all(b.get(), as_bytes("x")), IsOk());
  EXPECT_EQ(ready(a.get(), {.read = true}, soon()), "r");
  EXPECT_EQ(ready(a.get(), {.read = true, .write = true}), "rw");
  EXPECT_EQ(ready(a.get(), {.write = true}), "w") << "nobody asked for the bytes";
}

TEST(WaitAny, ABrokenDescriptorIsReady) {
  auto [read_end, write_end] = make_pipe().value();
  write_end.reset();
  EXPECT_EQ(ready(read_end.get(), {.read = true}), "r");
  auto [other_read, other_write] = make_pipe().value();
  other_read.reset();
  EXPECT_EQ(ready(other_write.get(), {.write = true}), "rw");
  EXPECT_EQ(ready(other_write.get(), {.read = true}), "r");
  EXPECT_EQ(ready(9999, {.read = true}), "r") << "using it will tell";
}

TEST(WaitAny, FindsTheReadyOneOfSeveral) {
  const auto [a, b] = socket_pair();
  const auto [c, d] = socket_pair();
  ASSERT_THAT(write_all(d.get(), as_bytes("x")), IsOk());
  std::array<Poll, 2> polls{{{a.get(), {.read = true}, {}}, {c.get(), {.read = true}, {}}}};
  ASSERT_TRUE(wait_any(polls, soon(), system_clock()).value());
  EXPECT_FALSE(polls[0].ready.read);
  EXPECT_TRUE(polls[1].ready.read);
  EXPECT_FALSE(wait_any({}, now(), system_clock()).value());
}

// Says another time at each question, and the last one ever after.
class SteppingClock : public Clock {
 public:
  explicit SteppingClock(std::vector<BootTime> times) : times_(std::move(times)) {}
  [[nodiscard]] BootTime boot() const override { return times_[std::min(asked_++, times_.size() - 1)]; }
  [[nodiscard]] WallTime wall() const override { return {}; }

 private:
  std::vector<BootTime> times_;
  mutable std::size_t asked_ = 0;
};

TEST(WaitAny, EndsAtADeadlineThatPassedDuringASleep) {
  const auto [a, b] = socket_pair();
  Poll poll{a.get(), {.read = true}, {}};
  const BootTime start{1'000'000'000};
  const BootTime deadline = start + std::chrono::milliseconds{1};
  SteppingClock clock({start, deadline + std::chrono::hours{1}});
  const BootTime before = now();
  EXPECT_FALSE(wait_any({&poll, 1}, deadline, clock).value());
  EXPECT_LT(now() - before, std::chrono::minutes{1});
}

TEST(IsWritable, LooksWithoutWaiting) {
  const auto [read_end, write_end] = make_pipe().value();
  EXPECT_TRUE(is_writable(write_end.get()));
  EXPECT_FALSE(is_writable(read_end.get()));
  ASSERT_THAT(set_nonblocking(write_end.get()), IsOk());
  const std::string block(64 * 1024, 'x');
  while (!write_now(write_end.get(), as_bytes(block))->blocked) continue;
  EXPECT_FALSE(is_writable(write_end.get()));
}

TEST(ShutDown, IsSeenByThePeer) {
  const auto [a, b] = socket_pair();
  shut_down(a.get());
  std::array<std::byte, 4> buffer;
  EXPECT_TRUE(read_now(b.get(), buffer)->closed);
}

int option(const Fd& fd, int name) {
  int value = -1;
  socklen_t length = sizeof value;
  EXPECT_EQ(::getsockopt(fd.get(), IPPROTO_TCP, name, &value, &length), 0);
  return value;
}

TEST(ConnectTcp, ReachesAListenerWithItsOptions) {
  const auto [listener, port] = listen_loopback().value();
  EXPECT_GT(port, 0);
  const auto plain = connect_tcp("127.0.0.1", port, soon(), system_clock());
  ASSERT_THAT(plain, IsOk());
  EXPECT_NE(::fcntl(plain->get(), F_GETFL) & O_NONBLOCK, 0);
  EXPECT_NE(option(*plain, TCP_NODELAY), 0);
  EXPECT_EQ(option(*plain, TCP_USER_TIMEOUT), 20'000);
  TcpOptions options;
  options.no_delay = false;
  options.user_timeout = std::chrono::milliseconds{1500};
  const auto other = connect_tcp("localhost", port, soon(), system_clock(), options);
  ASSERT_THAT(other, IsOk());
  EXPECT_EQ(option(*other, TCP_NODELAY), 0);
  EXPECT_EQ(option(*other, TCP_USER_TIMEOUT), 1500);
  const Fd accepted{::accept(listener.get(), nullptr, nullptr)};
  ASSERT_THAT(write_all(accepted.get(), as_bytes("hi")), IsOk());
  EXPECT_EQ(ready(plain->get(), {.read = true}, soon()), "r");
}

TEST(ConnectTcp, SaysWhatFailedAndWhere) {
  std::uint16_t port = 0;
  {
    const auto gone = listen_loopback().value();
    port = gone.second;
  }
  const auto refused = connect_tcp("127.0.0.1", port, soon(), system_clock());
  ASSERT_THAT(refused, FailsWith(Code::host_unreachable));
  EXPECT_THAT(refused.error().message, HasSubstr("127.0.0.1:" + std::to_string(port)));
  EXPECT_THAT(refused.error().message, HasSubstr("connection refused"));
  const auto late = connect_tcp("127.0.0.1", port, now(), system_clock());
  ASSERT_THAT(late, FailsWith(Code::timed_out));
  EXPECT_THAT(late.error().message, HasSubstr("no time left"));
  const auto unknown = connect_tcp("no-such-host.invalid", 22, soon(), system_clock());
  ASSERT_THAT(unknown, FailsWith(Code::host_unreachable));
  EXPECT_THAT(unknown.error().message, HasSubstr("cannot find the address of no-such-host.invalid:22"));
  const auto nowhere = connect_tcp("255.255.255.255", 22, soon(), system_clock());
  ASSERT_THAT(nowhere, FailsWith(Code::host_unreachable));
  EXPECT_THAT(nowhere.error().message, HasSubstr("cannot connect to 255.255.255.255:22"));
}

// A listener whose queue is full answers no more.
TEST(ConnectTcp, GivesUpAtTheDeadline) {
  Fd listener{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), length), 0);
  ASSERT_EQ(::listen(listener.get(), 0), 0);
  ASSERT_EQ(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &length), 0);
  std::vector<Fd> filling;
  std::optional<Error> last;
  for (int i = 0; i < 8 && !last; ++i) {
    auto fd = connect_tcp("127.0.0.1", ntohs(address.sin_port), now() + std::chrono::milliseconds{100}, system_clock());
    if (fd) filling.push_back(std::move(*fd));
    else last = fd.error();
  }
  ASSERT_TRUE(last);
  EXPECT_EQ(last->code, Code::timed_out);
  EXPECT_THAT(last->message, HasSubstr("no answer in time"));
}

TEST(NumericAddresses, AreThoseOfTheHost) {
  EXPECT_THAT(*numeric_addresses("127.0.0.1", soon(), system_clock()), ::testing::ElementsAre("127.0.0.1"));
  EXPECT_THAT(*numeric_addresses("::1", soon(), system_clock()), ::testing::ElementsAre("::1"));
  EXPECT_THAT(*numeric_addresses("localhost", soon(), system_clock()), ::testing::Contains("127.0.0.1"));
  EXPECT_THAT(numeric_addresses("no-such-host.invalid", soon(), system_clock()), FailsWith(Code::host_unreachable));
}

TEST(ConnectLocal, ReachesASocketByItsPath) {
  const TempDir dir;
  const Fd listener{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = (dir / "socket").native();
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(listener.get(), 4), 0);
  EXPECT_THAT(connect_local(path), IsOk());
  const auto missing = connect_local(dir / "none");
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message, HasSubstr((dir / "none").native()));
  const auto longest = connect_local("/" + std::string(sizeof address.sun_path - 2, 'x'));
  EXPECT_THAT(longest.error().message, HasSubstr("cannot connect to the socket"));
  const auto too_long = connect_local("/" + std::string(sizeof address.sun_path - 1, 'x'));
  EXPECT_THAT(too_long.error().message, HasSubstr("is too long"));
}

TEST(Ready, MovesWhatThereIs) {
  const auto [a, b] = socket_pair();
  ASSERT_THAT(set_nonblocking(a.get()), IsOk());
  EXPECT_NE(::fcntl(a.get(), F_GETFL) & O_NONBLOCK, 0);
  std::array<std::byte, 16> buffer;
  const auto nothing = read_now(a.get(), buffer);
  ASSERT_THAT(nothing, IsOk());
  EXPECT_TRUE(nothing->blocked);
  EXPECT_FALSE(nothing->closed);
  const auto wrote = write_now(b.get(), as_bytes("abc"));
  EXPECT_EQ(wrote->bytes, 3u);
  EXPECT_FALSE(wrote->blocked || wrote->closed);
  const auto got = read_now(a.get(), buffer);
  EXPECT_EQ(got->bytes, 3u);
  EXPECT_FALSE(got->blocked || got->closed);
  const auto none = write_now(b.get(), {});
  EXPECT_FALSE(none->blocked || none->closed) << "to write nothing is no end";
}

TEST(Ready, AnEndIsNoErrorAndNoSignal) {
  auto [a, b] = socket_pair();
  b.reset();
  std::array<std::byte, 16> buffer;
  EXPECT_TRUE(read_now(a.get(), buffer)->closed);
  EXPECT_TRUE(write_now(a.get(), as_bytes("x"))->closed) << "a signal would have ended us";
  auto [read_end, write_end] = make_pipe().value();
  EXPECT_EQ(write_now(write_end.get(), as_bytes("xy"))->bytes, 2u);
  EXPECT_EQ(read_now(read_end.get(), buffer)->bytes, 2u);
}

TEST(Ready, OtherErrorsSayWhichWay) {
  std::array<std::byte, 16> buffer;
  const auto unread = read_now(-1, buffer);
  ASSERT_FALSE(unread);
  EXPECT_THAT(unread.error().message, HasSubstr("cannot read from a link"));
  const auto unwritten = write_now(-1, as_bytes("x"));
  ASSERT_FALSE(unwritten);
  EXPECT_THAT(unwritten.error().message, HasSubstr("cannot write to a link"));
  EXPECT_FALSE(set_nonblocking(-1));
}

}  // namespace
}  // namespace gridctl::os::net_test
