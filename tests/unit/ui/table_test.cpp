// SPDX-License-Identifier: Apache-2.0
#include "ui/table.hpp"

#include <gtest/gtest.h>

#include "base/text.hpp"
#include "ui/width.hpp"

namespace gridctl::ui::table_test {
namespace {

Table hosts() {
  Table table({{.title = "NAME"}, {.title = "GPUS", .right = true}, {.title = "ADDRESS", .shrinks = true}});
  table.add({"ada", "2", "me@ada.example.org:22"});
  table.add({"grüße", "10", "me@b:22"});
  return table;
}

TEST(Table, AlignsColumnsByDisplayWidth) {
  EXPECT_EQ(hosts().render(0, {}),
            "NAME   GPUS  ADDRESS\n"
            "ada       2  me@ada.example.org:22\n"
            "grüße    10  me@b:22\n");
}

TEST(Table, ShrinksTheColumnThatMayShrinkOnANarrowTerminal) {
  const std::string text = hosts().render(24, {});
  for (const std::string& line : split_lines(text)) EXPECT_LE(display_width(line), 24u) << line;
  EXPECT_NE(text.find("me@ada.exa…"), std::string::npos) << text;
  EXPECT_NE(text.find("grüße"), std::string::npos);
}

TEST(Table, LeavesColumnsOutBeforeItCutsWhatMustStayWhole) {
  Table table({{.title = "NAME", .shrinks = true},
               {.title = "CLASS", .drop = 2},
               {.title = "CPUS", .drop = 1},
               {.title = "ADDRESS", .whole = true}});
  table.add({"ada", "datacenter", "64", "me@ada.example.org:22"});
  EXPECT_EQ(table.render(50, {}), "NAME  CLASS       CPUS  ADDRESS\nada   datacenter  64    me@ada.example.org:22\n");
  EXPECT_EQ(table.render(30, {}), "NAME  ADDRESS\nada   me@ada.example.org:22\n");
  EXPECT_EQ(table.render(36, {}), "NAME  CPUS  ADDRESS\nada   64    me@ada.example.org:22\n");
  EXPECT_NE(table.render(20, {}).find("me@ada.example.org:22"), std::string::npos);
}

TEST(Table, StaysReadableWhenEverythingIsTooWide) {
  for (const std::string& line : split_lines(hosts().render(20, {}))) EXPECT_LE(display_width(line), 20u) << line;
}

TEST(Table, LeavesOutTheLeastUsefulColumnsBeforeItCutsAName) {
  Table table({{.title = "NAME"}, {.title = "REGION", .drop = 2}, {.title = "COST", .drop = 1}, {.title = "STATE"}});
  table.add({"a-rather-long-name", "DE", "$1.00", "RUNNING"});
  EXPECT_EQ(table.render(36, {}),
            "NAME                COST   STATE\n"
            "a-rather-long-name  $1.00  RUNNING\n");
  EXPECT_EQ(table.render(28, {}),
            "NAME                STATE\n"
            "a-rather-long-name  RUNNING\n");
  EXPECT_NE(table.render(0, {}).find("REGION"), std::string::npos) << "nothing is left out into a pipe";
}

TEST(Table, PutsForeignTextOnOneHarmlessLine) {
  Table table({{.title = "A"}, {.title = "B"}});
  table.add({"x\n\033[31my", "z"});
  EXPECT_EQ(table.render(0, {}), "A            B\nx | ^[[31my  z\n");
}

TEST(Table, PaintsOnlyWithColour) {
  Table table({{.title = "A"}});
  table.add({"x"}, {Paint::red});
  EXPECT_EQ(table.render(0, {}).find('\033'), std::string::npos);
  EXPECT_NE(table.render(0, {true}).find("\033[31mx\033[0m"), std::string::npos);
}

TEST(Facts, PadsKeysAndKeepsEachOnOneLine) {
  Facts facts;
  facts.add("name", "ada");
  facts.add("region", "");
  facts.add("note", "one\ntwo");
  EXPECT_EQ(facts.render({}), "name  ada\nnote  one | two\n");
}

}  // namespace
}  // namespace gridctl::ui::table_test
