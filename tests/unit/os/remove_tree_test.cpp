// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include "os/files.hpp"
#include "support/results.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::os::remove_tree_test {
namespace {

using gridctl::testing::IsOk;
using gridctl::testing::TempDir;

TEST(RemoveTree, RemovesFilesFoldersAndLinksButNotWhatLinksPointTo) {
  const TempDir dir;
  std::filesystem::create_directories(dir / "tree/a/b");
  std::filesystem::create_directories(dir / "outside");
  ASSERT_THAT(write_file_atomically(dir / "outside/kept", "x"), IsOk());
  ASSERT_THAT(write_file_atomically(dir / "tree/a/b/file", "x"), IsOk());
  std::filesystem::create_symlink(dir / "outside", dir / "tree/a/link");
  EXPECT_THAT(remove_tree(dir / "tree"), IsOk());
  EXPECT_FALSE(os::exists(dir / "tree"));
  EXPECT_TRUE(os::exists(dir / "outside/kept"));
}

TEST(RemoveTree, OfALinkRemovesTheLink) {
  const TempDir dir;
  std::filesystem::create_directories(dir / "outside");
  std::filesystem::create_symlink("outside", dir / "link");
  EXPECT_THAT(remove_tree(dir / "link"), IsOk());
  EXPECT_FALSE(os::exists(dir / "link"));
  EXPECT_TRUE(os::exists(dir / "outside"));
}

TEST(RemoveTree, TakesMissingForSuccess) {
  const TempDir dir;
  EXPECT_THAT(remove_tree(dir / "none"), IsOk());
}

TEST(RemoveTree, TwoMayRemoveTheSameTreeAtOnce) {
  const TempDir dir;
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 50; ++i) {
      std::filesystem::create_directories(dir / "tree" / std::to_string(i) / "files");
      ASSERT_THAT(write_file_atomically(dir / "tree" / std::to_string(i) / "files/file", "x"), IsOk());
    }
    Result<void> other;
    std::thread thread([&] { other = remove_tree(dir / "tree"); });
    EXPECT_THAT(remove_tree(dir / "tree"), IsOk());
    thread.join();
    EXPECT_THAT(other, IsOk());
    EXPECT_FALSE(os::exists(dir / "tree"));
  }
}

TEST(RemoveTree, OpensFoldersThatForbidIt) {
  const TempDir dir;
  std::filesystem::create_directories(dir / "tree/closed/inner");
  ASSERT_THAT(write_file_atomically(dir / "tree/closed/inner/file", "x"), IsOk());
  for (const char* name : {"tree/closed/inner", "tree/closed", "tree"}) ::chmod((dir / name).c_str(), 0);
  EXPECT_THAT(remove_tree(dir / "tree"), IsOk());
  EXPECT_FALSE(os::exists(dir / "tree"));
}

TEST(RemoveTree, RemovesFoldersDeeperThanAnyPathMayBe) {
  const TempDir dir;
  Fd at = open_file(dir.path(), O_RDONLY | O_DIRECTORY).value();
  ASSERT_EQ(::mkdirat(at.get(), "tree", 0700), 0);
  at = Fd{::openat(at.get(), "tree", O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  const std::string name(30, 'd');
  for (int level = 0; level < 210; ++level) {
    ASSERT_EQ(::mkdirat(at.get(), name.c_str(), 0700), 0);
    at = Fd{::openat(at.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    ASSERT_TRUE(at.valid());
  }
  // With as few descriptors as a busy program has left.
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit few = before;
  few.rlim_cur = 256;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  EXPECT_THAT(remove_tree(dir / "tree"), IsOk());
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_FALSE(os::exists(dir / "tree"));
}

TEST(RemoveTree, OfAPipeOrASocketRemovesIt) {
  const TempDir dir;
  ASSERT_EQ(::mkfifo((dir / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(remove_tree(dir / "pipe"), IsOk());
  ASSERT_THAT(make_directories(dir / "tree"), IsOk());
  ASSERT_EQ(::mkfifo((dir / "tree/pipe").c_str(), 0600), 0);
  EXPECT_THAT(remove_tree(dir / "tree"), IsOk());
  EXPECT_FALSE(os::exists(dir / "pipe") || os::exists(dir / "tree"));
}

}  // namespace
}  // namespace gridctl::os::remove_tree_test
