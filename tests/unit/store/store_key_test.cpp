// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "store/store_key.hpp"
#include "support/results.hpp"
#include "unit/store/fixtures.hpp"

namespace gridctl::store::store_key_test {
namespace {

using namespace testing;
using gridctl::testing::FailsWith;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(KeyFile, GivesTheKeyBackWithTheRightPassphraseOnly) {
  const StoreKey key(digest_of("one"));
  EXPECT_EQ(parse_key(key.to_text())->id(), key.id());
  const std::string text = *key.to_text("correct horse");
  EXPECT_THAT(text, Not(HasSubstr(to_hex(digest_of("one")))));
  EXPECT_EQ(parse_key(text, "correct horse")->to_text(), key.to_text());
  EXPECT_THAT(parse_key(text, "correct hors"), FailsWith(Code::usage));
  EXPECT_THAT(parse_key(text), FailsWith(Code::usage));
  EXPECT_NE(*key.to_text("correct horse"), text) << "salted";
}

TEST(KeyFile, IsRefusedWithAnyCharacterChangedOrMissing) {
  const std::string sound = StoreKey(digest_of("one")).to_text();
  for (std::size_t i = 0; i + 1 < sound.size(); ++i) {  // without the last newline it is as good
    std::string bad = sound;
    bad[i] = static_cast<char>(bad[i] ^ 1);
    EXPECT_FALSE(parse_key(bad)) << i;
    EXPECT_FALSE(parse_key(sound.substr(0, i))) << "cut to " << i;
  }
  EXPECT_FALSE(parse_key(sound + sound));
  EXPECT_FALSE(parse_key(std::string(1 << 20, 'x')));
}

}  // namespace
}  // namespace gridctl::store::store_key_test
