// SPDX-License-Identifier: Apache-2.0
// mpirun's way to the other hosts of a gang, by the real agent: two hosts on loopback.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>

#include "os/clock.hpp"
#include "os/process.hpp"
#include "support/loopback.hpp"
#include "support/results.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::testing::gang_node_test {
namespace {

using ::testing::HasSubstr;

class GangProgram : public ::testing::Test {
 protected:
  GangProgram() : port_(os::listen_loopback().value().second) {  // free a moment ago
    write_gang("first", std::string(64, 'a'), 0);
    write_gang("second", std::string(64, 'a'), 1);
    write_gang("stranger", std::string(64, 'b'), 0);
  }
  ~GangProgram() override {
    if (!server_) return;
    ::kill(*server_, SIGKILL);
    (void)os::wait(*server_);
  }
  void write_gang(const std::string& name, const std::string& token, int rank) const {
    std::ofstream(dir_ / name) << token << "\n" << port_ << "\n" << rank << "\n127.0.0.1\n127.0.0.2\n";
  }
  Result<os::RunOutcome> call(const std::string& gang, const std::vector<std::string>& words) const {
    os::RunOptions options;
    options.environment_extra = {{"GRIDCTL_GANG_FILE", (dir_ / gang).native()}};
    options.timeout = std::chrono::seconds{20};
    std::vector<std::string> argv{k_program};
    argv.insert(argv.end(), words.begin(), words.end());
    return os::run(argv, options);
  }
  // As a process of its own, which this does not wait for.
  [[nodiscard]] int begin(const std::string& gang, const std::vector<std::string>& words) const {
    ::setenv("GRIDCTL_GANG_FILE", (dir_ / gang).c_str(), 1);
    std::vector<std::string> argv{k_program};
    argv.insert(argv.end(), words.begin(), words.end());
    const auto pid = os::spawn(argv, {});
    ::unsetenv("GRIDCTL_GANG_FILE");
    return pid.value();
  }
  template <class Holds>
  static bool comes(Holds holds) {
    const BootTime patience = os::system_clock().boot() + std::chrono::seconds{60};
    while (!holds() && os::system_clock().boot() < patience) os::pause_for(std::chrono::milliseconds{5});
    return holds();
  }
  void serve() { server_ = begin("second", {"gang-serve"}); }
  [[nodiscard]] int served() { return os::wait(*std::exchange(server_, std::nullopt))->code; }  // its status

  const std::string k_program = std::string(GRIDCTL_BINARY_DIR) + "/bin/gridctl-agent.stripped";
  TempDir dir_;
  std::uint16_t port_;
  std::optional<int> server_;
};

TEST_F(GangProgram, RunsACommandOnAnotherHostAndTellsItsStatus) {
  serve();
  const std::string note = (dir_ / "note").native();
  const auto outcome = call("first", {"gang-run", "127.0.0.2", "echo", "'two", "words'", ">", note + ";", "exit 7"});
  ASSERT_THAT(outcome, IsOk());
  EXPECT_EQ(outcome->status.code, 7) << outcome->err;
  EXPECT_EQ(os::read_file(note).value_or(""), "two words\n");
  EXPECT_EQ(call("first", {"gang-run", "127.0.0.2", "kill -9 $$"})->status.code, 137);
  EXPECT_EQ(call("first", {"gang-end", "5"})->status.code, 0);
  EXPECT_EQ(served(), 5);
}

TEST_F(GangProgram, RunsACommandOfItsOwnHostItself) {
  const auto outcome = call("first", {"gang-run", "127.0.0.1", "echo here; exit 3"});
  ASSERT_THAT(outcome, IsOk());
  EXPECT_EQ(outcome->status.code, 3);
  EXPECT_EQ(outcome->out, "here\n");
}

TEST_F(GangProgram, IsCalledByThatNameInThePlaceOfSsh) {
  std::filesystem::create_symlink(k_program, dir_ / "gang-run");
  os::RunOptions options;
  options.environment_extra = {{"GRIDCTL_GANG_FILE", (dir_ / "first").native()}};
  const auto outcome = os::run({(dir_ / "gang-run").native(), "127.0.0.1", "echo here; exit 3"}, options);
  ASSERT_THAT(outcome, IsOk());
  EXPECT_EQ(outcome->status.code, 3) << outcome->err;
  EXPECT_EQ(outcome->out, "here\n");
}

TEST_F(GangProgram, WhatItLeftRunningEndsWithTheGang) {
  serve();
  ASSERT_EQ(
      call("first", {"gang-run", "127.0.0.2", "sleep 77.25 >/dev/null 2>&1 & echo $! > " + (dir_ / "pid").native()})
          ->status.code,
      0);
  const int pid = std::stoi(os::read_file(dir_ / "pid").value());
  ASSERT_TRUE(os::identify(pid));
  EXPECT_EQ(call("first", {"gang-end", "0"})->status.code, 0);
  EXPECT_EQ(served(), 0);
  EXPECT_FALSE(os::identify(pid));
}

TEST_F(GangProgram, ACommandEndsWithWhoeverCalledIt) {
  serve();
  const std::string file = (dir_ / "pid").native();
  const int caller = begin(
      "first", {"gang-run", "127.0.0.2", "echo $$ > " + file + ".new; mv " + file + ".new " + file + "; sleep 77"});
  const BootTime patience = os::system_clock().boot() + std::chrono::seconds{60};
  while (!os::exists(file) && os::system_clock().boot() < patience) os::pause_for(std::chrono::milliseconds{5});
  const int pid = std::stoi(os::read_file(file).value());
  ASSERT_TRUE(os::identify(pid));
  ::kill(caller, SIGKILL);
  ASSERT_THAT(os::wait(caller), IsOk());
  while (os::identify(pid) && os::system_clock().boot() < patience) os::pause_for(std::chrono::milliseconds{5});
  EXPECT_FALSE(os::identify(pid));
}

TEST_F(GangProgram, ServesNobodyWithoutTheToken) {
  serve();
  const auto refused = call("stranger", {"gang-run", "127.0.0.2", "touch " + (dir_ / "touched").native()});
  ASSERT_THAT(refused, IsOk());
  EXPECT_EQ(refused->status.code, 255);
  EXPECT_THAT(refused->err, HasSubstr("gridctl: "));
  EXPECT_FALSE(os::exists(dir_ / "touched"));
  EXPECT_EQ(call("first", {"gang-run", "127.0.0.2", "true"})->status.code, 0) << "it goes on serving";
}

// `ray start` without --block, as many published job files have it: a daemon that the first host's program uses.
constexpr const char* k_leaves_a_worker =
    "setsid sleep 77.5 >/dev/null 2>&1 & echo $! > worker.new; mv worker.new worker";

TEST_F(GangProgram, WhatACommandLeavesRunningLivesUntilTheFirstHostsEnds) {
  const int first = begin(
      "first", {"gang-node", "sh", "-c", "while [ ! -e " + (dir_ / "enough").native() + " ]; do sleep 0.02; done"});
  const int second =
      begin("second", {"gang-node", "sh", "-c", "cd " + dir_.path().native() + "; " + k_leaves_a_worker});
  ASSERT_TRUE(comes([&] { return os::exists(dir_ / "worker"); }));
  const int worker = std::stoi(os::read_file(dir_ / "worker").value());
  os::pause_for(std::chrono::milliseconds{700});
  EXPECT_TRUE(os::identify(worker)) << "its command has ended long ago";
  std::ofstream(dir_ / "enough") << "";
  EXPECT_EQ(os::wait(first)->code, 0);
  EXPECT_EQ(os::wait(second)->code, 0);
  EXPECT_FALSE(os::identify(worker));
}

TEST_F(GangProgram, ACommandThatLeavesNothingOrFailsIsNotHeldUpByTheFirstHosts) {
  const int first = begin("first", {"gang-node", "sleep", "77.75"});
  for (const auto& [script, code] : {std::pair{std::string("true"), 0}, std::pair{std::string("exit 7"), 7},
                                     std::pair{std::string(k_leaves_a_worker) + "; exit 3", 3}}) {
    const auto ended = call("second", {"gang-node", "sh", "-c", "cd " + dir_.path().native() + "; " + script});
    ASSERT_THAT(ended, IsOk());
    EXPECT_EQ(ended->status.code, code) << script << ended->err;
  }
  const auto killed = call("second", {"gang-node", "sh", "-c", "kill -9 $$"});
  ASSERT_THAT(killed, IsOk());
  EXPECT_EQ(killed->status.signal, SIGKILL) << "as the command itself would have ended";
  EXPECT_TRUE(os::identify(first));
  ::kill(std::stoi(os::read_file(dir_ / "worker").value()), SIGKILL);
  for (const os::ProcessId& process : os::descendants(first)) ::kill(process.pid, SIGKILL);
  ASSERT_THAT(os::wait(first), IsOk());
}

TEST_F(GangProgram, WhatIsLeftRunningEndsWithItsCommandWhenTheFirstHostsHasEnded) {
  const std::string leaves = "cd " + dir_.path().native() + "; sleep 1; " + k_leaves_a_worker;
  write_gang("of-another", std::string(64, 'c'), 1);
  const auto without = call("second", {"gang-node", "sh", "-c", leaves});
  ASSERT_THAT(without, IsOk());
  EXPECT_EQ(without->status.code, 0) << "it has ended before this one could reach it";
  EXPECT_THAT(without->err, HasSubstr("has ended or cannot be reached"));
  for (const char* gang : {"second", "of-another"}) {
    const int first = begin("first", {"gang-node", "sleep", gang == std::string("second") ? "0.5" : "2"});
    const auto ended = call(gang, {"gang-node", "sh", "-c", leaves});
    ASSERT_THAT(ended, IsOk());
    EXPECT_EQ(ended->status.code, 0);
    EXPECT_THAT(ended->err, HasSubstr("the processes that the command left running (1 process) end with it")) << gang;
    EXPECT_FALSE(os::identify(std::stoi(os::read_file(dir_ / "worker").value())));
    EXPECT_EQ(os::wait(first)->code, 0);
  }
}

TEST_F(GangProgram, SaysWhatIsWrongWithACall) {
  for (const auto& [gang, words, why] : std::vector<std::tuple<std::string, std::vector<std::string>, std::string>>{
           {"first", {"gang-run", "127.0.0.2"}, "gang-run needs HOST COMMAND"},
           {"first", {"gang-run", "10.9.9.9", "true"}, "'10.9.9.9' is not a member of this gang"},
           {"first",
            {"gang-run", "127.0.0.2", std::string(64 * 1024, 'x'), std::string(64 * 1024, 'x')},
            "longer than 128 KiB"},
           {"first", {"gang-end"}, "gang-end needs STATUS"},
           {"none", {"gang-run", "127.0.0.2", "true"}, "none"},
           {"none", {"gang-serve"}, "none"}}) {
    const auto outcome = call(gang, words);
    ASSERT_THAT(outcome, IsOk());
    EXPECT_EQ(outcome->status.code, 255) << why;
    EXPECT_THAT(outcome->err, HasSubstr(why));
  }
  os::RunOptions options;
  options.environment_extra = {{"X", "y"}};
  EXPECT_THAT(os::run({k_program, "gang-run", "127.0.0.2", "true"}, options)->err,
              HasSubstr("GRIDCTL_GANG_FILE is not set"));
}

}  // namespace
}  // namespace gridctl::testing::gang_node_test
