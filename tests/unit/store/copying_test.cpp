// SPDX-License-Identifier: Apache-2.0
#include "store/copying.hpp"

#include <functional>

#include "unit/store/remote_fixtures.hpp"

namespace gridctl::store::copying_test {
namespace {

using namespace testing;
using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
namespace fs = std::filesystem;

// Answers until it is told not to; then every call fails, and what a failing put_new has done is not known.
class Flaky final : public Backend {
 public:
  explicit Flaky(Backend& real) : real_(real) {}
  Result<std::vector<Object>> list(std::string_view prefix) override {
    if (broken()) return gone();
    return real_.list(prefix);
  }
  Result<Bytes> read(std::string_view name, std::uint64_t offset, std::size_t size) override {
    if (broken()) return gone();
    return real_.read(name, offset, size);
  }
  Result<void> put(std::string_view name, std::uint64_t size, const ReadAt& content, const Moved& moved) override {
    if (broken()) return gone();
    sent += size;
    return real_.put(name, size, content, moved);
  }
  Result<bool> put_new(std::string_view name, ByteView content) override {
    if (before_new) std::exchange(before_new, {})();
    if (broken()) {
      if (lose_answers) {
        EXPECT_THAT(real_.put_new(name, content), IsOk());
      }
      return gone();
    }
    return real_.put_new(name, content);
  }
  Result<void> remove(std::string_view name) override {
    if (broken()) return gone();
    return real_.remove(name);
  }
  int calls_left = 1'000'000;
  bool lose_answers = false;
  std::function<void()> before_new;  // once
  std::uint64_t sent = 0;

 private:
  bool broken() { return calls_left-- <= 0; }
  static Error gone() { return make_error(Code::host_unreachable, "it went away"); }
  Backend& real_;
};

class Copying : public ::testing::Test {
 protected:
  RemoteLink link() { return {remote.get(), key.get()}; }
  RemoteListing listed() {
    const auto listing = list_remote(*remote);
    EXPECT_THAT(listing, IsOk());
    return *listing;
  }
  Result<CopyStats> copy(const CopyRecord& record) {
    RemoteListing there = listed();
    return copy_checkpoint(chunks, link(), there, record);
  }
  Result<Files> at_remote(const CopyRecord& record) { return load_from(*remote, *key, {record.job, record.seq}); }
  // Small enough that every byte of the remote can be tried.
  Files first_files() { return {{"a", noise(600, 1)}, {"b", std::string(2000, 'b')}}; }
  Files second_files() {
    Files files = first_files();
    files["a"][17] ^= 1;  // a difference from the first
    files["c"] = "short";
    return files;
  }
  void flip(const os::Path& path, std::size_t at) {
    std::string text = slurp(path);
    text[at] = static_cast<char>(text[at] ^ 0x10);
    write(path, text);
  }

  Folder here, there_dir;
  std::shared_ptr<const StoreKey> key = key_named("one");
  ChunkStore chunks = open_store(here / "store", key);
  std::unique_ptr<Backend> remote = open_dir_remote(there_dir.path(), "");
};

TEST_F(Copying, BringsEverythingThatACheckpointNeedsAndItsRecordLast) {
  const CopyRecord first = save(chunks, first_files(), 1);
  const CopyRecord second = save(chunks, second_files(), 2, first_files());
  const auto stats = copy(second);  // its base is in the other's pack
  ASSERT_THAT(stats, IsOk());
  EXPECT_EQ(stats->packs_sent, 2u);
  const auto files = at_remote(second);
  ASSERT_THAT(files, IsOk());
  EXPECT_EQ(*files, second_files());
  const auto again = copy(second);
  ASSERT_THAT(again, IsOk());
  EXPECT_EQ(*again, CopyStats{});
  const auto other = copy(first);
  ASSERT_THAT(other, IsOk());
  EXPECT_EQ(other->packs_sent, 0u);  // all of it is there
  EXPECT_THAT(listed().records, SizeIs(2));
}

TEST_F(Copying, GoesOnWhereItWasCutOffAndShowsNothingHalfDone) {
  const CopyRecord first = save(chunks, first_files(), 1);
  const CopyRecord second = save(chunks, second_files(), 2, first_files());
  for (const bool lose_answers : {false, true}) {
    Folder another;
    remote = open_dir_remote(another.path(), "");
    std::uint64_t sent = 0;
    bool done = false;
    for (int calls = 0; !done; ++calls) {
      ASSERT_LT(calls, 50);
      Flaky flaky(*remote);
      flaky.calls_left = calls % 5;  // each try gets a little further, for what is there is not sent again
      flaky.lose_answers = lose_answers;
      if (calls > 20) flaky.calls_left = calls;
      const RemoteLink cut{&flaky, key.get()};
      const auto listing = list_remote(flaky);
      if (listing) {
        RemoteListing there = *listing;
        done = copy_checkpoint(chunks, cut, there, second).has_value();
      }
      sent += flaky.sent;
      const RemoteListing now = listed();
      if (!now.records.empty()) {
        const auto files = at_remote(second);
        ASSERT_THAT(files, IsOk()) << "after " << calls;
        EXPECT_EQ(*files, second_files());
      }
    }
    EXPECT_EQ(sent, listed().pack_bytes);
    ASSERT_THAT(at_remote(second), IsOk());
  }
}

TEST_F(Copying, GivesNoWrongByteWhicheverByteOfAPlaceIsFlipped) {
  const CopyRecord first = save(chunks, first_files(), 1);
  const CopyRecord second = save(chunks, second_files(), 2, first_files());
  ASSERT_THAT(copy(first), IsOk());
  ASSERT_THAT(copy(second), IsOk());
  std::size_t found = 0;
  for (const std::vector<Object> objects = *remote->list(""); const Object& object : objects) {
    const os::Path path = there_dir.path() / object.name;
    const std::string sound = slurp(path);
    for (std::size_t at = 0; at < sound.size(); ++at) {
      flip(path, at);
      for (const auto& [record, wanted] : {std::pair{first, first_files()}, std::pair{second, second_files()}}) {
        const auto files = at_remote(record);
        if (files) {
          EXPECT_EQ(*files, wanted) << object.name << " " << at;
        }
      }
      if (at % 5 == 0) {  // it takes its time
        const auto check = check_remote(link(), 1);
        ASSERT_THAT(check, IsOk());
        EXPECT_THAT(check->bad_records, Not(IsEmpty())) << object.name << " " << at;  // every blob is sealed
        ++found;
      }
      write(path, sound);
    }
  }
  EXPECT_GT(found, 300u);
}

TEST_F(Copying, FindsEveryTruncationOfAPlace) {
  const CopyRecord first = save(chunks, first_files(), 1);
  ASSERT_THAT(copy(first), IsOk());
  for (const std::vector<Object> objects = *remote->list(""); const Object& object : objects) {
    const os::Path path = there_dir.path() / object.name;
    const std::string sound = slurp(path);
    for (std::size_t size = 0; size < sound.size(); size += 7) {
      write(path, sound.substr(0, size));
      EXPECT_FALSE(at_remote(first)) << object.name << " " << size;
      EXPECT_THAT(check_remote(link(), 0)->findings, Not(IsEmpty())) << object.name << " " << size;
    }
    write(path, sound);
  }
  EXPECT_THAT(check_remote(link(), 1)->findings, IsEmpty());
}

TEST_F(Copying, MakesATornOrForeignCopyAnew) {
  const CopyRecord first = save(chunks, first_files(), 1);
  ASSERT_THAT(copy(first), IsOk());
  for (const std::vector<Object> objects = *remote->list(""); const Object& object : objects) {
    const os::Path path = there_dir.path() / object.name;
    write(path, slurp(path).substr(1));
    ASSERT_THAT(copy(first), IsOk()) << object.name;
    EXPECT_THAT(at_remote(first), IsOk()) << object.name;
  }
  const CopyRecord other = save(chunks, {{"x", "another life of this job"}}, 1);
  ASSERT_THAT(copy(other), IsOk());
  EXPECT_EQ(at_remote(other)->at("x"), "another life of this job");
}

TEST_F(Copying, NeverSendsWhatIsDamagedHere) {
  const CopyRecord first = save(chunks, first_files(), 1);
  for (const auto& pack : fs::directory_iterator(here / "store/packs")) flip(pack.path(), 300);
  chunks = open_store(here / "store", key);
  EXPECT_THAT(copy(first), FailsWith(Code::checkpoint_damaged));
  EXPECT_THAT(listed().records, IsEmpty());
  fs::remove_all(here / "store/packs");
  fs::create_directory(here / "store/packs");
  chunks = open_store(here / "store", key);
  EXPECT_THAT(copy(first), FailsWith(Code::checkpoint_damaged));
}

TEST_F(Copying, DamageInAPackDoesNotKeepOtherCheckpointsOfThatPackFromBeingCopied) {
  // One pack holds blobs of both.
  ASSERT_THAT(chunks.put(digest_of("sound"), as_bytes("sound")), IsOk());
  ASSERT_THAT(chunks.put(digest_of(noise(900, 9)), as_bytes(noise(900, 9))), IsOk());
  ASSERT_THAT(chunks.seal(), IsOk());
  const CopyRecord first = save(chunks, {{"a", "sound"}}, 1), second = save(chunks, {{"a", noise(900, 9)}}, 2);
  std::vector<os::Path> packs;
  for (const auto& pack : fs::directory_iterator(here / "store/packs")) packs.push_back(pack.path());
  for (const os::Path& pack : packs)
    if (fs::file_size(pack) > 1000) flip(pack, 300);
  chunks = open_store(here / "store", key);
  EXPECT_THAT(copy(second), FailsWith(Code::checkpoint_damaged));
  ASSERT_THAT(copy(first), IsOk());
  EXPECT_EQ(at_remote(first)->at("a"), "sound");
}

TEST_F(Copying, EncryptsWhatLiesOpenHereBeforeItLeaves) {
  const std::string secret = "what nobody else may read, " + noise(500, 3);
  {
    auto open = ChunkStore::open(here / "old");
    ASSERT_THAT(open, IsOk());
    save(*open, {{"a", secret}}, 1);
  }
  chunks = open_store(here / "old", key);
  const CopyRecord record = save(chunks, {{"a", secret}}, 1);  // is there already, in the open
  ASSERT_THAT(copy(record), IsOk());
  EXPECT_EQ(at_remote(record)->at("a"), secret);
  for (const std::vector<Object> objects = *remote->list(""); const Object& object : objects)
    EXPECT_EQ(slurp(there_dir.path() / object.name).find("nobody"), std::string::npos) << object.name;
}

TEST_F(Copying, HealsWhatIsDamagedOrMissingHere) {
  const CopyRecord first = save(chunks, first_files(), 1);
  const CopyRecord second = save(chunks, second_files(), 2, first_files());
  ASSERT_THAT(copy(second), IsOk());
  const auto whole = heal_checkpoint(chunks, link(), {second.job, second.seq}, second.root);
  ASSERT_THAT(whole, IsOk());
  EXPECT_EQ(whole->blobs, 0u);
  std::vector<os::Path> packs;
  for (const auto& pack : fs::directory_iterator(here / "store/packs")) packs.push_back(pack.path());
  for (const os::Path& pack : packs) {
    flip(pack, 300);
    chunks = open_store(here / "store", key);
    const auto healed = heal_checkpoint(chunks, link(), {second.job, second.seq}, second.root);
    ASSERT_THAT(healed, IsOk());
    EXPECT_GE(healed->blobs, 1u);
    chunks = open_store(here / "store", key);
    EXPECT_EQ(*load(chunks, second.root), second_files());
  }
  fs::remove_all(here / "store");
  chunks = open_store(here / "store", key);
  ASSERT_THAT(heal_checkpoint(chunks, link(), {second.job, second.seq}, second.root), IsOk());
  EXPECT_EQ(*load(chunks, second.root), second_files());
  EXPECT_THAT(heal_checkpoint(chunks, link(), {first.job, first.seq}, first.root), FailsWith(Code::not_found));
}

TEST_F(Copying, TakesNoOtherCheckpointForTheOneThatWasCopied) {
  const CopyRecord first = save(chunks, first_files(), 1);
  const CopyRecord other = save(chunks, {{"x", "another"}}, 1);
  ASSERT_THAT(copy(other), IsOk());
  fs::remove_all(here / "store");
  chunks = open_store(here / "store", key);
  EXPECT_THAT(heal_checkpoint(chunks, link(), {first.job, first.seq}, first.root), FailsWith(Code::checkpoint_damaged));
}

// Another state directory with this key writes a record of that name while ours is on its way.
TEST_F(Copying, TakesNoRecordOfAnotherCheckpointForItsOwn) {
  const CopyRecord ours = save(chunks, first_files(), 1);
  const CopyRecord other = save(chunks, {{"x", "another"}}, 1);
  CopyRecord later = other;
  later.seq = {2};
  ASSERT_THAT(copy(later), IsOk());  // what the other needs is there
  Flaky flaky(*remote);
  flaky.before_new = [&] { ASSERT_THAT(copy(other), IsOk()); };
  RemoteListing there = listed();
  EXPECT_THAT(copy_checkpoint(chunks, {&flaky, key.get()}, there, ours), FailsWith(Code::exists));
  EXPECT_THAT(there.records, SizeIs(1)) << "nobody is told that ours is there";
}

TEST_F(Copying, PrunesWhatNoRecordNeedsAndNothingInDoubt) {
  const CopyRecord first = save(chunks, first_files(), 1);
  const CopyRecord second = save(chunks, {{"x", "unlike the first"}}, 2);
  ASSERT_THAT(copy(first), IsOk());
  ASSERT_THAT(copy(second), IsOk());
  RemoteListing there = listed();
  ASSERT_THAT(forget_copy(*remote, there, {first.job, first.seq}), IsOk());
  const auto packs_before = listed().packs;
  const os::Path record = there_dir.path() / object_name(RecordName{second.job, second.seq});
  const std::string sound = slurp(record);
  flip(record, 40);
  EXPECT_THAT(prune_remote(link()), FailsWith(Code::checkpoint_damaged));
  EXPECT_EQ(listed().packs, packs_before);
  write(record, sound);
  Flaky flaky(*remote);
  flaky.calls_left = 0;
  EXPECT_THAT(prune_remote({&flaky, key.get()}), FailsWith(Code::host_unreachable));
  EXPECT_EQ(listed().packs, packs_before);
  const auto pruned = prune_remote(link());
  ASSERT_THAT(pruned, IsOk());
  EXPECT_EQ(pruned->packs_removed, 1u);
  EXPECT_THAT(at_remote(second), IsOk());
  EXPECT_THAT(listed().packs, SizeIs(1));
}

TEST_F(Copying, StopsWhenToldAndLeavesNoRecord) {
  const CopyRecord first = save(chunks, first_files(), 1);
  RemoteListing there = listed();
  EXPECT_THAT(copy_checkpoint(chunks, link(), there, first, [](std::uint64_t, std::uint64_t) { return false; }),
              FailsWith(Code::cancelled));
  EXPECT_THAT(listed().records, IsEmpty());
  ASSERT_THAT(copy(first), IsOk());
}

}  // namespace
}  // namespace gridctl::store::copying_test
