// SPDX-License-Identifier: Apache-2.0
#include "xml/document.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/results.hpp"

namespace gridctl::xml::document_test {
namespace {

using gridctl::testing::FailsWith;

TEST(WhatIsThere, HasElementsIdsAndTrimmedText) {
  const Element root = parse_what_is_there(
      "a word of the driver <before>\n<?xml version=\"1.0\" ?>\n<!DOCTYPE log SYSTEM \"a.dtd\">\n<!-- <gpu/> -->\n"
      "<log><driver> 1.2 </driver>"
      "<gpu id=\"0000:01:00.0\"><a><b>x &amp; &lt;y&gt;</b></a></gpu><gpu id='2'/></log>\n[trailing words]");
  EXPECT_EQ(root.name, "log");
  EXPECT_EQ(root.text_of("driver"), "1.2");
  ASSERT_EQ(root.all("gpu").size(), 2u);
  EXPECT_EQ(root.all("gpu")[0]->id, "0000:01:00.0");
  EXPECT_EQ(root.all("gpu")[1]->id, "2");
  EXPECT_EQ(root.text_of("gpu/a/b"), "x & <y>");
  EXPECT_EQ(root.find("gpu/a/c"), nullptr);
  EXPECT_EQ(root.find(""), nullptr);
}

TEST(WhatIsThere, GoesOnBehindNamesThatNobodyEscaped) {
  const Element root =
      parse_what_is_there("<log><p><name>train & <3 \xff\x01 && a < b</name></p><p><name>next</name></p></log>");
  ASSERT_EQ(root.all("p").size(), 2u);
  EXPECT_THAT(std::string(root.text_of("p/name")), ::testing::StartsWith("train & <3 "));
  EXPECT_EQ(root.all("p")[1]->text_of("name"), "next");
}

TEST(WhatIsThere, OfNothingHasNoName) {
  for (const char* text : {"", "no devices were found", "<", "<!-- never closed", "<?xml?>", "</log>"})
    EXPECT_TRUE(parse_what_is_there(text).name.empty()) << text;
}

TEST(WhatIsThere, IsNotOverrunByDepthOrLength) {
  std::string deep, wide = "<a>";
  for (int i = 0; i < 100'000; ++i) deep += "<a>";
  for (int i = 0; i < 200'000; ++i) wide += "<b/>";
  EXPECT_EQ(parse_what_is_there(deep).name, "a");
  EXPECT_EQ(parse_what_is_there(wide + "</a>").children.size(), k_elements_max - 1);
}

TEST(WhatIsThere, MayBeCutAnywhere) {
  const std::string text = "<log><gpu id=\"1\"><x>7</x><y><z>8</z></y></gpu></log>";
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    const Element root = parse_what_is_there(text.substr(0, cut));
    EXPECT_TRUE(root.name.empty() || root.name == "log");
    if (cut >= text.find("7</x>") + 5) {
      EXPECT_EQ(root.text_of("gpu/x"), "7") << cut;
    }
  }
}

TEST(Document, DeclaresNoEntities) {
  EXPECT_THAT(parse("<!DOCTYPE a [<!ENTITY x \"y\">]><a>b</a>"), FailsWith(Code::protocol_violation));
  std::string bomb = "<!DOCTYPE a [<!ENTITY e0 \"xxxxxxxxxx\">";
  for (int i = 1; i < 20; ++i)
    bomb += "<!ENTITY e" + std::to_string(i) + " \"&e" + std::to_string(i - 1) + ";&e" + std::to_string(i - 1) + ";\">";
  EXPECT_TRUE(parse_what_is_there(bomb + "]><a>&e19;</a>").text.empty());
}

TEST(Document, IsReadInPieces) {
  const std::string long_text(3'000'000, 'x');
  EXPECT_EQ(parse("<a>" + long_text + "</a>")->text, long_text);
  EXPECT_THAT(parse("<a>" + long_text), FailsWith(Code::protocol_violation));
}

}  // namespace
}  // namespace gridctl::xml::document_test
