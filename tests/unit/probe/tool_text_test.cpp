// SPDX-License-Identifier: Apache-2.0
#include "probe/tool_text.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace gridctl::probe::tool_text_test {
namespace {

TEST(ToolText, KnowsTheWordsForNothing) {
  for (const char* word :
       {"", "N/A", "[N/A]", "[Not Supported]", " [Unknown Error] ", "unknown", "Not Found", "[GPU is lost]"})
    EXPECT_TRUE(is_unavailable(word)) << word;
  for (const char* word : {"0", "NVIDIA A100", "N/A (Secondary die)"}) EXPECT_FALSE(is_unavailable(word)) << word;
}

TEST(ToolText, ReadsSizesInTheToolsUnits) {
  EXPECT_EQ(memory_size("81559", "MiB"), 81559ull << 20);
  EXPECT_EQ(memory_size(" 81559 MiB", "B"), 81559ull << 20);
  EXPECT_EQ(memory_size("196592 MB", "B"), 196592ull << 20);
  EXPECT_EQ(memory_size("14248.00 MiB", "B"), 14248ull << 20);
  EXPECT_EQ(memory_size("51522830336", "B"), 51522830336ull);
  for (const char* bad : {"", "N/A", "[N/A]", "-1", "12 parsecs", "99999999999999999999", "99999999999999999 GB"})
    EXPECT_FALSE(memory_size(bad, "MiB")) << bad;
}

TEST(ToolText, FindsTheJsonBetweenLogLines) {
  EXPECT_EQ(find_json("warning {x}\n{\"a\": [1, \"}\"]} tail").at("a").at(1), "}");
  EXPECT_TRUE(find_json("[2024] starting\n[{\"gpu\": 0}]").is_array());
  EXPECT_TRUE(find_json("no json {").is_discarded());
  EXPECT_TRUE(find_json("").is_discarded());
}

TEST(ToolText, RefusesDeepNestingInLittleTime) {
  EXPECT_TRUE(find_json(std::string(1u << 20, '[')).is_discarded());
  EXPECT_TRUE(find_json(std::string(1u << 20, '{')).is_discarded());
}

TEST(ToolText, PicksTheLineThatComplains) {
  EXPECT_EQ(complaint("all well\n", "time=1 level=warning\nError: no space left\n"), "Error: no space left");
  EXPECT_EQ(complaint("one\ntwo\n\n", ""), "two");
  EXPECT_EQ(complaint("", ""), "");
}

TEST(ToolText, TakesOnlyWhatLooksLikeAPciAddress) {
  EXPECT_EQ(pci_address("0000:C4:00.0"), "0000:c4:00.0");
  EXPECT_EQ(pci_address("N/A"), "");
  EXPECT_EQ(pci_address("0000:c4:00.0; rm -rf /"), "");
}

}  // namespace
}  // namespace gridctl::probe::tool_text_test
