// SPDX-License-Identifier: Apache-2.0
// Red team: text of a host in what --json prints, which people look at, too.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "base/text.hpp"
#include "ui/json.hpp"

namespace gridctl::ui::json_forged_test {
namespace {

TEST(JsonOutput, CannotCarryBytesThatATerminalObeys) {
  const std::string text = "a\x1b[31m\x7f\u009b\u202e\u2066\u200b\ufeff\U000e0041 \u00fc\u4e2d";
  const std::string shown = ui::quoted(text);
  for (const char c : shown) EXPECT_TRUE(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f) << shown;
  for (const char* hidden : {"\u009b", "\u202e", "\u2066", "\u200b", "\ufeff", "\U000e0041"})
    EXPECT_EQ(shown.find(hidden), std::string::npos) << shown;
  EXPECT_NE(shown.find("\u00fc"), std::string::npos);  // what can be seen stays as it is
  EXPECT_EQ(nlohmann::json::parse(shown).get<std::string>(), text);
}

TEST(JsonOutput, LeavesWhatIsHarmlessAlone) {
  for (const std::string text : {"", "plain", "{\"a\":1}", "\xff\xfe", "\u00e9\u4e2d\U0001f600"})
    EXPECT_EQ(escape_deceptive(text), text);
}

}  // namespace
}  // namespace gridctl::ui::json_forged_test
