// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "fixture.hpp"

namespace gridctl::probe::host_files_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST_F(ProbeTest, FilesAreReadTrimmedAndListedSorted) {
  file("/a/two", " 2 \n");
  file("/a/one", "x");
  EXPECT_EQ(files().read("/a/two"), " 2 \n");
  EXPECT_EQ(files().read_line("/a/two"), "2");
  EXPECT_EQ(files().read_number("/a/two"), 2u);
  EXPECT_EQ(files().read_number("/a/one"), std::nullopt);
  EXPECT_EQ(files().read("/a/none"), std::nullopt);
  EXPECT_EQ(files().read_line("/a/none"), "");
  EXPECT_THAT(files().list("/a"), ElementsAre("one", "two"));
  EXPECT_THAT(files().list("/none"), IsEmpty());
  EXPECT_TRUE(files().exists("/a"));
  EXPECT_FALSE(files().exists("/b"));
  file("/big", std::string((1u << 20) + 1, 'x'));
  EXPECT_EQ(files().read("/big"), std::nullopt);
}

}  // namespace
}  // namespace gridctl::probe::host_files_test
