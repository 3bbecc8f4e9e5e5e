// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "control/measure/network_record.hpp"
#include "hand_clock.hpp"
#include "support/results.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::control::landmarks_test {
namespace {

using namespace std::chrono_literals;
using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;
using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST(ReachTargets, KeepTheirPlaceAlsoWhenTheyCannotBeLookedUp) {
  const auto targets = reach_targets({{{"a", {}, ""}, "127.0.0.1:443"}, {{"b", {}, ""}, "no name at all:80"}}, os::system_clock());
  ASSERT_THAT(targets, SizeIs(2));
  EXPECT_EQ(targets[0].address, "127.0.0.1");
  EXPECT_EQ(targets[0].port, 443);
  EXPECT_EQ(targets[1].address, "unknown");
  EXPECT_EQ(targets[1].port, 1);
}

TEST(LandmarkFile, IsReadLineByLine) {
  const gridctl::testing::TempDir dir;
  const Paths paths{dir.path()};
  const auto with = [&](const std::string& text) {
    EXPECT_THAT(os::write_file_atomically(dir / "landmarks", text), IsOk());
    return read_landmarks(paths);
  };
  EXPECT_THAT(*with("# a comment\n\n  \nsyd 33.87S 151.21E a.example:443 AU # there\n"), SizeIs(1));
  const auto wrong = with("# a comment\nsyd 33.87S\n");
  ASSERT_THAT(wrong, FailsWith(Code::state_unreadable));
  EXPECT_THAT(wrong.error().message, HasSubstr("landmarks:2: "));
  std::string many;
  for (std::size_t i = 0; i < k_landmarks_max; ++i) many += "m" + std::to_string(i) + " 1 1 @here\n";
  EXPECT_THAT(*with(many), SizeIs(k_landmarks_max));
  EXPECT_THAT(with(many + "more 1 1 @here\n"), FailsWith(Code::state_unreadable));
  EXPECT_THAT(write_landmarks(paths, std::vector<LandmarkRow>(k_landmarks_max + 1)), FailsWith(Code::usage));
}

TEST(Degrees, AreReadToTheirLimits) {
  EXPECT_EQ(*parse_degrees("90", 'N', 'S', 90), 90);
  EXPECT_EQ(*parse_degrees("90S", 'N', 'S', 90), -90);
  EXPECT_EQ(*parse_degrees("-12.5", 'N', 'S', 90), -12.5);
  for (const char* wrong : {"", "N", "90.1", "12X", "nan", "inf", "1 2", "12NS"}) EXPECT_FALSE(parse_degrees(wrong, 'N', 'S', 90)) << wrong;
}

}  // namespace
}  // namespace gridctl::control::landmarks_test
