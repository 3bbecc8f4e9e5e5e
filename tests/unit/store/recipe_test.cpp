// SPDX-License-Identifier: Apache-2.0
#include "store/recipe.hpp"

#include <gmock/gmock.h>

#include <cstring>
#include <map>
#include <random>

#include "store/tree.hpp"
#include "support/results.hpp"
#include "unit/store/remote_fixtures.hpp"

namespace gridctl::store::recipe_test {
namespace {

using namespace testing;
using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

std::string weights(std::uint32_t seed, double moved) {
  std::mt19937 random(1), mover(seed);
  std::normal_distribution<float> normal;
  std::string text(std::size_t{1} << 18, '\0');
  for (std::size_t at = 0; at < text.size(); at += sizeof(float)) {
    const float value = normal(random) * 0.02F + static_cast<float>(moved) * normal(mover) * 3e-4F;
    std::memcpy(text.data() + at, &value, sizeof value);
  }
  return text;
}

class Recipe : public ::testing::Test {
 protected:
  // Two checkpoints, the second with differences to the first, a text that is compressed, and noise that is not.
  Recipe() {
    const Files first{{"model", weights(1, 0)}, {"log", std::string(50'000, 'x')}, {"noise", noise(90'000, 3)}};
    Files second = first;
    second["model"] = weights(2, 1);
    second["log"] += "more";
    second["new"] = noise(70'001, 5);
    for (const Files& files : {first, second}) {
      const CopyRecord record = save(store, files, records.size() + 1, records.empty() ? Files{} : first);
      for (const auto& [path, text] : files) contents[digest_of(text)] = text;
      const Bytes manifest = *store.get(record.root);
      contents[record.root] = std::string(as_text(manifest));
      records.push_back(record);
    }
    for (const auto& [digest, text] : contents) known[key->storage_id(digest)] = digest;
  }
  std::vector<PackFile> packs() {
    std::vector<Digest> all;
    for (const auto& [digest, text] : contents) all.push_back(digest);
    return *store.packs_of(all);
  }
  ReadBlob reader() {
    return [this](const Digest& digest) -> Result<Bytes> {
      const auto found = contents.find(digest);
      if (found == contents.end()) return make_error(Code::not_found, "gone");
      const ByteView bytes = as_bytes(found->second);
      return Bytes(bytes.begin(), bytes.end());
    };
  }
  Result<std::optional<PackRecipe>> recipe_for(const PackFile& pack, const StoreKey& with, const KnownBlobs& blobs) {
    return recipe_of(pack, with, blobs, [this](const BaseId& base) -> Result<Digest> {
      TRY_ASSIGN(const Bytes content, store.get_base(base));
      return crypto::sha256(content);
    });
  }
  Result<std::string> made(const PackRecipe& recipe) {
    std::string out;
    TRY(remake_pack(recipe, reader(), [&](ByteView part) {
      out += as_text(part);
      return Result<void>();
    }));
    return out;
  }
  Folder dir;
  std::shared_ptr<const StoreKey> key = key_named("key");
  ChunkStore store = open_store(dir / "s", key);
  std::vector<CopyRecord> records;
  std::map<Digest, std::string> contents;
  KnownBlobs known;
};

TEST_F(Recipe, MakesEachPackAgainByteForByteWithoutTheStoreKey) {
  ASSERT_THAT(packs(), SizeIs(2));
  std::set<Codec> codecs;
  for (const PackFile& pack : packs()) {
    const auto recipe = recipe_for(pack, *key, known);
    ASSERT_THAT(recipe, IsOk());
    ASSERT_TRUE(*recipe);
    for (const RecipeBlob& blob : (*recipe)->blobs) codecs.insert(blob.entry.encoding.codec);
    const auto sent = parse_recipe(encode(**recipe));
    ASSERT_THAT(sent, IsOk());
    EXPECT_EQ(*sent, **recipe);
    EXPECT_EQ(encode(*sent).size(), 60 + k_recipe_blob_bytes * sent->blobs.size());
    const auto again = made(*sent);
    ASSERT_THAT(again, IsOk());
    EXPECT_EQ(*again, slurp(pack.path));
  }
  EXPECT_EQ(codecs, (std::set{Codec::raw, Codec::zstd, Codec::planes, Codec::difference_planes}));
}

TEST_F(Recipe, IsNotMadeOfWhatSomebodyElseLacks) {
  KnownBlobs fewer = known;
  fewer.erase(key->storage_id(digest_of(noise(90'000, 3))));
  std::size_t without = 0;
  for (const PackFile& pack : packs()) {
    const auto recipe = recipe_for(pack, *key, fewer);
    ASSERT_THAT(recipe, IsOk());
    if (!*recipe) ++without;
    const auto other = recipe_for(pack, *key_named("another"), known);
    ASSERT_THAT(other, IsOk());
    EXPECT_FALSE(*other);
  }
  EXPECT_EQ(without, 1);
}

TEST_F(Recipe, OfChangedContentOrOfAnotherEncodingGivesNoPack) {
  const auto recipe = recipe_for(packs()[0], *key, known);
  ASSERT_THAT(recipe, IsOk());
  const PackRecipe good = **recipe;
  ASSERT_THAT(made(good), IsOk());
  PackRecipe other = good;
  other.blobs[0].nonce[3] ^= std::byte{1};
  EXPECT_THAT(made(other), FailsWith(Code::unsupported));
  other = good;
  other.content.bytes[0] ^= std::byte{1};
  EXPECT_THAT(made(other), FailsWith(Code::unsupported));
  std::string& text = contents[good.blobs[0].digest];
  text[100] ^= 1;
  EXPECT_THAT(made(good), FailsWith(Code::unsupported));
  text.pop_back();
  EXPECT_THAT(made(good), FailsWith(Code::checkpoint_damaged));
  contents.erase(good.blobs[0].digest);
  EXPECT_THAT(made(good), FailsWith(Code::not_found));
}

TEST_F(Recipe, ThatIsCutOrOddIsRefused) {
  const auto recipe = recipe_for(packs()[0], *key, known);
  ASSERT_THAT(recipe, IsOk());
  const Bytes whole = encode(**recipe);
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_THAT(parse_recipe(ByteView(whole).first(size)), FailsWith(Code::protocol_violation)) << size;
  Bytes longer = whole;
  longer.push_back(std::byte{0});
  EXPECT_THAT(parse_recipe(longer), FailsWith(Code::protocol_violation));
  constexpr std::size_t k_size = 16, k_length = 60 + 64, k_codec = k_length + 8;
  for (const std::size_t at : {k_size, k_length, k_length + 4, k_codec}) {
    Bytes odd = whole;
    odd[at] = std::byte{0xff};
    EXPECT_THAT(parse_recipe(odd), FailsWith(Code::protocol_violation)) << at;
  }
}

}  // namespace
}  // namespace gridctl::store::recipe_test
