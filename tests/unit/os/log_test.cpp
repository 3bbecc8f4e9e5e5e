// SPDX-License-Identifier: Apache-2.0
#include "os/log.hpp"

#include <gtest/gtest.h>

#include "base/text.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::os {
namespace {

using gridctl::testing::TempDir;

TEST(Log, WritesOneSafeLineAnEntryFromItsLevelUp) {
  const TempDir dir;
  log_to_file(dir / "log", LogLevel::info);
  log(LogLevel::debug, "not shown");
  log(LogLevel::warn, "host says \x1b[31mred\nsecond line");
  const std::string text = read_file(dir / "log").value_or("");
  ASSERT_EQ(split_lines(text).size(), 1u) << text;
  EXPECT_NE(text.find("Z warn host says ^[[31mred | second line\n"), std::string::npos) << text;
  EXPECT_FALSE(log_enabled(LogLevel::debug));
}

TEST(Log, RotatesAndKeepsTwoOldFiles) {
  const TempDir dir;
  log_to_file(dir / "log", LogLevel::info, 10'000);
  const std::string line(1000, 'x');
  for (int i = 0; i < 50; ++i) log(LogLevel::info, line);
  EXPECT_TRUE(os::exists(dir / "log"));
  EXPECT_TRUE(os::exists(dir / "log.1"));
  EXPECT_TRUE(os::exists(dir / "log.2"));
  EXPECT_FALSE(os::exists(dir / "log.3"));
  EXPECT_LE(std::filesystem::file_size(dir / "log.1"), 10'000u);
}

}  // namespace
}  // namespace gridctl::os
