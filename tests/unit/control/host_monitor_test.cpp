// SPDX-License-Identifier: Apache-2.0
// One host's heartbeat, frame by frame.
#include "control/fleet/host_monitor.hpp"

#include <gmock/gmock.h>

#include "hand_world.hpp"
#include "wire/network.hpp"

namespace gridctl::control::host_monitor_test {
namespace {

using namespace std::chrono_literals;
using testing::HandClock;
using testing::HandExecutor;
using testing::HandLine;
using testing::HandNetwork;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using wire::FrameKind;

const JobId k_job{"abcdefghijk23"};

class Monitor : public ::testing::Test {
 protected:
  Monitor() {
    provider.name = {"ada"};
    line->hello.boot_id = "boot";
    line->hello.host_time = {1'000'000'000};
    line->hello.features = {"health"};
  }
  HostMonitor& monitor() {
    if (monitor_ == nullptr) {
      HostMonitor::Listener listener;
      listener.polled = [this](const wire::PollReply& reply) { polled.push_back(reply); };
      listener.logged = [this](const wire::LogRequest& asked, std::uint64_t offset, const std::string& bytes) {
        logged.push_back(std::to_string(asked.epoch.value) + "@" + std::to_string(offset) + ":" + bytes);
      };
      listener.connected = [this](const wire::AgentHello& hello) { connected.push_back(hello.boot_id); };
      listener.failed = [this](const Error& error) { failed.push_back(error); };
      listener.told_health = [this](const wire::HealthReply& reply, Duration took) {
        health.emplace_back(reply.wall_ms, took);
      };
      listener.pinged = [this](Duration round_trip) { pinged.push_back(round_trip); };
      monitor_ = std::make_shared<HostMonitor>(run, net, clock, provider, listener);
    }
    return *monitor_;
  }
  void tick(Duration time = {}, bool others = false) {
    clock.pass(time);
    monitor().tick(clock.boot(), others);
    run.settle();
  }
  // Logged in, and asked for the first time.
  void up() {
    tick();
    tick();
    ASSERT_TRUE(monitor().is_up());
  }
  std::string poll_reply() {
    wire::PollReply reply;
    reply.host_time = {line->hello.host_time.ns + (clock.boot().ns - 3'600'000'000'000)};
    reply.boot_id = "boot";
    return wire::encode(reply);
  }
  void answer() { line->reply(poll_reply()); }
  wire::PollRequest asked(std::size_t from_last = 0) {
    return *wire::parse_poll(line->sent.at(line->sent.size() - 1 - from_last).payload);
  }
  Code drop_code() { return failed.empty() ? Code::internal : failed.back().code; }
  static HostMonitor::Want want(std::uint64_t epoch, Duration lease) {
    HostMonitor::Want want;
    want.attempt.job = k_job;
    want.attempt.epoch = {epoch};
    want.lease = lease;
    return want;
  }

  HandClock clock;
  HandExecutor run{clock};
  HandNetwork net{clock};
  std::shared_ptr<HandLine> line = net.line("ada");
  registry::Provider provider;
  std::vector<wire::PollReply> polled;
  std::vector<std::string> logged, connected;
  std::vector<Error> failed;
  std::vector<std::pair<std::int64_t, Duration>> health;
  std::vector<Duration> pinged;

 private:
  std::shared_ptr<HostMonitor> monitor_;
};

TEST_F(Monitor, LogsInAndAsksHowTheHostIs) {
  EXPECT_FALSE(monitor().is_up());
  EXPECT_FALSE(monitor().was_tried());
  monitor().tick(clock.boot(), false);
  EXPECT_TRUE(monitor().is_in_use());
  monitor().tick(clock.boot(), false);
  run.settle();
  EXPECT_EQ(line->logins, 1) << "one login at a time";
  EXPECT_EQ(net.patience, k_deploy_max);
  EXPECT_EQ(run.lanes.at(0).kind, os::Lane::Kind::login);
  EXPECT_EQ(run.lanes.at(0).host, "ada");
  EXPECT_TRUE(monitor().is_up());
  EXPECT_TRUE(monitor().was_tried());
  EXPECT_FALSE(monitor().is_in_use());
  EXPECT_THAT(connected, ElementsAre("boot"));
  EXPECT_EQ(monitor().last_answer(), clock.boot());
  tick();
  EXPECT_EQ(line->asked(), "poll");
  EXPECT_EQ(asked().echo, line->hello.host_time);
  EXPECT_THAT(asked().attempts, IsEmpty());
  answer();
  ASSERT_THAT(polled, SizeIs(1));
  EXPECT_EQ(polled[0].boot_id, "boot");
  EXPECT_THAT(failed, IsEmpty());
}

TEST_F(Monitor, AsksOnceInAHeartbeat) {
  up();
  answer();
  const std::size_t before = line->sent.size();
  tick(k_heartbeat_idle - 1ms);
  EXPECT_EQ(line->sent.size(), before);
  tick(1ms);
  EXPECT_EQ(line->sent.size(), before + 1);
  answer();
  monitor().poll_now();
  tick();
  EXPECT_EQ(line->sent.size(), before + 2);
  answer();
  monitor().set_wants({want(1, 10s)}, k_heartbeat_idle);
  tick();
  EXPECT_EQ(line->sent.size(), before + 3) << "there is another attempt to ask for";
  answer();
  monitor().set_wants({want(1, 10s)}, k_heartbeat_idle);
  tick();
  EXPECT_EQ(line->sent.size(), before + 3) << "nothing is new";
  monitor().set_wants({want(1, 10s)}, 2s);
  tick();
  EXPECT_EQ(line->sent.size(), before + 4) << "it shall be asked more often";
  EXPECT_EQ(monitor().heartbeat(), 2s);
  answer();
  monitor().set_wants({want(1, 10s)}, 8s);
  tick();
  EXPECT_EQ(line->sent.size(), before + 4) << "less often";
}

TEST_F(Monitor, AsksNothingMoreWhileAnAnswerIsDue) {
  up();
  const std::size_t before = line->sent.size();
  monitor().poll_now();
  tick(1s);
  EXPECT_EQ(line->sent.size(), before);
}

TEST_F(Monitor, RenewsEachLeaseByItself) {
  monitor().set_wants({want(1, 30s), want(2, 60s), want(3, 30s)}, 5s);
  up();
  ASSERT_THAT(line->sent, SizeIs(2));
  EXPECT_EQ(asked(1).lease, 30s);
  ASSERT_THAT(asked(1).attempts, SizeIs(2));
  EXPECT_EQ(asked(1).attempts[0].epoch.value, 1u);
  EXPECT_EQ(asked(1).attempts[1].epoch.value, 3u);
  EXPECT_EQ(asked(0).lease, 60s);
  EXPECT_EQ(asked(0).attempts.at(0).epoch.value, 2u);
  EXPECT_EQ(asked(0).echo, line->hello.host_time);
}

TEST_F(Monitor, TellsAnAttemptWhatIsLeftForIt) {
  HostMonitor::Want limited = want(1, 30s), over = want(2, 30s);
  limited.limits = HostMonitor::AttemptLimits{clock.boot() + 5min, "budget", {}};
  over.limits = HostMonitor::AttemptLimits{clock.boot() - 1s, "deadline", clock.boot() + 1min};
  monitor().set_wants({limited, over, want(3, 30s)}, 5s);
  up();
  const auto attempts = asked().attempts;
  ASSERT_THAT(attempts, SizeIs(3));
  ASSERT_TRUE(attempts[0].allowance);
  EXPECT_EQ(attempts[0].allowance->run, 5min);
  EXPECT_EQ(attempts[0].allowance->run_limit, "budget");
  EXPECT_FALSE(attempts[0].allowance->time);
  EXPECT_EQ(attempts[1].allowance->run, 0s) << "nothing, and never less";
  EXPECT_EQ(attempts[1].allowance->time, 1min);
  EXPECT_FALSE(attempts[2].allowance) << "as before";
  clock.pass(1s);
  line->reply(poll_reply());
  monitor().poll_now();
  tick(2s);
  EXPECT_EQ(asked().attempts[0].allowance->run, 5min - 1s) << "as of the host's time that is echoed";
  EXPECT_EQ(asked().echo.ns, line->hello.host_time.ns + 1'000'000'000);
}

TEST_F(Monitor, GivesAConnectionUpThatFallsSilent) {
  monitor().set_wants({}, 5s);
  up();
  tick(15s);
  EXPECT_TRUE(monitor().is_up()) << "three heartbeats";
  tick(1ms);
  EXPECT_FALSE(monitor().is_up());
  EXPECT_EQ(drop_code(), Code::timed_out);
  EXPECT_EQ(monitor().trouble(), failed.back().one_line());
  EXPECT_FALSE(line->open);
  tick();
  EXPECT_EQ(line->logins, 2) << "at once: a broken connection says nothing about the host";
  EXPECT_TRUE(monitor().is_up());
  EXPECT_EQ(monitor().trouble(), "");
}

TEST_F(Monitor, HasPatienceWithAFastHeartbeat) {
  monitor().set_wants({}, 500ms);
  up();
  tick(2s);
  EXPECT_TRUE(monitor().is_up());
  tick(1ms);
  EXPECT_FALSE(monitor().is_up());
}

TEST_F(Monitor, DropsAnAgentThatSaysWhatItShouldNot) {
  const auto drops = [&](const std::function<void()>& says) {
    failed.clear();
    if (!monitor().is_up()) tick(20s);
    if (line->sent.empty() || !line->open) return false;
    monitor().poll_now();
    tick(1s);
    says();
    return !monitor().is_up() && !failed.empty();
  };
  up();
  answer();
  EXPECT_TRUE(drops([&] { line->say(FrameKind::reply, line->sent.back().stream + 7, poll_reply()); }));
  EXPECT_EQ(drop_code(), Code::protocol_violation);
  EXPECT_TRUE(drops([&] { line->say(FrameKind::data, line->sent.back().stream, "x"); }));
  EXPECT_TRUE(drops([&] { line->reply("no JSON"); }));
  EXPECT_TRUE(drops([&] { line->say(FrameKind::event, 0, "no JSON"); }));
  EXPECT_TRUE(drops([&] { line->reply(wire::error_payload(make_error(Code::refused, "who are you?"))); }));
  EXPECT_EQ(drop_code(), Code::refused);
  EXPECT_FALSE(drops([&] { answer(); }));
}

TEST_F(Monitor, HearsEventsThatNobodyAskedFor) {
  up();
  answer();
  line->say(FrameKind::event, 0, poll_reply());
  EXPECT_THAT(polled, SizeIs(2));
  EXPECT_TRUE(monitor().is_up());
  clock.pass(3s);
  line->say(FrameKind::event, 0, poll_reply());
  EXPECT_EQ(monitor().last_answer(), clock.boot());
}

TEST_F(Monitor, MakesWhatWasHeldUpAsOldAsItIs) {
  up();
  wire::PollReply reply = *wire::parse_poll_reply(poll_reply());
  wire::AttemptStatus status;
  status.job = k_job;
  status.epoch = {1};
  status.ended_ms_ago = 10;
  reply.attempts = {status};
  clock.pass(8s);
  line->reply(wire::encode(reply));
  EXPECT_EQ(polled.at(0).attempts.at(0).ended_ms_ago, 8006) << "less what two clocks may drift apart";
}

// Else a slow answer would cost the attempt as much of its time.
TEST_F(Monitor, CountsWhatIsLeftFromWhenTheEchoedTimeWasSent) {
  HostMonitor::Want limited = want(1, 30s);
  limited.limits = HostMonitor::AttemptLimits{clock.boot() + 5min, "budget", {}};
  monitor().set_wants({limited}, 5s);
  up();
  clock.pass(1s);
  const std::string sent = poll_reply();
  clock.pass(8s);
  line->reply(sent);
  monitor().poll_now();
  tick(2s);
  ASSERT_TRUE(asked().attempts[0].allowance);
  EXPECT_EQ(asked().echo.ns, line->hello.host_time.ns + 1'000'000'000);
  const double left = seconds(*asked().attempts[0].allowance->run);
  EXPECT_LE(left, 299) << "never more than there is";
  EXPECT_NEAR(left, 299, 0.01) << "less what two clocks may drift apart";
}

TEST_F(Monitor, EchoesTheNewestTimeOfABootWhateverComesLate) {
  monitor().set_wants({want(1, 30s)}, 5s);
  up();
  clock.pass(1s);
  const std::string before = poll_reply();
  clock.pass(1s);
  answer();
  line->say(FrameKind::event, 0, before);
  monitor().poll_now();
  tick();
  EXPECT_EQ(asked().echo.ns, line->hello.host_time.ns + 2'000'000'000) << "else its lease would end earlier";
  line->hello.host_time = {500};  // it has booted
  tick(16s);
  ASSERT_FALSE(monitor().is_up());
  up();
  EXPECT_EQ(asked().echo.ns, 500) << "that one counts from its boot";
}

TEST_F(Monitor, IsTriedAgainAfterGrowingPauses) {
  line->refuses = make_error(Code::host_unreachable, "no route");
  line->login = 2s;  // no fast answer
  tick();
  EXPECT_TRUE(monitor().was_tried());
  EXPECT_EQ(monitor().trouble(), failed.back().one_line());
  for (const Duration pause : {Duration{500ms}, Duration{1s}, Duration{2s}, Duration{4s}, Duration{8s}, Duration{15s}, Duration{15s}}) {
    const int before = line->logins;
    tick(pause - 1ms);
    EXPECT_EQ(line->logins, before) << format_duration(pause);
    tick(1ms);
    EXPECT_EQ(line->logins, before + 1) << format_duration(pause);
  }
  line->refuses.reset();
  tick(15s);
  EXPECT_TRUE(monitor().is_up());
  line->refuses = make_error(Code::host_unreachable, "no route");
  line->on_closed(make_error(Code::host_unreachable, "broke"));
  tick();
  const int before = line->logins;
  tick(500ms);
  EXPECT_EQ(line->logins, before + 1) << "the pauses begin anew";
}

TEST_F(Monitor, WithJobsIsTriedAboutAsOftenAsItWouldBeAsked) {
  monitor().set_wants({want(1, 30s)}, 3s);
  line->refuses = make_error(Code::host_unreachable, "no route");
  line->login = 2s;
  tick();
  for (const Duration pause : {Duration{500ms}, Duration{1s}, Duration{2s}, Duration{3s}, Duration{3s}}) {
    const int before = line->logins;
    tick(pause - 1ms);
    EXPECT_EQ(line->logins, before);
    tick(1ms);
    EXPECT_EQ(line->logins, before + 1);
  }
}

TEST_F(Monitor, ThatAnswersAtOnceIsTriedAtOnceButNotForEver) {
  monitor().set_wants({want(1, 30s)}, 5s);
  line->refuses = make_error(Code::protocol_violation, "killed in its greeting");
  line->login = 999ms;
  tick();
  for (int i = 0; i < 30; ++i) {
    const int before = line->logins;
    tick(99ms);
    EXPECT_EQ(line->logins, before) << i;
    tick(1ms);
    EXPECT_EQ(line->logins, before + 1) << i;
  }
  const int before = line->logins;
  tick(1s);
  EXPECT_EQ(line->logins, before) << "thirty times are enough";
  tick(4s);
  EXPECT_EQ(line->logins, before + 1);
}

TEST_F(Monitor, IsInNoHasteWhereOnlyAPersonCanHelpOrNoJobWaits) {
  line->refuses = make_error(Code::protocol_violation, "killed in its greeting");
  tick();
  tick(100ms);
  EXPECT_EQ(line->logins, 1) << "no job is there";
  monitor().set_wants({want(1, 30s)}, 5s);
  line->refuses->retry = Retry::needs_user;
  tick(400ms);
  EXPECT_EQ(line->logins, 2);
  tick(100ms);
  EXPECT_EQ(line->logins, 2);
  line->refuses->retry = Retry::never;
  line->login = 1s;
  tick(900ms);
  EXPECT_EQ(line->logins, 3);
  tick(100ms);
  EXPECT_EQ(line->logins, 3) << "a second is not at once";
}

TEST_F(Monitor, TakesARefusedLoginForASignOfLifeWhileTheLeasesLast) {
  monitor().set_wants({want(1, 10s), want(2, 30s), want(3, 20s)}, 5s);
  up();
  answer();
  line->refuses = make_error(Code::auth_refused, "no key of ours");
  clock.pass(29s);
  line->on_closed(make_error(Code::host_unreachable, "broke"));
  tick();
  EXPECT_EQ(monitor().last_answer(), clock.boot());
  const BootTime last = clock.boot();
  tick(5s);
  EXPECT_GT(line->logins, 2);
  EXPECT_EQ(monitor().last_answer(), last) << "what it runs has ended by now";
}

TEST_F(Monitor, HearsOfAnswersOverOtherConnections) {
  monitor().heard({});
  EXPECT_FALSE(monitor().last_answer());
  monitor().heard(clock.boot());
  EXPECT_EQ(monitor().last_answer(), clock.boot());
  monitor().heard(clock.boot() - 1s);
  EXPECT_EQ(monitor().last_answer(), clock.boot()) << "an older one is no news";
}

TEST_F(Monitor, CountsSilenceOnlyWhileItIsAskedAndOthersAnswer) {
  up();
  answer();
  for (int i = 0; i < 9; ++i) tick(1s, true);
  EXPECT_EQ(monitor().silence().counted(), 0s) << "between polls nothing is counted";
  tick(1s, true);  // asked
  tick(1s, false);
  EXPECT_EQ(monitor().silence().counted(), 0s) << "it may be our own network";
  tick(1s, true);
  tick(1s, true);
  EXPECT_EQ(monitor().silence().counted(), 2s);
  answer();
  EXPECT_EQ(monitor().silence().counted(), 0s);
  line->on_closed(make_error(Code::host_unreachable, "broke"));
  line->refuses = make_error(Code::host_unreachable, "no route");
  tick(1s, true);
  EXPECT_EQ(monitor().silence().counted(), 1s) << "it cannot be reached";
  line->refuses.reset();
  tick(1s, true);
  EXPECT_TRUE(monitor().is_up());
  EXPECT_EQ(monitor().silence().counted(), 0s) << "a login is an answer";
}

TEST_F(Monitor, FetchesOnePieceOfOutputAtATime) {
  wire::LogRequest request{k_job, {1}, 5, 10};
  EXPECT_FALSE(monitor().request_log(request)) << "nobody is there";
  up();
  answer();
  EXPECT_TRUE(monitor().request_log(request));
  EXPECT_EQ(line->asked(), "log");
  EXPECT_EQ(wire::parse_log(line->sent.back().payload)->offset, 5u);
  EXPECT_FALSE(monitor().request_log(request));
  const std::uint32_t stream = line->sent.back().stream;
  line->reply(wire::encode(wire::LogReply{6, 20}));
  line->say(FrameKind::data, stream, "hello");
  line->say(FrameKind::data, stream, "world");
  EXPECT_THAT(logged, IsEmpty()) << "not before it is whole";
  line->say(FrameKind::end, stream, wire::encode(wire::EndRecord{10, std::nullopt}));
  EXPECT_THAT(logged, ElementsAre("1@6:helloworld"));
  EXPECT_TRUE(monitor().is_up());
  EXPECT_TRUE(monitor().request_log(request));
  line->reply(wire::error_payload(make_error(Code::not_found, "no such attempt")));
  EXPECT_TRUE(monitor().is_up()) << "nothing there is no trouble";
  EXPECT_TRUE(monitor().request_log(request));
}

TEST_F(Monitor, BelievesNoOutputThatIsNotWhole) {
  const wire::LogRequest request{k_job, {1}, 5, 4};
  const auto play = [&](const std::function<void(std::uint32_t)>& says) {
    if (!monitor().is_up()) tick(20s);
    tick(20s);
    if (line->asked() == "poll") answer();
    EXPECT_TRUE(monitor().request_log(request));
    says(line->sent.back().stream);
    return monitor().is_up();
  };
  up();
  answer();
  EXPECT_TRUE(play([&](std::uint32_t stream) {
    line->reply(wire::encode(wire::LogReply{5, 20}));
    line->say(FrameKind::data, stream, "abcd");
    line->say(FrameKind::end, stream, wire::encode(wire::EndRecord{3, std::nullopt}));
  }));
  EXPECT_TRUE(play([&](std::uint32_t stream) {
    line->reply(wire::encode(wire::LogReply{5, 20}));
    line->say(FrameKind::data, stream, "abcd");
    line->say(FrameKind::end, stream, wire::encode(wire::EndRecord{4, make_error(Code::io, "torn")}));
  }));
  EXPECT_THAT(logged, IsEmpty());
  EXPECT_FALSE(play([&](std::uint32_t stream) { line->say(FrameKind::data, stream, "abcd"); })) << "before its reply";
  EXPECT_FALSE(play([&](std::uint32_t stream) {
    line->reply(wire::encode(wire::LogReply{5, 20}));
    line->say(FrameKind::data, stream, "abc");
    line->say(FrameKind::data, stream, "de");
  })) << "more than was asked for";
  EXPECT_FALSE(play([&](std::uint32_t) { line->reply("no JSON"); }));
  EXPECT_FALSE(play([&](std::uint32_t stream) {
    line->reply(wire::encode(wire::LogReply{5, 20}));
    line->say(FrameKind::end, stream, "no JSON");
  }));
  EXPECT_THAT(logged, IsEmpty());
}

TEST_F(Monitor, AsksForHealthWhereTheAgentKnowsIt) {
  EXPECT_FALSE(monitor().request_health({}));
  up();
  answer();
  EXPECT_TRUE(monitor().request_health({}));
  EXPECT_FALSE(monitor().request_health({})) << "one at a time";
  clock.pass(3s);
  wire::HealthReply reply;
  reply.wall_ms = 77;
  line->reply(wire::encode(reply));
  EXPECT_THAT(health, ElementsAre(std::pair<std::int64_t, Duration>(77, 3s)));
  EXPECT_TRUE(monitor().request_health({}));
  line->reply(wire::error_payload(make_error(Code::io, "not now")));
  EXPECT_TRUE(monitor().is_up());
  EXPECT_THAT(health, SizeIs(1));
  EXPECT_TRUE(monitor().request_health({}));
  line->reply("no JSON");
  EXPECT_FALSE(monitor().is_up());
  line->hello.features.clear();
  tick();
  EXPECT_TRUE(monitor().is_up());
  EXPECT_FALSE(monitor().request_health({})) << "an older agent";
}

TEST_F(Monitor, PingsFiveTimesAfterALoginAndThenOnceAMinute) {
  line->hello.features = {std::string(wire::k_links_feature)};
  up();
  answer();
  const auto pong = [&](Duration time) {
    EXPECT_EQ(line->asked(), "link_ping");
    const std::uint64_t nonce = wire::parse_ping(line->sent.back().payload)->nonce;
    clock.pass(time);
    line->reply(wire::encode_pong({nonce}));
  };
  for (int i = 1; i <= 5; ++i) pong(std::chrono::milliseconds{i});
  EXPECT_THAT(pinged, ElementsAre(1ms, 2ms, 3ms, 4ms, 5ms));
  EXPECT_EQ(line->all_asked().size(), 6u) << "and no more";
  for (Duration passed = 10s; passed < 1min; passed += 10s) {
    tick(10s);
    answer();
  }
  EXPECT_NE(line->asked(), "link_ping");
  tick(10s);
  answer();
  EXPECT_EQ(line->asked(), "link_ping");
  line->reply(wire::encode_pong({1}));
  EXPECT_FALSE(monitor().is_up()) << "it answered before it was asked";
  EXPECT_THAT(pinged, SizeIs(5));
}

TEST_F(Monitor, PingsNoAgentThatKnowsNothingOfLinks) {
  up();
  answer();
  EXPECT_THAT(line->all_asked(), ElementsAre("poll"));
}

}  // namespace
}  // namespace gridctl::control::host_monitor_test
