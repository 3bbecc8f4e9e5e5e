// SPDX-License-Identifier: Apache-2.0
#include "ssh/connect.hpp"

#include <atomic>
#include <thread>

#include "support/results.hpp"

namespace gridctl::ssh::connect_slots_test {
namespace {

using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;

os::Clock& clock() { return os::system_clock(); }

Result<LoginSlot> take(const std::string& address) { return LoginSlot::acquire(address, clock().boot(), clock()); }

std::vector<LoginSlot> all_of(const std::string& address) {
  std::vector<LoginSlot> taken;
  for (int i = 0; i < k_logins_per_host_max; ++i) taken.push_back(take(address).value());
  return taken;
}

TEST(LoginSlot, EightLoginsToOneHostGoOnAtOnce) {
  const std::vector<LoginSlot> taken = all_of("busy:22");
  const auto ninth = take("busy:22");
  ASSERT_THAT(ninth, FailsWith(Code::timed_out));
  EXPECT_THAT(ninth.error().message,
              ::testing::AllOf(::testing::HasSubstr("busy:22"), ::testing::HasSubstr("8 other logins")));
  EXPECT_THAT(take("other:22"), IsOk());
}

TEST(LoginSlot, EachIsGivenBackOnce) {
  std::vector<LoginSlot> taken = all_of("given-back:22");
  taken.pop_back();
  const auto again = take("given-back:22");
  EXPECT_THAT(again, IsOk());
  EXPECT_THAT(take("given-back:22"), FailsWith(Code::timed_out)) << "a slot that was moved from has given back, too";
  taken.clear();
  const std::vector<LoginSlot> rest = [] {
    std::vector<LoginSlot> seven;
    for (int i = 0; i < k_logins_per_host_max - 1; ++i) seven.push_back(take("given-back:22").value());
    return seven;
  }();
  EXPECT_THAT(take("given-back:22"), FailsWith(Code::timed_out));
}

TEST(LoginSlot, WhoWaitsGoesOnWhenOneIsGivenBack) {
  std::vector<LoginSlot> taken = all_of("waited:22");
  std::atomic<bool> got{false};
  std::thread waiter(
      [&] { got = LoginSlot::acquire("waited:22", clock().boot() + std::chrono::seconds{20}, clock()).has_value(); });
  taken.pop_back();
  waiter.join();
  EXPECT_TRUE(got);
}

}  // namespace
}  // namespace gridctl::ssh::connect_slots_test
