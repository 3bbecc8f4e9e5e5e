// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <algorithm>
#include <fcntl.h>

#include "os/entries.hpp"
#include "store/store_key.hpp"
#include "store/store_state.hpp"
#include "support/results.hpp"
#include "unit/store/fixtures.hpp"

namespace gridctl::store::cipher_test {
namespace {

using namespace testing;
using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
namespace fs = std::filesystem;

std::shared_ptr<const StoreKey> key_of(std::string_view secret) {
  return std::make_shared<const StoreKey>(digest_of(secret));
}

StoreOptions with(std::shared_ptr<const StoreKey> key) {
  StoreOptions options;
  options.cipher = std::move(key);
  return options;
}

std::vector<os::Path> packs_of(const os::Path& store) {
  std::vector<os::Path> packs;
  for (const auto& entry : fs::directory_iterator(store / "packs")) packs.push_back(entry.path());
  return packs;
}

class Encryption : public ::testing::Test {
 protected:
  ChunkStore opened(const os::Path& path, std::shared_ptr<const StoreKey> with_key) {
    auto store = ChunkStore::open(path, with(std::move(with_key)));
    EXPECT_THAT(store, IsOk());
    return *std::move(store);
  }
  // One pack of these texts; returns its path.
  os::Path pack_of(const os::Path& store, std::shared_ptr<const StoreKey> with_key,
                   const std::vector<std::string>& texts) {
    ChunkStore chunks = opened(store, std::move(with_key));
    const auto before = packs_of(store);
    for (const std::string& text : texts) put(chunks, text);
    EXPECT_THAT(chunks.seal(), IsOk());
    for (const os::Path& pack : packs_of(store))
      if (std::find(before.begin(), before.end(), pack) == before.end()) return pack;
    ADD_FAILURE() << "no new pack";
    return {};
  }
  Folder dir;
  std::shared_ptr<const StoreKey> key = key_of("one"), other_key = key_of("another");
};

TEST_F(Encryption, LeavesNeitherContentNorDigestReadable) {
  const std::string secret = "the secret of the weights " + noise(500, 1);
  const os::Path pack = pack_of(dir / "s", key, {secret, std::string(5000, 'a')});
  const std::string bytes = slurp(pack);
  EXPECT_THAT(bytes, Not(HasSubstr("secret")));
  EXPECT_THAT(bytes, Not(HasSubstr(as_text(digest_of(secret).bytes))));
  ChunkStore again = opened(dir / "s", key);
  EXPECT_EQ(as_text(*again.get(digest_of(secret))), secret);
  EXPECT_EQ(as_text(*again.get(digest_of(std::string(5000, 'a')))), std::string(5000, 'a'));
  EXPECT_TRUE(again.missing(std::vector{digest_of(secret)})->empty());
  EXPECT_EQ(verified(again).damages_total, 0u);
  put(again, secret);
  EXPECT_EQ(again.stats()->put_blobs, 0u);
}

TEST_F(Encryption, RefusesAStoreWithoutItsKeyAndNamesTheCommandThatMendsIt) {
  pack_of(dir / "s", key, {"x"});
  for (const auto& wrong : {std::shared_ptr<const StoreKey>(), other_key}) {
    const auto refused = ChunkStore::open(dir / "s", with(wrong));
    EXPECT_THAT(refused, FailsWith(Code::state_unreadable));
    EXPECT_THAT(refused.error().message, HasSubstr(to_hex(ByteView{key->id().bytes})));
    EXPECT_EQ(refused.error().hint, "gridctl key import FILE");
  }
  EXPECT_EQ(*ChunkStore::key_of(dir / "s"), key->id());
}

TEST_F(Encryption, ReadsWhatWasThereOpenAndEncryptsWhatComes) {
  const os::Path open = pack_of(dir / "s", nullptr, {"open text", noise(9000, 1)});
  const os::Path sealed = pack_of(dir / "s", key, {"later text"});
  EXPECT_THAT(slurp(open), HasSubstr("open text"));
  EXPECT_THAT(slurp(sealed), Not(HasSubstr("later text")));
  ChunkStore store = opened(dir / "s", key);
  EXPECT_EQ(as_text(*store.get(digest_of("open text"))), "open text");
  EXPECT_EQ(as_text(*store.get(digest_of("later text"))), "later text");
  put(store, "open text");
  EXPECT_EQ(store.stats()->put_blobs, 0u);
  EXPECT_EQ(verified(store).damages_total, 0u);
  EXPECT_THAT(ChunkStore::open(dir / "s"), FailsWith(Code::state_unreadable)) << "a program that would write it open";
}

TEST_F(Encryption, CollectionsEncryptWhatTheyCopyAndKeepWhatIsLive) {
  pack_of(dir / "s", nullptr, {"open text", noise(9000, 1)});
  pack_of(dir / "s", key, {"sealed text", noise(9000, 2)});
  FakeClock clock;
  clock.ahead = std::chrono::hours{25};
  StoreOptions options = with(key);
  options.clock = &clock;
  ChunkStore store = *ChunkStore::open(dir / "s", options);
  const auto report = store.collect({digest_of("open text"), digest_of("sealed text")});
  ASSERT_THAT(report, IsOk());
  EXPECT_EQ(report->packs_rewritten, 2u);
  ASSERT_THAT(packs_of(dir / "s"), SizeIs(1));
  EXPECT_THAT(slurp(packs_of(dir / "s")[0]), Not(HasSubstr("open text")));
  EXPECT_EQ(as_text(*store.get(digest_of("open text"))), "open text");
  EXPECT_EQ(as_text(*store.get(digest_of("sealed text"))), "sealed text");
  EXPECT_FALSE(*store.has(digest_of(noise(9000, 1))));
  EXPECT_EQ(verified(store).damages_total, 0u);
}

TEST_F(Encryption, MakesOtherBytesEachTimeUnderTheSameId) {
  const Digest id = key->storage_id(digest_of("x"));
  EXPECT_NE(key->seal(id, 1, as_bytes("x")), key->seal(id, 1, as_bytes("x")));
  EXPECT_EQ(id, key_of("one")->storage_id(digest_of("x")));
  EXPECT_NE(id, other_key->storage_id(digest_of("x")));
  EXPECT_NE(key->blob_key(id), key->blob_key(key->storage_id(digest_of("y"))));
}

// Whoever can write to the directory can make the index say anything: it has no secret.
void reindex(const os::Path& store, const os::Path& pack, const std::function<void(std::vector<PackEntry>&)>& change) {
  std::string bytes = slurp(pack);
  const PackIndex index = *read_pack_index(bytes.size(), reader_over(bytes));
  std::vector<PackEntry> entries = index.entries;
  change(entries);
  const PackEnd end = pack_end(entries, index.key);
  bytes.resize(bytes.size() - end.bytes.size());
  fs::remove(pack);
  write(store / "packs" / pack_name(end.id), bytes + std::string(as_text(end.bytes)));
}

TEST_F(Encryption, DoesNotTakeOneBlobForAnother) {
  const std::string one = noise(1000, 1), two = noise(1000, 2);
  reindex(dir / "s", pack_of(dir / "s", key, {one, two}),
          [](std::vector<PackEntry>& entries) { std::swap(entries[0].id, entries[1].id); });
  ChunkStore store = opened(dir / "s", key);
  EXPECT_EQ(verified(store).damages_total, 2u);
  EXPECT_THAT(store.get(digest_of(one)), FailsWith(Code::checkpoint_damaged));
  EXPECT_THAT(store.get(digest_of(two)), FailsWith(Code::checkpoint_damaged));
}

TEST_F(Encryption, DoesNotBelieveAnIndexAboutLengthOrCodec) {
  const std::string text(3000, 'a');
  for (const auto& change :
       std::vector<std::function<void(std::vector<PackEntry>&)>>{[](auto& entries) { entries[0].plain_length += 1; },
                                                                 [](auto& entries) {
                                                                   entries[0].encoding = {Codec::planes, 2};
                                                                 }}) {
    const os::Path path = dir / std::to_string(os::random_u64());
    reindex(path, pack_of(path, key, {text}), change);
    ChunkStore store = opened(path, key);
    EXPECT_THAT(store.get(digest_of(text)), FailsWith(Code::checkpoint_damaged));
  }
}

TEST_F(Encryption, NeitherReadsNorRemovesAPackOfAnotherStore) {
  pack_of(dir / "s", key, {"ours"});
  const os::Path foreign = pack_of(dir / "t", other_key, {"theirs"});
  fs::copy_file(foreign, dir / "s/packs" / foreign.filename());
  FakeClock clock;
  clock.ahead = std::chrono::hours{25};
  StoreOptions options = with(key);
  options.clock = &clock;
  ChunkStore store = *ChunkStore::open(dir / "s", options);
  EXPECT_FALSE(*store.has(digest_of("theirs")));
  ASSERT_THAT(store.collect({digest_of("ours")}), IsOk());
  const VerifyReport report = verified(store);
  EXPECT_EQ(report.damages_total, 1u);
  EXPECT_EQ(*store.set_aside(report), 0u);
  EXPECT_TRUE(fs::exists(dir / "s/packs" / foreign.filename()));
}

#ifdef NDEBUG
constexpr std::size_t k_stride = 1;

#else
constexpr std::size_t k_stride = 61;  // sanitizers make each try twenty times as long

#endif

// A pack of a MiB, as the reader sees it, in memory: a million files would take minutes.
class DamagedMebibyte : public Encryption {
 protected:
  void SetUp() override {
    for (std::uint64_t i = 0; i < 256; ++i) texts.push_back(noise(4000, i + 1));
    pack = pack_of(dir / "s", key, texts);
    bytes = slurp(pack);
    ASSERT_GT(bytes.size(), 1'000'000u);
    index = *read_pack_index(bytes.size(), reader());
  }
  ReadAt reader() {
    return [this](std::uint64_t offset, std::size_t size) -> Result<Bytes> {
      if (offset >= bytes.size()) return Bytes{};
      const ByteView part = as_bytes(std::string_view(bytes).substr(offset, size));
      return Bytes(part.begin(), part.end());
    };
  }
  void flip(std::size_t at) { bytes[at] = static_cast<char>(bytes[at] ^ (1 << (at % 8))); }
  std::vector<std::string> texts;
  os::Path pack;
  std::string bytes;
  PackIndex index;
};

TEST_F(DamagedMebibyte, IsNoticedInEachByteOfABlob) {
  const os::Fd fd = *os::open_file(pack, O_RDWR);
  for (const PackEntry& entry : index.entries) {
    const FoundBlob blob{entry.id, {0, entry, true}};
    ASSERT_THAT(read_blob(fd.get(), "p", blob, key.get(), {}), IsOk());
    for (std::size_t at = entry.offset; at < entry.offset + entry.length; at += k_stride) {
      flip(at);
      ASSERT_THAT(os::write_at(fd.get(), as_bytes(std::string_view(bytes).substr(at, 1)), at), IsOk());
      ASSERT_THAT(read_blob(fd.get(), "p", blob, key.get(), {}), FailsWith(Code::checkpoint_damaged)) << "byte " << at;
      flip(at);
      ASSERT_THAT(os::write_at(fd.get(), as_bytes(std::string_view(bytes).substr(at, 1)), at), IsOk());
    }
  }
}

TEST_F(DamagedMebibyte, IsNoticedInEachByteOfHeaderIndexAndTrailer) {
  const std::size_t blobs_end = index.entries.back().offset + index.entries.back().length;
  for (std::size_t at = 0; at < bytes.size(); at = at + 1 == k_pack_header_bytes ? blobs_end : at + 1) {
    if (at >= k_pack_header_bytes && at % k_stride != 0) continue;
    flip(at);
    ASSERT_FALSE(read_pack_index(bytes.size(), reader())) << "byte " << at;
    flip(at);
  }
  EXPECT_THAT(read_pack_index(bytes.size(), reader()), IsOk());
}

TEST_F(DamagedMebibyte, IsNoticedWhereverItIsCutOff) {
  for (std::size_t size = 0; size < bytes.size(); size += k_stride)
    ASSERT_FALSE(read_pack_index(size,
                                 [&](std::uint64_t offset, std::size_t count) -> Result<Bytes> {
                                   return offset >= size
                                              ? Result<Bytes>(Bytes{})
                                              : reader()(offset, std::min<std::size_t>(count, size - offset));
                                 }))
        << "cut to " << size;
}

}  // namespace
}  // namespace gridctl::store::cipher_test
