// SPDX-License-Identifier: Apache-2.0
#include "store/fingerprints.hpp"

#include <gmock/gmock.h>

#include "crypto/poly_hash.hpp"
#include "os/entries.hpp"
#include "store/copy_out.hpp"
#include "store/store_key.hpp"
#include "store/stored_tree.hpp"
#include "support/results.hpp"
#include "unit/store/fixtures.hpp"

namespace gridctl::store::fingerprints_test {
namespace {

using namespace testing;
namespace fs = std::filesystem;
using gridctl::testing::IsOk;

class FingerprintsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!crypto::PolyHash::is_supported()) GTEST_SKIP() << "no quick hash on this processor";
  }
  // Noted, in a scan that has succeeded.
  static Fingerprints of(const Digest& digest, const std::string& content) {
    Fingerprints fingerprints;
    fingerprints.note(digest, as_bytes(content), nullptr);
    fingerprints.end_scan(true);
    return fingerprints;
  }
  Tree scanned(const Tree* previous, Fingerprints& fingerprints) {
    ScanOptions options;
    options.previous = previous;
    options.fingerprints = &fingerprints;
    options.threads = 2;
    return scan(dir / "c", options)->tree;
  }
  std::vector<std::string> files() const {
    const auto names = os::list_directory(dir / "store/fingerprints");
    return names ? *names : std::vector<std::string>{};
  }

  ChunkStore opened() {
    StoreOptions options;
    options.cipher = key_;
    return *ChunkStore::open(dir / "store", options);
  }

  const Folder dir;
  const std::shared_ptr<const StoreKey> key_ = std::make_shared<const StoreKey>(digest_of("key"));
  const std::string content_ = noise(200'000, 3);
  const Digest digest_ = digest_of(content_);
};

TEST_F(FingerprintsTest, RecogniseOnlyTheContentThatTheySaw) {
  Fingerprints fingerprints = of(digest_, content_);
  EXPECT_TRUE(fingerprints.recognise(digest_, as_bytes(content_)));
  for (std::size_t at = 0; at < content_.size(); at += 997) {
    std::string other = content_;
    other[at] ^= 64;
    EXPECT_FALSE(fingerprints.recognise(digest_, as_bytes(other))) << at;
  }
  EXPECT_FALSE(fingerprints.recognise(digest_, as_bytes(content_ + '\0')));
  EXPECT_FALSE(fingerprints.recognise(digest_of("another"), as_bytes(content_)));
}

// A digest that cannot be computed from the content shows that nobody has.
TEST_F(FingerprintsTest, SpareAScanTheHashingOfWhatStandsWhereItStood) {
  const Digest promised = digest_of("promised");
  for (const std::string path : {"c/a", "c/b"}) write(dir / path, content_);
  Fingerprints fingerprints = of(promised, content_);
  Tree previous = *make_tree({{EntryKind::file, 0644, "a", content_.size(), {{promised, 200'000}}, {}},
                              {EntryKind::file, 0644, "b", content_.size(), {{digest_, 200'000}}, {}}});
  const Tree tree = scanned(&previous, fingerprints);
  EXPECT_EQ(tree.find("a")->chunks[0].digest, promised);
  EXPECT_EQ(tree.find("b")->chunks[0].digest, digest_);
  std::string changed = content_;
  changed.back() ^= 1;
  write(dir / "c/a", changed);
  EXPECT_EQ(scanned(&tree, fingerprints).find("a")->chunks[0].digest, digest_of(changed));
}

TEST_F(FingerprintsTest, AreNotTakenOfWhatChangesFromSaveToSave) {
  Fingerprints fingerprints = of(digest_, content_);
  const std::string changed = noise(200'000, 4), again = noise(200'000, 5);
  EXPECT_FALSE(fingerprints.recognise(digest_, as_bytes(changed)));
  fingerprints.note(digest_of(changed), as_bytes(changed), &digest_);
  fingerprints.end_scan(true);
  EXPECT_FALSE(fingerprints.recognise(digest_of(changed), as_bytes(changed)));
  const Digest same = digest_of(changed);  // until it has stood still once
  fingerprints.note(same, as_bytes(changed), &same);
  fingerprints.end_scan(true);
  EXPECT_TRUE(fingerprints.recognise(same, as_bytes(changed)));
}

TEST_F(FingerprintsTest, StayWhatTheyWereWhenAScanFails) {
  Fingerprints fingerprints = of(digest_, content_);
  fingerprints.note(digest_of("new"), as_bytes(noise(100'000, 6)), nullptr);
  fingerprints.end_scan(false);
  EXPECT_TRUE(fingerprints.recognise(digest_, as_bytes(content_)));
  fingerprints.end_scan(true);
  EXPECT_FALSE(fingerprints.recognise(digest_of("new"), as_bytes(noise(100'000, 6))));
}

TEST_F(FingerprintsTest, OfAFileTakenOverUnreadAreKept) {
  Fingerprints fingerprints = of(digest_, content_);
  fingerprints.keep({EntryKind::file, 0644, "a", content_.size(), {{digest_, 200'000}}, {}});
  fingerprints.end_scan(true);
  EXPECT_TRUE(fingerprints.recognise(digest_, as_bytes(content_)));
}

TEST_F(FingerprintsTest, ComeBackFromTheirFileAndNeverWrong) {
  const Digest root = digest_of("root");
  const auto know = [&](const Cipher& cipher, const Digest& of) {
    return Fingerprints::load(dir / "store", cipher, of).recognise(digest_, as_bytes(content_));
  };
  ASSERT_THAT(of(digest_, content_).save(dir / "store", *key_, root), IsOk());
  EXPECT_TRUE(know(*key_, root));
  EXPECT_FALSE(know(*key_, digest_of("other")));
  EXPECT_FALSE(know(StoreKey(digest_of("another")), root));
  const os::Path file = dir / "store/fingerprints" / files().at(0);
  EXPECT_EQ((*os::status_of(file))->mode & 0777u, 0600u);
  const std::string whole = slurp(file);
  EXPECT_EQ(whole.find(as_text(digest_.bytes)), std::string::npos);  // who reads it learns nothing
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string flipped = whole;
    flipped[at] ^= 1;
    for (const std::string& damaged : {flipped, whole.substr(0, at)}) {
      write(file, damaged);
      EXPECT_FALSE(know(*key_, root)) << at;
    }
  }
  write(dir / "store/fingerprints" / to_hex(key_->storage_id(digest_of("other"))), whole);  // moved
  EXPECT_FALSE(know(*key_, digest_of("other")));
}

TEST_F(FingerprintsTest, OfADepositGoWithTheLastTreeThatNeedsThem) {
  ChunkStore store = opened();
  write(dir / "c/frozen", content_);
  std::optional<Digest> before;
  for (int save = 0; save < 3; ++save) {
    write(dir / "c/model", noise(150'000, 10 + static_cast<unsigned>(save)));
    const auto made = store_tree(store, dir / "c", {}, before);
    ASSERT_THAT(made, IsOk());
    EXPECT_EQ(made->tree, scan(dir / "c", {})->tree);
    before = made->root;
    const os::Path out = dir / ("out" + std::to_string(save));
    ASSERT_THAT(copy_out(made->tree, store, out, 1), IsOk());
    EXPECT_EQ(slurp(out / "model"), slurp(dir / "c/model"));
    EXPECT_EQ(slurp(out / "frozen"), content_);
  }
  EXPECT_EQ(files().size(), 3u);
  std::unordered_set<Digest> live{*before};
  for (const Chunk& chunk : scan(dir / "c", {})->tree.unique_chunks()) live.insert(chunk.digest);
  ASSERT_THAT(store.collect(live), IsOk());
  EXPECT_EQ(files(), std::vector<std::string>{to_hex(key_->storage_id(*before))});
}

TEST_F(FingerprintsTest, DoNotKeepADepositFromBringingBackWhatTheStoreHasLost) {
  write(dir / "c/frozen", content_);
  std::optional<Digest> root;
  Bytes manifest;
  {
    ChunkStore store = opened();
    root = store_tree(store, dir / "c", {}, {})->root;
    manifest = *store.get(*root);
  }
  fs::remove_all(dir / "store/packs");
  fs::create_directory(dir / "store/packs");
  ChunkStore store = opened();
  ASSERT_THAT(store.put(*root, manifest), IsOk());
  ASSERT_THAT(store.seal(), IsOk());
  ASSERT_THAT(store_tree(store, dir / "c", {}, root), IsOk());
  EXPECT_EQ(as_text(*store.get(digest_)), content_);
}

TEST_F(FingerprintsTest, AreNotWrittenWithoutAKey) {
  write(dir / "c/frozen", content_);
  auto store = ChunkStore::open(dir / "store");
  ASSERT_THAT(store_tree(*store, dir / "c", {}, {}), IsOk());
  EXPECT_TRUE(files().empty());
}

}  // namespace
}  // namespace gridctl::store::fingerprints_test
