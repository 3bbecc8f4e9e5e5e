// SPDX-License-Identifier: Apache-2.0
#include "store/write_order.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>

#include <chrono>

#include "store/local_part.hpp"
#include "store/materialise.hpp"
#include "store/snapshot.hpp"
#include "support/results.hpp"
#include "unit/store/fixtures.hpp"

namespace gridctl::store::write_order_test {
namespace {

using namespace testing;
using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;
using ::testing::ElementsAre;
namespace fs = std::filesystem;

Entry entry(EntryKind kind, const std::string& path, std::uint32_t written) {
  Entry made{kind, static_cast<std::uint16_t>(kind == EntryKind::symlink ? 0777 : 0755), path, 0, {},
             kind == EntryKind::symlink ? "a" : ""};
  made.written = written;
  return made;
}
Entry file(const std::string& path, std::uint32_t written) { return entry(EntryKind::file, path, written); }
Entry folder(const std::string& path, std::uint32_t written) { return entry(EntryKind::directory, path, written); }

std::vector<std::uint32_t> numbers(const Tree& tree) {
  std::vector<std::uint32_t> all;
  for (const Entry& one : tree.entries) all.push_back(one.written);
  return all;
}

TEST(WriteOrder, NumbersFilesAndDirectoriesApartAndEqualTimesEqually) {
  std::vector<Entry> entries{file("a", 0), file("b", 0), folder("c", 0), file("d", 0), folder("e", 0)};
  const std::vector<std::int64_t> times{50, -3, 7, 50, 9};
  number_writes(entries, [&](const Entry& one) { return times[static_cast<std::size_t>(&one - entries.data())]; });
  EXPECT_THAT(numbers({entries}), ElementsAre(2, 1, 1, 2, 2));
  number_writes(entries, [](const Entry&) { return 5; });
  EXPECT_THAT(numbers({entries}), ElementsAre(0, 0, 0, 0, 0));
}

TEST(WriteOrder, HasNoGapsInATree) {
  const Tree tree = *make_tree({file("a", 7), file("b", 3), file("c", 0), folder("d", 9), entry(EntryKind::symlink, "e", 0)});
  EXPECT_THAT(numbers(tree), ElementsAre(3, 2, 1, 0, 0));
  EXPECT_EQ(*parse_manifest(to_manifest(tree)), tree);
}

TEST(WriteOrder, IsAFeatureOfTheManifestOnlyWhereThereIsOne) {
  const Tree plain = *make_tree({file("a", 1), file("b", 1), folder("d", 4)});
  EXPECT_FALSE(has_write_order(plain));
  EXPECT_EQ(to_hex(to_manifest(plain)).substr(16, 8), "00010000");
  const Tree ordered = *make_tree({file("a", 2), file("b", 1), entry(EntryKind::symlink, "c", 0)});
  EXPECT_EQ(to_hex(to_manifest(ordered)),
            "4752494454524545" "0001" "0001" "00000003" "0000000000000000"
            "02" "01ed" "0001" "61" "00000002" "0000000000000000" "00000000"
            "02" "01ed" "0001" "62" "00000001" "0000000000000000" "00000000"
            "03" "01ff" "0001" "63" "0001" "61");
}

TEST(WriteOrder, OfAForeignManifestIsCanonical) {
  const auto parsed = [](std::vector<Entry> entries) { return parse_manifest(to_manifest(Tree{std::move(entries)})); };
  EXPECT_THAT(parsed({file("a", 2), file("b", 1)}), IsOk());
  EXPECT_THAT(parsed({file("a", 3), file("b", 1)}), FailsWith(Code::checkpoint_damaged));
  EXPECT_THAT(parsed({file("a", 2), file("b", 2)}), FailsWith(Code::checkpoint_damaged));
  EXPECT_THAT(parsed({file("a", 1), file("b", 1)}), FailsWith(Code::checkpoint_damaged));
  EXPECT_THAT(parsed({file("a", 1), file("b", 0)}), FailsWith(Code::checkpoint_damaged));
  EXPECT_THAT(parsed({file("a", 0xffffffff), file("b", 1)}), FailsWith(Code::checkpoint_damaged));
  Bytes claimed = to_manifest(*make_tree({file("a", 2), file("b", 1)}));
  for (const std::size_t number : {29u, 47u}) claimed[number + 3] = std::byte{0};
  EXPECT_THAT(parse_manifest(claimed), FailsWith(Code::checkpoint_damaged));
}

TEST(WriteOrder, OfAForeignManifestHasOneEncoding) {
  const Tree tree = *make_tree({file("a", 3), file("b", 1), file("c", 2), folder("d", 1), folder("e", 2)});
  const Bytes sound = to_manifest(tree);
  for (std::size_t i = 0; i < sound.size() * 8; ++i) {
    Bytes changed = sound;
    changed[i / 8] ^= static_cast<std::byte>(1 << i % 8);
    const auto parsed = parse_manifest(changed);
    if (!parsed) continue;
    EXPECT_NE(*parsed, tree) << i;
    EXPECT_EQ(to_manifest(*parsed), changed) << i;
  }
}

// Each host gets the files of its own ranks; its agent refuses a manifest with gaps.
TEST(WriteOrder, OfAPartHasNoGaps) {
  const Tree all = *make_tree({file("model.pt", 4), file("rank_0.pt", 1), file("rank_1.pt", 2), file("step", 3)});
  const Tree part = local_part(all, {0, 1}, 2, [](const Entry&) { return Bytes{}; });
  EXPECT_EQ(part.find("rank_1.pt"), nullptr);
  EXPECT_THAT(numbers(part), ElementsAre(3, 1, 2));
  EXPECT_THAT(parse_manifest(to_manifest(part)), IsOk());
}

TEST(WriteOrder, OfAnOverlayPutsTheUpperTreeLast) {
  const Tree below = *make_tree({file("a", 1), file("b", 2)});
  EXPECT_THAT(numbers(*overlay(below, *make_tree({file("b", 1), file("c", 2)}))), ElementsAre(1, 2, 3));
  EXPECT_THAT(numbers(*overlay(below, *make_tree({file("0", 0)}))), ElementsAre(3, 1, 2));
  EXPECT_THAT(numbers(*overlay(*make_tree({file("0", 0)}), below)), ElementsAre(1, 2, 3));
}

class Restored : public ::testing::Test {
 protected:
  void change_at(const std::string& path, int seconds_ago) {
    fs::last_write_time(dir_ / "out" / path, now_ - std::chrono::seconds(seconds_ago));
  }
  fs::file_time_type when(const std::string& path) { return fs::last_write_time(dir_ / "back" / path); }
  Result<Snapshot> snapshot_of(const std::string& name) {
    source_ = *os::open_file(dir_ / name, O_RDONLY | O_DIRECTORY);
    return take_snapshot(source_.get(), *list_checkpoint(source_.get()), dir_ / ("snapshot of " + name));
  }
  void restore(const Snapshot& snapshot, const std::string& name) {
    const os::Fd copy = *os::open_file(dir_ / ("snapshot of " + name), O_RDONLY | O_DIRECTORY);
    DirectoryChunks chunks(copy.get(), snapshot.tree);
    ASSERT_THAT(materialise(*parse_manifest(snapshot.manifest), chunks, dir_ / "back"), IsOk());
  }

  const fs::file_time_type now_ = fs::file_time_type::clock::now();
  Folder dir_;
  os::Fd source_;
};

// Lightning chooses among last.ckpt and last-v1.ckpt by their times, transformers among folders.
TEST_F(Restored, TimesAreInTheOrderOfWriting) {
  for (const char* path : {"last.ckpt", "last-v1.ckpt", "checkpoint-9/w", "checkpoint-10/w"}) write(dir_ / "out" / path, path);
  change_at("last.ckpt", 10);
  change_at("last-v1.ckpt", 86'400);
  change_at("checkpoint-9/w", 5);
  change_at("checkpoint-10/w", 10);
  change_at("checkpoint-9", 20);
  change_at("checkpoint-10", 2000);
  const auto snapshot = snapshot_of("out");
  ASSERT_THAT(snapshot, IsOk());
  restore(*snapshot, "out");
  EXPECT_LT(when("last-v1.ckpt"), when("last.ckpt"));
  EXPECT_EQ(when("last.ckpt"), when("checkpoint-10/w"));
  EXPECT_LT(when("checkpoint-10/w"), when("checkpoint-9/w"));
  EXPECT_LT(when("checkpoint-10"), when("checkpoint-9"));
  for (const char* newest : {"checkpoint-9", "checkpoint-9/w"}) {
    EXPECT_GE(when(newest), now_ - std::chrono::seconds(1)) << newest;
    EXPECT_LE(when(newest), fs::file_time_type::clock::now()) << newest;
  }
  // What was restored and has not been changed is the checkpoint that it was.
  const auto again = snapshot_of("back");
  ASSERT_THAT(again, IsOk());
  EXPECT_EQ(again->root, snapshot->root);
}

}  // namespace
}  // namespace gridctl::store::write_order_test
