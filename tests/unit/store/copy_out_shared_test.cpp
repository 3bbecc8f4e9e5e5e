// SPDX-License-Identifier: Apache-2.0
// Red team: another user of this machine, in a folder to which the user copies a checkpoint and others may write.
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/copy_out.hpp"
#include "support/results.hpp"
#include "unit/store/fixtures.hpp"

namespace gridctl::store::copy_out_shared_test {
namespace {

namespace fs = std::filesystem;
using namespace gridctl::testing;
using namespace testing;

constexpr unsigned k_neighbour = 61'237;

class SharedFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    Entry entry{EntryKind::file, 0644, "state", 7, {}, {}};
    entry.chunks.push_back({put(store_, "weights"), 7});
    tree_ = *make_tree({entry});
    fs::create_directory(dir_ / "to");
    ASSERT_EQ(::chmod((dir_ / "to").c_str(), 02777), 0);
  }
  // Made by another user; where only one user can be played, by ours for others.
  void make_directory(const os::Path& path) {
    fs::create_directory(path);
    ASSERT_EQ(::chmod(path.c_str(), 0777), 0);
    if (::geteuid() == 0) {
      ASSERT_EQ(::chown(path.c_str(), k_neighbour, k_neighbour), 0);
    }
  }

  Folder dir_;
  ChunkStore store_ = *ChunkStore::open(dir_ / "s");
  Tree tree_;
};

TEST_F(SharedFolder, CannotOwnWhatIsCopiedThere) {
  make_directory(dir_ / "to/.result.gridctl-partial");
  ASSERT_THAT(copy_out(tree_, store_, dir_ / "to/result"), IsOk());
  EXPECT_EQ(slurp(dir_ / "to/result/state"), "weights");
  struct stat info {};
  ASSERT_EQ(::stat((dir_ / "to/result").c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, ::geteuid());
  EXPECT_EQ(info.st_mode & 0022, 0u);
  if (::geteuid() != 0) GTEST_SKIP() << "only root can play two users";
  make_directory(dir_ / "to/named");  // the directory itself, in a folder as /tmp
  ASSERT_EQ(::chmod((dir_ / "to").c_str(), 01777), 0);
  EXPECT_THAT(copy_out(tree_, store_, dir_ / "to/named"), FailsWith(Code::exists));
}

TEST_F(SharedFolder, CannotBeBlockedByTakingANameInIt) {
  fs::create_directory(dir_ / "elsewhere");
  for (const char* leads_to : {"elsewhere", "nowhere"}) {
    fs::create_symlink(dir_ / leads_to, dir_ / "to/.result.gridctl-partial");
    ASSERT_THAT(copy_out(tree_, store_, dir_ / "to/result"), IsOk());
    EXPECT_EQ(slurp(dir_ / "to/result/state"), "weights");
    EXPECT_TRUE(fs::is_empty(dir_ / "elsewhere"));
    fs::remove_all(dir_ / "to/result");
    fs::remove(dir_ / "to/.result.gridctl-partial");
  }
  write(dir_ / "to/.result.gridctl-partial", "a file");
  ASSERT_THAT(copy_out(tree_, store_, dir_ / "to/result"), IsOk());
}

}  // namespace
}  // namespace gridctl::store::copy_out_shared_test
