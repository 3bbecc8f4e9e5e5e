// SPDX-License-Identifier: Apache-2.0
#include "store/snapshot.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>

#include "store/materialise.hpp"
#include "support/results.hpp"
#include "unit/store/fixtures.hpp"

namespace gridctl::store::snapshot_test {
namespace {

using namespace testing;
using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;
namespace fs = std::filesystem;

Tree without_order(Tree tree) {
  for (Entry& entry : tree.entries) entry.written = 0;
  return tree;
}

class Snapshots : public ::testing::Test {
 protected:
  Folder dir;
  os::Fd source() {
    fs::create_directories(dir / "out");
    return *os::open_file(dir / "out", O_RDONLY | O_DIRECTORY);
  }
};

TEST_F(Snapshots, HoldsTheSourceButNotTheMarker) {
  write(dir / "out/ckpt.pt", noise(5'000'000, 1));
  write(dir / "out/step-1/state", "s");
  write(dir / "out/.commit", "");
  fs::permissions(dir / "out/step-1/state", fs::perms(0640));
  fs::create_symlink("step-1", dir / "out/latest");
  const os::Fd fd = source();
  const Listing listing = *list_checkpoint(fd.get());
  EXPECT_TRUE(listing.marker.has_value());
  const auto snapshot = take_snapshot(fd.get(), listing, dir / "snap");
  ASSERT_THAT(snapshot, IsOk());
  EXPECT_FALSE(fs::exists(dir / "snap/.commit"));
  EXPECT_EQ(snapshot->tree.find("step-1/state")->mode, 0640);
  EXPECT_EQ(snapshot->tree.find("latest")->target, "step-1");
  fs::remove(dir / "out/.commit");
  EXPECT_EQ(without_order(snapshot->tree), scan(dir / "out", {})->tree);
  EXPECT_EQ(snapshot->root, root_of(to_manifest(snapshot->tree)));

  const os::Fd copy = *os::open_file(dir / "snap", O_RDONLY | O_DIRECTORY);
  DirectoryChunks chunks(copy.get(), snapshot->tree);
  write(dir / "out/ckpt.pt", "overwritten");
  ASSERT_THAT(materialise(snapshot->tree, chunks, dir / "restored"), IsOk());
  EXPECT_EQ(slurp(dir / "restored/ckpt.pt"), noise(5'000'000, 1));
}

TEST_F(Snapshots, IsRefusedWhenTheSourceIsNotAsItWasJudged) {
  write(dir / "out/ckpt.pt", "one");
  const os::Fd fd = source();
  const Listing judged = *list_checkpoint(fd.get());
  write(dir / "out/ckpt.pt", "longer than before");
  EXPECT_THAT(take_snapshot(fd.get(), judged, dir / "snap"), FailsWith(Code::busy));
  EXPECT_FALSE(fs::exists(dir / "snap"));
  const Listing again = *list_checkpoint(fd.get());
  write(dir / "out/new", "x");
  EXPECT_THAT(take_snapshot(fd.get(), again, dir / "snap"), FailsWith(Code::busy));
}

TEST_F(Snapshots, TakesUnchangedFilesFromTheOneBefore) {
  write(dir / "out/step-1.pt", noise(100'000, 1));
  const os::Fd fd = source();
  const auto first = take_snapshot(fd.get(), *list_checkpoint(fd.get()), dir / "snap-1");
  ASSERT_THAT(first, IsOk());
  write(dir / "out/step-2.pt", noise(100'000, 2));
  SnapshotOptions options;
  options.previous = &*first;
  options.previous_directory = dir / "snap-1";
  const auto second = take_snapshot(fd.get(), *list_checkpoint(fd.get()), dir / "snap-2", options);
  ASSERT_THAT(second, IsOk());
  EXPECT_EQ(fs::hard_link_count(dir / "snap-2/step-1.pt"), 2u);
  EXPECT_EQ(fs::hard_link_count(dir / "snap-2/step-2.pt"), 1u);
  EXPECT_EQ(without_order(second->tree), scan(dir / "out", {})->tree);
}

TEST_F(Snapshots, StopsAtItsLimit) {
  write(dir / "out/a", noise(1000, 1));
  const os::Fd fd = source();
  SnapshotOptions options;
  options.bytes_max = 999;
  EXPECT_THAT(take_snapshot(fd.get(), *list_checkpoint(fd.get()), dir / "snap", options), FailsWith(Code::no_space));
}

TEST_F(Snapshots, LooksIntoFilesOfTheDirectory) {
  const std::string archive = torch_zip({{"a/data/0", noise(500, 1)}});
  write(dir / "out/good.pt", archive);
  write(dir / "out/torn.pt", archive.substr(0, 300));
  write(dir / "out/notes.txt", "x");
  const os::Fd fd = source();
  const Inspect inspect = inspect_in(fd.get());
  const Listing listing = *list_checkpoint(fd.get());
  ASSERT_EQ(listing.files.size(), 3u);
  EXPECT_EQ(inspect(listing.files[0]).state, FileState::whole);
  EXPECT_EQ(inspect(listing.files[1]).state, FileState::unknown);
  EXPECT_EQ(inspect(listing.files[2]).state, FileState::torn);
}

TEST_F(Snapshots, TakesLogsAtTheLengthThatTheyWereListedWith) {
  write(dir / "out/train.log", "one\n");
  write(dir / "out/state.json", "{}");
  const os::Fd fd = source();
  const Listing listing = *list_checkpoint(fd.get());
  std::ofstream(dir / "out/train.log", std::ios::app) << "two\n";
  SnapshotOptions options;
  EXPECT_THAT(take_snapshot(fd.get(), listing, dir / "snap", options), FailsWith(Code::busy));
  options.selection.growing = {"train.log"};
  const auto snapshot = take_snapshot(fd.get(), listing, dir / "snap", options);
  ASSERT_THAT(snapshot, IsOk());
  EXPECT_EQ(slurp(dir / "snap/train.log"), "one\n");
  EXPECT_EQ(snapshot->tree.find("train.log")->size, 4u);
}

TEST_F(Snapshots, TakesOverWhatIsBeingRewritten) {
  write(dir / "out/a/ckpt.pt", "whole");
  write(dir / "out/step-1/x", "1");
  const os::Fd fd = source();
  const auto first = take_snapshot(fd.get(), *list_checkpoint(fd.get()), dir / "snap-1");
  ASSERT_THAT(first, IsOk());
  fs::remove_all(dir / "out/a");
  write(dir / "out/step-2/x", "2");
  write(dir / "out/step-3/half", "");
  fs::create_directories(dir / "out/step-4");
  SnapshotOptions options;
  options.previous = &*first;
  options.previous_directory = dir / "snap-1";
  options.selection.from_previous = {"a/ckpt.pt"};
  options.selection.left_out = {"step-3/half"};
  const auto second = take_snapshot(fd.get(), *list_checkpoint(fd.get()), dir / "snap-2", options);
  ASSERT_THAT(second, IsOk());
  EXPECT_EQ(slurp(dir / "snap-2/a/ckpt.pt"), "whole");
  EXPECT_EQ(second->tree.find("step-3"), nullptr) << "a program would take it for the newest";
  EXPECT_EQ(second->tree.find("step-4"), nullptr);
  EXPECT_NE(second->tree.find("step-2/x"), nullptr);
  EXPECT_EQ(second->tree.find("a/ckpt.pt")->chunks, first->tree.find("a/ckpt.pt")->chunks);
  // And once more from there.
  options.previous = &*second;
  options.previous_directory = dir / "snap-2";
  const auto third = take_snapshot(fd.get(), *list_checkpoint(fd.get()), dir / "snap-3", options);
  ASSERT_THAT(third, IsOk());
  EXPECT_EQ(third->root, second->root);
}

TEST_F(Snapshots, KnowsHdf5ByItsSuperblock) {
  std::string file("\x89HDF\r\n\x1a\n", 8);
  file += std::string("\x02\x08\x08\x00", 4) + std::string(8, '\0') + std::string(8, '\xff');
  file += std::string("\xc8\0\0\0\0\0\0\0", 8);  // ends at 200
  file.resize(200);
  EXPECT_EQ(inspect_file("w.h5", file.size(), reader_over(file)).state, FileState::whole);
  const std::string torn = file.substr(0, 150);
  EXPECT_EQ(inspect_file("w.h5", torn.size(), reader_over(torn)).state, FileState::torn);
}

}  // namespace
}  // namespace gridctl::store::snapshot_test
