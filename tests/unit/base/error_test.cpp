// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <set>

#include "support/results.hpp"

namespace gridctl::error_test {
namespace {

constexpr int k_last_code = static_cast<int>(Code::exists);

TEST(Error, EveryCodeHasItsOwnNameAndAnExitCodeOfTheContract) {
  std::set<std::string_view> names;
  const std::set<int> promised{1, 2, 3, 4, 5, 6, 7, 8, 9, 70, 130};
  for (int number = 1; number <= k_last_code; ++number) {
    const auto code = static_cast<Code>(number);
    EXPECT_TRUE(names.insert(code_name(code)).second) << number;
    EXPECT_TRUE(promised.contains(exit_code(code))) << code_name(code);
  }
}

TEST(Error, KeepsItsContextInnermostFirst) {
  const Error error = make_error(Code::io, "cannot read").with_context("while fetching").with_context("of host ada");
  EXPECT_EQ(error.one_line(), "cannot read (while fetching) (of host ada)");
}

TEST(Error, TheFirstHintStays) {
  EXPECT_EQ(make_error(Code::io, "m", "first").with_hint("second").hint, "first");
  EXPECT_EQ(make_error(Code::io, "m").with_hint("second").hint, "second");
}

TEST(Error, AFullDiskIsNoSpaceAndAllElseIo) {
  EXPECT_EQ(errno_error(ENOSPC, "cannot write").code, Code::no_space);
  EXPECT_EQ(errno_error(EDQUOT, "cannot write").code, Code::no_space);
  EXPECT_EQ(errno_error(EIO, "cannot write").code, Code::io);
  EXPECT_EQ(errno_error(EIO, "cannot write").message, "cannot write: Input/output error");
}

Result<int> half(int value) {
  if (value % 2 != 0) return make_error(Code::usage, "odd");
  return value / 2;
}

Result<int> quarter(int value) {
  TRY_ASSIGN(const int once, half(value));
  TRY(half(once));
  return half(once);
}

TEST(Result, TryPassesErrorsOn) {
  EXPECT_EQ(quarter(8).value(), 2);
  EXPECT_EQ(quarter(6).error().code, Code::usage);
  EXPECT_EQ(half(3).context("while halving").error().one_line(), "odd (while halving)");
  EXPECT_EQ(half(3).value_or(-1), -1);
}

TEST(ResultDeathTest, TheValueOfAnErrorIsOurBugAndSaysWhere) {
  EXPECT_DEATH(static_cast<void>(half(3).value()), "internal error: check failed: .* at .*result\\.hpp:[0-9]+");
}

TEST(Errors, AreTriedAgainAsTheirCodeSays) {
  EXPECT_EQ(default_retry(Code::busy), Retry::other_host);
  EXPECT_EQ(default_retry(Code::timed_out), Retry::same_host_later);
  EXPECT_EQ(make_error(Code::usage, "x").retry, Retry::needs_user);
  for (const auto& [retry, name] : {std::pair{Retry::never, "never"},
                                    {Retry::same_host_later, "same_host_later"},
                                    {Retry::other_host, "other_host"},
                                    {Retry::needs_user, "needs_user"}})
    EXPECT_EQ(retry_name(retry), name);
  EXPECT_EQ(code_name(static_cast<Code>(999)), "internal");
  EXPECT_EQ(exit_code(Code::host_key_mismatch), 6);
}

}  // namespace
}  // namespace gridctl::error_test
