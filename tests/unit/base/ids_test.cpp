// SPDX-License-Identifier: Apache-2.0

#include "base/ids.hpp"
#include "support/results.hpp"

namespace gridctl::ids_test {
namespace {

using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;
using ::testing::HasSubstr;

TEST(CheckName, AcceptsWhatFitsADnsLabel) {
  for (const std::string& name : {std::string("a"), std::string("7"), std::string("train-gpt-2"), std::string(63, 'x')})
    EXPECT_THAT(check_name("job", name), IsOk()) << name;
}

TEST(CheckName, RefusesEverythingElse) {
  for (const std::string& name : {std::string(), std::string("-a"), std::string("a-"), std::string("A"),
                                  std::string("a_b"), std::string("a.b"), std::string("a b"), std::string("a/b"),
                                  std::string(".."), std::string("a\0b", 3), std::string("ä"), std::string(64, 'x')})
    EXPECT_THAT(check_name("job", name), FailsWith(Code::usage)) << name;
}

TEST(CheckName, SuggestsANameThatIsAllowed) {
  const Result<void> refused = check_name("job", "Train GPT_2");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().hint, "try 'train-gpt-2'");
}

TEST(ToName, AlwaysGivesAValidName) {
  for (const std::string& text :
       {std::string(), std::string("---"), std::string("Train GPT_2"), std::string("  ä  "), std::string(500, 'Q'),
        std::string(62, 'a') + "--b", std::string("\x1b[31m"), std::string("a/../b")})
    EXPECT_THAT(check_name("job", to_name(text)), IsOk()) << text;
  EXPECT_EQ(to_name("Train GPT_2"), "train-gpt-2");
  EXPECT_EQ(to_name("!!"), "job");
}

TEST(CheckpointName, JoinsJobAndNumber) { EXPECT_EQ(checkpoint_name({"k3jf7"}, {12}), "k3jf7@12"); }

TEST(Names, SayWhyTheyAreRefused) {
  EXPECT_EQ(check_name("job", "").error().message, "job name is empty");
  EXPECT_THAT(check_name("job", std::string(64, 'x')).error().message, HasSubstr("longer than 63"));
  EXPECT_THAT(check_name("job", "a-").error().hint, HasSubstr("try 'a'"));
  EXPECT_EQ(to_name("a--b"), "a-b");
  EXPECT_EQ(to_name(std::string(70, 'x')), std::string(63, 'x'));
  EXPECT_EQ(to_name(std::string(62, 'x') + "-y"), std::string(62, 'x'));
}

}  // namespace
}  // namespace gridctl::ids_test
