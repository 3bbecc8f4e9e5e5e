// SPDX-License-Identifier: Apache-2.0
// What members of a gang prove before they start, over lines by hand.

#include "gang_on_hosts.hpp"
#include "job/rank_start.hpp"

namespace gridctl::control::gang_connect_test {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

TEST_F(GangOnHosts, StartsWhenAllAreReadyAndReachEachOther) {
  placed();
  EXPECT_THAT(proven, UnorderedElementsAre("ada-bob with bytes", "bob-eve with bytes", "eve-ada with bytes", "bob-ada"))
      << "neighbours measure their rate";
  EXPECT_THAT(told("gang_connected"), ElementsAre("the members reach each other; the slowest link is bob to ada with 2.00 Gbit/s"));
  const auto* launching = job("gang").in<job::Launching>();
  ASSERT_NE(launching, nullptr);
  EXPECT_TRUE(launching->connected);
  EXPECT_EQ(launching->port, job::gang_port({"gang"}, {1}));
  EXPECT_THAT(ports, ElementsAre(static_cast<std::uint16_t>(launching->port)));
  EXPECT_EQ(launching->token.size(), 64u);
  EXPECT_EQ(launching->attempt.members[1].address, "10.0.0.98");
  EXPECT_EQ(std::count(script.asked.begin(), script.asked.end(), "start"), 3);
  const auto start = wire::parse_start(script.payloads["start"]);
  ASSERT_TRUE(start && start->spec.gang);
  EXPECT_EQ(to_hex(start->spec.gang->token), launching->token);
  EXPECT_EQ(start->spec.gang->port, launching->port);
  EXPECT_THAT(told("member_prepared"), SizeIs(3));
}

TEST_F(GangOnHosts, TakesOtherPortsWhereSomebodyListensTwelveTimes) {
  int tries = 0;
  bulk.proves = [&](const std::string&, const std::string&, std::uint16_t port, std::uint64_t) -> Result<PortProof> {
    ++tries;
    ports.insert(port);
    return make_error(Code::busy, "somebody listens there");
  };
  placed();
  for (int i = 0; i < 60 && state().setbacks.empty(); ++i) later(1s);
  EXPECT_EQ(tries, 12);
  EXPECT_THAT(ports, SizeIs(12));
  EXPECT_THAT(state().reason_text, HasSubstr("somebody listens there"));
  EXPECT_THAT(state().setbacks, ::testing::Not(::testing::IsEmpty())) << "its hosts rest";
}

TEST_F(GangOnHosts, BlamesNobodyWhenAMemberCannotBeAsked) {
  bulk.proves = [](const std::string&, const std::string&, std::uint16_t, std::uint64_t) -> Result<PortProof> {
    return make_error(Code::host_unreachable, "no route");
  };
  placed();
  EXPECT_THAT(told("launch_failed"), ElementsAre(HasSubstr("no route")));
  EXPECT_THAT(state().avoided, IsEmpty());
  EXPECT_NE(job("gang").in<job::Waiting>(), nullptr);
}

TEST_F(GangOnHosts, AvoidsTheHostThatIsNotReachedAndSaysWhatHelps) {
  const auto works = bulk.proves;
  bulk.proves = [works](const std::string& from, const std::string& to, std::uint16_t port, std::uint64_t bytes) {
    Result<PortProof> proof = works(from, to, port, bytes);
    if (to == "eve") proof->contact = {false, "", "nothing comes through"};
    return proof;
  };
  placed();
  ASSERT_THAT(state().avoided, SizeIs(1));
  EXPECT_EQ(state().avoided[0].host.value, "eve");
  EXPECT_THAT(state().reason_text, AllOf(HasSubstr("bob does not reach eve on port "), HasSubstr("; a firewall of eve")));
  EXPECT_THAT(told("gang_connected"), IsEmpty());
}

TEST_F(GangOnHosts, WhoseHostWasRemovedMeanwhileIsPlacedAnew) {
  submit("gang", [](job::Spec& spec) { spec.num_nodes = 2; });
  book.apply({"gang"}, job::Placed{{job::Member{0, {"ada"}, {}, {}, 1, 0, 0}, job::Member{1, {"gone"}, {}, {}, 1, 0, 0}}, "x"});
  run.settle();
  EXPECT_NE(job("gang").in<job::Waiting>(), nullptr);
}

}  // namespace
}  // namespace gridctl::control::gang_connect_test
