// SPDX-License-Identifier: Apache-2.0
#include "control/daemon/user_settings.hpp"

#include <cstdlib>

#include "support/results.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::control::user_settings_test {
namespace {

using namespace std::chrono_literals;
using gridctl::testing::IsOk;

class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  ~Variable() { ::unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

TEST(UserSettings, HoldUntilTheyAreTakenBack) {
  const gridctl::testing::TempDir dir;
  const Paths paths{dir.path()};
  EXPECT_EQ(health_period(*read_settings(paths)), 1min);
  ASSERT_THAT(change_setting(paths, "health.every", "10m"), IsOk());
  ASSERT_THAT(change_setting(paths, "gpu.recheck", "off"), IsOk());
  EXPECT_EQ(health_period(*read_settings(paths)), 10min);
  EXPECT_EQ(recheck_period(*read_settings(paths)), 0s);
  ASSERT_THAT(change_setting(paths, "health.every", ""), IsOk());
  ASSERT_THAT(change_setting(paths, "gpu.recheck", ""), IsOk());
  EXPECT_EQ(health_period(*read_settings(paths)), 1min);
  EXPECT_EQ(recheck_period(*read_settings(paths)), 12h);
}

TEST(UserSettings, PeriodsHaveBounds) {
  EXPECT_EQ(health_period({{"health.every", "10ms"}}), 1s);
  EXPECT_EQ(health_period({{"health.every", "100h"}}), 24h);
  EXPECT_EQ(recheck_period({{"gpu.recheck", "10ms"}}), 1s);
  EXPECT_EQ(recheck_period({{"gpu.recheck", "100h"}}), 100h);
}

TEST(UserSettings, TheEnvironmentWinsWhereItIsValid) {
  const UserSettings settings{{"health.every", "10m"}, {"gpu.recheck", "26h"}};
  {
    const Variable health("GRIDCTL_HEALTH_EVERY", "off"), recheck("GRIDCTL_RECHECK", "3h");
    EXPECT_EQ(health_period(settings), 0s);
    EXPECT_EQ(recheck_period(settings), 3h);
  }
  for (const char* text : {"", "often"}) {
    const Variable health("GRIDCTL_HEALTH_EVERY", text), recheck("GRIDCTL_RECHECK", text);
    EXPECT_EQ(health_period(settings), 10min) << text;
    EXPECT_EQ(recheck_period(settings), 26h) << text;
  }
}

TEST(UserSettings, RefusesWhatIsNoValue) {
  const gridctl::testing::TempDir dir;
  const Paths paths{dir.path()};
  for (const auto& [key, value] : {std::pair{"health.every", "often"}, {"gpu.recheck", "-1h"}, {"notify.mail", "ada"}, {"notify.webhook", "chat"}}) {
    const auto refused = change_setting(paths, key, value);
    ASSERT_FALSE(refused) << key;
    EXPECT_EQ(refused.error().code, Code::usage);
    EXPECT_THAT(refused.error().message, ::testing::HasSubstr(std::string(key) + ": expected"));
  }
  const auto unknown = change_setting(paths, "health.evry", "1m");
  ASSERT_FALSE(unknown);
  EXPECT_THAT(unknown.error().message, ::testing::HasSubstr("did you mean 'health.every'"));
  EXPECT_TRUE(read_settings(paths)->empty());
}

}  // namespace
}  // namespace gridctl::control::user_settings_test
