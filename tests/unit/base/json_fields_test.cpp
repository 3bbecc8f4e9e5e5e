// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "base/json_fields.hpp"

namespace gridctl::json_fields_test {
namespace {

std::string refusal(const std::string& object, const std::function<void(const JsonFields&)>& read) {
  const nlohmann::json parsed = nlohmann::json::parse(object);
  try {
    read(JsonFields(parsed));
    return "";
  } catch (const BadField& bad) {
    return bad.what();
  }
}

TEST(JsonFields, AbsentAndNullAreTheUnknownValue) {
  const nlohmann::json parsed = nlohmann::json::parse(R"({"null":null})");
  const JsonFields fields(parsed);
  for (const char* name : {"null", "none"}) {
    EXPECT_FALSE(fields.has(name));
    EXPECT_EQ(fields.text(name), "");
    EXPECT_FALSE(fields.flag(name));
    EXPECT_EQ(fields.maybe_flag(name), std::nullopt);
    EXPECT_EQ(fields.whole(name, 0, 1), std::nullopt);
    EXPECT_EQ(fields.real(name, 0, 1), std::nullopt);
    EXPECT_EQ(fields.small<int>(name, 5), std::nullopt);
  }
}

TEST(JsonFields, AreReadWithinTheirLimits) {
  nlohmann::json parsed = nlohmann::json::parse(R"({"t":"x","yes":true,"no":false,"n":-3,"r":0.5})");
  parsed["long"] = std::string(k_field_text_max, 'x');
  const JsonFields fields(parsed);
  EXPECT_TRUE(fields.has("t"));
  EXPECT_EQ(fields.text("t"), "x");
  EXPECT_EQ(fields.text("long").size(), k_field_text_max);
  EXPECT_TRUE(fields.flag("yes"));
  EXPECT_FALSE(fields.flag("no"));
  EXPECT_EQ(fields.maybe_flag("no"), false);
  EXPECT_EQ(fields.whole("n", -3, 0), -3);
  EXPECT_EQ(fields.whole("n", -9, -3), -3);
  EXPECT_EQ(fields.real("r", 0.5, 0.5), 0.5);
  EXPECT_EQ(fields.real("n", -3, 0), -3.0) << "a whole number is a number";
}

TEST(JsonFields, RefuseWhatIsWrongByName) {
  const auto whole = [](const JsonFields& f) { static_cast<void>(f.whole("a", -5, 5)); };
  const auto text = [](const JsonFields& f) { static_cast<void>(f.text("a")); };
  const auto flag = [](const JsonFields& f) { static_cast<void>(f.flag("a")); };
  const auto real = [](const JsonFields& f) { static_cast<void>(f.real("a", -1, 1)); };
  struct Case {
    const char* object;
    std::function<void(const JsonFields&)> read;
    const char* why;
  };
  for (const Case& c : {Case{R"({"a":1})", text, "'a' is not text"},
                        {R"({"a":1})", flag, "'a' is neither true nor false"},
                        {R"({"a":"1"})", whole, "'a' is not a whole number"},
                        {R"({"a":1.0})", whole, "'a' is not a whole number"},
                        {R"({"a":6})", whole, "'a' is out of range"},
                        {R"({"a":-6})", whole, "'a' is out of range"},
                        {R"({"a":9223372036854775808})", whole, "'a' is out of range"},
                        {R"({"a":"1"})", real, "'a' is not a number"},
                        {R"({"a":1.1})", real, "'a' is out of range"},
                        {R"({"a":-1.1})", real, "'a' is out of range"},
                        {R"([])", text, "expected an object"}})
    EXPECT_EQ(refusal(c.object, c.read), c.why) << c.object;
  nlohmann::json longer;
  longer["a"] = std::string(k_field_text_max + 1, 'x');
  EXPECT_EQ(refusal(longer.dump(), text), "'a' is too long");
}

}  // namespace
}  // namespace gridctl::json_fields_test
