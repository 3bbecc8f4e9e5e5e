// SPDX-License-Identifier: Apache-2.0
#include "job/notify.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gridctl::job::notify_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Notify, KnowsWhatEventsAreAbout) {
  EXPECT_THAT(notices_of("succeeded", 1), ElementsAre(Notice::end));
  EXPECT_THAT(notices_of("failed", 1), ElementsAre(Notice::failure, Notice::end));
  EXPECT_THAT(notices_of("attempt_started", 1), IsEmpty()) << "the first start moves nothing";
  EXPECT_THAT(notices_of("attempt_started", 2), ElementsAre(Notice::move));
  EXPECT_THAT(notices_of("lost", 0), ElementsAre(Notice::silence));
  EXPECT_THAT(notices_of("checkpoint", 1), IsEmpty());
}

TEST(Notify, ARuleWithoutAChoiceWantsAll) {
  EXPECT_EQ(wanted({}, {Notice::failure, Notice::end}), Notice::failure);
  EXPECT_EQ(wanted({.on = {Notice::end}, .command = "", .webhook = "", .mail = ""}, {Notice::failure, Notice::end}), Notice::end);
  EXPECT_EQ(wanted({.on = {Notice::move}, .command = "", .webhook = "", .mail = ""}, {Notice::end}), std::nullopt);
}

TEST(Notify, RulesSurviveBeingStored) {
  const std::vector<Notify> rules{{{Notice::end, Notice::budget}, "", "https://a/b", ""}, {{}, "true", "", "ada@example.org"}};
  const Result<std::vector<Notify>> read = parse_notify(to_json(rules));
  ASSERT_TRUE(read) << read.error().one_line();
  EXPECT_EQ(*read, rules);
  EXPECT_FALSE(parse_notify("{"));
}

}  // namespace
}  // namespace gridctl::job::notify_test
