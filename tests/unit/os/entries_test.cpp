// SPDX-License-Identifier: Apache-2.0
#include "os/entries.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>

#include "os/clock.hpp"
#include "os/files.hpp"
#include "os/large_buffer.hpp"
#include "support/results.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::os::entries_test {
namespace {

using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;
using gridctl::testing::TempDir;
using ::testing::HasSubstr;

class Entries : public ::testing::Test {
 protected:
  Entries() {
    EXPECT_TRUE(write_file_atomically(dir_ / "file", "0123456789", 0640));
    EXPECT_TRUE(make_directories(dir_ / "folder"));
    std::filesystem::create_symlink("file", dir_ / "link");
    EXPECT_EQ(::mkfifo((dir_ / "fifo").c_str(), 0600), 0);
    fd_ = open_file(dir_.path(), O_RDONLY | O_DIRECTORY).value();
  }
  TempDir dir_;
  Fd fd_;
};

TEST_F(Entries, AreListedSortedAndWithoutDots) {
  const std::vector<std::string> names{"fifo", "file", "folder", "link"};
  EXPECT_EQ(list_directory(dir_.path()).value(), names);
  EXPECT_EQ(list_directory(fd_.get()).value(), names);
  EXPECT_EQ(list_directory(fd_.get()).value(), names) << "from the beginning each time";
  EXPECT_TRUE(list_directory(dir_ / "folder")->empty());
}

TEST_F(Entries, WhatIsNoFolderCannotBeListed) {
  for (const char* name : {"file", "none", "link"}) {
    const auto listed = list_directory(dir_ / name);
    ASSERT_FALSE(listed) << name;
    EXPECT_THAT(listed.error().message, HasSubstr("'" + (dir_ / name).native() + "'"));
  }
  const Fd file = open_file(dir_ / "file", O_RDONLY).value();
  EXPECT_FALSE(list_directory(file.get()));
  EXPECT_FALSE(list_directory(-1));
}

TEST_F(Entries, HaveAStatus) {
  const FileStatus file = status_at(fd_.get(), "file")->value();
  EXPECT_EQ(file.kind, FileKind::regular);
  EXPECT_EQ(file.mode, 0640u);
  EXPECT_EQ(file.size, 10u);
  EXPECT_EQ(file.blocks_bytes % 512, 0u);
  EXPECT_GT(file.inode, 0u);
  EXPECT_EQ(status_at(fd_.get(), "folder")->value().kind, FileKind::directory);
  EXPECT_EQ(status_at(fd_.get(), "link")->value().kind, FileKind::symlink) << "not what it leads to";
  EXPECT_EQ(status_at(fd_.get(), "fifo")->value().kind, FileKind::other);
  EXPECT_EQ(status_of(dir_ / "file")->value(), file);
  const Fd opened = open_file(dir_ / "file", O_RDONLY).value();
  EXPECT_EQ(*status_of(opened.get()), file);
  EXPECT_TRUE(file.is_ours);
}

TEST_F(Entries, MissingIsNoErrorAndErrorsAreNotMissing) {
  EXPECT_EQ(status_at(fd_.get(), "none").value(), std::nullopt);
  EXPECT_EQ(status_of(dir_ / "none").value(), std::nullopt);
  const auto below = status_at(fd_.get(), "file/below");
  ASSERT_FALSE(below);
  EXPECT_THAT(below.error().message, HasSubstr("'file/below'"));
  EXPECT_FALSE(status_of(-1));
}

TEST_F(Entries, LinksAreMadeAndRead) {
  ASSERT_THAT(make_link_at(fd_.get(), "fresh", "some/where"), IsOk());
  EXPECT_EQ(read_link_at(fd_.get(), "fresh").value(), "some/where");
  EXPECT_EQ(read_link_at(fd_.get(), "link").value(), "file");
  EXPECT_THAT(make_link_at(fd_.get(), "fresh", "x").error().message, HasSubstr("'fresh'"));
  EXPECT_THAT(read_link_at(fd_.get(), "file").error().message, HasSubstr("'file'"));
  const std::string longest(4095, 'x');
  ASSERT_THAT(make_link_at(fd_.get(), "longest", longest), IsOk());
  EXPECT_EQ(read_link_at(fd_.get(), "longest").value(), longest);
}

TEST_F(Entries, AreLinkedRenamedAndRemoved) {
  ASSERT_THAT(link_file(dir_ / "file", dir_ / "second"), IsOk());
  EXPECT_EQ(status_of(dir_ / "second")->value().inode, status_of(dir_ / "file")->value().inode);
  EXPECT_FALSE(link_file(dir_ / "file", dir_ / "second")) << "it is there already";
  ASSERT_THAT(rename_path(dir_ / "second", dir_ / "third"), IsOk());
  EXPECT_FALSE(os::exists(dir_ / "second"));
  EXPECT_FALSE(rename_path(dir_ / "second", dir_ / "fourth"));
  ASSERT_THAT(remove_file(dir_ / "third"), IsOk());
  EXPECT_FALSE(os::exists(dir_ / "third"));
  EXPECT_THAT(remove_file(dir_ / "third"), IsOk());
  EXPECT_FALSE(remove_file(dir_ / "folder"));
}

TEST_F(Entries, AreTouched) {
  const std::array<timespec, 2> old{{{1000, 0}, {1000, 5}}};
  ASSERT_EQ(::utimensat(AT_FDCWD, (dir_ / "file").c_str(), old.data(), 0), 0);
  EXPECT_EQ(status_of(dir_ / "file")->value().mtime_ns, 1'000'000'000'005);
  EXPECT_TRUE(touch_file(dir_ / "link").value());
  EXPECT_EQ(status_of(dir_ / "file")->value().mtime_ns, 1'000'000'000'005) << "the link was touched, not the file";
  EXPECT_TRUE(touch_file(dir_ / "file").value());
  EXPECT_GT(status_of(dir_ / "file")->value().mtime_ns, 1'000'000'000'000'000'000);
  EXPECT_FALSE(touch_file(dir_ / "none").value());
  EXPECT_FALSE(touch_file(dir_ / "file/below").has_value());
}

TEST_F(Entries, AreWrittenAndReadInPlace) {
  const Fd file = open_file(dir_ / "file", O_RDWR).value();
  ASSERT_THAT(write_at(file.get(), as_bytes("abc"), 8), IsOk());
  EXPECT_EQ(read_file(dir_ / "file").value(), "01234567abc");
  std::array<std::byte, 4> buffer{};
  EXPECT_EQ(read_at(file.get(), buffer, 7).value(), 4u);
  EXPECT_EQ(as_text(buffer), "7abc");
  EXPECT_EQ(read_at(file.get(), buffer, 9).value(), 2u) << "the file ends";
  EXPECT_EQ(read_at(file.get(), buffer, 11).value(), 0u);
  ASSERT_THAT(set_size(file.get(), 3), IsOk());
  EXPECT_EQ(read_file(dir_ / "file").value(), "012");
  ASSERT_THAT(set_mode(file.get(), 0751), IsOk());
  EXPECT_EQ(status_of(file.get())->mode, 0751u);
  start_writing_back(file.get(), 0, 3);
  EXPECT_FALSE(write_at(-1, as_bytes("x"), 0));
  EXPECT_FALSE(read_at(-1, buffer, 0));
  EXPECT_FALSE(set_size(-1, 0));
  EXPECT_FALSE(set_mode(-1, 0600));
}

TEST_F(Entries, AFolderIsLockedByOne) {
  std::optional<DirectoryLock> first = DirectoryLock::try_acquire(dir_ / "folder").value();
  ASSERT_TRUE(first);
  EXPECT_FALSE(DirectoryLock::try_acquire(dir_ / "folder").value());
  first.reset();
  EXPECT_TRUE(DirectoryLock::try_acquire(dir_ / "folder").value());
  EXPECT_FALSE(DirectoryLock::try_acquire(dir_ / "file").has_value());
  EXPECT_THAT(DirectoryLock::try_acquire(dir_ / "none"), FailsWith(Code::not_found));
}

TEST(LargeBuffer, IsUsedAgainAndGrows) {
  LargeBuffer buffer;
  std::span<std::byte> first = buffer.take(10);
  ASSERT_EQ(first.size(), 10u);
  first[9] = std::byte{7};
  const std::span<std::byte> again = buffer.take(2u << 20);
  EXPECT_EQ(again.size(), 2u << 20);
  EXPECT_EQ(again.data(), first.data()) << "a page of 2 MiB is the least";
  EXPECT_EQ(again[9], std::byte{7});
  const std::span<std::byte> larger = buffer.take((2u << 20) + 1);
  ASSERT_EQ(larger.size(), (2u << 20) + 1);
  larger.back() = std::byte{1};
  EXPECT_EQ(buffer.take((2u << 20) + 1).data(), larger.data());
  EXPECT_EQ(buffer.take(4u << 20).data(), larger.data());
}

}  // namespace
}  // namespace gridctl::os::entries_test
