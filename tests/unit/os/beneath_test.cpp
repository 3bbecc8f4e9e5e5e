// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/stat.h>

#include "os/files.hpp"
#include "support/results.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::os::beneath_test {
namespace {

using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;
using gridctl::testing::TempDir;

class Beneath : public ::testing::Test {
 protected:
  Beneath() {
    std::filesystem::create_directories(dir_ / "root/a/b");
    std::filesystem::create_directories(dir_ / "outside");
    EXPECT_TRUE(write_file_atomically(dir_ / "outside/secret", "secret"));
    EXPECT_TRUE(write_file_atomically(dir_ / "root/a/file", "inside"));
    std::filesystem::create_symlink("../../outside", dir_ / "root/a/link");
    std::filesystem::create_symlink(dir_ / "outside/secret", dir_ / "root/direct");
    std::filesystem::create_symlink("file", dir_ / "root/a/harmless");
    root_ = open_file(dir_ / "root", O_RDONLY | O_DIRECTORY).value();
  }
  TempDir dir_;
  Fd root_;
};

TEST_F(Beneath, OpensWhatLiesInside) {
  EXPECT_THAT(open_beneath(root_.get(), "a/file", O_RDONLY), IsOk());
  EXPECT_THAT(open_beneath(root_.get(), "a//./file", O_RDONLY), IsOk());
  EXPECT_THAT(open_beneath(root_.get(), ".", O_RDONLY | O_DIRECTORY), IsOk());
}

TEST_F(Beneath, RefusesEveryWayOut) {
  for (const std::string_view path : {"../outside/secret", "a/../../outside/secret", "..", "a/..", "/etc/passwd", "",
                                      "a/link/secret", "direct", "a/harmless", "a/link"})
    EXPECT_THAT(open_beneath(root_.get(), path, O_RDONLY), FailsWith(Code::protocol_violation)) << path;
  EXPECT_THAT(open_beneath(root_.get(), std::string_view("a/file\0x", 8), O_RDONLY),
              FailsWith(Code::protocol_violation));
  EXPECT_THAT(open_beneath(root_.get(), std::string(5000, 'a'), O_RDONLY), FailsWith(Code::protocol_violation));
}

TEST_F(Beneath, CreatesFilesAndNeverThroughALink) {
  std::filesystem::create_symlink("../outside/new", dir_ / "root/dangling");
  EXPECT_THAT(open_beneath(root_.get(), "a/new", O_WRONLY | O_CREAT | O_EXCL, 0644), IsOk());
  EXPECT_THAT(open_beneath(root_.get(), "a/new", O_WRONLY | O_CREAT | O_EXCL), FailsWith(Code::exists));
  EXPECT_THAT(open_beneath(root_.get(), "dangling", O_WRONLY | O_CREAT), FailsWith(Code::protocol_violation));
  EXPECT_FALSE(os::exists(dir_ / "outside/new"));
}

TEST_F(Beneath, TellsMissingFromForbidden) {
  EXPECT_THAT(open_beneath(root_.get(), "a/none", O_RDONLY), FailsWith(Code::not_found));
  EXPECT_THAT(open_beneath(root_.get(), "a/file/below", O_RDONLY), FailsWith(Code::not_found));
}

TEST_F(Beneath, MakesDirectoriesAndRefusesLinksOnTheWay) {
  EXPECT_THAT(make_directories_beneath(root_.get(), "x/y/z"), IsOk());
  EXPECT_THAT(make_directories_beneath(root_.get(), "x/y/z"), IsOk());
  EXPECT_TRUE(std::filesystem::is_directory(dir_ / "root/x/y/z"));
  EXPECT_THAT(make_directories_beneath(root_.get(), "a/link/new"), FailsWith(Code::protocol_violation));
  EXPECT_THAT(make_directories_beneath(root_.get(), "../new"), FailsWith(Code::protocol_violation));
  EXPECT_FALSE(make_directories_beneath(root_.get(), "a/file/new"));
  EXPECT_FALSE(os::exists(dir_ / "outside/new"));
}

TEST_F(Beneath, APathIsAsLongAsTheKernelAllows) {
  std::string longest;
  while (longest.size() < 4094) longest += "./";
  longest += ".";
  ASSERT_EQ(longest.size(), 4095u);
  EXPECT_THAT(open_beneath(root_.get(), longest, O_RDONLY | O_DIRECTORY), IsOk());
  const auto longer = open_beneath(root_.get(), longest + "/", O_RDONLY | O_DIRECTORY);
  ASSERT_THAT(longer, FailsWith(Code::protocol_violation));
  EXPECT_NE(longer.error().message.find("too long"), std::string::npos);
  EXPECT_LT(longer.error().message.size(), 400u);
}

TEST_F(Beneath, DotsAndEmptyPartsChangeNothing) {
  EXPECT_THAT(open_beneath_by_walk(root_.get(), "a//./file", O_RDONLY), IsOk());
  EXPECT_THAT(open_beneath_by_walk(root_.get(), "./a/b/", O_RDONLY | O_DIRECTORY), IsOk());
  EXPECT_THAT(open_beneath_by_walk(root_.get(), ".", O_RDONLY | O_DIRECTORY), IsOk());
  ASSERT_THAT(make_directories_beneath(root_.get(), "p/./q//r/", 0750), IsOk());
  EXPECT_TRUE(std::filesystem::is_directory(dir_ / "root/p/q/r"));
  EXPECT_EQ(std::filesystem::status(dir_ / "root/p/q").permissions(), std::filesystem::perms{0750});
  EXPECT_THAT(make_directories_beneath(root_.get(), "."), IsOk());
  EXPECT_THAT(make_directories_beneath(root_.get(), ""), FailsWith(Code::protocol_violation));
}

TEST_F(Beneath, WhatIsMadeHasItsModeAndWhatIsOpenedIsNotPassedOn) {
  for (const char* name : {"made", "walked"}) {
    const Result<Fd> fd = std::string_view(name) == "made"
                              ? open_beneath(root_.get(), name, O_WRONLY | O_CREAT, 0640)
                              : open_beneath_by_walk(root_.get(), name, O_WRONLY | O_CREAT, 0640);
    ASSERT_THAT(fd, IsOk());
    EXPECT_NE(::fcntl(fd->get(), F_GETFD) & FD_CLOEXEC, 0) << name;
    EXPECT_EQ(std::filesystem::status(dir_ / "root" / name).permissions(), std::filesystem::perms{0640}) << name;
  }
}

TEST_F(Beneath, TheWalkTellsALinkFromAFileOnTheWay) {
  EXPECT_THAT(open_beneath_by_walk(root_.get(), "a/link/secret", O_RDONLY), FailsWith(Code::protocol_violation));
  EXPECT_THAT(open_beneath_by_walk(root_.get(), "a/file/below", O_RDONLY), FailsWith(Code::not_found));
  EXPECT_THAT(open_beneath_by_walk(root_.get(), "none/below", O_RDONLY), FailsWith(Code::not_found));
}

TEST_F(Beneath, TheWalkForOldKernelsRefusesTheSame) {
  EXPECT_THAT(open_beneath_by_walk(root_.get(), "a/file", O_RDONLY), IsOk());
  EXPECT_THAT(open_beneath_by_walk(root_.get(), "a/none", O_RDONLY), FailsWith(Code::not_found));
  for (const std::string_view path : {"../outside/secret", "a/link/secret", "direct", "a/harmless"})
    EXPECT_THAT(open_beneath_by_walk(root_.get(), path, O_RDONLY), FailsWith(Code::protocol_violation)) << path;
}

}  // namespace
}  // namespace gridctl::os::beneath_test
