// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <fstream>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/log_ring.hpp"
#include "base/bytes.hpp"
#include "support/results.hpp"
#include "support/temp_dir.hpp"
#include "unit/store/fixtures.hpp"

namespace gridctl::agent::log_ring_test {
namespace {

constexpr std::uint64_t k_ring = 64 * 1024;
using namespace std::chrono_literals;
using gridctl::testing::IsOk;
using gridctl::testing::TempDir;
BootTime at(std::int64_t s) { return {s * 1'000'000'000}; }

TEST(LogRing, GoesOnWhereAnotherStopped) {
  const gridctl::testing::TempDir folder;
  {
    auto ring = LogRing::open(folder.path(), k_ring);
    ring->append("one\n", BootTime{1});
  }
  auto ring = LogRing::open(folder.path(), k_ring);
  ring->append("two\n", BootTime{2});
  EXPECT_EQ(ring->end(), 8u);
  EXPECT_EQ(read_log(folder.path(), 0, 100)->bytes, "one\ntwo\n");
  EXPECT_EQ(read_log(folder.path(), 5, 2)->bytes, "wo");
}

TEST(LogRing, TakesAFileAsItsNextPiece) {
  const gridctl::testing::TempDir folder, run;
  const os::Path file = run / "rest";
  auto ring = LogRing::open(folder.path(), k_ring);
  ring->append("one\n", BootTime{1});
  std::ofstream(file) << "two\n";
  EXPECT_THAT(ring->take_file(file, 4), gridctl::testing::IsOk());
  EXPECT_FALSE(os::exists(file));
  EXPECT_THAT(ring->take_file(file, 4), gridctl::testing::IsOk());  // as by a supervisor whose predecessor had just done it
  ring->append("three\n", BootTime{2});
  EXPECT_EQ(read_log(folder.path(), 0, 100)->bytes, "one\ntwo\nthree\n");
  EXPECT_EQ(LogRing::open(folder.path(), k_ring)->end(), ring->end());
}

TEST(LogRing, TakesNoFileThatAJobMayHavePutThere) {
  const gridctl::testing::TempDir folder, run;
  const os::Path file = run / "rest";
  auto ring = LogRing::open(folder.path(), k_ring);
  std::ofstream(run / "secret") << "key";
  std::filesystem::create_symlink(run / "secret", file);
  EXPECT_THAT(ring->take_file(file, 4), gridctl::testing::FailsWith(Code::refused));
  std::filesystem::create_directories(file / "x");
  EXPECT_THAT(ring->take_file(file, 4), gridctl::testing::FailsWith(Code::refused));
  std::ofstream(file) << "large";
  EXPECT_THAT(ring->take_file(file, 4), gridctl::testing::FailsWith(Code::refused));
  EXPECT_FALSE(os::exists(file));
  EXPECT_EQ(ring->end(), 0u);
  EXPECT_TRUE(os::exists(run / "secret"));
}

TEST(LogRing, ForgetsTheOldestAndTellsWhereItBegins) {
  const gridctl::testing::TempDir folder;
  auto ring = LogRing::open(folder.path(), k_ring);
  const std::string line(1023, 'x');
  for (std::int64_t i = 1; i <= 200; ++i) ring->append(line + "\n", BootTime{i * 1'000'000'000});
  EXPECT_EQ(ring->end(), 200u * 1024);
  const auto slice = read_log(folder.path(), 0, 1u << 20);
  EXPECT_GT(slice->offset, 100u * 1024);
  EXPECT_EQ(slice->offset + slice->bytes.size(), slice->end_offset);
  EXPECT_LE(slice->bytes.size(), k_ring);
}

TEST(LogRing, TakesWhatWaitsInAPipe) {
  const gridctl::testing::TempDir folder;
  auto ring = LogRing::open(folder.path(), k_ring);
  auto pipe = os::make_pipe();
  ASSERT_THAT(pipe, gridctl::testing::IsOk());
  EXPECT_FALSE(ring->take(pipe->first.get(), BootTime{1}));
  std::string all;
  for (int i = 0; i < 40; ++i) {  // over several pieces
    const std::string some = std::to_string(i) + std::string(1000, static_cast<char>('a' + i % 26)) + "\n";
    ASSERT_THAT(os::write_all(pipe->second.get(), as_bytes(some)), gridctl::testing::IsOk());
    all += some;
    if (i % 3 == 0)
      while (ring->take(pipe->first.get(), BootTime{1})) continue;
  }
  while (ring->take(pipe->first.get(), BootTime{1})) continue;
  EXPECT_EQ(ring->end(), all.size());
  EXPECT_EQ(read_log(folder.path(), 0, 1u << 20)->bytes, all);
}

TEST(LogRing, CountsWhatComesTooFastThroughAPipe) {
  const gridctl::testing::TempDir folder;
  auto ring = LogRing::open(folder.path(), k_ring);
  auto pipe = os::make_pipe();
  ASSERT_THAT(pipe, gridctl::testing::IsOk());
  ring->append(std::string(k_ring, 'a'), BootTime{1});
  ASSERT_THAT(os::write_all(pipe->second.get(), as_bytes(std::string(1000, 'b'))), gridctl::testing::IsOk());
  EXPECT_TRUE(ring->take(pipe->first.get(), BootTime{1}));
  ring->finish();
  EXPECT_NE(read_log(folder.path(), 0, 1u << 20)->bytes.find("[gridctl: 1000 bytes of output dropped]"),
            std::string::npos);
}

TEST(LogRing, CountsWhatComesTooFast) {
  const gridctl::testing::TempDir folder;
  auto ring = LogRing::open(folder.path(), k_ring);
  ring->append(std::string(k_ring, 'a'), BootTime{1});
  ring->append(std::string(1000, 'b'), BootTime{1});
  ring->finish();
  const auto slice = read_log(folder.path(), 0, 1u << 20);
  EXPECT_NE(slice->bytes.find("[gridctl: 1000 bytes of output dropped]"), std::string::npos);
  EXPECT_EQ(slice->bytes.find('b' + std::string("bb")), std::string::npos);
}

// A file system of 128 KiB of our own, in a child: 0 when what a full one took away was told once it had room again.
int lose_output_on_a_full_disk(const std::string& folder) {
  const unsigned space = ::geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWNS | CLONE_NEWUSER;
  if (::unshare(space) != 0 || ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      ::mount("small", folder.c_str(), "tmpfs", 0, "size=128k") != 0)
    return 77;
  const std::string filler = folder + "/filler";
  auto ring = LogRing::open(folder + "/log", 1u << 20);
  ring->append("before\n", BootTime{1});
  std::ofstream(filler) << std::string(1u << 20, 'x');
  ring->append(std::string(200'000, 'y'), BootTime{2});
  if (ring->finish()) return 1;
  const std::uint64_t kept = ring->end() - 7;
  ::unlink(filler.c_str());
  ring->append("after\n", BootTime{3});
  if (!ring->finish()) return 2;
  const std::string text = read_log(folder + "/log", 0, 1u << 20)->bytes;
  const std::string notice =
      "\n[gridctl: " + std::to_string(200'000 - kept) + " bytes of output lost: the host's disk was full]\n";
  const std::string wanted = "before\n" + std::string(kept, 'y') + notice + "after\n";
  return text == wanted ? 0 : 3;
}

TEST(LogRing, TellsWhatAFullDiskTookAway) {
  const gridctl::testing::TempDir folder;
  const pid_t child = ::fork();
  if (child == 0) ::_exit(lose_output_on_a_full_disk(folder.path().string()));
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "no file system of our own may be mounted here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(LogRing, AnswersAnOffsetBehindTheEndWithNothing) {
  const gridctl::testing::TempDir folder;
  auto ring = LogRing::open(folder.path(), k_ring);
  ring->append("abc", BootTime{1});
  const auto slice = read_log(folder.path(), 99, 10);
  EXPECT_EQ(slice->offset, 3u);
  EXPECT_TRUE(slice->bytes.empty());
}

TEST(OutputRing, TakesAgainWhatItMayWhenTimeHasPassed) {
  const TempDir dir;
  auto ring = LogRing::open(dir.path(), 64 * 1024);
  ASSERT_THAT(ring, IsOk());
  ring->append(std::string(64 * 1024, 'a'), at(1));
  EXPECT_EQ(ring->end(), 64u * 1024) << "a burst of one ring";
  ring->append("lost", at(1));
  EXPECT_EQ(ring->end(), 64u * 1024);
  ring->append("found", at(2));
  const auto end = read_log(dir.path(), 64 * 1024, 1000);
  EXPECT_EQ(end->bytes, "\n[gridctl: 4 bytes of output dropped]\nfound");
}

TEST(OutputRing, IsAtLeastSixtyFourKibibytes) {
  const TempDir dir;
  auto ring = LogRing::open(dir.path(), 1);
  ring->append(std::string(64 * 1024, 'a'), at(1));
  EXPECT_EQ(ring->end(), 64u * 1024);
}

TEST(OutputRing, IsReadFromWhereItBegins) {
  const TempDir dir;
  EXPECT_EQ(read_log(dir.path(), 5, 10)->bytes, "");
  EXPECT_EQ(log_end(dir.path()), 0u);
  std::ofstream(dir / "00000000000000000010") << "abcde";
  std::ofstream(dir / "00000000000000000015") << "fgh";
  std::ofstream(dir / "00000000000000000030") << "xyz";
  std::ofstream(dir / "notes") << "no piece";
  EXPECT_EQ(log_end(dir.path()), 33u);
  const auto slice = [&](std::uint64_t offset, std::uint32_t bytes) {
    const auto read = read_log(dir.path(), offset, bytes);
    return std::to_string(read->offset) + ":" + read->bytes;
  };
  EXPECT_EQ(slice(0, 3), "10:abc");
  EXPECT_EQ(slice(12, 4), "12:cdef");
  EXPECT_EQ(slice(15, 100), "15:fgh") << "a gap: the next request begins behind it";
  EXPECT_EQ(slice(18, 100), "30:xyz");
  EXPECT_EQ(slice(20, 2), "30:xy");
  EXPECT_EQ(slice(99, 2), "33:");
  EXPECT_EQ(read_log(dir.path(), 0, 1)->end_offset, 33u);
}

}  // namespace
}  // namespace gridctl::agent::log_ring_test
