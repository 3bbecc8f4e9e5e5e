// SPDX-License-Identifier: Apache-2.0
#include "wire/bag.hpp"

#include "samples.hpp"
#include "support/results.hpp"
#include "wire/frame.hpp"

namespace gridctl::wire::bag_test {
namespace {
using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;

BagRequest with(const BagOrder& order) { return {{{{"k3jf7qw2mxnpa"}, {7}, 0, {order}}}, {}}; }

TEST(BagMessages, KeepOrdersAndResultsAsTheyAre) {
  const BagOrder grant{OrderKind::grant, 5, 2, {"a\x1f b", ""}, 0};
  const auto request = parse_bag(encode(with(grant)));
  ASSERT_THAT(request, IsOk());
  EXPECT_EQ(request->workers[0].orders[0], grant);
  for (std::size_t end = 0; end <= static_cast<std::size_t>(TaskEnd::garbled); ++end) {
    const TaskResult result{1, 1, 0, static_cast<TaskEnd>(end), 1, 9, {5}, 4, 3, 2, 1, 8, 7};
    const auto reply = parse_bag_reply(encode(BagReply{{{{"k3jf7qw2mxnpa"}, {7}, {}, 0, 0, 1, {result}}}}));
    ASSERT_THAT(reply, IsOk());
    EXPECT_EQ(reply->workers[0].results[0], result);
  }
}

TEST(BagMessages, OfFourThousandResultsFitAFrame) {
  const TaskResult large{k_bag_index_max, 1,   1ull << 40, TaskEnd::unstarted, 255, 64, {1ll << 45}, ~0u, ~0u,
                         1ull << 50,      ~0u, ~0u,        1ull << 50};
  const BagTold told{{"k3jf7qw2mxnpa"},
                     {7},
                     {},
                     0,
                     0,
                     k_bag_results_max,
                     std::vector(k_bag_results_max, large),
                     1,
                     std::vector(k_bag_running_max, k_bag_index_max)};
  EXPECT_LE(encode(BagReply{{told}}).size(), k_frame_max);
}

TEST(BagMessages, AreRefusedBeyondTheirLimits) {
  const auto refused = [](const BagOrder& order) {
    EXPECT_THAT(parse_bag(encode(with(order))), FailsWith(Code::protocol_violation));
  };
  refused({OrderKind::grant, k_bag_index_max + 1, 1, {}, 0});
  refused({OrderKind::grant, 0, 3, {"one", "two"}, 0});
  refused({OrderKind::revoke, 0, 1, {"one"}, 0});
  refused({OrderKind::grant, 0, 1, {std::string(k_bag_item_max + 1, 'x')}, 0});
  AttemptSpec spec = samples::spec();
  spec.bag = BagSpec{};
  EXPECT_THAT(parse_attempt_spec(encode(spec)), IsOk());
  spec.bag->slots = 0;
  EXPECT_THAT(parse_attempt_spec(encode(spec)), FailsWith(Code::protocol_violation));
}

}  // namespace
}  // namespace gridctl::wire::bag_test
