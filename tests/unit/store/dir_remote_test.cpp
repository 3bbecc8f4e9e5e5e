// SPDX-License-Identifier: Apache-2.0
#include "store/dir_remote.hpp"

#include "store/remote.hpp"
#include "support/results.hpp"
#include "unit/store/fixtures.hpp"

namespace gridctl::store::dir_remote_test {
namespace {

using namespace testing;
using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;
namespace fs = std::filesystem;

class DirRemote : public ::testing::Test {
 protected:
  std::unique_ptr<Backend> marked() { return open_dir_remote(dir.path(), k_mark_name); }
  std::unique_ptr<Backend> any() { return open_dir_remote(dir.path(), ""); }
  Folder dir;
};

TEST_F(DirRemote, WithoutItsMarkIsNotThereRatherThanEmpty) {
  write(dir / "packs/a", "x");
  for (int i = 0; i < 2; ++i) {  // first without the mark, then without the directory
    const auto remote = marked();
    EXPECT_THAT(remote->list(""), FailsWith(Code::host_unreachable));
    EXPECT_THAT(remote->read("packs/a", 0, 1), FailsWith(Code::host_unreachable));
    EXPECT_THAT(remote->put("packs/b", 1, reader_over("x")), FailsWith(Code::host_unreachable));
    EXPECT_THAT(remote->put_new("packs/b", as_bytes("x")), FailsWith(Code::host_unreachable));
    EXPECT_THAT(remote->remove("packs/a"), FailsWith(Code::host_unreachable));
    EXPECT_FALSE(fs::exists(dir / "packs/b"));
    fs::remove_all(dir.path());
  }
  EXPECT_FALSE(fs::exists(dir.path()));  // what is not mounted is not made
}

TEST_F(DirRemote, FollowsNoLinks) {
  Folder outside;
  write(outside / "secret", "x");
  fs::create_directory_symlink(outside.path(), dir / "packs");
  fs::create_symlink(outside / "secret", dir / "link");
  const auto remote = any();
  EXPECT_FALSE(remote->read("packs/secret", 0, 1));
  EXPECT_FALSE(remote->read("link", 0, 1));
  EXPECT_FALSE(remote->put("packs/b", 1, reader_over("x")));
  EXPECT_FALSE(fs::exists(outside / "b"));
  EXPECT_THAT(*remote->list(""), ::testing::IsEmpty());
}

TEST_F(DirRemote, ListsNeitherUnfinishedNorForeignThings) {
  write(dir / ".tmp/x.part", "half");
  write(dir / "lost+found/y", "z");
  write(dir / "packs/.hidden", "z");
  write(dir / "packs/a", "abc");
  EXPECT_THAT(*any()->list(""), ::testing::ElementsAre(Object{"packs/a", 3}));
}

TEST_F(DirRemote, DoesNotWaitForAPipe) {
  ASSERT_EQ(std::system(("mkfifo " + (dir / "a").native()).c_str()), 0);
  EXPECT_THAT(any()->read("a", 0, 1), FailsWith(Code::protocol_violation));
}

TEST_F(DirRemote, SweepsWhatWasLeftUnfinishedADayAgo) {
  write(dir / ".tmp/old.part", "half");
  write(dir / ".tmp/new.part", "half");
  fs::last_write_time(dir / ".tmp/old.part", fs::file_time_type::clock::now() - std::chrono::hours(25));
  ASSERT_THAT(any()->put("packs/a", 1, reader_over("x")), IsOk());
  EXPECT_FALSE(fs::exists(dir / ".tmp/old.part"));
  EXPECT_TRUE(fs::exists(dir / ".tmp/new.part"));
}

TEST_F(DirRemote, CanBeTried) {
  const auto remote = any();
  ASSERT_THAT(try_remote(*remote), IsOk());
  EXPECT_THAT(*remote->list(""), ::testing::IsEmpty());
}

TEST(RemoteMark, ComesBackAndIsReadStrictly) {
  const RemoteMark mark{StoreKey(digest_of("one")).id(), {"abcdef23"}};
  const auto back = parse_mark(to_text(mark));
  ASSERT_THAT(back, IsOk());
  EXPECT_EQ(*back, mark);
  const std::string text = to_text(mark);
  for (std::size_t i = 0; i + 12 < text.size(); ++i) EXPECT_FALSE(parse_mark(text.substr(0, i))) << i;
  EXPECT_FALSE(parse_mark(text + "more\n"));
  EXPECT_FALSE(parse_mark("gridctl-remote 2\n" + text.substr(16)));
}

}  // namespace
}  // namespace gridctl::store::dir_remote_test
