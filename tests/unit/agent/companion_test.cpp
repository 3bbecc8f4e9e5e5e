// SPDX-License-Identifier: Apache-2.0
// The calls between the hosts of a gang, in processes of this test: what the server takes, and what callers say.
#include "agent/companion.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <fstream>

#include "agent/peer_exchange.hpp"
#include "os/process.hpp"
#include "support/loopback.hpp"
#include "support/results.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::agent::companion_test {
namespace {

using namespace std::chrono_literals;
using gridctl::testing::IsOk;
using gridctl::testing::TempDir;
using ::testing::HasSubstr;

const std::string k_token(64, 'a');

// Every look at it is a second later: what waits for half an hour has soon waited.
class HastyClock final : public os::Clock {
 public:
  [[nodiscard]] BootTime boot() const override { return {os::system_clock().boot().ns + (++looks_) * 300'000'000'000}; }
  [[nodiscard]] WallTime wall() const override { return os::system_clock().wall(); }

 private:
  mutable std::int64_t looks_ = 0;
};

class Companion : public ::testing::Test {
 protected:
  Companion() : port_(os::listen_loopback().value().second) {  // free a moment ago
    write_gang("first", 0, {"127.0.0.1", "127.0.0.2"});
    write_gang("second", 1, {"127.0.0.1", "127.0.0.2"});
    write_gang("alone", 0, {"127.0.0.1"});
  }
  ~Companion() override {
    ::unsetenv("GRIDCTL_GANG_FILE");
    if (server_ <= 0) return;
    ::kill(server_, SIGKILL);
    ::waitpid(server_, nullptr, 0);
  }
  void write_gang(const std::string& name, int rank, const std::vector<std::string>& addresses) const {
    std::ofstream file(dir_ / name);
    file << k_token << "\n" << port_ << "\n" << rank << "\n";
    for (const std::string& address : addresses) file << address << "\n";
  }
  void is(const std::string& gang) const { ::setenv("GRIDCTL_GANG_FILE", (dir_ / gang).c_str(), 1); }
  // The second host. Nothing ever comes on its standard input.
  void serve() {
    auto input = os::make_pipe().value();
    is("second");
    server_ = ::fork();
    if (server_ == 0) {
      ::dup2(input.first.get(), 0);
      ::signal(SIGPIPE, SIG_IGN);
      ::_exit(gang_serve(os::system_clock()));
    }
    keeps_input_open_ = std::move(input.second);
    is("first");
  }
  // The server's status, once it has ended; -1: it goes on serving.
  [[nodiscard]] int served() {
    int status = 0;
    for (const BootTime give_up = os::system_clock().boot() + 60s; ::waitpid(server_, &status, WNOHANG) != server_;) {
      if (os::system_clock().boot() >= give_up) return -1;
      os::pause_for(5ms);
    }
    server_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  static int call(int (*what)(std::span<char* const>, const os::Clock&), std::vector<std::string> words,
                  const os::Clock& clock = os::system_clock()) {
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    return what(pointers, clock);
  }
  // On the second host; -2 when that has ended, for it would be waited for half an hour.
  [[nodiscard]] int run(const std::string& command) {
    if (server_ > 0 && ::waitpid(server_, nullptr, WNOHANG) == server_) server_ = -2;
    return server_ == -2 ? -2 : call(gang_run, {"127.0.0.2", command});
  }
  static int end(const std::string& status) { return call(gang_end, {status}); }

  // A caller that has proved itself and says what it likes.
  [[nodiscard]] PeerStream caller() const {
    for (const BootTime give_up = os::system_clock().boot() + 60s;;) {
      auto connected = connect_numeric("127.0.0.2", port_, give_up, os::system_clock());
      if (!connected && os::system_clock().boot() < give_up) {
        os::pause_for(5ms);
        continue;
      }
      EXPECT_THAT(connected, IsOk());
      PeerStream peer(std::move(connected->socket), "127.0.0.2", os::system_clock().boot() + 10s, os::system_clock());
      EXPECT_THAT(prove_as_connector(peer, parse_digest(k_token).value()), IsOk());
      return peer;
    }
  }
  static void say(PeerStream& peer, char word, std::uint32_t size, const std::string& text) {
    std::string call(1, word);
    for (int shift = 24; shift >= 0; shift -= 8) call += static_cast<char>(size >> shift);
    (void)peer.write(as_bytes(call + text));
  }
  // -1: it hung up without an answer.
  static int answer(PeerStream& peer) {
    std::array<std::byte, 1> byte{};
    return peer.read(byte) ? std::to_integer<int>(byte[0]) : -1;
  }
  [[nodiscard]] std::string text(const std::string& name) const { return os::read_file(dir_ / name).value_or(""); }
  [[nodiscard]] bool comes(const std::string& name) const {
    for (const BootTime give_up = os::system_clock().boot() + 60s; os::system_clock().boot() < give_up;) {
      if (os::exists(dir_ / name)) return true;
      os::pause_for(5ms);
    }
    return false;
  }

  TempDir dir_;
  std::uint16_t port_;
  pid_t server_ = -1;
  os::Fd keeps_input_open_;
};

TEST_F(Companion, RunsCommandsAsAShellDoesAndTellsTheirStatus) {
  serve();
  EXPECT_EQ(run("exit 0"), 0);
  EXPECT_EQ(run("exit 254"), 254);
  EXPECT_EQ(run("kill -TERM $$"), 128 + SIGTERM);
  EXPECT_EQ(run("cat; exit 4"), 4) << "nothing comes on its standard input, and it ends";
  EXPECT_EQ(run("kill -PIPE $$; exit 0"), 128 + SIGPIPE) << "as a program expects it";
  EXPECT_EQ(call(gang_run, {"127.0.0.2", "echo", "a ", "b", ">", (dir_ / "words").native()}), 0);
  EXPECT_EQ(text("words"), "a b\n");
  EXPECT_EQ(end("9"), 0);
  EXPECT_EQ(served(), 9);
}

TEST_F(Companion, WaitsForAHostThatIsNotUpYet) {
  is("first");
  const std::string note = (dir_ / "note").native();
  const pid_t early = ::fork();
  if (early == 0) ::_exit(run("echo came > " + note + "; exit 6"));
  os::pause_for(50ms);  // it is refused meanwhile
  serve();
  int status = 0;
  ASSERT_EQ(::waitpid(early, &status, 0), early);
  EXPECT_EQ(WEXITSTATUS(status), 6);
  EXPECT_EQ(text("note"), "came\n");
}

TEST_F(Companion, GivesAHostUpThatNeverComes) {
  is("first");
  const HastyClock clock;
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(call(gang_run, {"127.0.0.2", "true"}, clock), 255);
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, HasSubstr("gridctl: "));
  EXPECT_THAT(said, HasSubstr("while calling 127.0.0.2 port " + std::to_string(port_)));
  EXPECT_EQ(call(gang_end, {"0"}, clock), 0) << "it has ended, or is stopped by the controller";
}

TEST_F(Companion, ItsOwnHostIsNotToldOfTheEnd) {
  serve();
  is("alone");
  EXPECT_EQ(end("3"), 0);
  is("first");
  EXPECT_EQ(run("exit 5"), 5) << "the server was ended, by its own host";
  EXPECT_EQ(end("0"), 0);
  EXPECT_EQ(served(), 0);
}

TEST_F(Companion, AnEndWithoutANumberIsAFailure) {
  serve();
  EXPECT_EQ(end("well"), 0);
  EXPECT_EQ(served(), 1);
}

TEST_F(Companion, WhatWasLeftRunningMaySaveBeforeItEnds) {
  serve();
  const std::string up = (dir_ / "up").native(), saved = (dir_ / "saved").native();
  ASSERT_EQ(run("(trap 'echo x > " + saved + "; exit' TERM; echo > " + up +
                "; while :; do sleep 0.01; done) > /dev/null 2>&1 &"),
            0);
  ASSERT_TRUE(comes("up"));
  EXPECT_EQ(end("0"), 0);
  EXPECT_EQ(served(), 0);
  EXPECT_EQ(text("saved"), "x\n");
}

TEST_F(Companion, ACommandWhoseCallerGoesMaySaveBeforeItEnds) {
  serve();
  const std::string up = (dir_ / "up").native(), saved = (dir_ / "saved").native();
  {
    PeerStream peer = caller();
    const std::string command =
        "trap 'echo x > " + saved + "; exit' TERM; echo > " + up + "; while :; do sleep 0.01; done";
    say(peer, 'R', static_cast<std::uint32_t>(command.size()), command);
    ASSERT_TRUE(comes("up"));
  }
  EXPECT_TRUE(comes("saved"));
}

TEST_F(Companion, WhatACallerSaysBesideItsCallChangesNothing) {
  serve();
  PeerStream peer = caller();
  const std::string command = "while [ ! -e " + (dir_ / "go").native() + " ]; do sleep 0.01; done; exit 3";
  say(peer, 'R', static_cast<std::uint32_t>(command.size()), command + "more");
  std::ofstream(dir_ / "go") << "";
  EXPECT_EQ(answer(peer), 3);
}

TEST_F(Companion, TakesACallOfHundredAndTwentyEightKibibytesAndNoByteMore) {
  serve();
  {
    PeerStream longer = caller();
    say(longer, 'E', 128 * 1024 + 1, std::string(128 * 1024 + 1, '1'));
    EXPECT_EQ(answer(longer), -1);
  }
  EXPECT_EQ(run("exit 2"), 2) << "it goes on serving";
  PeerStream longest = caller();
  say(longest, 'E', 128 * 1024, std::string(128 * 1024 - 1, '0') + "7");
  EXPECT_EQ(answer(longest), 0);
  EXPECT_EQ(served(), 7);
}

TEST_F(Companion, AnswersNoUnknownWordAndNobodyWhoHangsUp) {
  serve();
  {
    PeerStream odd = caller();
    say(odd, 'Q', 4, "true");
    EXPECT_EQ(answer(odd), -1);
    ASSERT_EQ(run("exit 3"), 3) << "it goes on serving";
    const PeerStream silent = caller();
    PeerStream half = caller();
    say(half, 'E', 4, "1");
  }
  EXPECT_EQ(run("exit 2"), 2);
  EXPECT_EQ(end("0"), 0);
  EXPECT_EQ(served(), 0);
}

TEST_F(Companion, ServesOnlyAtAPortThatIsFree) {
  serve();
  EXPECT_EQ(run("true"), 0);
  is("second");
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(gang_serve(os::system_clock()), 255);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("port " + std::to_string(port_) + " is in use"));
}

TEST_F(Companion, SaysWhatIsWrongWithACall) {
  is("first");
  for (const auto& [words, why] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{}, "gang-run needs HOST COMMAND"},
           {{"127.0.0.2"}, "gang-run needs HOST COMMAND"},
           {{"127.0.0.3", "true"}, "'127.0.0.3' is not a member of this gang"},
           {{"127.0.0.2", std::string(128 * 1024 - 1, 'x'), "y"}, "the command is longer than 128 KiB"}}) {
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(call(gang_run, words), 255);
    EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr(why));
  }
  for (const std::vector<std::string>& words : {std::vector<std::string>{}, {"1", "2"}}) {
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(call(gang_end, words), 255);
    EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("gang-end needs STATUS"));
  }
  ::unsetenv("GRIDCTL_GANG_FILE");
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(call(gang_end, {"0"}), 255);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("GRIDCTL_GANG_FILE is not set"));
}

}  // namespace
}  // namespace gridctl::agent::companion_test
