// SPDX-License-Identifier: Apache-2.0
#include "os/process.hpp"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <set>

#include "base/text.hpp"
#include "support/results.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::os::process_test {
namespace {

using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;
using gridctl::testing::TempDir;

// Starts argv with its output into a file, waits, and returns the output.
std::string output_of(const std::vector<std::string>& argv, SpawnOptions options = {}) {
  const TempDir dir;
  const Fd out = open_file(dir / "out", O_RDWR | O_CREAT).value();
  options.stdout_fd = out.get();
  const Result<int> pid = spawn(argv, options);
  if (!pid) return pid.error().one_line();
  if (!wait(*pid)) return "cannot wait";
  return read_file(dir / "out").value_or("unreadable");
}

TEST(Spawn, ReportsThatAProgramDoesNotExist) {
  EXPECT_THAT(spawn({"/no/such/program"}, {}), FailsWith(Code::not_found));
  EXPECT_THAT(spawn({"no-such-program-anywhere"}, {}), FailsWith(Code::not_found));
}

TEST(Spawn, ReportsThatAFileCannotBeRun) {
  EXPECT_THAT(spawn({"/etc/passwd"}, {}), FailsWith(Code::io));
  SpawnOptions elsewhere;
  elsewhere.directory = "/no/such/folder";
  EXPECT_THAT(spawn({"true"}, elsewhere), FailsWith(Code::not_found));
  EXPECT_THAT(wait(-1), FailsWith(Code::io)) << "a child that never ran was left unreaped";
}

TEST(Spawn, PassesOnlyTheDescriptorsThatWereNamed) {
  const Fd kept = open_file("/dev/null", O_RDONLY).value();
  const Fd other{::fcntl(kept.get(), F_DUPFD, 200)};  // without close-on-exec, as a careless library would
  SpawnOptions options;
  options.keep_fds = {kept.get()};
  const std::string listing = output_of({"ls", "/proc/self/fd"}, options);
  const std::vector<std::string> numbers = split_lines(listing);
  // 0, 1, 2, the kept one, and the folder that ls reads.
  EXPECT_EQ(numbers.size(), 5u) << listing;
  EXPECT_NE(std::find(numbers.begin(), numbers.end(), std::to_string(kept.get())), numbers.end()) << listing;
  EXPECT_EQ(std::find(numbers.begin(), numbers.end(), "200"), numbers.end()) << listing;
}

TEST(Spawn, PlacesStandardDescriptorsAlsoWhenTheyAreSwapped) {
  const TempDir dir;
  const Fd a = open_file(dir / "a", O_RDWR | O_CREAT).value();
  const Fd b = open_file(dir / "b", O_RDWR | O_CREAT).value();
  const Fd saved_out{::fcntl(1, F_DUPFD_CLOEXEC, 3)}, saved_err{::fcntl(2, F_DUPFD_CLOEXEC, 3)};
  ::dup2(a.get(), 1);
  ::dup2(b.get(), 2);
  SpawnOptions options;
  options.stdout_fd = 2;
  options.stderr_fd = 1;
  const Result<int> pid = spawn({"sh", "-c", "echo out; echo err >&2"}, options);
  ::dup2(saved_out.get(), 1);
  ::dup2(saved_err.get(), 2);
  ASSERT_THAT(pid, IsOk());
  ASSERT_THAT(wait(*pid), IsOk());
  EXPECT_EQ(*read_file(dir / "a"), "err\n");
  EXPECT_EQ(*read_file(dir / "b"), "out\n");
}

TEST(Spawn, GivesTheChildAnEnvironmentADirectoryAndDefaultSignals) {
  ignore_broken_pipes();
  SpawnOptions options;
  options.environment = {{"ONLY", "this"}, {"PATH", "/usr/bin:/bin"}};
  options.directory = "/";
  EXPECT_EQ(output_of({"env"}, options), "ONLY=this\nPATH=/usr/bin:/bin\n");
  EXPECT_EQ(output_of({"pwd"}, options), "/\n");
  const std::string signals = output_of({"grep", "-E", "^Sig(Ign|Blk)", "/proc/self/status"});
  EXPECT_EQ(signals, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
  ::signal(SIGPIPE, SIG_DFL);
}

TEST(Spawn, ADetachedProcessIsNotOurChildAndLeadsItsOwnSession) {
  Result<std::pair<Fd, Fd>> ends = make_pipe();
  SpawnOptions options;
  options.stdout_fd = ends->second.get();
  options.detach = true;
  options.new_session = true;
  const Result<int> pid = spawn({"sh", "-c", "echo $$; exec sleep 60"}, options);
  ASSERT_THAT(pid, IsOk());
  ends->second.reset();
  std::array<char, 32> text{};
  ASSERT_GT(::read(ends->first.get(), text.data(), text.size()), 0);
  EXPECT_EQ(std::string(text.data()), std::to_string(*pid) + "\n");
  EXPECT_EQ(::getsid(*pid), *pid);
  EXPECT_FALSE(try_wait(*pid));
  EXPECT_TRUE(send_signal(*identify(*pid), SIGKILL).value());
}

TEST(Spawn, ADetachedProcessThatCannotRunIsReportedToo) {
  SpawnOptions options;
  options.detach = true;
  EXPECT_THAT(spawn({"/no/such/program"}, options), FailsWith(Code::not_found));
}

TEST(Spawn, TryWaitTellsRunningFromEnded) {
  const int pid = spawn({"sleep", "60"}, {}).value();
  EXPECT_FALSE(try_wait(pid)->has_value());
  ::kill(pid, SIGTERM);
  const Result<ExitStatus> status = wait(pid);
  ASSERT_THAT(status, IsOk());
  EXPECT_EQ(status->signal, SIGTERM);
  EXPECT_FALSE(status->success());
}

TEST(Spawn, PassesDescriptorZeroAsAnyOther) {
  const TempDir dir;
  ASSERT_THAT(write_file_atomically(dir / "in", "word\n"), IsOk());
  const Fd in = open_file(dir / "in", O_RDONLY).value();
  const Fd saved{::fcntl(0, F_DUPFD_CLOEXEC, 3)};
  ::dup2(in.get(), 0);
  SpawnOptions options;
  options.stdin_fd = 0;
  const std::string read = output_of({"cat"}, options);
  ::dup2(saved.get(), 0);
  EXPECT_EQ(read, "word\n");
  EXPECT_EQ(output_of({"cat"}), "") << "a standard descriptor that is not named is an empty one";
}

TEST(Spawn, AGroupOfItsOwnIsNoSessionOfItsOwn) {
  SpawnOptions options;
  options.new_group = true;
  const int grouped = spawn({"sleep", "60"}, options).value();
  EXPECT_EQ(::getpgid(grouped), grouped);
  EXPECT_EQ(::getsid(grouped), ::getsid(0));
  const int plain = spawn({"sleep", "60"}, {}).value();
  EXPECT_EQ(::getpgid(plain), ::getpgid(0));
  ::kill(-grouped, SIGKILL);
  ::kill(plain, SIGKILL);
  EXPECT_EQ(wait(grouped)->signal, SIGKILL);
  EXPECT_EQ(wait(plain)->signal, SIGKILL);
}

TEST(Spawn, TellsHowAProgramEnded) {
  for (const int code : {0, 1, 255}) {
    const Result<ExitStatus> status = wait(spawn({"sh", "-c", "exit " + std::to_string(code)}, {}).value());
    ASSERT_THAT(status, IsOk());
    EXPECT_EQ(status->code, code);
    EXPECT_EQ(status->signal, 0);
    EXPECT_EQ(status->success(), code == 0);
  }
}

TEST(ProcessId, ComesToNothingWhenTheProcessEnds) {
  const int pid = spawn({"sleep", "60"}, {}).value();
  const std::optional<ProcessId> process = identify(pid);
  ASSERT_TRUE(process);
  EXPECT_TRUE(is_alive(*process));
  EXPECT_FALSE(is_alive({pid, process->start_ticks + 1})) << "another process of the same number";
  EXPECT_FALSE(send_signal({pid, process->start_ticks + 1}, SIGKILL).value());
  EXPECT_THAT(open_pidfd({pid, process->start_ticks + 1}), FailsWith(Code::not_found));
  const Result<Fd> handle = open_pidfd(*process);
  ASSERT_THAT(handle, IsOk());
  EXPECT_FALSE(wait_ready(handle->get(), true, false, Duration{0}).value());
  EXPECT_TRUE(send_signal(*process, SIGKILL).value());
  EXPECT_TRUE(wait_ready(handle->get(), true, false, std::chrono::seconds{10}).value());
  EXPECT_FALSE(identify(pid)) << "what only waits to be collected is none any more";
  EXPECT_FALSE(is_alive(*process));
  ASSERT_THAT(wait(pid), IsOk());
  EXPECT_FALSE(send_signal(*process, SIGKILL).value());
  EXPECT_THAT(wait(pid), FailsWith(Code::io)) << "it was collected already";
  EXPECT_THAT(try_wait(pid), FailsWith(Code::io));
}

TEST(FindProgram, LooksThroughThePathForWhatCanBeRun) {
  const TempDir dir;
  const std::string before = ::getenv("PATH");
  ASSERT_THAT(make_directories(dir / "a"), IsOk());
  ASSERT_THAT(make_directories(dir / "b"), IsOk());
  ASSERT_THAT(make_directories(dir / "c"), IsOk());
  ASSERT_THAT(write_file_atomically(dir / "a/tool", "#!/bin/sh\n", 0600), IsOk());
  ASSERT_THAT(write_file_atomically(dir / "b/tool", "#!/bin/sh\n", 0700), IsOk());
  ASSERT_THAT(write_file_atomically(dir / "c/tool", "#!/bin/sh\n", 0700), IsOk());
  const std::string base = dir.path().string();
  ::setenv("PATH", (base + "/a:" + base + "/b:" + base + "/c").c_str(), 1);
  const std::optional<Path> found = find_program("tool"), missing = find_program("no-such-tool");
  ::setenv("PATH", before.c_str(), 1);
  EXPECT_EQ(found.value_or(""), dir / "b/tool");
  EXPECT_FALSE(missing);
}

TEST(FindProgram, LooksHereForAnEmptyFolderOfThePathAndTakesNoFolderForAProgram) {
  const TempDir dir;
  const std::string before = ::getenv("PATH");
  ASSERT_THAT(make_directories(dir / "a/tool"), IsOk());
  ASSERT_THAT(write_file_atomically(dir / "tool", "#!/bin/sh\n", 0700), IsOk());
  const Path was = std::filesystem::current_path();
  std::filesystem::current_path(dir.path());
  ::setenv("PATH", ((dir / "a").native() + ":").c_str(), 1);
  const std::optional<Path> here = find_program("tool");
  ::unsetenv("PATH");
  const std::optional<Path> usual = find_program("sh"), by_path = find_program("./tool");
  ::setenv("PATH", before.c_str(), 1);
  std::filesystem::current_path(was);
  EXPECT_EQ(here.value_or(""), "./tool");
  EXPECT_TRUE(usual) << "without a PATH the usual folders count";
  EXPECT_EQ(by_path.value_or(""), "./tool");
}

TEST(Spawn, ClosesWhatLiesBetweenBeforeAndBehindTheDescriptorsThatWereNamed) {
  const Fd null = open_file("/dev/null", O_RDONLY).value();
  std::vector<Fd> open;
  for (const int number : {150, 160, 170, 180, 190}) open.emplace_back(::fcntl(null.get(), F_DUPFD, number));
  SpawnOptions options;
  options.keep_fds = {open[3].get(), open[1].get()};
  const std::vector<std::string> lines = split_lines(output_of({"ls", "/proc/self/fd"}, options));
  const std::set<std::string> numbers(lines.begin(), lines.end());
  EXPECT_EQ(numbers, (std::set<std::string>{"0", "1", "2", "3", "160", "180"})) << "3 is the folder that ls reads";
}

}  // namespace
}  // namespace gridctl::os::process_test
