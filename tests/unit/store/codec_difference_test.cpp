// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <random>

#include "store/codec.hpp"
#include "store/scan.hpp"
#include "store/store_key.hpp"
#include "store/tree.hpp"
#include "support/results.hpp"
#include "unit/store/fixtures.hpp"

namespace gridctl::store::codec_difference_test {
namespace {

using namespace testing;
using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;
using ::testing::SizeIs;
namespace fs = std::filesystem;

std::string text_of(const std::vector<float>& values) {
  std::string text(values.size() * sizeof(float), '\0');
  std::memcpy(text.data(), values.data(), text.size());
  return text;
}

// Weights of a training run: each save moves them a little.
class Weights {
 public:
  Weights() {
    for (float& value : values_) value = normal_(random_) * 0.02F;
  }
  std::string next() {
    for (float& value : values_) value += normal_(random_) * 3e-4F;
    return text_of(values_);
  }

 private:
  std::mt19937 random_{1};
  std::normal_distribution<float> normal_;
  std::vector<float> values_ = std::vector<float>(1u << 16);
};

class Difference : public ::testing::Test {
 protected:
  ChunkStore opened() {
    StoreOptions options;
    options.cipher = key;
    options.clock = &clock;
    auto store = ChunkStore::open(dir / "s", options);
    EXPECT_THAT(store, IsOk());
    return *std::move(store);
  }
  // Each after the one before it, sealed one by one.
  std::vector<Digest> saves(ChunkStore& store, const std::vector<std::string>& texts) {
    std::vector<Digest> digests;
    for (const std::string& text : texts) {
      const Digest before = digests.empty() ? Digest{} : digests.back();
      digests.push_back(digest_of(text));
      EXPECT_THAT(store.put_hashed(digests.back(), as_bytes(text), &before), IsOk());
      EXPECT_THAT(store.seal(), IsOk());
    }
    return digests;
  }
  std::vector<os::Path> packs() {
    std::vector<os::Path> found;
    for (const auto& entry : fs::directory_iterator(dir / "s/packs")) found.push_back(entry.path());
    return found;
  }
  Folder dir;
  FakeClock clock;
  std::shared_ptr<const StoreKey> key = std::make_shared<const StoreKey>(digest_of("key"));
  Weights weights;
};

TEST_F(Difference, KeepsWeightsThatMovedALittleMuchSmallerAndGivesBackEveryBit) {
  const std::vector<std::string> texts{weights.next(), weights.next(), weights.next()};
  std::vector<Digest> digests;
  {
    ChunkStore store = opened();
    digests = saves(store, texts);
  }
  EXPECT_THAT(packs(), SizeIs(3));
  std::vector<std::uintmax_t> sizes;
  for (const os::Path& pack : packs()) sizes.push_back(fs::file_size(pack));
  std::sort(sizes.begin(), sizes.end());
  EXPECT_LT(sizes[0], texts[0].size() * 72 / 100);
  EXPECT_LT(sizes[1], texts[0].size() * 75 / 100) << "two saves from its base";
  EXPECT_GT(sizes[2], texts[0].size() * 80 / 100) << "the first is whole";
  ChunkStore store = opened();
  for (std::size_t i = 0; i < texts.size(); ++i) EXPECT_EQ(as_text(*store.get(digests[i])), texts[i]);
  EXPECT_EQ(verified(store).damages_total, 0u);
}

TEST_F(Difference, IsNotMadeWhereItDoesNotPayNorFromAnotherSize) {
  ChunkStore store = opened();
  const std::string one = noise(50'000, 1), other = noise(50'000, 2), longer = weights.next();
  saves(store, {one, other, longer});
  for (const os::Path& pack : packs()) {
    const std::string bytes = slurp(pack);
    EXPECT_EQ(read_pack_index(bytes.size(), reader_over(bytes))->entries.at(0).base, BaseId{});
  }
}

TEST_F(Difference, IsMadeFromWholeBlobsOnlySoThatReadingNeedsNoChain) {
  ChunkStore store = opened();
  saves(store, {weights.next(), weights.next(), weights.next(), weights.next()});
  std::vector<PackEntry> entries;
  for (const os::Path& pack : packs()) {
    const std::string bytes = slurp(pack);
    entries.push_back(read_pack_index(bytes.size(), reader_over(bytes))->entries.at(0));
  }
  const auto whole = std::find_if(entries.begin(), entries.end(), [](const PackEntry& entry) { return !entry.base; });
  ASSERT_NE(whole, entries.end());
  for (const PackEntry& entry : entries) EXPECT_TRUE(!entry.base || entry.base == base_id(whole->id));
  EXPECT_EQ(std::count_if(entries.begin(), entries.end(), [](const PackEntry& entry) { return !entry.base; }), 1);
}

TEST_F(Difference, KeepsItsBaseThroughCollectionsUntilItIsGoneItself) {
  const std::vector<std::string> texts{weights.next(), weights.next()};
  ChunkStore store = opened();
  const auto digests = saves(store, texts);
  clock.ahead = std::chrono::hours{25};
  ASSERT_THAT(store.collect({digests[1]}), IsOk());
  EXPECT_EQ(as_text(*store.get(digests[1])), texts[1]);
  clock.ahead = std::chrono::hours{50};
  EXPECT_EQ(store.collect({})->packs_removed, 1u) << "the difference";
  clock.ahead = std::chrono::hours{75};
  EXPECT_EQ(store.collect({})->packs_removed, 1u) << "and then its base";
  EXPECT_THAT(packs(), SizeIs(0));
}

TEST_F(Difference, IsCopiedByCollectionsWithItsBase) {
  const std::vector<std::string> texts{weights.next(), weights.next()};
  ChunkStore store = opened();
  const Digest first = digest_of(texts[0]), second = digest_of(texts[1]);
  put(store, noise(2'000'000, 1));
  ASSERT_THAT(store.put_hashed(first, as_bytes(texts[0])), IsOk());
  ASSERT_THAT(store.seal(), IsOk());
  put(store, noise(2'000'000, 2));
  ASSERT_THAT(store.put_hashed(second, as_bytes(texts[1]), &first), IsOk());
  ASSERT_THAT(store.seal(), IsOk());
  clock.ahead = std::chrono::hours{25};
  EXPECT_EQ(store.collect({second})->packs_rewritten, 2u);
  EXPECT_EQ(as_text(*opened().get(second)), texts[1]);
  EXPECT_EQ(verified(store).damages_total, 0u);
}

TEST_F(Difference, IsDamagedWhenItsBaseIsAndSoundAgainWhenThatIsPutAgain) {
  const std::vector<std::string> texts{weights.next(), weights.next()};
  std::vector<Digest> digests;
  {
    ChunkStore store = opened();
    digests = saves(store, texts);
  }
  for (const os::Path& pack : packs()) {
    std::string bytes = slurp(pack);
    if (bytes.size() < texts[0].size() * 75 / 100) continue;
    bytes[5000] ^= 1;
    write(pack, bytes);
  }
  ChunkStore damaged = opened();
  EXPECT_EQ(verified(damaged).damages_total, 2u);
  EXPECT_THAT(opened().get(digests[1]), FailsWith(Code::checkpoint_damaged));
  ChunkStore store = opened();
  EXPECT_THAT(store.get(digests[0]), FailsWith(Code::checkpoint_damaged));
  put(store, texts[0]);
  ASSERT_THAT(store.seal(), IsOk());
  EXPECT_EQ(as_text(*store.get(digests[1])), texts[1]);
}

TEST_F(Difference, IsFoundByAScanFromThePlaceInThePreviousTree) {
  const std::string frozen = noise(1 << 20, 1);
  ChunkStore store = opened();
  Tree before;
  for (int save = 0; save < 2; ++save) {
    write(dir / "c/model", weights.next());
    write(dir / "c/frozen", frozen);
    ScanOptions options;
    options.previous = &before;
    options.threads = 2;
    std::atomic<int> with_remote = 0;
    options.on_chunk_after = [&](const Digest& digest, ByteView bytes, const Digest* place) {
      with_remote += place != nullptr ? 1 : 0;
      return store.put_hashed(digest, bytes, place);
    };
    before = scan(dir / "c", options)->tree;
    EXPECT_EQ(with_remote, save == 0 ? 0 : 2);
    ASSERT_THAT(store.seal(), IsOk());
  }
  EXPECT_LT(store.stats()->put_bytes, (1u << 20) + (1u << 18) * 155 / 100);
}

// Four of five tensors are in both files, the new one in front; then twenty jobs tune one frozen base.
TEST_F(Difference, WhatFilesAndJobsShareIsKeptOnce) {
  ChunkStore store = opened();
  const auto kept = [&](const char* folder) {
    ScanOptions options;
    options.on_chunk = [&](const Digest& digest, ByteView bytes) { return store.put(digest, bytes); };
    const std::uint64_t before = store.stats()->put_bytes;
    EXPECT_THAT(scan(dir / folder, options), IsOk());
    return store.stats()->put_bytes - before;
  };
  constexpr std::size_t k_tensor = 5u << 20;
  std::vector<std::pair<std::string, std::string>> tensors;
  for (const char* name : {"a", "b", "c", "d", "e"}) tensors.emplace_back(name, noise(k_tensor, tensors.size() + 1));
  write(dir / "one/m.safetensors", safetensors(tensors));
  const std::uint64_t first = kept("one");
  tensors.pop_back();
  tensors.insert(tensors.begin(), {"new", noise(k_tensor, 9)});
  write(dir / "two/m.safetensors", safetensors(tensors));
  EXPECT_LE(kept("two"), first * 22 / 100);
  const std::string base = safetensors({{"base", noise(3 * k_tensor, 10)}});
  for (int job = 0; job < 20; ++job) {
    const std::string folder = "job" + std::to_string(job);
    write(dir / folder / "base.safetensors", base);
    write(dir / folder / "adapter.safetensors", safetensors({{"lora", noise(40'000, 20 + job)}}));
    const std::uint64_t added = kept(folder.c_str());
    EXPECT_LT(job == 0 ? 0 : added, 50'000u);
  }
}

TEST(DifferenceCodec, IsLosslessForEveryBitPatternAndSize) {
  std::mt19937 random(7);
  for (const std::size_t size : {64u, 65u, 1000u, 4097u, 100'001u}) {
    std::string base = noise(size, size), plain = base;
    for (std::size_t i = 0; i < size; i += 1 + random() % 50) plain[i] = static_cast<char>(random());
    const auto encoded = encode_difference(as_bytes(plain), {as_bytes(base).begin(), as_bytes(base).end()});
    ASSERT_TRUE(encoded) << size;
    const auto back = decode(encoded->encoding, encoded->bytes, size, as_bytes(base));
    ASSERT_THAT(back, IsOk());
    EXPECT_EQ(as_text(*back), plain);
    EXPECT_THAT(decode(encoded->encoding, encoded->bytes, size, as_bytes(base).first(size - 1)),
                FailsWith(Code::checkpoint_damaged));
  }
}

}  // namespace
}  // namespace gridctl::store::codec_difference_test
