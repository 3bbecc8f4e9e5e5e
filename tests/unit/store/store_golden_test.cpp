// SPDX-License-Identifier: Apache-2.0
// Stores as tests/data/store/make.py writes them from the text of the format, without any of our code.
#include <gmock/gmock.h>

#include "store/store_key.hpp"
#include "support/results.hpp"
#include "unit/store/fixtures.hpp"

namespace gridctl::store::store_golden_test {
namespace {

using namespace testing;
using gridctl::testing::IsOk;
namespace fs = std::filesystem;

const os::Path k_golden = os::Path(GRIDCTL_SOURCE_DIR) / "tests/data/store";

// What make.py puts: text, a run of one byte, and bf16 numbers of one exponent with an odd byte behind them.
std::vector<std::string> contents() {
  std::string weights;
  for (unsigned i = 0; i < 600; ++i) little(weights, 0x3C00 | i % 128, 2);
  return {"kept as it is", std::string(1000, 'a'), weights + "!"};
}

void expect_all(const std::string& version, const std::shared_ptr<const StoreKey>& key) {
  Folder dir;
  fs::copy(k_golden / version, dir / "s", fs::copy_options::recursive);
  StoreOptions options;
  options.cipher = key;
  auto store = ChunkStore::open(dir / "s", options);
  ASSERT_THAT(store, IsOk());
  for (const std::string& content : contents()) {
    const auto got = store->get(digest_of(content));
    ASSERT_THAT(got, IsOk());
    EXPECT_EQ(as_text(*got), content);
  }
  EXPECT_EQ(store->stats()->blobs, contents().size());
  EXPECT_EQ(verified(*store).damages_total, 0u);
}

std::shared_ptr<const StoreKey> golden_key() {
  auto key = parse_key(slurp(k_golden / "1.key"));
  EXPECT_THAT(key, IsOk());
  return std::make_shared<const StoreKey>(*std::move(key));
}

TEST(Golden, ReadsTheOpenStoreOfVersion1) { expect_all("1-open", nullptr); }
TEST(Golden, ReadsTheOpenStoreOfVersion1WithAKeyOfLater) { expect_all("1-open", golden_key()); }
TEST(Golden, ReadsTheEncryptedStoreOfVersion1) { expect_all("1-sealed", golden_key()); }

TEST(Golden, WritesRawPacksOfVersion1ByteForByte) {
  std::string made;
  const auto raw = [&](const std::string& content, std::uint64_t offset) {
    made += content;
    return PackEntry{digest_of(content),
                     offset,
                     static_cast<std::uint32_t>(content.size()),
                     static_cast<std::uint32_t>(content.size()),
                     {}};
  };
  const std::vector<PackEntry> entries{raw("first", 16), raw("second", 21)};
  const PackEnd end = pack_end(entries);
  const std::string pack = std::string(as_text(pack_header(entries))) + made + std::string(as_text(end.bytes));
  EXPECT_EQ(to_hex(digest_of(pack)), "09c22ed107ce775ff3857ebd11a5c9bb2ef6049eeca5f4a33d0a4d69d6bb7a09");
}

}  // namespace
}  // namespace gridctl::store::store_golden_test
