// SPDX-License-Identifier: Apache-2.0
#include "store/newest.hpp"

#include <gmock/gmock.h>

#include "support/results.hpp"
#include "unit/store/fixtures.hpp"

namespace gridctl::store::newest_test {
namespace {

using namespace gridctl::testing;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const StoreKey k_key{testing::digest_of("key")};

Newest one(const std::string& job, std::uint64_t seq, std::int64_t created, const std::string& where = "nas") {
  return {{job}, "train", {seq}, {created}, {1'700'000'000'000}, where};
}

TEST(NewestText, ComesBackAsItWasAlsoBehindAKey) {
  const std::vector<Newest> some{one("a", 7, 1000), one("b", 2, 500, std::string(k_seen_in_key_file))};
  const std::string text = k_key.to_text() + to_text(some, k_key);
  EXPECT_EQ(*parse_newest(text, k_key), some);
  EXPECT_EQ(parse_key(text)->id(), k_key.id());
  EXPECT_THAT(*parse_newest(k_key.to_text(), k_key), IsEmpty());
  EXPECT_EQ(to_text({}, k_key), "");
}

TEST(NewestText, IsRefusedWhenAnyOfItWasChanged) {
  const std::string text = to_text({one("a", 7, 1000), one("b", 2, 500)}, k_key);
  for (std::size_t at = 0; at < text.size(); ++at) {
    std::string changed = text;
    changed[at] = changed[at] == '1' ? '2' : '1';
    const auto parsed = parse_newest(changed, k_key);
    EXPECT_TRUE(!parsed || *parsed == *parse_newest(text, k_key)) << at;
  }
  const std::size_t second = text.find('\n') + 1;
  EXPECT_THAT(parse_newest(text.substr(second), k_key), FailsWith(Code::state_unreadable));
  EXPECT_THAT(parse_newest(text.substr(0, second), k_key), FailsWith(Code::state_unreadable));
  EXPECT_THAT(parse_newest(text + text, k_key), FailsWith(Code::state_unreadable));
  EXPECT_THAT(parse_newest(text, StoreKey{testing::digest_of("another")}), FailsWith(Code::state_unreadable));
}

TEST(NewestText, KeepsTheHighestNumberOfEachJobAndTheNewestJobs) {
  EXPECT_THAT(merged({one("a", 3, 30), one("b", 9, 90)}, {one("a", 5, 50, "usb"), one("b", 8, 80)}),
              ElementsAre(one("b", 9, 90), one("a", 5, 50, "usb")));
  std::vector<Newest> many;
  for (int i = 0; i < 300; ++i) many.push_back(one("job" + std::to_string(i), 1, i));
  const std::vector<Newest> kept = merged(many, {});
  EXPECT_THAT(kept, SizeIs(k_newest_max));
  EXPECT_EQ(kept.back().created_at.ms, 100);
  EXPECT_LE((k_key.to_text() + to_text(kept, k_key)).size(), k_key_file_max);
}

}  // namespace
}  // namespace gridctl::store::newest_test
