// SPDX-License-Identifier: Apache-2.0
#include "base/shared.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace gridctl::shared_test {
namespace {

TEST(Shared, IsOneValueUntilACopyIsEdited) {
  Shared<std::string> one(std::string("ada"));
  const Shared<std::string> other = one;
  EXPECT_EQ(&*one, &*other);
  one.edit() += "!";
  EXPECT_EQ(*one, "ada!");
  EXPECT_EQ(*other, "ada");
  const std::string* const at = &*one;
  one.edit() += "!";
  EXPECT_EQ(&*one, at) << "nobody shares it: it is not copied again";
}

TEST(Shared, HasAValueAlsoAfterItWasMovedFrom) {
  Shared<std::string> one(std::string("ada"));
  const Shared<std::string> other = std::move(one);
  EXPECT_EQ(*one, *other);  // NOLINT: that is what is tested
  Shared<std::string> blank;
  blank.edit() = "bob";
  EXPECT_EQ(*Shared<std::string>(), "") << "every blank one is the same until it is edited";
}

TEST(Shared, ComparesWhatItHolds) {
  const Shared<std::string> one(std::string("ada")), same(std::string("ada")), another(std::string("bob"));
  EXPECT_TRUE(one == same);
  EXPECT_FALSE(one == another);
}

}  // namespace
}  // namespace gridctl::shared_test
