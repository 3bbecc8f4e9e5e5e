// SPDX-License-Identifier: Apache-2.0
// All hosts together: who is there, who is silent, and what is leased.
#include <gmock/gmock.h>

#include "db/database.hpp"
#include "hand_fleet.hpp"

namespace gridctl::control::fleet_test {
namespace {

using namespace std::chrono_literals;
using gridctl::testing::IsOk;
using testing::FleetTest;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST_F(FleetTest, FollowsWhoIsRegistered) {
  add("ada");
  EXPECT_NE(fleet().find({"ada"}), nullptr);
  EXPECT_EQ(fleet().find({"bob"}), nullptr);
  EXPECT_FALSE(fleet().reach({"bob"}));
  EXPECT_EQ(fleet().reach({"ada"})->provider.address, "me@ada");
  tick();
  EXPECT_TRUE(host("ada").is_up());
  add("bob");
  registry::Provider other = row("ada");
  other.region = "DE";
  ASSERT_THAT(registry.update_provider(other), IsOk());
  ASSERT_TRUE(fleet().refresh());
  EXPECT_TRUE(host("ada").is_up()) << "the way to it is the same";
  EXPECT_EQ(host("ada").provider.region, "DE");
  EXPECT_FALSE(host("bob").is_up());
  for (int i = 0; i < 3; ++i) {
    if (i == 0) other.address = "me@elsewhere";
    if (i == 1) other.identities = {"/key"};
    if (i == 2) other.jump = "gate";
    ASSERT_THAT(registry.update_provider(other), IsOk());
    ASSERT_TRUE(fleet().refresh());
    EXPECT_FALSE(host("ada").is_up()) << "there is another way to it: " << i;
    tick();
    EXPECT_TRUE(host("ada").is_up());
  }
  ASSERT_THAT(registry.remove_provider({"ada"}), IsOk());
  ASSERT_TRUE(fleet().refresh());
  EXPECT_EQ(fleet().find({"ada"}), nullptr);
}

TEST_F(FleetTest, TellsWhatHostsSay) {
  add("ada");
  line("ada").hello.features.push_back("links");
  tick();
  EXPECT_THAT(ears.take(), ElementsAre("ada connected"));
  tick();
  answer("ada");
  EXPECT_THAT(ears.take(), ElementsAre("ada polled"));
  line("ada").reply(wire::encode_ping({0}));
  ears.take();
  tick();
  tick();
  EXPECT_TRUE(host("ada").is_up());
  const wire::LogRequest request{{"abcdefghijk23"}, {1}, 5, 10};
  EXPECT_FALSE(fleet().request_log({"bob"}, request));
  EXPECT_TRUE(fleet().request_log({"ada"}, request));
  EXPECT_FALSE(fleet().request_log({"ada"}, request));
}

// A host of an earlier registration has none pinned: the first that it proves is, beside what commands write.
TEST_F(FleetTest, PinsTheIdentityThatAHostProvesFirst) {
  add("ada");
  registry::Provider said = row("ada");
  said.region = "DE";
  ASSERT_THAT(registry.update_provider(said), IsOk());
  Digest key;
  key.bytes.fill(std::byte{7});
  line("ada").hello.peer_key = key;
  tick();
  ASSERT_TRUE(host("ada").is_up());
  EXPECT_EQ(row("ada").peer_key, to_hex(key));
  EXPECT_EQ(row("ada").region, "DE");
  ASSERT_TRUE(fleet().refresh());
  EXPECT_TRUE(host("ada").is_up()) << "its connection stays";
}

TEST_F(FleetTest, KnowsWhenAHostEnds) {
  add("ada");
  tick();
  EXPECT_EQ(host("ada").ends_at(), std::nullopt);
  const auto told = [&](std::optional<Duration> left) {
    tick(15s);
    wire::PollReply reply;
    reply.host_time = clock.boot();
    reply.boot_id = "boot";
    reply.ends_in = left;
    FleetTest::reply("ada", "poll", wire::encode(reply));
    return host("ada").ends_at();
  };
  const std::optional<WallTime> first = told(1h);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->ms, clock.wall().ms + 3'600'000);
  const std::uint64_t capacity = fleet().capacity();
  EXPECT_EQ(told(1h - 16s), first) << "its answer was slow";
  EXPECT_EQ(fleet().capacity(), capacity);
  wire::PollReply event;
  event.boot_id = "boot";
  line("ada").say(wire::FrameKind::event, 0, wire::encode(event));
  EXPECT_EQ(host("ada").ends_at(), first) << "an event is about an attempt";
  EXPECT_EQ(fleet().now(60s).front().until, first);
  registry::Provider row = FleetTest::row("ada");
  row.until = WallTime{first->ms - 1};
  ASSERT_THAT(registry.update_provider(row), IsOk());
  ASSERT_TRUE(fleet().refresh());
  EXPECT_EQ(host("ada").ends_at(), row.until) << "the earlier of both";
  EXPECT_GT(fleet().capacity(), capacity) << "who waits is asked again";
  EXPECT_TRUE(host("ada").is_up());
  row.until.reset();
  ASSERT_THAT(registry.update_provider(row), IsOk());
  ASSERT_TRUE(fleet().refresh());
  EXPECT_EQ(told(std::nullopt), std::nullopt);
}

TEST_F(FleetTest, TellsOfARefusedLoginOnce) {
  add("ada");
  line("ada").refuses = make_error(Code::auth_refused, "no key of ours");
  tick();
  EXPECT_THAT(ears.take(), ElementsAre("ada refused"));
  tick(1min);
  EXPECT_THAT(ears.take(), IsEmpty());
  line("ada").refuses.reset();
  tick(1min);
  EXPECT_THAT(ears.take(), ElementsAre("ada connected"));
  line("ada").on_closed(make_error(Code::host_unreachable, "broke"));
  line("ada").refuses = make_error(Code::host_unreachable, "no route");
  tick();
  EXPECT_THAT(ears.take(), IsEmpty()) << "a host that is away refuses nobody";
  line("ada").refuses = make_error(Code::auth_refused, "no key of ours");
  tick(1min);
  EXPECT_THAT(ears.take(), ElementsAre("ada refused")) << "it is news again";
}

TEST_F(FleetTest, WritesDownWhenAHostWasSeenButNotEachTime) {
  add("ada");
  tick(), tick();
  const WallTime first = clock.wall();
  answer("ada");
  EXPECT_FALSE(row("ada").last_seen_at);
  tick();
  EXPECT_EQ(row("ada").last_seen_at, first);
  EXPECT_EQ(row("ada").liveness, "answering");
  for (const Duration passed : {10s, 10s, 10s}) {
    tick(passed);
    answer("ada");
  }
  tick();
  EXPECT_EQ(row("ada").last_seen_at, first) << "thirty seconds";
  tick(10s);
  answer("ada");
  fleet().save_news();
  EXPECT_EQ(row("ada").last_seen_at, clock.wall());
}

TEST_F(FleetTest, CountsWhatIsGivenBack) {
  add("ada");
  const wire::HeldShare one{{"abcdefghijk23"}, {1}, {"GPU-1"}, 2, 3}, two{{"abcdefghijk24"}, {1}, {}, 1, 1};
  tick(), tick();
  const std::uint64_t before = fleet().capacity();
  const auto says = [&](const std::optional<std::vector<wire::HeldShare>>& held) {
    answer("ada", held);
    tick(10s);
    return fleet().capacity() - before;
  };
  EXPECT_EQ(says(std::vector{one}), 0u);
  EXPECT_EQ(says(std::vector{one, two}), 0u) << "more is held";
  EXPECT_EQ(says(std::nullopt), 0u) << "nothing was told";
  EXPECT_EQ(host("ada").held->size(), 2u);
  EXPECT_EQ(says(std::vector{two}), 1u);
  EXPECT_EQ(says(std::vector{two}), 1u);
  EXPECT_EQ(says(std::vector<wire::HeldShare>{}), 2u);
  EXPECT_EQ(host("ada").boot_id, "boot");
}

TEST_F(FleetTest, AsksJobsAgainWhenAHostComesThatTheyWerePlacedWithout) {
  add("ada");
  const std::uint64_t before = fleet().capacity();
  auto now = fleet().now(60s);
  ASSERT_EQ(now.size(), 1u);
  EXPECT_FALSE(now[0].reachable);
  EXPECT_EQ(now[0].held, nullptr);
  tick(), tick();
  answer("ada", std::vector<wire::HeldShare>{});
  EXPECT_EQ(fleet().capacity(), before + 1);
  now = fleet().now(60s);
  EXPECT_TRUE(now[0].reachable);
  EXPECT_NE(now[0].held, nullptr);
  EXPECT_EQ(now[0].boot_id, "boot");
  tick(10s);
  answer("ada", std::vector<wire::HeldShare>{});
  EXPECT_EQ(fleet().capacity(), before + 1) << "nobody has missed it";
}

TEST_F(FleetTest, OffersNoHostThatHasJustRefusedUntilItHasToldWhatIsHeld) {
  add("ada");
  tick(), tick();
  answer("ada", std::vector<wire::HeldShare>{});
  EXPECT_FALSE(fleet().now(60s)[0].full);
  fleet().refused_for_room({"ada"}, clock.boot() + 10s);
  fleet().refused_for_room({"bob"}, clock.boot() + 10s);
  EXPECT_TRUE(fleet().now(60s)[0].full);
  const std::size_t asked = line("ada").sent.size();
  tick();
  EXPECT_GT(line("ada").sent.size(), asked) << "it is asked at once";
  answer("ada");
  EXPECT_TRUE(fleet().now(60s)[0].full) << "it did not tell";
  tick(9999ms);
  EXPECT_TRUE(fleet().now(60s)[0].full);
  tick(1ms);
  EXPECT_FALSE(fleet().now(60s)[0].full) << "the time is over";
  fleet().refused_for_room({"ada"}, clock.boot() + 10s);
  tick();
  answer("ada", std::vector<wire::HeldShare>{});
  EXPECT_FALSE(fleet().now(60s)[0].full);
}

TEST_F(FleetTest, DrainsAProviderUnderAllItsNames) {
  for (const char* name : {"ada", "bob", "cay"}) add(name);
  for (const char* name : {"ada", "bob", "cay"}) {
    registry::Provider one = row(name);
    one.inventory.edit().machine_id = "m";
    one.inventory.edit().boot_id = "b";
    one.host = name == std::string("cay") ? "elsewhere" : "here";
    one.drained = name == std::string("ada");
    ASSERT_THAT(registry.update_provider(one), IsOk());
  }
  EXPECT_TRUE(fleet().is_drained(host("ada")));
  EXPECT_TRUE(fleet().is_drained(host("bob"))) << "the same SSH server";
  EXPECT_FALSE(fleet().is_drained(host("cay"))) << "a container beside it";
  EXPECT_TRUE(fleet().same_provider(host("ada"), host("ada")));
  EXPECT_FALSE(fleet().same_provider(host("ada"), host("cay")));
}

TEST_F(FleetTest, KnowsWhenAllWereTried) {
  add("ada"), add("bob");
  EXPECT_FALSE(fleet().all_tried());
  line("bob").refuses = make_error(Code::host_unreachable, "no route");
  tick();
  EXPECT_FALSE(fleet().all_tried()) << "what is free at ada is not known yet";
  tick();
  answer("ada");
  EXPECT_TRUE(fleet().all_tried());
}

TEST_F(FleetTest, JudgesSilenceByTheOthers) {
  add("ada"), add("bob");
  tick(), tick();
  answer("ada"), answer("bob");
  ears.take();
  const auto silent_for = [&](int seconds) {
    for (int i = 0; i < seconds; ++i) {
      tick(1s);
      if (line("ada").asked() == "poll" && line("ada").open) answer("ada");
    }
  };
  line("bob").refuses = make_error(Code::host_unreachable, "no route");
  line("bob").on_closed(make_error(Code::host_unreachable, "broke"));
  silent_for(19);
  EXPECT_EQ(host("bob").liveness, job::Liveness::answering);
  silent_for(1);
  EXPECT_EQ(host("bob").liveness, job::Liveness::suspect);
  EXPECT_EQ(row("bob").liveness, "suspect");
  silent_for(20);
  EXPECT_EQ(row("bob").liveness, "unreachable");
  EXPECT_TRUE(fleet().now(120s)[1].provider->name.value == "bob");
  silent_for(20);
  EXPECT_EQ(row("bob").liveness, "lost");
  EXPECT_EQ(row("ada").liveness, "answering");
  EXPECT_THAT(ears.take(), Contains("bob is " + std::to_string(static_cast<int>(job::Liveness::lost))));
  line("bob").refuses.reset();
  tick(20s), tick(1s);
  answer("bob");
  tick(1s);
  EXPECT_EQ(row("bob").liveness, "answering");
}

TEST_F(FleetTest, TellsThatAHostIsLostAlsoWhenThatCannotBeWrittenDown) {
  add("ada"), add("bob");
  HostUse use;
  use.patience = 6s;
  tick(), tick();
  answer("ada"), answer("bob");
  fleet().set_use({{"bob", use}}, 5s);
  db::Database database = *db::Database::open(dir.path() / "state.db");
  ASSERT_THAT(database.execute("CREATE TRIGGER fails BEFORE UPDATE OF liveness ON providers BEGIN "
                               "SELECT RAISE(ABORT, 'the disk fails'); END"),
              IsOk());
  line("bob").refuses = make_error(Code::host_unreachable, "no route");
  line("bob").on_closed(make_error(Code::host_unreachable, "broke"));
  ears.take();
  for (int i = 0; i < 6; ++i) {
    tick(1s);
    if (line("ada").asked() == "poll") answer("ada");
  }
  EXPECT_NE(row("bob").liveness, "lost") << "it could not be written";
  EXPECT_THAT(ears.take(), Contains("bob is " + std::to_string(static_cast<int>(job::Liveness::lost))));
}

TEST_F(FleetTest, KnowsTheBootOfTheNewestAnswer) {
  add("ada");
  for (const char* boot : {"first", "second"}) {
    tick(60s), tick();
    answer("ada", {}, boot);
    EXPECT_EQ(host("ada").boot_id, boot);
  }
}

TEST_F(FleetTest, CountsNoSilenceWhenNobodyAnswers) {
  add("ada"), add("bob");
  tick(), tick();
  answer("ada"), answer("bob");
  for (const char* name : {"ada", "bob"}) {
    line(name).refuses = make_error(Code::host_unreachable, "no route");
    line(name).on_closed(make_error(Code::host_unreachable, "broke"));
  }
  for (int i = 0; i < 100; ++i) tick(1s);
  EXPECT_LE(host("ada").monitor->silence().counted(), 12s) << "it is our own network: no answer is recent";
  EXPECT_EQ(row("ada").liveness, "answering");
}

TEST_F(FleetTest, GivesAHostUpWhenItsJobsDo) {
  add("ada"), add("bob");
  HostUse use;
  use.patience = 6s;
  tick(), tick();
  answer("ada"), answer("bob");
  fleet().set_use({{"bob", use}}, 5s);
  EXPECT_EQ(host("ada").monitor->heartbeat(), 5s);
  line("bob").refuses = make_error(Code::host_unreachable, "no route");
  line("bob").on_closed(make_error(Code::host_unreachable, "broke"));
  for (int i = 0; i < 6; ++i) {
    tick(1s);
    if (line("ada").asked() == "poll") answer("ada");
  }
  EXPECT_EQ(host("bob").liveness, job::Liveness::lost);
  fleet().set_use({}, 5s);
  tick();
  EXPECT_EQ(host("bob").liveness, job::Liveness::answering) << "six seconds are nothing to a host without jobs";
}

TEST_F(FleetTest, HearsOfSignsOfLifeOverOtherConnections) {
  add("ada");
  tick(), tick();
  clock.pass(5s);
  host("ada").life->heard(clock.boot());
  tick();
  EXPECT_EQ(host("ada").monitor->last_answer(), clock.boot());
}

}  // namespace
}  // namespace gridctl::control::fleet_test
