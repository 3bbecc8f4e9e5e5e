// SPDX-License-Identifier: Apache-2.0
#include "probe/xml.hpp"

#include <gtest/gtest.h>

namespace gridctl::probe {
namespace {

TEST(Xml, ReadsElementsAttributesAndText) {
  const XmlNode root = parse_xml(
      "<?xml version=\"1.0\" ?>\n<!DOCTYPE log SYSTEM \"a.dtd\">\n<!-- <gpu/> -->\n<log><driver> 1.2 </driver>"
      "<gpu id=\"0000:01:00.0\"><a><b>x &amp; &lt;y&gt;</b></a></gpu><gpu id='2'/></log>\n[trailing words]");
  EXPECT_EQ(root.name, "log");
  ASSERT_NE(root.find("driver"), nullptr);
  EXPECT_EQ(root.find("driver")->text, "1.2");
  ASSERT_EQ(root.all("gpu").size(), 2u);
  EXPECT_EQ(root.all("gpu")[0]->id, "0000:01:00.0");
  EXPECT_EQ(root.all("gpu")[1]->id, "2");
  ASSERT_NE(root.find("gpu/a/b"), nullptr);
  EXPECT_EQ(root.find("gpu/a/b")->text, "x & <y>");
  EXPECT_EQ(root.find("gpu/a/c"), nullptr);
  EXPECT_EQ(root.find(""), nullptr);
}

TEST(Xml, OfNothingHasNoName) {
  for (const char* text : {"", "no devices were found", "<", "<!-- never closed", "<?xml?>", "</log>"})
    EXPECT_TRUE(parse_xml(text).name.empty()) << text;
}

TEST(Xml, IsNotOverrunByDepthOrLength) {
  std::string deep, wide = "<a>";
  for (int i = 0; i < 100000; ++i) deep += "<a>";
  for (int i = 0; i < 200000; ++i) wide += "<b/>";
  EXPECT_EQ(parse_xml(deep).name, "a");
  EXPECT_LE(parse_xml(wide + "</a>").children.size(), 100000u);
}

TEST(Xml, CutAnywhereStillParses) {
  const std::string text = "<log><gpu id=\"1\"><x>7</x><y><z>8</z></y></gpu></log>";
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    const XmlNode root = parse_xml(text.substr(0, cut));
    EXPECT_TRUE(root.name.empty() || root.name == "log");
  }
}

}  // namespace
}  // namespace gridctl::probe
