// SPDX-License-Identifier: Apache-2.0
#include "os/files.hpp"

#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "os/clock.hpp"
#include "support/results.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::os::files_test {
namespace {

using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;
using gridctl::testing::TempDir;

unsigned mode_of(const Path& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 ? info.st_mode & 07777 : 0;
}

TEST(Files, ReadsBackWhatWasWrittenDurably) {
  const TempDir dir;
  const std::string content("a\0b\n", 4);
  ASSERT_THAT(write_file_durably(dir / "f", content, 0640), IsOk());
  const Result<std::string> back = read_file(dir / "f");
  ASSERT_THAT(back, IsOk());
  EXPECT_EQ(*back, content);
  EXPECT_EQ(mode_of(dir / "f"), 0640u);
}

TEST(Files, ADurableWriteReplacesWholeAndLeavesNoTemporaryBehind) {
  const TempDir dir;
  ASSERT_THAT(write_file_durably(dir / "f", std::string(100000, 'x')), IsOk());
  ASSERT_THAT(write_file_durably(dir / "f", "short"), IsOk());
  EXPECT_EQ(*read_file(dir / "f"), "short");
  std::size_t entries = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(dir.path())) ++entries;
  EXPECT_EQ(entries, 1u);
}

TEST(Files, AFailedWriteLeavesTheOldContentAndNoTemporary) {
  const TempDir dir;
  std::filesystem::create_directories(dir / "f" / "not empty");
  EXPECT_FALSE(write_file_durably(dir / "f", "new"));
  std::size_t entries = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(dir.path())) ++entries;
  EXPECT_EQ(entries, 1u);
}

TEST(Files, WritesIntoTheCurrentDirectory) {
  const TempDir dir;
  const Path before = std::filesystem::current_path();
  std::filesystem::current_path(dir.path());
  EXPECT_THAT(write_file_durably("plain", "x"), IsOk());
  std::filesystem::current_path(before);
  EXPECT_EQ(*read_file(dir / "plain"), "x");
}

TEST(Files, AMissingFileIsNotFound) {
  const TempDir dir;
  EXPECT_THAT(read_file(dir / "none"), FailsWith(Code::not_found));
  EXPECT_FALSE(os::exists(dir / "none"));
}

TEST(Files, RefusesToReadMoreThanTheLimit) {
  const TempDir dir;
  ASSERT_THAT(write_file_atomically(dir / "f", std::string(5000, 'x')), IsOk());
  EXPECT_THAT(read_file(dir / "f", 4999), FailsWith(Code::io));
  EXPECT_THAT(read_file(dir / "f", 5000), IsOk());
}

TEST(Files, ReadsProcWhichTellsNoSize) { EXPECT_FALSE(read_file("/proc/self/stat").value_or("").empty()); }

TEST(Files, ADanglingLinkExists) {
  const TempDir dir;
  std::filesystem::create_symlink("nowhere", dir / "link");
  EXPECT_TRUE(os::exists(dir / "link"));
}

TEST(Files, MakesDirectoriesAndAcceptsThoseThatAreThere) {
  const TempDir dir;
  EXPECT_THAT(make_directories(dir / "a/b/c"), IsOk());
  EXPECT_THAT(make_directories(dir / "a/b/c"), IsOk());
  EXPECT_EQ(mode_of(dir / "a/b"), 0700u);
  ASSERT_THAT(write_file_atomically(dir / "file", ""), IsOk());
  EXPECT_THAT(make_directories(dir / "file"), FailsWith(Code::exists));
  EXPECT_FALSE(make_directories(dir / "file/below"));
}

TEST(Files, ReadsExactlyOrNotAtAll) {
  const TempDir dir;
  ASSERT_THAT(write_file_atomically(dir / "f", "0123456789"), IsOk());
  const Fd fd = open_file(dir / "f", O_RDONLY).value();
  std::array<std::byte, 4> buffer{};
  ASSERT_THAT(read_exactly(fd.get(), buffer.data(), 4, 6), IsOk());
  EXPECT_EQ(as_text(buffer), "6789");
  EXPECT_THAT(read_exactly(fd.get(), buffer.data(), 4, 7), FailsWith(Code::io));
}

TEST(Files, ClonesContent) {
  const TempDir dir;
  std::string content;
  for (unsigned i = 0; i < 300000; ++i) content += static_cast<char>(i * 7919 >> 3);
  ASSERT_THAT(write_file_atomically(dir / "from", content), IsOk());
  const Fd from = open_file(dir / "from", O_RDONLY).value();
  const Fd to = open_file(dir / "to", O_WRONLY | O_CREAT).value();
  ASSERT_THAT(clone_file(from.get(), to.get()), IsOk());
  EXPECT_EQ(*read_file(dir / "to"), content);
}

TEST(Files, ClonesAcrossFileSystemsByReadingAndWriting) {
  const TempDir dir;
  const Fd from = open_file("/proc/self/mounts", O_RDONLY).value();
  const Fd to = open_file(dir / "to", O_WRONLY | O_CREAT).value();
  ASSERT_THAT(clone_file(from.get(), to.get()), IsOk());
  EXPECT_EQ(*read_file(dir / "to"), *read_file("/proc/self/mounts"));
}

TEST(Files, AFullDeviceIsNoSpace) {
  const Fd full = open_file("/dev/full", O_WRONLY).value();
  EXPECT_THAT(write_all(full.get(), as_bytes("x")), FailsWith(Code::no_space));
}

TEST(Files, DescriptorsAreClosedOnExecAndMoveOnce) {
  Fd fd = open_file("/dev/null", O_RDONLY).value();
  EXPECT_NE(::fcntl(fd.get(), F_GETFD) & FD_CLOEXEC, 0);
  const int number = fd.get();
  Fd other = std::move(fd);
  EXPECT_EQ(other.get(), number);
  other.reset();
  EXPECT_EQ(::fcntl(number, F_GETFD), -1);
}

TEST(Files, KnowsKindsOfFileSystemsAlsoForPathsThatAreNotThereYet) {
  EXPECT_EQ(file_system_kind("/dev/shm"), "tmpfs");
  EXPECT_EQ(file_system_kind("/dev/shm/not/there/yet"), "tmpfs");
  EXPECT_NE(file_system_kind("relative-and-missing"), "");
}

TEST(Files, TellsFreeSpaceAndOurOwnPath) {
  EXPECT_GT(free_bytes("/tmp").value_or(0), 0u);
  EXPECT_EQ(executable_path().value_or("").filename(), "os_test");
}

TEST(Files, ADescriptorThatIsNoneIsAnErrorOfEachCall) {
  std::byte byte{};
  EXPECT_THAT(read_exactly(-1, &byte, 1, 0), FailsWith(Code::io));
  EXPECT_THAT(write_all(-1, as_bytes("x")), FailsWith(Code::io));
  EXPECT_THAT(sync_fd(-1), FailsWith(Code::io));
  EXPECT_THAT(sync_file_system(-1), FailsWith(Code::io));
  EXPECT_THAT(read_exactly(-1, &byte, 0, 0), IsOk()) << "nothing is asked of it";
  EXPECT_THAT(write_all(-1, {}), IsOk());
}

TEST(Files, MemoryThatIsAFileIsReadBackAndNotPassedOn) {
  const Result<Fd> memory = open_memory();
  ASSERT_THAT(memory, IsOk());
  ASSERT_THAT(write_all(memory->get(), as_bytes("kept")), IsOk());
  std::array<std::byte, 4> got{};
  ASSERT_THAT(read_exactly(memory->get(), got.data(), got.size(), 0), IsOk());
  EXPECT_EQ(as_text(got), "kept");
  EXPECT_NE(::fcntl(memory->get(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST(Files, WhatIsBelowAFileDoesNotExist) {
  const TempDir dir;
  ASSERT_THAT(write_file_atomically(dir / "file", "x"), IsOk());
  EXPECT_TRUE(os::exists(dir / "file"));
  EXPECT_FALSE(os::exists(dir / "file/below"));
  EXPECT_FALSE(os::exists(dir / "none"));
}

TEST(Files, HaveTheModeThatIsAskedForWhateverTheUsersMask) {
  const TempDir dir;
  const mode_t before = ::umask(077);
  const auto durable = write_file_durably(dir / "durable", "x", 0644);
  const auto plain = write_file_atomically(dir / "plain", "x", 0751);
  const auto usual = write_file_atomically(dir / "usual", "x");
  ::umask(before);
  ASSERT_TRUE(durable && plain && usual);
  EXPECT_EQ(mode_of(dir / "durable"), 0644u);
  EXPECT_EQ(mode_of(dir / "plain"), 0751u);
  EXPECT_EQ(mode_of(dir / "usual"), 0600u);
}

TEST(Files, AnExistingOneIsSaidToExist) {
  const TempDir dir;
  ASSERT_THAT(write_file_atomically(dir / "f", "x"), IsOk());
  const auto again = open_file(dir / "f", O_WRONLY | O_CREAT | O_EXCL);
  ASSERT_THAT(again, FailsWith(Code::exists));
  EXPECT_NE(again.error().message.find("cannot open '" + (dir / "f").native() + "'"), std::string::npos);
  EXPECT_THAT(open_file(dir / "f/below", O_RDONLY), FailsWith(Code::not_found));
}

TEST(Files, ADescriptorMovedToItselfStaysOpen) {
  Fd fd = open_file("/dev/null", O_RDONLY).value();
  Fd& same = fd;
  fd = std::move(same);
  ASSERT_TRUE(fd.valid());
  EXPECT_NE(::fcntl(fd.get(), F_GETFD), -1);
  const int old = fd.get();
  fd = open_file("/dev/zero", O_RDONLY).value();
  EXPECT_NE(fd.get(), old);
  EXPECT_EQ(::fcntl(old, F_GETFD), -1) << "what it held before is closed";
}

TEST(Files, AreWaitedForUntilADeadline) {
  const auto ends = make_pipe().value();
  EXPECT_FALSE(wait_ready(ends.first.get(), true, false, std::chrono::milliseconds{5}).value());
  EXPECT_FALSE(wait_ready(ends.first.get(), true, false, Duration{-1}).value());
  EXPECT_TRUE(wait_ready(ends.second.get(), false, true, Duration{0}).value());
  EXPECT_FALSE(wait_ready(ends.second.get(), true, false, Duration{0}).value());
  ASSERT_THAT(write_all(ends.second.get(), as_bytes("x")), IsOk());
  EXPECT_TRUE(wait_ready(ends.first.get(), true, false, std::chrono::seconds{10}).value());
  const BootTime began = system_clock().boot();
  EXPECT_FALSE(wait_ready(ends.first.get(), false, false, std::chrono::milliseconds{30}).value());
  EXPECT_GE(system_clock().boot() - began, std::chrono::milliseconds{30}) << "never early";
}

TEST(Files, AreReadWhateverTheirSizeSays) {
  const TempDir dir;
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{4096}, std::size_t{8192}, std::size_t{100'001}}) {
    const std::string content(size, 'x');
    ASSERT_THAT(write_file_atomically(dir / "f", content), IsOk());
    EXPECT_EQ(read_file(dir / "f", size).value_or("?"), content) << size;
    if (size > 0) {
      EXPECT_FALSE(read_file(dir / "f", size - 1)) << size;
    }
  }
  EXPECT_FALSE(read_file(dir.path())) << "a folder";
}

TEST(Environment, TellsWhatIsSet) {
  ::setenv("GRIDCTL_UNIT_WORD", "", 1);
  EXPECT_EQ(environment("GRIDCTL_UNIT_WORD"), "");
  ::unsetenv("GRIDCTL_UNIT_WORD");
  EXPECT_EQ(environment("GRIDCTL_UNIT_WORD"), std::nullopt);
}

TEST(Environment, FindsTheHomeWithoutTheVariableToo) {
  const std::optional<std::string> before = environment("HOME");
  ::setenv("HOME", "/some/where", 1);
  EXPECT_EQ(home_directory(), "/some/where");
  const passwd* const entry = ::getpwuid(::getuid());
  const Path listed = entry != nullptr ? entry->pw_dir : "/";
  ::setenv("HOME", "", 1);
  EXPECT_EQ(home_directory(), listed);
  ::unsetenv("HOME");
  EXPECT_EQ(home_directory(), listed);
  if (::geteuid() == 0) {  // a user whom no line names
    const pid_t child = ::fork();
    if (child == 0) ::_exit(::setuid(61'240) == 0 && home_directory() == "/" ? 0 : 1);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  if (before) ::setenv("HOME", before->c_str(), 1);
}

TEST(Environment, KnowsWhereTemporaryFilesGo) {
  const std::optional<std::string> before = environment("TMPDIR");
  ::setenv("TMPDIR", "/my/tmp", 1);
  EXPECT_EQ(temporary_directory(), "/my/tmp");
  ::setenv("TMPDIR", "", 1);
  EXPECT_EQ(temporary_directory(), "/tmp");
  ::unsetenv("TMPDIR");
  EXPECT_EQ(temporary_directory(), "/tmp");
  if (before) ::setenv("TMPDIR", before->c_str(), 1);
}

TEST(Files, TellsTheSpaceOfTheWholeFileSystem) {
  const Result<DiskSpace> space = disk_space("/");
  ASSERT_THAT(space, IsOk());
  EXPECT_GT(space->total, 0u);
  EXPECT_LE(space->free, space->total);
  EXPECT_THAT(disk_space("/no/such/folder"), FailsWith(Code::not_found));
  EXPECT_THAT(sync_directory("/no/such/folder"), FailsWith(Code::not_found));
}

}  // namespace
}  // namespace gridctl::os::files_test
