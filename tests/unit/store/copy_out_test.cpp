// SPDX-License-Identifier: Apache-2.0
#include "store/copy_out.hpp"

#include <gmock/gmock.h>

#include "os/entries.hpp"
#include "os/files.hpp"
#include "support/results.hpp"
#include "unit/store/fixtures.hpp"

namespace gridctl::store::copy_out_test {
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

// One chunk, 65 times: 260 MiB.
Tree repeated(const Digest& digest) {
  Entry entry{EntryKind::file, 0644, "state", 0, {}, {}};
  entry.chunks.assign(65, {digest, k_chunk_max});
  entry.size = 65ull * k_chunk_max;
  return *make_tree({entry});
}

TEST_F(CopyOut, AsksForRoomBeforeAnythingIsMade) {
  const Tree tree = repeated(put(store_, std::string(k_chunk_max, 'x')));
  std::vector<std::uint64_t> asked;
  const auto no_room = [&](std::uint64_t more) -> Result<void> {
    asked.push_back(more);
    return make_error(Code::no_space, "full");
  };
  EXPECT_THAT(copy_out(tree, store_, dir_ / "result", 1, no_room), FailsWith(Code::no_space));
  EXPECT_FALSE(fs::exists(dir_ / "result"));
  ASSERT_THAT(asked, ::testing::SizeIs(1));
  EXPECT_EQ(asked[0], tree.disk_bytes());
  EXPECT_GE(asked[0], tree.total_bytes());
}

TEST_F(CopyOut, StopsWhenTheDiskBecomesFullMeanwhile) {
  const Tree tree = repeated(put(store_, std::string(k_chunk_max, 'x')));
  const auto full_later = [](std::uint64_t more) -> Result<void> {
    if (more > 0) return {};
    return make_error(Code::no_space, "full");
  };
  EXPECT_THAT(copy_out(tree, store_, dir_ / "result", 1, full_later), FailsWith(Code::no_space));
  EXPECT_THAT(names(dir_.path()), ::testing::ElementsAre("s"));
}

TEST_F(CopyOut, CountsBlocksAndNamesAndNoHoles) {
  std::vector<Entry> entries{{EntryKind::directory, 0755, "d", 0, {}, {}}};
  for (int i = 0; i < 1000; ++i)
    entries.push_back({EntryKind::file, 0600, "d/" + std::to_string(i), 7, {{digest_of("weights"), 7}}, {}});
  EXPECT_GE(make_tree(entries)->disk_bytes(), 1000u * 8192);
  const Tree zeros = repeated(digest_of(std::string(k_chunk_max, '\0')));
  EXPECT_GE(zeros.disk_bytes(), 65ull * k_chunk_max);
  EXPECT_LE(zeros.written_bytes(), 8192u);
}

}  // namespace
}  // namespace gridctl::store::copy_out_test
