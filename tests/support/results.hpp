// SPDX-License-Identifier: Apache-2.0
// Matchers for Result: EXPECT_THAT(f(), IsOk()), EXPECT_THAT(f(), FailsWith(Code::not_found)).
#pragma once

#include <gmock/gmock.h>

#include "base/result.hpp"

namespace gridctl::testing {

MATCHER(IsOk, negation ? "is an error" : "is a value") {
  if (arg.has_value()) return true;
  *result_listener << "the error is " << code_name(arg.error().code) << ": " << arg.error().one_line();
  return false;
}

MATCHER_P(FailsWith, code, "fails with " + std::string(code_name(code))) {
  if (arg.has_value()) return false;
  *result_listener << "the error is " << code_name(arg.error().code) << ": " << arg.error().one_line();
  return arg.error().code == code;
}

}  // namespace gridctl::testing
