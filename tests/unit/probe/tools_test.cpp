// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "fixture.hpp"

namespace gridctl::probe::tools_test {
namespace {

TEST_F(ProbeTest, ToolsAreFoundWhereTheyMayBeRun) {
  EXPECT_FALSE(find_tool(toolbox(), "absent"));
  tool("present", "echo out; echo err >&2; exit 3");
  EXPECT_EQ(find_tool(toolbox(), "present"), bin() / "present");
  std::filesystem::permissions(bin() / "present", std::filesystem::perms{0600});
  EXPECT_FALSE(find_tool(toolbox(), "present"));
  std::filesystem::permissions(bin() / "present", std::filesystem::perms{0755});
  std::filesystem::create_directories(bin() / "folder");
  EXPECT_FALSE(find_tool(toolbox(), "folder"));
  EXPECT_TRUE(find_tool(Toolbox{}, "sh")) << "in PATH";
  const ToolAnswer answer = ask_tool(toolbox(), {{"present"}});
  EXPECT_TRUE(answer.found && answer.answered);
  EXPECT_FALSE(answer.ok());
  EXPECT_EQ(answer.exit_code, 3);
  EXPECT_EQ(answer.out + answer.err, "out\nerr\n");
  EXPECT_EQ(answer.problem, "");
  const ToolAnswer none = ask_tool(toolbox(), {{"absent"}});
  EXPECT_FALSE(none.found);
  EXPECT_EQ(none.problem, "absent: not installed");
  tool("killed", "kill -9 $$");
  const ToolAnswer killed = ask_tool(toolbox(), {{"killed"}});
  EXPECT_TRUE(killed.found);
  EXPECT_FALSE(killed.answered);
  EXPECT_EQ(killed.problem, "killed: killed by signal 9");
  tool("words", "echo $LC_ALL $NO_COLOR \"$@\"");
  const std::vector<ToolAnswer> both = ask_tools(toolbox(), {{{"words", "a b"}}, {{"absent"}}});
  ASSERT_EQ(both.size(), 2u);
  EXPECT_EQ(both[0].out, "C 1 a b\n");
  EXPECT_FALSE(both[1].found);
}

}  // namespace
}  // namespace gridctl::probe::tools_test
