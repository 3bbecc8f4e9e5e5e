// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <filesystem>

#include "control/follow/secrets.hpp"
#include "hand_clock.hpp"
#include "support/results.hpp"
#include "unit/store/remote_fixtures.hpp"

namespace gridctl::control::secrets_test {
namespace {

using namespace std::chrono_literals;
using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Secrets, AreFilesForTheirOwnerAlone) {
  const gridctl::testing::TempDir dir;
  const os::Path folder = dir / "secrets";
  ASSERT_THAT(write_secrets(folder, {}), IsOk());
  EXPECT_FALSE(std::filesystem::exists(folder)) << "there are none";
  EXPECT_THAT(*read_secrets(folder), IsEmpty());
  ASSERT_THAT(write_secrets(folder, {{"A", "one"}, {"B", "two"}}), IsOk());
  EXPECT_EQ(std::filesystem::status(folder).permissions(), std::filesystem::perms{0700});
  EXPECT_EQ(std::filesystem::status(folder / "A").permissions(), std::filesystem::perms{0600});
  EXPECT_THAT(*read_secrets(folder), ElementsAre(std::pair("A", "one"), std::pair("B", "two")));
  EXPECT_THAT(*read_secrets(folder, {"B"}), ElementsAre(std::pair("B", "two")));
  const auto missing = read_secrets(folder, {"A", "C"});
  ASSERT_THAT(missing, FailsWith(Code::not_found));
  EXPECT_THAT(missing.error().message, HasSubstr("secret C is missing from the state directory"));
}

}  // namespace
}  // namespace gridctl::control::secrets_test
