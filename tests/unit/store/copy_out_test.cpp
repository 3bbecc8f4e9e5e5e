// SPDX-License-Identifier: Apache-2.0
#include "store/copy_out.hpp"

#include <gmock/gmock.h>

#include "os/directory_lock.hpp"
#include "os/entries.hpp"
#include "support/results.hpp"
#include "unit/store/fixtures.hpp"

namespace gridctl::store {
namespace {

namespace fs = std::filesystem;
using namespace gridctl::testing;
using namespace testing;

class CopyOut : public ::testing::Test {
 protected:
  void SetUp() override {
    const Digest digest = put(store_, "weights");
    Entry entry{EntryKind::file, 0644, "state", 7, {}, {}};
    entry.chunks.push_back({digest, 7});
    tree_ = *make_tree({entry});
  }
  std::vector<std::string> names(const os::Path& directory) { return *os::list_directory(directory); }

  Folder dir_;
  ChunkStore store_ = *ChunkStore::open(dir_ / "s");
  Tree tree_;
};

TEST_F(CopyOut, TakesOverWhatAKilledCopyLeftBesideANewDirectory) {
  write(dir_ / "to/.result.gridctl-partial/half", "x");
  ASSERT_THAT(copy_out(tree_, store_, dir_ / "to/result/"), IsOk());
  EXPECT_EQ(slurp(dir_ / "to/result/state"), "weights");
  EXPECT_THAT(names(dir_ / "to"), ::testing::ElementsAre("result"));
  EXPECT_THAT(names(dir_ / "to/result"), ::testing::ElementsAre("state"));
}

TEST_F(CopyOut, TakesOverWhatAKilledCopyLeftInADirectoryThatWasThere) {
  write(dir_ / "result/.gridctl-partial", "");
  write(dir_ / "result/state", "wei");
  const std::uint64_t inode = os::status_of(dir_ / "result").value()->inode;
  ASSERT_THAT(copy_out(tree_, store_, dir_ / "result"), IsOk());
  EXPECT_EQ(slurp(dir_ / "result/state"), "weights");
  EXPECT_THAT(names(dir_ / "result"), ::testing::ElementsAre("state"));
  EXPECT_EQ(os::status_of(dir_ / "result").value()->inode, inode);
}

// More than are synced one by one.
TEST_F(CopyOut, WritesManyFiles) {
  std::vector<Entry> entries{{EntryKind::directory, 0755, "d", 0, {}, {}}};
  for (int i = 0; i < 150; ++i) entries.push_back({EntryKind::file, 0640, "d/" + std::to_string(i), 7, {}, {}});
  for (Entry& entry : entries)
    if (entry.kind == EntryKind::file) entry.chunks.push_back({digest_of("weights"), 7});
  ASSERT_THAT(copy_out(*make_tree(entries), store_, dir_ / "many", 2), IsOk());
  EXPECT_THAT(names(dir_ / "many/d"), ::testing::SizeIs(150));
  for (const std::string& name : names(dir_ / "many/d")) EXPECT_EQ(slurp(dir_ / "many/d" / name), "weights");
  EXPECT_EQ(os::status_of(dir_ / "many/d/7").value()->mode & 0777u, 0640u);
}

TEST_F(CopyOut, LeavesFilesOfOthersAlone) {
  write(dir_ / "result/mine", "precious");
  EXPECT_THAT(copy_out(tree_, store_, dir_ / "result"), FailsWith(Code::exists));
  write(dir_ / "result/.gridctl-partial", "");
  EXPECT_THAT(copy_out(tree_, store_, dir_ / "result"), FailsWith(Code::exists));
  EXPECT_EQ(slurp(dir_ / "result/mine"), "precious");
}

TEST_F(CopyOut, LeavesNothingWhenAChunkIsMissing) {
  Entry lost{EntryKind::file, 0644, "lost", 4, {}, {}};
  lost.chunks.push_back({digest_of("lost"), 4});
  tree_ = *make_tree({lost, tree_.entries[0]});
  EXPECT_THAT(copy_out(tree_, store_, dir_ / "to/result"), FailsWith(Code::not_found));
  EXPECT_THAT(names(dir_ / "to"), ::testing::IsEmpty());
  fs::create_directories(dir_ / "to/result");
  EXPECT_THAT(copy_out(tree_, store_, dir_ / "to/result"), FailsWith(Code::not_found));
  EXPECT_THAT(names(dir_ / "to/result"), ::testing::IsEmpty());
}

TEST_F(CopyOut, LeavesACopyThatIsUnderWayAlone) {
  fs::create_directories(dir_ / ".result.gridctl-partial");
  const auto other = os::DirectoryLock::try_acquire(dir_ / ".result.gridctl-partial");
  ASSERT_TRUE(other && *other);
  EXPECT_THAT(copy_out(tree_, store_, dir_ / "result"), FailsWith(Code::busy));
  EXPECT_TRUE(fs::exists(dir_ / ".result.gridctl-partial"));
}

}  // namespace
}  // namespace gridctl::store
