// SPDX-License-Identifier: Apache-2.0
#include "os/log.hpp"

#include <gtest/gtest.h>

#include "base/text.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::os::log_test {
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

TEST(Log, NamesTheLevelOfEveryEntry) {
  const TempDir dir;
  log_to_file(dir / "log", LogLevel::debug);
  for (const LogLevel level : {LogLevel::debug, LogLevel::info, LogLevel::warn, LogLevel::error}) log(level, "x");
  const std::vector<std::string> lines = split_lines(read_file(dir / "log").value_or(""));
  ASSERT_EQ(lines.size(), 4u);
  const char* names[] = {"Z debug x", "Z info x", "Z warn x", "Z error x"};
  for (std::size_t i = 0; i < 4; ++i) EXPECT_TRUE(lines[i].ends_with(names[i])) << lines[i];
}

TEST(Log, CountsWhatStoodThereBeforeAndKeepsIt) {
  const TempDir dir;
  ASSERT_TRUE(write_file_atomically(dir / "log", std::string(950, 'o') + "\n"));
  log_to_file(dir / "log", LogLevel::info, 1000);
  log(LogLevel::info, "a");
  EXPECT_TRUE(read_file(dir / "log").value_or("").ends_with(" info a\n"));
  EXPECT_FALSE(os::exists(dir / "log.1")) << "both fit";
  log(LogLevel::info, "b");
  EXPECT_EQ(read_file(dir / "log.1").value_or("").substr(0, 950), std::string(950, 'o'));
  EXPECT_EQ(split_lines(read_file(dir / "log").value_or("")).size(), 1u);
  log(LogLevel::info, std::string(2000, 'x'));
  EXPECT_EQ(read_file(dir / "log.2").value_or("").substr(0, 950), std::string(950, 'o'));
}

TEST(Log, FillsAFileToItsVeryLimit) {
  const TempDir dir;
  log_to_file(dir / "log", LogLevel::info);
  log(LogLevel::info, "entry");
  const std::uint64_t entry = std::filesystem::file_size(dir / "log");
  log_to_file(dir / "log", LogLevel::info, 3 * entry);
  log(LogLevel::info, "entry");
  log(LogLevel::info, "entry");
  EXPECT_FALSE(os::exists(dir / "log.1"));
  log(LogLevel::info, "entry");
  EXPECT_EQ(std::filesystem::file_size(dir / "log.1"), 3 * entry);
  EXPECT_EQ(std::filesystem::file_size(dir / "log"), entry);
}

TEST(Log, GoesToTheStandardErrorAndNoLongerToAFile) {
  const TempDir dir;
  log_to_file(dir / "log", LogLevel::info);
  ::testing::internal::CaptureStderr();
  log_to_stderr(LogLevel::warn);
  log(LogLevel::info, "quiet");
  log(LogLevel::error, "loud");
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(split_lines(said).size(), 1u) << said;
  EXPECT_TRUE(said.ends_with("Z error loud\n")) << said;
  EXPECT_EQ(read_file(dir / "log").value_or("?"), "");
}

TEST(Log, WhatCannotBeWrittenStopsNobody) {
  const TempDir dir;
  log_to_file(dir / "none/log", LogLevel::info);
  log(LogLevel::error, "lost");
  EXPECT_FALSE(os::exists(dir / "none"));
}

}  // namespace
}  // namespace gridctl::os::log_test
