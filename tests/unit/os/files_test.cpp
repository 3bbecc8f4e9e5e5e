// SPDX-License-Identifier: Apache-2.0
#include "os/files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/results.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::os {
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

TEST(Files, TellsTheSpaceOfTheWholeFileSystem) {
  const Result<DiskSpace> space = disk_space("/");
  ASSERT_THAT(space, IsOk());
  EXPECT_GT(space->total, 0u);
  EXPECT_LE(space->free, space->total);
  EXPECT_THAT(disk_space("/no/such/folder"), FailsWith(Code::not_found));
  EXPECT_THAT(sync_directory("/no/such/folder"), FailsWith(Code::not_found));
}

}  // namespace
}  // namespace gridctl::os
