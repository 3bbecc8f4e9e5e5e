// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "fixture.hpp"
#include "probe/tool_text.hpp"

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

TEST(ToolWords, ForNothingInAnyDress) {
  for (const char* word : {"na", "None", "not supported", "[UNKNOWN]", "null", "No Data", "not available", " [ N/A ] "})
    EXPECT_TRUE(is_unavailable(word)) << word;
  for (const char* word : {"[x]", "[", "]", "nothing", "n/a n/a n/a n/a n/a n/a"})
    EXPECT_FALSE(is_unavailable(word)) << word;
  EXPECT_EQ(available(" A100 "), "A100");
  EXPECT_EQ(available("[N/A]"), "");
  EXPECT_EQ(available(std::string(200, 'x')).size(), 128u);
}

TEST(ToolWords, SizesUpToWhatFits) {
  EXPECT_EQ(memory_size("7 bytes", "MiB"), 7u);
  EXPECT_EQ(memory_size("7 byte", "MiB"), 7u);
  EXPECT_EQ(memory_size("7b", "MiB"), 7u);
  EXPECT_EQ(memory_size("7 kB", "MiB"), 7u << 10);
  EXPECT_EQ(memory_size("7KiB", "MiB"), 7u << 10);
  EXPECT_EQ(memory_size("7 GB", "MiB"), 7ull << 30);
  EXPECT_EQ(memory_size("7 gib", "MiB"), 7ull << 30);
  EXPECT_EQ(memory_size("7.", "MiB"), 7u << 20);
  EXPECT_EQ(memory_size("7.9x", "MiB"), std::nullopt);
  EXPECT_EQ(memory_size("9223372036854775807", "B"), 9223372036854775807u);
  EXPECT_EQ(memory_size("9223372036854775808", "B"), std::nullopt);
  EXPECT_EQ(memory_size("7", "parsec"), std::nullopt);
  EXPECT_EQ(whole_number(""), std::nullopt);
  EXPECT_EQ(whole_number("7 "), std::nullopt);
  EXPECT_EQ(whole_number("18446744073709551615"), UINT64_MAX);
}

TEST(ToolWords, TheLineThatComplainsIsCut) {
  EXPECT_EQ(complaint("x\nPermission DENIED\n", "quiet\n"), "Permission DENIED");
  EXPECT_EQ(complaint("it failed\n", "first error\n"), "first error") << "errors are asked first";
  EXPECT_EQ(complaint("out\n", "err\n"), "out") << "the last line of all";
  EXPECT_EQ(complaint("error " + std::string(300, 'x'), "").size(), 200u);
  EXPECT_EQ(complaint(std::string(300, 'x'), "").size(), 200u);
}

TEST(ToolWords, AddressesOfPlausibleLength) {
  EXPECT_EQ(pci_address("83:00.0"), "83:00.0");
  EXPECT_EQ(pci_address("3:00.0"), "");
  EXPECT_EQ(pci_address("00000000:83:00.0"), "00000000:83:00.0");
  EXPECT_EQ(pci_address("000000000:83:00.0"), "");
  EXPECT_EQ(pci_address("12345678"), "") << "no colon";
}

TEST(ToolWords, JsonAmongOtherBrackets) {
  EXPECT_EQ(find_json(R"({"a":"\"}"})").at("a"), "\"}");
  EXPECT_TRUE(find_json("[]").is_discarded());
  EXPECT_TRUE(find_json("[1]").is_discarded());
  EXPECT_TRUE(find_json("{}").is_object());
  EXPECT_TRUE(find_json(std::string(63, '[') + " {\"a\":1}").is_object());
  EXPECT_TRUE(find_json(std::string(64, '[') + " {\"a\":1}").is_discarded()) << "nobody logs so many brackets";
  std::string deep = "1";
  for (int i = 0; i < 32; ++i) deep = "{\"a\":" + deep + "}";
  EXPECT_TRUE(find_json(deep).contains("a"));
  EXPECT_EQ(find_json("{\"b\":" + deep + "}").contains("b"), false) << "one too deep; what is in it is found";
  const nlohmann::json object = nlohmann::json::parse(R"({"Name":"x","name":"y","n":-3,"u":3,"f":1.5})");
  EXPECT_EQ(member(object, "name"), "y") << "the exact one first";
  EXPECT_EQ(member(object, "NAME"), "x");
  EXPECT_TRUE(member(object, "none").is_null());
  EXPECT_TRUE(member(nlohmann::json(3), "none").is_null());
  EXPECT_EQ(text_of(object["n"]), "-3");
  EXPECT_EQ(text_of(object["u"]), "3");
  EXPECT_EQ(text_of(object["f"]), "");
}

}  // namespace
}  // namespace gridctl::probe::tool_text_test
