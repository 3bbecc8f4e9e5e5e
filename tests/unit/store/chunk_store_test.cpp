// SPDX-License-Identifier: Apache-2.0
#include "store/chunk_store.hpp"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <atomic>
#include <cstring>
#include <random>
#include <thread>

#include "store/tree.hpp"
#include "support/disk_calls.hpp"
#include "unit/store/fixtures.hpp"

namespace gridctl::store::chunk_store_test {
namespace {

using namespace testing;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
namespace fs = std::filesystem;

ChunkStore opened(const os::Path& path, const StoreOptions& options = {}) {
  auto store = ChunkStore::open(path, options);
  EXPECT_TRUE(store) << store.error().one_line();
  return *std::move(store);
}
std::vector<os::Path> packs_of(const os::Path& store) {
  std::vector<os::Path> packs;
  for (const auto& entry : fs::directory_iterator(store / "packs")) packs.push_back(entry.path());
  return packs;
}

TEST(ChunkStore, GivesBackWhatWasPutBeforeAndAfterSealAndReopen) {
  Folder dir;
  const std::string big = noise(k_chunk_max, 1);
  Digest small_id, big_id;
  {
    ChunkStore store = opened(dir / "s");
    small_id = put(store, "small");
    big_id = put(store, big);
    EXPECT_EQ(as_text(*store.get(small_id)), "small");
    ASSERT_TRUE(store.seal());
    EXPECT_EQ(as_text(*store.get(big_id)), big);
  }
  ChunkStore store = opened(dir / "s");
  EXPECT_TRUE(*store.has(small_id));
  EXPECT_EQ(as_text(*store.get(big_id)), big);
  EXPECT_EQ(store.get(digest_of("absent")).error().code, Code::not_found);
}

TEST(ChunkStore, WhatIsSealedIsOnTheDiskUnderItsName) {
  Folder dir;
  ChunkStore store = opened(dir / "s");
  put(store, "small");
  const gridctl::testing::DiskRecord disk(dir / "s");
  ASSERT_TRUE(store.seal());
  const std::vector<os::Path> packs = packs_of(dir / "s");
  ASSERT_THAT(packs, SizeIs(1));
  EXPECT_GT(disk.durable(packs.front()), 0u) << "a power cut takes it\n" << disk.text();
}

TEST(ChunkStore, ShowsOtherInstancesOnlyWhatIsSealed) {
  Folder dir;
  ChunkStore writer = opened(dir / "s"), reader = opened(dir / "s");
  const Digest id = put(writer, "news");
  EXPECT_FALSE(*reader.has(id));
  ASSERT_TRUE(writer.seal());
  EXPECT_TRUE(*reader.has(id));
  EXPECT_EQ(as_text(*reader.get(id)), "news");
}

TEST(ChunkStore, RefusesContentThatDoesNotHashToItsName) {
  Folder dir;
  ChunkStore store = opened(dir / "s");
  EXPECT_EQ(store.put(digest_of("a"), as_bytes("b")).error().code, Code::checkpoint_damaged);
  EXPECT_EQ(store.put(digest_of(""), as_bytes("")).error().code, Code::checkpoint_damaged);
  EXPECT_EQ(store.stats()->unsealed_blobs, 0u);
}

TEST(ChunkStore, WritesEqualChunksOnce) {
  Folder dir;
  ChunkStore store = opened(dir / "s");
  for (int i = 0; i < 3; ++i) put(store, "same");
  ASSERT_TRUE(store.seal());
  put(store, "same");
  ASSERT_TRUE(store.seal());
  EXPECT_EQ(store.stats()->put_blobs, 1u);
  EXPECT_THAT(packs_of(dir / "s"), SizeIs(1));
}

TEST(ChunkStore, LeavesNothingBehindWhenItIsClosedUnsealed) {
  Folder dir;
  Digest id;
  {
    ChunkStore store = opened(dir / "s");
    id = put(store, "lost");
  }
  EXPECT_TRUE(fs::is_empty(dir / "s/tmp"));
  ChunkStore store = opened(dir / "s");
  EXPECT_FALSE(*store.has(id));
}

TEST(ChunkStore, FindsAChangeOfAnyByteOfAPack) {
  Folder dir;
  {
    ChunkStore store = opened(dir / "s");
    put(store, "first blob");
    put(store, "second");
    ASSERT_TRUE(store.seal());
  }
  const os::Path pack = packs_of(dir / "s").at(0);
  const std::string sound = slurp(pack);
  ChunkStore store = opened(dir / "s");
  for (std::size_t i = 0; i < sound.size(); ++i) {
    std::string bad = sound;
    bad[i] = static_cast<char>(bad[i] ^ (1 << (i % 8)));
    write(pack, bad);
    EXPECT_EQ(verified(store).damages_total, 1u) << "byte " << i;
  }
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, sound.size() / 2, sound.size() - 1}) {
    write(pack, sound.substr(0, size));
    EXPECT_EQ(verified(store).damages_total, 1u) << "cut to " << size;
  }
  write(pack, sound + "x");
  EXPECT_EQ(verified(store).damages_total, 1u);
  write(pack, sound);
  EXPECT_EQ(verified(store).damages_total, 0u);
}

std::string weights(std::size_t count, std::uint64_t seed) {
  std::mt19937 random(static_cast<unsigned>(seed));
  std::normal_distribution<float> normal(0, 0.02F);
  std::string bytes(count * sizeof(float), '\0');
  for (std::size_t i = 0; i < count; ++i) {
    const float value = normal(random);
    std::memcpy(bytes.data() + i * sizeof value, &value, sizeof value);
  }
  return bytes;
}

TEST(ChunkStore, KeepsWeightsSmallerAndGivesBackEveryBit) {
  Folder dir;
  const std::string tensor = weights(1u << 18, 1);
  Digest id;
  {
    ChunkStore store = opened(dir / "s");
    id = put(store, tensor);
    EXPECT_EQ(as_text(*store.get(id)), tensor);
    ASSERT_TRUE(store.seal());
    EXPECT_LT(store.stats()->put_bytes, tensor.size() * 85 / 100);
  }
  ChunkStore store = opened(dir / "s", {nullptr, k_pack_bytes_max, false});  // reads what it would not write
  EXPECT_EQ(as_text(*store.get(id)), tensor);
  put(store, tensor);
  EXPECT_EQ(store.stats()->put_blobs, 0u);
}

// A bit that zstd does not look at changes nothing: verification says so by hashing what comes out.
TEST(ChunkStore, FindsAChangeOfAnyByteOfAPackWithEncodedBlobsOrReadsTheSame) {
  Folder dir;
  {
    ChunkStore store = opened(dir / "s");
    put(store, weights(150, 1));
    put(store, std::string(3000, 'a'));
    put(store, noise(100, 2));
    ASSERT_TRUE(store.seal());
  }
  const os::Path pack = packs_of(dir / "s").at(0);
  const std::string sound = slurp(pack);
  EXPECT_LT(sound.size(), 1200u);
  std::size_t unnoticed = 0;
  ChunkStore store = opened(dir / "s");
  for (std::size_t i = 0; i < sound.size(); ++i) {
    std::string bad = sound;
    bad[i] = static_cast<char>(bad[i] ^ (1 << (i % 8)));
    write(pack, bad);
    const std::uint64_t damages = verified(store).damages_total;
    EXPECT_LE(damages, 1u) << "byte " << i;
    unnoticed += damages == 0 ? 1 : 0;
  }
  EXPECT_LE(unnoticed, 10u);
  write(pack, sound);
  EXPECT_EQ(verified(store).damages_total, 0u);
}

TEST(ChunkStore, NamesPackAndOffsetOfADamagedChunkAndTakesASoundCopyWhenPutAgain) {
  Folder dir;
  Digest id;
  {
    ChunkStore store = opened(dir / "s");
    id = put(store, "precious");
    ASSERT_TRUE(store.seal());
  }
  const os::Path pack = packs_of(dir / "s").at(0);
  std::string bytes = slurp(pack);
  bytes[20] ^= 1;
  write(pack, bytes);
  ChunkStore store = opened(dir / "s");
  const auto got = store.get(id);
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, Code::checkpoint_damaged);
  EXPECT_THAT(got.error().message, HasSubstr(pack.filename().string()));
  EXPECT_THAT(got.error().message, HasSubstr("offset 16"));
  EXPECT_FALSE(*store.has(id));
  put(store, "precious");
  ASSERT_TRUE(store.seal());
  EXPECT_EQ(as_text(*store.get(id)), "precious");
}

TEST(ChunkStore, SetsDamagedPacksAsideAndKeepsWhatIsSound) {
  Folder dir;
  ChunkStore store = opened(dir / "s");
  const Digest bad = put(store, "will be damaged"), good = put(store, "stays sound");
  ASSERT_TRUE(store.seal());
  const Digest other = put(store, "another pack");
  ASSERT_TRUE(store.seal());
  for (const os::Path& pack : packs_of(dir / "s")) {
    std::string bytes = slurp(pack);
    if (bytes.find("will be") == std::string::npos) continue;
    bytes[20] ^= 1;
    write(pack, bytes);
  }
  ChunkStore before = opened(dir / "s");
  EXPECT_TRUE(before.missing(std::vector{bad})->empty()) << "nobody has read it yet";
  EXPECT_EQ(*store.set_aside(verified(store)), 1u);
  EXPECT_EQ(*before.missing(std::vector{bad, good, other}), std::vector<std::uint32_t>{0});
  EXPECT_EQ(as_text(*before.get(good)), "stays sound");
  EXPECT_EQ(verified(store).damages_total, 0u);
  EXPECT_EQ(*store.set_aside(verified(store)), 0u);
}

TEST(ChunkStore, RefusesAStoreOfAnotherVersionOrWithAnUnknownRequirement) {
  Folder dir;
  opened(dir / "s");
  write(dir / "s/format", "gridctl-store 2\n");
  EXPECT_EQ(ChunkStore::open(dir / "s").error().code, Code::state_unreadable);
  for (const char* setting : {"Key abc", "Knife abc"}) {
    write(dir / "s/format", std::string("gridctl-store 1\n") + setting + "\n");
    EXPECT_EQ(ChunkStore::open(dir / "s").error().code, Code::state_unreadable) << setting;
  }
  write(dir / "s/format", "gridctl-store 1\nnote abc\n");
  EXPECT_TRUE(ChunkStore::open(dir / "s"));
  fs::remove(dir / "s/format");
  EXPECT_EQ(ChunkStore::open(dir / "s").error().code, Code::state_unreadable);
}

TEST(ChunkStore, ReportsAListingThatFailsInsteadOfAnEmptyStore) {
  Folder dir;
  ChunkStore store = opened(dir / "s");
  const Digest id = put(store, "x");
  ASSERT_TRUE(store.seal());
  ChunkStore other = opened(dir / "s");
  fs::rename(dir / "s/packs", dir / "s/elsewhere");
  EXPECT_FALSE(other.has(id));
  EXPECT_FALSE(other.collect({}));
  fs::rename(dir / "s/elsewhere", dir / "s/packs");
  EXPECT_TRUE(*other.has(id));
}

class Collect : public ::testing::Test {
 protected:
  Folder dir;
  FakeClock clock;
  ChunkStore store = opened(dir / "s", {&clock, k_pack_bytes_max});
  std::vector<Digest> pack_of(const std::vector<std::string>& texts) {
    std::vector<Digest> ids;
    for (const std::string& text : texts) ids.push_back(put(store, text));
    EXPECT_TRUE(store.seal());
    return ids;
  }
};

TEST_F(Collect, RemovesDeadPacksRewritesMostlyDeadOnesAndKeepsTheRest) {
  const auto dead = pack_of({noise(1000, 1), noise(1000, 2)});
  const auto mixed = pack_of({noise(1000, 3), noise(5000, 4)});
  const auto whole = pack_of({noise(1000, 5)});
  clock.ahead = std::chrono::hours{25};
  const auto report = store.collect({mixed[0], whole[0]});
  ASSERT_TRUE(report) << report.error().one_line();
  EXPECT_EQ(report->packs_removed, 1u);
  EXPECT_EQ(report->packs_rewritten, 1u);
  EXPECT_EQ(report->bytes_freed, 8000u);
  EXPECT_EQ(report->bytes_copied, 1000u);
  EXPECT_FALSE(*store.has(dead[0]));
  EXPECT_FALSE(*store.has(mixed[1]));
  EXPECT_EQ(as_text(*store.get(mixed[0])), noise(1000, 3));
  EXPECT_EQ(as_text(*store.get(whole[0])), noise(1000, 5));
  EXPECT_EQ(verified(store).damages_total, 0u);
}

TEST_F(Collect, CopiesEncodedBlobsAsTheyAre) {
  const auto ids = pack_of({weights(500, 1), noise(9000, 2)});
  clock.ahead = std::chrono::hours{25};
  const auto report = store.collect({ids[0]});
  ASSERT_TRUE(report) << report.error().one_line();
  EXPECT_EQ(report->packs_rewritten, 1u);
  EXPECT_LT(report->bytes_copied, 2000u * 9 / 10);
  EXPECT_EQ(as_text(*store.get(ids[0])), weights(500, 1));
}

TEST_F(Collect, LeavesYoungPacksAlone) {
  const auto ids = pack_of({"young"});
  clock.ahead = std::chrono::hours{23};
  EXPECT_EQ(store.collect({})->packs_removed, 0u);
  EXPECT_TRUE(*store.has(ids[0]));
}

TEST_F(Collect, KeepsAnOldPackThatAWriterClaims) {
  const auto ids = pack_of({"old but wanted"});
  const os::Path pack = packs_of(dir / "s").at(0);
  fs::last_write_time(pack, fs::file_time_type::clock::now() - std::chrono::hours{30});
  ChunkStore writer = opened(dir / "s");
  EXPECT_THAT(*writer.missing(ids), IsEmpty());
  EXPECT_EQ(store.collect({})->packs_removed, 0u);
  EXPECT_TRUE(*writer.has(ids[0]));
}

TEST_F(Collect, IsNoticedByReadersAndWritersThatHaveTheStoreOpen) {
  const auto ids = pack_of({noise(100, 1), noise(9000, 2)});
  ChunkStore reader = opened(dir / "s");
  EXPECT_TRUE(*reader.has(ids[0]));
  clock.ahead = std::chrono::hours{25};
  ASSERT_TRUE(store.collect({ids[0]}));
  EXPECT_EQ(as_text(*reader.get(ids[0])), noise(100, 1));
  put(reader, noise(9000, 2));  // gone: must be written anew
  ASSERT_TRUE(reader.seal());
  EXPECT_EQ(as_text(*store.get(ids[1])), noise(9000, 2));
}

TEST_F(Collect, NeverRemovesAPackItCannotRead) {
  pack_of({"a"});
  const os::Path pack = packs_of(dir / "s").at(0);
  write(pack, slurp(pack).substr(1));
  clock.ahead = std::chrono::hours{100};
  ASSERT_TRUE(store.collect({}));
  EXPECT_TRUE(fs::exists(pack));
}

TEST_F(Collect, DoesNotDropTheSoundRestOfADamagedPack) {
  const auto ids = pack_of({noise(100, 1), noise(100, 2), noise(9000, 3)});
  const os::Path pack = packs_of(dir / "s").at(0);
  std::string bytes = slurp(pack);
  bytes[16 + 150] ^= 1;  // the second blob
  write(pack, bytes);
  clock.ahead = std::chrono::hours{25};
  ASSERT_TRUE(store.collect({ids[0], ids[1]}));
  EXPECT_TRUE(fs::exists(pack));
  EXPECT_THAT(packs_of(dir / "s"), SizeIs(1)) << "no copies that would grow with each collection";
  EXPECT_EQ(as_text(*store.get(ids[0])), noise(100, 1));
}

TEST_F(Collect, SweepsOldUnfinishedPacksOnly) {
  write(dir / "s/tmp/old.part", "x");
  write(dir / "s/tmp/young.part", "x");
  fs::last_write_time(dir / "s/tmp/old.part", fs::file_time_type::clock::now() - std::chrono::hours{30});
  EXPECT_EQ(store.collect({})->unfinished_removed, 1u);
  EXPECT_TRUE(fs::exists(dir / "s/tmp/young.part"));
}

TEST(ChunkStore, TakesTenThousandSmallFilesWithAFewSyncs) {
  Folder dir;
  ChunkStore store = opened(dir / "s");
  const BootTime begin = os::system_clock().boot();
  for (std::uint64_t i = 0; i < 10'000; ++i) put(store, noise(1000, i + 1));
  ASSERT_TRUE(store.seal());
  const double took = seconds(os::system_clock().boot() - begin);
  RecordProperty("seconds", std::to_string(took));
  std::printf("10,000 chunks of 1000 bytes put and sealed in %.2f s\n", took);
  EXPECT_THAT(packs_of(dir / "s"), SizeIs(1));
  EXPECT_EQ(opened(dir / "s").stats()->blobs, 10'000u);
}

TEST(ChunkStore, ServesSeveralThreads) {
  Folder dir;
  ChunkStore store = opened(dir / "s", {nullptr, 50'000});
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (std::uint64_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (std::uint64_t i = 0; i < 60; ++i) {
        const std::string text = noise(2000, thread % 2 * 1000 + i + 1);
        if (!store.put(digest_of(text), as_bytes(text))) ++wrong;
        const auto got = store.get(digest_of(text));
        if (!got || as_text(*got) != text) ++wrong;
        if (i % 20 == 0 && !store.seal()) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(store.seal());
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(store.stats()->put_blobs, 120u);
  EXPECT_EQ(verified(store).damages_total, 0u);
}

TEST(ChunkStore, ClosesPacksAtTheirSize) {
  Folder dir;
  ChunkStore store = opened(dir / "s", {nullptr, 10'000});
  for (std::uint64_t i = 0; i < 10; ++i) put(store, noise(3000, i + 1));
  ASSERT_TRUE(store.seal());
  EXPECT_THAT(packs_of(dir / "s"), SizeIs(3));
}

}  // namespace
}  // namespace gridctl::store::chunk_store_test
