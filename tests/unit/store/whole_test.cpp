// SPDX-License-Identifier: Apache-2.0
#include "store/whole.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>

#include "unit/store/fixtures.hpp"

namespace gridctl::store {
namespace {

using namespace testing;
using ::testing::HasSubstr;

// A checkpoint directory in memory, looked at in virtual time. Contents decide what inspect says.
class Wholeness : public ::testing::Test {
 protected:
  std::map<std::string, std::string> contents;
  Listing listing;
  WholeWatch watch;
  std::int64_t now_ms = 1'000'000;
  Writer writer = Writer::running;

  void pass(std::int64_t ms) { now_ms += ms; }
  void save(const std::string& path, std::string content) {
    FileFact fact{path, content.size(), now_ms * 1'000'000, now_ms * 1'000'000, 1};
    contents[path] = std::move(content);
    if (path == ".commit") {
      listing.marker = fact;
      return;
    }
    remove(path);
    listing.files.push_back(fact);
    std::sort(listing.files.begin(), listing.files.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
  }
  void remove(const std::string& path) {
    if (path == ".commit") listing.marker.reset();
    std::erase_if(listing.files, [&](const FileFact& file) { return file.path == path; });
  }
  Verdict look() {
    return watch.look(listing, {now_ms * 1'000'000}, writer, [this](const FileFact& file) {
      return inspect_file(file.path, file.size, reader_over(contents[file.path]));
    });
  }
  Verdict look_after(std::int64_t ms) {
    pass(ms);
    return look();
  }
  void take() { watch.taken(listing); }
  std::string archive(std::uint64_t seed) {
    return torch_zip({{"ckpt/data.pkl", noise(200, seed)}, {"ckpt/data/0", noise(2000, seed + 1)}});
  }
};

TEST_F(Wholeness, WaitsForTheFirstFile) { EXPECT_EQ(look().whole, Whole::nothing_new); }

TEST_F(Wholeness, TakesAValidArchiveASecondAfterItsLastChange) {
  save("ckpt.pt", archive(1));
  EXPECT_EQ(look().whole, Whole::not_yet);
  EXPECT_EQ(look_after(999).whole, Whole::not_yet);
  EXPECT_EQ(look_after(1).whole, Whole::format);
  take();
  EXPECT_EQ(look_after(10'000).whole, Whole::nothing_new);
}

TEST_F(Wholeness, KnowsWholeJsonBesideTensorsAndWaitsLongerForOther) {
  save("model.pt", archive(1));
  save("config.json", R"({"step": 3, "loss": [1.5, 2]})");
  EXPECT_EQ(look().whole, Whole::not_yet);
  EXPECT_EQ(look_after(1000).whole, Whole::format);
  take();
  save("config.json", R"({"step": 4, "loss": [1.5,)");
  EXPECT_FALSE(look_after(2000).is_whole()) << "cut off: only quiet time can tell";
  EXPECT_EQ(look_after(5000).whole, Whole::quiet);
  writer = Writer::killed;
  save("config.json", R"({"step": 5)");
  EXPECT_FALSE(look().is_whole()) << "the writer is dead: it may be torn for ever";
}

TEST_F(Wholeness, NeverTakesATornArchiveWhateverTimePasses) {
  const std::string whole = archive(1);
  for (std::size_t size = 0; size < whole.size(); size += 7) {
    save("ckpt.pt", whole.substr(0, size));
    EXPECT_FALSE(look().is_whole()) << size;
    EXPECT_FALSE(look_after(100'000).is_whole()) << size;
    writer = Writer::killed;
    EXPECT_EQ(look().whole, Whole::never) << size;
    writer = Writer::exited;
    EXPECT_EQ(look().whole, Whole::never) << size;
    writer = Writer::running;
  }
}

TEST_F(Wholeness, NeverTakesAnArchiveThatIsBeingOverwrittenInPlace) {
  save("ckpt.pt", archive(1));
  look();
  EXPECT_TRUE(look_after(1000).is_whole());
  take();
  const std::string next = archive(2);
  for (std::size_t size = 0; size < next.size(); size += 97) {
    save("ckpt.pt", next.substr(0, size));
    EXPECT_EQ(look_after(1500).whole, Whole::not_yet) << size;
  }
  save("ckpt.pt", next);
  look();
  EXPECT_EQ(look_after(1000).whole, Whole::format);
}

TEST_F(Wholeness, GivesUnknownFormatsTheQuietTime) {
  save("state.yaml", "{}");
  save("ckpt.pt", archive(1));
  look();
  EXPECT_EQ(look_after(4999).whole, Whole::not_yet);
  EXPECT_EQ(look_after(1).whole, Whole::quiet);
}

TEST_F(Wholeness, CountsQuietTimeAnewAfterEachChange) {
  save("log", "a");
  look();
  look_after(4000);
  save("log", "ab");
  EXPECT_EQ(look_after(4000).whole, Whole::not_yet);
  remove("log");
  save("other", "x");
  EXPECT_EQ(look_after(4999).whole, Whole::not_yet);
  EXPECT_EQ(look_after(5000).whole, Whole::quiet);
}

TEST_F(Wholeness, BelievesTheCommitMarkerAtOnce) {
  save("state.bin", "half");
  save(".commit", "");
  const Verdict verdict = look();
  EXPECT_EQ(verdict.whole, Whole::commit_marker);
  EXPECT_EQ(how_name(verdict.whole), "commit-marker");
}

TEST_F(Wholeness, OnlyBelievesTheMarkerOnceAJobUsesIt) {
  save("state.bin", "one");
  save(".commit", "");
  ASSERT_TRUE(look().is_whole());
  take();
  pass(1000);
  remove(".commit");
  save("state.bin", "tw");
  EXPECT_EQ(look_after(100'000).whole, Whole::not_yet);
  save("state.bin", "two");
  save(".commit", "");
  EXPECT_EQ(look().whole, Whole::commit_marker);
}

TEST_F(Wholeness, WaitsForTheFirstMarkerOfAJobThatIsKnownToUseOne) {
  WholeRules rules;
  rules.marker_expected = true;
  watch = WholeWatch(rules);
  save("ckpt.pt", archive(1));
  look();
  EXPECT_EQ(look_after(100'000).whole, Whole::not_yet);
  save(".commit", "");
  EXPECT_EQ(look().whole, Whole::commit_marker);
}

TEST_F(Wholeness, DoesNotBelieveAMarkerThatIsOlderThanAFile) {
  save(".commit", "");
  pass(1000);
  save("state.bin", "being written again");
  EXPECT_THAT(look_after(100'000).why, HasSubstr("changed after .commit"));
  EXPECT_FALSE(look().is_whole());
}

TEST_F(Wholeness, DoesNotBelieveAMarkerAboutATornArchive) {
  save("ckpt.pt", archive(1).substr(0, 500));
  save(".commit", "");
  EXPECT_EQ(look().whole, Whole::not_yet);
}

TEST_F(Wholeness, WaitsForTemporaryNamesToGo) {
  for (const std::string name :
       {"ckpt.pt.tmp", "a.partial", ".ckpt.swp", "tmp-1/x.pt", "step-3.orbax-checkpoint-tmp-12/a", "x~"}) {
    EXPECT_TRUE(is_temporary_name(name)) << name;
    save("ckpt.pt", archive(1));
    save(name, "half");
    look();
    EXPECT_EQ(look_after(60'000).whole, Whole::not_yet) << name;
    remove(name);
    look();
    EXPECT_EQ(look_after(1000).whole, Whole::format) << name;
  }
  for (const std::string name : {"ckpt.pt", "attempt", "tmpfile.bin", "contemporary", "a/template.json"})
    EXPECT_FALSE(is_temporary_name(name)) << name;
}

TEST_F(Wholeness, DoesNotWaitForEverForAForgottenTemporaryFile) {
  save("ckpt.pt", archive(1));
  save("old.tmp", "half");
  look();
  EXPECT_EQ(look_after(599'000).whole, Whole::not_yet);
  EXPECT_EQ(look_after(1'000).whole, Whole::quiet);
}

TEST_F(Wholeness, WaitsForAllShardsOfASet) {
  save("m-00001-of-00002.safetensors", safetensors({{"a", noise(40, 1)}}));
  look();
  EXPECT_THAT(look_after(60'000).why, HasSubstr("1 of 2 shards"));
  save("m-00002-of-00002.safetensors", safetensors({{"b", noise(40, 2)}}));
  look();
  EXPECT_EQ(look_after(1000).whole, Whole::format);
}

TEST_F(Wholeness, TakesAValidNewArchiveAfterAKillAtOnce) {
  save("step-1.pt", archive(1));
  look();
  take();
  save("step-2.pt", archive(2));
  writer = Writer::killed;
  EXPECT_EQ(look().whole, Whole::format);
}

TEST_F(Wholeness, NeverTrustsUnknownFormatsThatChangedBeforeAKill) {
  save("state.json", "{}");
  save("ckpt.pt", archive(1));
  look();
  take();
  pass(1000);
  save("state.json", "{\"step\":");
  writer = Writer::killed;
  EXPECT_EQ(look().whole, Whole::never);
  EXPECT_EQ(look_after(1'000'000).whole, Whole::never);
}

TEST_F(Wholeness, AcceptsUnchangedUnknownFilesBesideNewValidOnesAfterAKill) {
  save("config.json", "{}");
  save("ckpt.pt", archive(1));
  look();
  take();
  pass(1000);
  save("ckpt.pt", archive(2));
  writer = Writer::killed;
  EXPECT_EQ(look().whole, Whole::format);
}

TEST_F(Wholeness, NeverTrustsAFolderThatWasBeingRemoved) {
  save("step-1/a.pt", archive(1));
  save("step-1/b.pt", archive(2));
  look();
  take();
  remove("step-1/a.pt");
  save("step-2/a.pt", archive(3));
  writer = Writer::killed;
  EXPECT_EQ(look().whole, Whole::never);
}

TEST_F(Wholeness, TakesWhatAProgramLeftThatEndedByItself) {
  save("result.json", "{}");
  save("leftover.tmp", "x");
  writer = Writer::exited;
  EXPECT_EQ(look().whole, Whole::exit);
}

TEST_F(Wholeness, AsksAboutEachUnchangedFileOnce) {
  save("ckpt.pt", archive(1));
  int asked = 0;
  for (int i = 0; i < 5; ++i) {
    static_cast<void>(watch.look(listing, {now_ms * 1'000'000}, writer, [&](const FileFact&) {
      ++asked;
      return Inspection{FileState::whole, ""};
    }));
    pass(100);
  }
  EXPECT_EQ(asked, 1);
}

}  // namespace
}  // namespace gridctl::store
