// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "unit/whole/directory.hpp"

namespace gridctl::whole::history_test {
namespace {

constexpr BootTime at(std::int64_t seconds) { return {seconds * 1'000'000'000}; }

class Histories : public ::testing::Test {
 protected:
  std::vector<News> look(const std::vector<FileFact>& files, std::int64_t seconds) {
    listing = files;
    return history.look(listing, at(seconds));
  }
  Change change(const FileFact& now, std::int64_t seconds) {
    const auto news = look({now}, seconds);
    EXPECT_EQ(news.size(), 1u);
    return news.at(0).change;
  }
  static FileFact file(std::uint64_t size, std::uint64_t inode = 1, std::int64_t mtime = 0,
                       const std::string& path = "a") {
    return {path, size, mtime, mtime, inode};
  }
  History history;
  std::vector<FileFact> listing;
};

TEST_F(Histories, TellHowAFileHasChanged) {
  EXPECT_EQ(change(file(10), 1), Change::fresh);
  EXPECT_TRUE(look({file(10)}, 2).empty());
  EXPECT_EQ(change(file(20), 3), Change::continued);
  EXPECT_EQ(look({file(21)}, 7).at(0).gap, std::chrono::seconds{4});
  EXPECT_EQ(change(file(21, 1, 5), 8), Change::continued) << "as long as before";
  EXPECT_EQ(change(file(20, 1, 6), 9), Change::rewritten);
  EXPECT_EQ(change(file(30, 2, 7), 10), Change::replaced);
  EXPECT_EQ(history.unchanged_for("a", at(15)), std::chrono::seconds{5});
  EXPECT_EQ(history.unchanged_for("none", at(15)), Duration{});
}

TEST_F(Histories, AFileThatWasWholeIsBegunAnew) {
  change(file(10), 1);
  int asked = 0;
  const store::Inspect whole = [&](const FileFact&) { return ++asked, store::Inspection{store::FileState::whole, ""}; };
  EXPECT_EQ(history.inspect(listing[0], whole).state, store::FileState::whole);
  static_cast<void>(history.inspect(listing[0], whole));
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(change(file(20), 2), Change::rewritten);
  static_cast<void>(history.inspect(listing[0], whole));
  EXPECT_EQ(asked, 2) << "it is another state of it";
}

TEST_F(Histories, ALogIsWhatHasOnlyGrownThroughTwoSaves) {
  std::uint64_t size = 1;
  look({file(size)}, 0);
  for (int i = 1; i <= 4; ++i) look({file(++size)}, i);
  EXPECT_FALSE(history.is_log("a"));
  history.save_ended();
  EXPECT_FALSE(history.is_log("a"));
  history.save_ended();
  EXPECT_TRUE(history.is_log("a"));
  EXPECT_FALSE(history.is_log("b"));
  EXPECT_TRUE(history.is_log("b.log"));
  look({file(1)}, 10);
  EXPECT_FALSE(history.is_log("a")) << "it was cut";
}

TEST_F(Histories, ThreeGrowthsOrAReplacementMakeNoLog) {
  for (std::uint64_t size = 1; size <= 4; ++size) look({file(size)}, static_cast<std::int64_t>(size));
  history.save_ended();
  history.save_ended();
  EXPECT_FALSE(history.is_log("a")) << "it has grown three times";
  look({file(5)}, 9);
  EXPECT_TRUE(history.is_log("a"));
  look({file(6, 2)}, 10);
  EXPECT_FALSE(history.is_log("a"));
}

TEST_F(Histories, SavesBeforeAFileWasThereDoNotCount) {
  history.save_ended();
  history.save_ended();
  for (std::uint64_t size = 1; size <= 6; ++size) look({file(size)}, static_cast<std::int64_t>(size));
  EXPECT_FALSE(history.is_log("a"));
}

TEST_F(Histories, WhatIsReplacedTwiceArrivesWhole) {
  EXPECT_FALSE(history.arrives_whole("a"));
  change(file(1, 1), 1);
  change(file(1, 2), 2);
  EXPECT_FALSE(history.arrives_whole("a"));
  change(file(1, 3), 3);
  EXPECT_TRUE(history.arrives_whole("a"));
  change(file(2, 3), 4);
  EXPECT_FALSE(history.arrives_whole("a")) << "it was written on in its place";
}

TEST_F(Histories, AFolderThatLosesFilesIsBeingRemovedUntilSomethingIsWrittenIntoIt) {
  const FileFact one = file(1, 1, 0, "step-1/a"), two = file(1, 2, 0, "step-1/b"), other = file(1, 3, 0, "x/c");
  look({one, two, other}, 1);
  EXPECT_FALSE(history.is_being_removed("step-1/b"));
  look({two}, 2);
  EXPECT_TRUE(history.is_being_removed("step-1/b"));
  EXPECT_FALSE(history.is_being_removed("x/d")) << "it has no number";
  EXPECT_FALSE(history.is_being_removed("step-2/b"));
  look({one, two}, 3);
  EXPECT_FALSE(history.is_being_removed("step-1/b"));
  look({one, two, file(1, 4, 0, "step-1/c.tmp")}, 4);
  look({one, two}, 5);
  EXPECT_FALSE(history.is_being_removed("step-1/b")) << "a temporary file goes when it is done";
}

}  // namespace
}  // namespace gridctl::whole::history_test
