// SPDX-License-Identifier: Apache-2.0
// What is done with one host over a connection: in which order, and what becomes of each failure.
#include "control/follow/host_work.hpp"

#include "control/follow/insight.hpp"
#include "followed_jobs.hpp"
#include "scripted_freight.hpp"

namespace gridctl::control::host_work_test {
namespace {

using namespace std::chrono_literals;
using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;
using testing::tree;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using Kind = LaunchResult::Kind;

class HostWork : public testing::FollowedJobs {
 protected:
  HostWork() {
    host.provider.name = {"ada"};
    order.spec.job = {"job"};
    order.spec.epoch = {3};
    order.spec.restore_name = "job@7";
    order.lease = 1h;
    wire::PrepareReply prepared;
    prepared.host_time = {5'000'000'000};
    prepared.boot_id = "boot";
    script.answers("prepare", wire::encode(prepared));
    script.answers("start", wire::encode(wire::StartReply{}));
    script.answers("stop");
    script.answers("clean");
    script.answers("standby");
  }
  [[nodiscard]] World world() { return {clock, run, net, registry, bulk, folders}; }
  [[nodiscard]] MemberWork work() { return {world(), host, {"job"}, {3}, {1}, 0}; }
  LaunchResult launched() { return launch(work(), order); }
  std::vector<std::string> asked() {
    std::vector<std::string> names = std::exchange(script.asked, {});
    std::erase(names, "health");
    return names;
  }
  wire::StartRequest started() { return *wire::parse_start(script.payloads["start"]); }
  // What the host says of the attempt, from now on.
  void shows(wire::AttemptPhase phase, const std::function<void(wire::AttemptStatus&)>& change = [](auto&) {}) {
    wire::PollReply reply;
    reply.boot_id = "boot";
    wire::AttemptStatus status;
    status.job = {"job"};
    status.epoch = {3};
    status.phase = phase;
    change(status);
    reply.attempts.push_back(status);
    script.answers("poll", wire::encode(reply));
  }
  static void has_saved(wire::AttemptStatus& status) {
    wire::HostCheckpoint saved;
    saved.number = 4;
    saved.root = tree(4);
    status.checkpoints = {saved};
  }
  Result<Gathered> collected(bool patient = false, const ResultsWanted& wanted = nothing()) {
    return collect(work(), 2, tree(9), patient, wanted);
  }
  static ResultsWanted nothing() {
    ResultsWanted wanted;
    wanted.nothing = true;
    return wanted;
  }

  testing::ScriptedFreight bulk;
  testing::Script& script = bulk.script;
  HostReach host;
  LaunchOrder order;
};

// --- Launching -------------------------------------------------------------------------------------------------------

TEST_F(HostWork, SendsWhatTheAttemptNeedsAndThenStartsIt) {
  order.spec.workdir = tree(1);
  order.spec.mounts = {{tree(2), "/data"}, {tree(3), "/more"}};
  order.spec.image_archive = tree(4);
  order.spec.restore = tree(5);
  order.secrets = {{"TOKEN", "secret"}};
  const LaunchResult result = launched();
  EXPECT_EQ(result.kind, Kind::accepted);
  EXPECT_THAT(asked(), ElementsAre("push 1", "push 2", "push 3", "push 4", "push 5", "prepare", "start"));
  EXPECT_EQ(started().echo.ns, 5'000'000'000);
  EXPECT_EQ(started().boot_id, "boot");
  EXPECT_EQ(started().lease, 1h);
  EXPECT_EQ(started().secrets.at("TOKEN"), "secret");
  EXPECT_FALSE(started().allowance);
  EXPECT_EQ(result.given, "");
  EXPECT_EQ(result.healed_from, "");
}

TEST_F(HostWork, PreparesAMemberThatIsNotToStartYet) {
  order.start = false;
  EXPECT_EQ(launched().kind, Kind::prepared);
  EXPECT_THAT(asked(), ElementsAre("prepare"));
}

TEST_F(HostWork, TellsWhatIsLeftOfItsLimitsAsOfTheStart) {
  order.allowance = Allowances::AtStart{10min, "budget", clock.boot() + 1h};
  launched();
  ASSERT_TRUE(started().allowance);
  EXPECT_EQ(started().allowance->run, 10min);
  EXPECT_EQ(started().allowance->run_limit, "budget");
  EXPECT_EQ(started().allowance->time, 1h);
  clock.pass(2h);
  launched();
  EXPECT_EQ(started().allowance->time, 0s) << "its deadline is over";
  order.allowance = Allowances::AtStart{std::nullopt, "", std::nullopt};
  launched();
  ASSERT_TRUE(started().allowance);
  EXPECT_FALSE(started().allowance->time);
}

TEST_F(HostWork, StartsNothingThatIsNotWantedAnyMore) {
  auto wanted = std::make_shared<std::atomic<std::uint64_t>>(3);
  order.wanted = wanted;
  EXPECT_EQ(launched().kind, Kind::accepted);
  *wanted = 4;
  asked();
  shows(wire::AttemptPhase::absent);
  const LaunchResult given_up = launched();
  EXPECT_EQ(given_up.kind, Kind::not_started);
  EXPECT_FALSE(given_up.host_fault);
  EXPECT_THAT(asked(), ElementsAre("prepare", "poll")) << "an earlier start may be there";
}

TEST_F(HostWork, SaysWhatCouldNotBeSent) {
  order.spec.workdir = tree(1);
  order.spec.mounts = {{tree(2), "/data"}};
  order.spec.image_archive = tree(3);
  order.spec.restore = tree(4);
  const std::map<std::string, std::string> words{{"push 1", "while sending the working directory"},
                                                 {"push 2", "while sending the mount /data"},
                                                 {"push 3", "while sending the image"},
                                                 {"push 4", "while sending checkpoint job@7"}};
  for (const auto& [what, text] : words) {
    bulk.fails[what] = {make_error(Code::host_unreachable, "the connection broke")};
    const LaunchResult result = launched();
    EXPECT_EQ(result.kind, Kind::not_started) << what;
    EXPECT_FALSE(result.host_fault) << what;
    EXPECT_FALSE(result.damaged) << what;
    EXPECT_THAT(result.detail, HasSubstr(text));
    EXPECT_THAT(asked(), Not(Contains("prepare"))) << what;
  }
  bulk.fails["push 1"] = {make_error(Code::no_space, "the host's disk is full")};
  const LaunchResult full = launched();
  EXPECT_TRUE(full.host_fault);
  EXPECT_TRUE(full.disk_full);
}

TEST_F(HostWork, StartsNothingOnAHostThatCannotBeReached) {
  bulk.no_way = make_error(Code::host_unreachable, "no route");
  EXPECT_EQ(launched().kind, Kind::not_started);
  order.doubt = {LaunchDoubt::Kind::sent, clock.boot(), "", false};
  EXPECT_EQ(launched().kind, Kind::unknown) << "an earlier start may have arrived";
  EXPECT_THAT(asked(), IsEmpty());
}

TEST_F(HostWork, AsksWhetherAnEarlierStartIsThereWhereItWasRefused) {
  order.spec.workdir = tree(1);
  order.doubt = {LaunchDoubt::Kind::refused, clock.boot(), "it said no", false};
  shows(wire::AttemptPhase::absent, [](wire::AttemptStatus& status) { status.max_epoch = {8}; });
  const LaunchResult result = launched();
  EXPECT_EQ(result.kind, Kind::not_started);
  EXPECT_EQ(result.detail, "it said no");
  EXPECT_EQ(result.host_max_epoch.value, 8u);
  EXPECT_THAT(asked(), ElementsAre("poll")) << "nothing is sent for it";
}

TEST_F(HostWork, BringsBackWhatIsDamagedHereOfTheCheckpoint) {
  order.spec.workdir = tree(1);
  order.spec.restore = tree(5);
  bulk.fails["push 5"] = {make_error(Code::checkpoint_damaged, "a chunk is not what it was"), std::nullopt};
  bulk.healed = std::string("2 chunks, 3 MiB, from nas");
  const LaunchResult result = launched();
  EXPECT_EQ(result.kind, Kind::accepted);
  EXPECT_EQ(result.healed_from, "2 chunks, 3 MiB, from nas");
  EXPECT_FALSE(result.damaged);
  EXPECT_THAT(asked(), ElementsAre("push 1", "push 5", "heal 5", "push 5", "prepare", "start"));
  EXPECT_THAT(bulk.reached, ElementsAre("ada", "ada")) << "over a connection of its own: that one is in no known state";
}

TEST_F(HostWork, CallsACheckpointDamagedThatNobodyCanBringBack) {
  order.spec.restore = tree(5);
  const Error damage = make_error(Code::not_found, "a chunk is gone");
  bulk.fails["push 5"] = {damage};
  EXPECT_TRUE(launched().damaged) << "there was nothing to heal it with";
  bulk.fails["push 5"] = {damage};
  bulk.healed = make_error(Code::io, "nas does not answer");
  const LaunchResult unhealed = launched();
  EXPECT_TRUE(unhealed.damaged);
  EXPECT_THAT(unhealed.detail, HasSubstr("nas does not answer"));
  bulk.fails["push 5"] = {damage, damage};
  bulk.healed = std::string("1 chunk, from nas");
  EXPECT_TRUE(launched().damaged) << "and is still damaged";
  bulk.fails["push 5"] = {damage, make_error(Code::host_unreachable, "broken")};
  EXPECT_FALSE(launched().damaged) << "who knows";
}

TEST_F(HostWork, GivesAMemberItsPartOfTheCheckpointWhereItCan) {
  order.own_part = true;
  order.spec.restore = tree(5);
  OwnPart part;
  part.root = tree(6);
  part.bytes = 1 << 20;
  part.of_bytes = 4 << 20;
  bulk.part = part;
  launched();
  EXPECT_THAT(asked(), ElementsAre("push 5", "prepare", "start")) << "one host has all of it";
  wire::Gang gang;
  gang.members = {{"ada", "10.0.0.1", 1}, {"bob", "10.0.0.2", 2}};
  gang.launcher = "plain";
  gang.port = 12000;
  order.spec.gang = gang;
  const LaunchResult result = launched();
  EXPECT_THAT(asked(), ElementsAre("part of 3", "push part 6", "prepare", "start"));
  EXPECT_EQ(started().spec.restore, tree(6));
  EXPECT_EQ(result.given, "1.0 MiB of 4.0 MiB");
  order.own_part = false;
  launched();
  EXPECT_THAT(asked(), ElementsAre("push 5", "prepare", "start"));
  EXPECT_EQ(started().spec.restore, tree(5));
}

// --- Ending ----------------------------------------------------------------------------------------------------------

TEST_F(HostWork, StopsAnAttemptWithItsGrace) {
  ASSERT_THAT(stop(work(), 7s), IsOk());
  const auto request = wire::parse_stop(script.payloads["stop"]);
  ASSERT_THAT(request, IsOk());
  EXPECT_EQ(request->epoch.value, 3u);
  EXPECT_EQ(request->grace, 7s);
  script.replies["stop"] = {make_error(Code::io, "no")};
  EXPECT_THAT(stop(work(), 7s), FailsWith(Code::engine));
  bulk.no_way = make_error(Code::host_unreachable, "no route");
  EXPECT_THAT(stop(work(), 7s), FailsWith(Code::host_unreachable));
}

TEST_F(HostWork, CollectsTheNewestCheckpointThatIsNotHere) {
  shows(wire::AttemptPhase::ended, has_saved);
  auto gathered = collected();
  ASSERT_THAT(gathered, IsOk());
  ASSERT_THAT(gathered->checkpoints, SizeIs(1));
  EXPECT_EQ(gathered->checkpoints[0].from.number, 4u);
  EXPECT_EQ(gathered->problem, "");
  EXPECT_THAT(asked(), ElementsAre("poll", "pull 4 after 9"));
  gathered = collect(work(), 4, tree(9), false, nothing());
  ASSERT_THAT(gathered, IsOk());
  EXPECT_THAT(gathered->checkpoints, IsEmpty()) << "it is here";
}

TEST_F(HostWork, CollectsWhatWasWholeAndThenWhatWasLeft) {
  shows(wire::AttemptPhase::ended, [](wire::AttemptStatus& status) {
    for (const std::uint64_t number : {3u, 4u, 5u}) {
      wire::HostCheckpoint saved;
      saved.number = number;
      saved.root = tree(static_cast<int>(number));
      saved.as_left = saved.provisional = number == 5;
      status.checkpoints.push_back(saved);
    }
  });
  const auto gathered = collected();
  ASSERT_THAT(gathered, IsOk());
  ASSERT_THAT(gathered->checkpoints, SizeIs(2));
  EXPECT_EQ(gathered->checkpoints[0].from.number, 4u);
  EXPECT_TRUE(gathered->checkpoints[1].from.as_left);
}

TEST_F(HostWork, GivesUpOutputsAfterAFewTriesAndSaysWhereTheyAre) {
  shows(wire::AttemptPhase::ended);
  ResultsWanted wanted;
  wanted.tree = true;
  wanted.failures = std::make_shared<std::atomic<int>>(0);
  script.replies["results"] = {make_error(Code::timed_out, "silence")};
  for (int tries = 0; tries < 2; ++tries) EXPECT_THAT(collected(false, wanted), FailsWith(Code::timed_out));
  const auto gathered = collected(false, wanted);
  ASSERT_THAT(gathered, IsOk());
  EXPECT_TRUE(gathered->results_left);
  EXPECT_THAT(gathered->problem, HasSubstr("gridctl job pull job"));
}

TEST_F(HostWork, TellsOfACheckpointThatCannotBeHadAndTriesAgainWhatMayPass) {
  shows(wire::AttemptPhase::ended, has_saved);
  const auto pulls = [&](Code code, bool patient) {
    bulk.fails["pull 4 after 9"] = {make_error(code, "bad luck")};
    return collected(patient);
  };
  for (const Code passes : {Code::host_unreachable, Code::timed_out, Code::protocol_violation, Code::auth_refused, Code::no_space})
    EXPECT_THAT(pulls(passes, false), FailsWith(passes));
  EXPECT_THAT(pulls(Code::io, true), FailsWith(Code::io));
  for (const Code stays : {Code::io, Code::checkpoint_damaged, Code::not_found}) {
    const auto gathered = pulls(stays, false);
    ASSERT_THAT(gathered, IsOk());
    EXPECT_THAT(gathered->checkpoints, IsEmpty());
    EXPECT_THAT(gathered->problem, HasSubstr("the last checkpoint could not be fetched: bad luck"));
  }
}

TEST_F(HostWork, CollectsTheEndOfTheOutput) {
  shows(wire::AttemptPhase::ended, [](wire::AttemptStatus& status) { status.log_bytes = 5; });
  script.answers("log", wire::encode(wire::LogReply{0, 5}));
  script.more["log"] = {{wire::FrameKind::data, 0, "hello"}, {wire::FrameKind::end, 0, wire::encode(wire::EndRecord{5, {}})}};
  ASSERT_THAT(collected(), IsOk());
  EXPECT_EQ(*folders.log_tail({"job"}, {1}, 0, 5), "hello");
  shows(wire::AttemptPhase::ended, [](wire::AttemptStatus& status) { status.log_bytes = 50; });
  script.replies["log"] = {make_error(Code::not_found, "the ring is gone")};
  script.replies["poll"].pop_front();
  const auto gathered = collected();
  ASSERT_THAT(gathered, IsOk());
  EXPECT_THAT(gathered->problem, HasSubstr("the end of the output is missing: the ring is gone"));
  script.replies["log"] = {make_error(Code::timed_out, "silence")};
  EXPECT_THAT(collected(), FailsWith(Code::timed_out));
}

TEST_F(HostWork, CollectsWhatTheJobHasLeft) {
  shows(wire::AttemptPhase::ended);
  ResultsWanted wanted;
  wanted.patterns = {"out/"};
  wanted.tree = true;
  wanted.before = tree(8);
  wire::ResultsReply reply;
  reply.files = 2;
  reply.root = tree(7);
  script.answers("results", wire::encode(reply));
  auto gathered = collected(false, wanted);
  ASSERT_THAT(gathered, IsOk());
  ASSERT_TRUE(gathered->results);
  EXPECT_EQ(gathered->results->root, tree(7));
  EXPECT_EQ(gathered->results->files, 4u) << "of all that is here now";
  EXPECT_EQ(gathered->results->bytes, 1000u);
  EXPECT_EQ(gathered->results->reply.files, 2u);
  EXPECT_THAT(asked(), ElementsAre("poll", "results", "bring 7 over 8"));
  EXPECT_THAT(wire::parse_results(script.payloads["results"])->patterns, ElementsAre("out/"));
  EXPECT_TRUE(wire::parse_results(script.payloads["results"])->tree);

  wanted.tree = false;
  gathered = collected(false, wanted);
  ASSERT_THAT(gathered, IsOk());
  EXPECT_FALSE(gathered->results->root) << "it is only counted";
  EXPECT_THAT(asked(), ElementsAre("poll", "results"));
  EXPECT_THAT(collected(), IsOk());
  EXPECT_THAT(asked(), ElementsAre("poll")) << "nothing is wanted";
}

TEST_F(HostWork, TellsOfOutputsThatCannotBeHad) {
  shows(wire::AttemptPhase::ended);
  const auto results = [&](Code code) {
    script.replies["results"] = {make_error(code, "bad luck")};
    return collected(false, {});
  };
  EXPECT_THAT(results(Code::timed_out), FailsWith(Code::timed_out));
  EXPECT_THAT(results(Code::io)->problem, HasSubstr("the outputs could not be fetched: bad luck"));
  for (const Code fine : {Code::unsupported, Code::not_found}) EXPECT_EQ(results(fine)->problem, "") << code_name(fine);
  EXPECT_FALSE(results(Code::io)->results);
}

TEST_F(HostWork, CleansUpWhatHasEnded) {
  shows(wire::AttemptPhase::ended, has_saved);
  const auto cleaned = clean_up(work(), {{"ada"}, {3}, {1}, false, 0}, 2, {});
  ASSERT_THAT(cleaned, IsOk());
  EXPECT_THAT(cleaned->checkpoints, IsEmpty());
  EXPECT_THAT(asked(), ElementsAre("poll", "clean"));
  EXPECT_EQ(wire::parse_clean(script.payloads["clean"])->epoch.value, 3u);
  ASSERT_THAT(clean_up(work(), {{"ada"}, {3}, {1}, false, 0}, 2, {}, Epoch{3}), IsOk());
  EXPECT_THAT(asked(), ElementsAre("poll", "keep", "clean")) << "an agent that does not know it is no failure";
}

TEST_F(HostWork, StopsWhatStillRunsOfAStaleAttemptAndFetchesWhatItSaved) {
  shows(wire::AttemptPhase::running, has_saved);
  shows(wire::AttemptPhase::stopping, has_saved);
  shows(wire::AttemptPhase::ended, has_saved);
  const BootTime began = clock.boot();
  auto gathered = clean_up(work(), {{"ada"}, {3}, {1}, true, 0}, 2, tree(9));
  ASSERT_THAT(gathered, IsOk());
  ASSERT_THAT(gathered->checkpoints, SizeIs(1));
  EXPECT_THAT(asked(), ElementsAre("poll", "stop", "poll", "poll", "poll", "pull 4 after 9")) << "and it stays until that is committed";
  EXPECT_EQ(wire::parse_stop(script.payloads["stop"])->grace, 0s);
  EXPECT_GT(clock.boot(), began) << "it is given a moment";
  gathered = clean_up(work(), {{"ada"}, {3}, {1}, true, 0}, 4, tree(9));
  ASSERT_THAT(gathered, IsOk());
  EXPECT_THAT(asked(), ElementsAre("poll", "poll", "clean"));
}

TEST_F(HostWork, DoesNotWaitForEverForWhatDoesNotEnd) {
  shows(wire::AttemptPhase::stopping);
  const BootTime began = clock.boot();
  EXPECT_THAT(clean_up(work(), {{"ada"}, {3}, {1}, false, 0}, 0, {}), FailsWith(Code::timed_out));
  EXPECT_GT(clock.boot() - began, 90s);
  EXPECT_LT(clock.boot() - began, 95s);
  script.replies["poll"] = {make_error(Code::io, "no")};
  EXPECT_THAT(clean_up(work(), {{"ada"}, {3}, {1}, false, 0}, 0, {}), FailsWith(Code::engine));
}

// --- Standbys --------------------------------------------------------------------------------------------------------

TEST_F(HostWork, MakesAStandbyOfInputsAndCheckpoint) {
  bulk.bytes = 5000;
  const auto made = make_standby(world(), host, {"job"}, tree(5), {tree(1), tree(2)});
  ASSERT_THAT(made, IsOk());
  EXPECT_EQ(*made, 5000u);
  EXPECT_THAT(asked(), ElementsAre("push 1", "push 2", "push 5", "standby"));
  EXPECT_EQ(wire::parse_standby(script.payloads["standby"])->root, tree(5));
  bulk.fails["push 2"] = {make_error(Code::no_space, "full")};
  EXPECT_THAT(make_standby(world(), host, {"job"}, tree(5), {tree(1), tree(2)}), FailsWith(Code::no_space));
  bulk.fails["push 5"] = {make_error(Code::not_found, "gone")};
  EXPECT_THAT(make_standby(world(), host, {"job"}, tree(5)), FailsWith(Code::not_found));
  script.replies["standby"] = {make_error(Code::io, "no")};
  EXPECT_THAT(make_standby(world(), host, {"job"}, tree(5)), FailsWith(Code::engine));
}

TEST_F(HostWork, DropsAStandby) {
  ASSERT_THAT(drop_standby(world(), host, {"job"}), IsOk());
  EXPECT_FALSE(wire::parse_standby(script.payloads["standby"])->root);
  script.replies["standby"] = {make_error(Code::io, "no")};
  EXPECT_THAT(drop_standby(world(), host, {"job"}), FailsWith(Code::engine));
}

// --- Looks into an attempt -------------------------------------------------------------------------------------------

TEST_F(HostWork, ReadsWhereProcessesStand) {
  script.answers("stacks");
  script.more["stacks"] = {{wire::FrameKind::event, 40, "{}"},
                           {wire::FrameKind::data, 0, "rank 0: "},
                           {wire::FrameKind::data, 0, "recv()"},
                           {wire::FrameKind::end, 0, wire::encode(wire::EndRecord{14, {}})}};
  const auto text = stacks_on(world(), host, {"job"}, {3});
  ASSERT_THAT(text, IsOk());
  EXPECT_EQ(*text, "rank 0: recv()");
  EXPECT_EQ(wire::parse_stacks(script.payloads["stacks"])->epoch.value, 3u);
}

TEST_F(HostWork, BelievesNoStacksThatAreNone) {
  script.answers("stacks");
  const auto told = [&](std::vector<wire::Frame> frames) {
    script.more["stacks"] = std::move(frames);
    return stacks_on(world(), host, {"job"}, {3});
  };
  const wire::Frame end{wire::FrameKind::end, 0, wire::encode(wire::EndRecord{0, {}})};
  EXPECT_THAT(told({{wire::FrameKind::reply, 0, "{}"}, end}), FailsWith(Code::protocol_violation));
  const std::string most(wire::k_stacks_bytes_max, 'x');
  EXPECT_THAT(told({{wire::FrameKind::data, 0, most}, end}), IsOk());
  EXPECT_THAT(told({{wire::FrameKind::data, 0, most}, {wire::FrameKind::data, 0, "y"}, end}), FailsWith(Code::protocol_violation));
  EXPECT_THAT(told({{wire::FrameKind::data, 0, "x"},
                    {wire::FrameKind::end, 0, wire::encode(wire::EndRecord{1, make_error(Code::io, "no")})}}),
              FailsWith(Code::io));
  EXPECT_THAT(told(std::vector(100, wire::Frame{wire::FrameKind::event, 40, "{}"})), FailsWith(Code::protocol_violation));
  EXPECT_THAT(told({}), FailsWith(Code::timed_out));
}

TEST_F(HostWork, ReadsWhichStepsWereTold) {
  wire::StepsReply reply;
  reply.steps = {{1, 30, 0.5}, {0, 31, {}}};
  script.answers("steps", wire::encode(reply));
  const auto told = steps_on(world(), host, {"job"}, {3});
  ASSERT_THAT(told, IsOk());
  EXPECT_EQ(told->steps, reply.steps);
  script.replies["steps"] = {make_error(Code::unsupported, "what?")};
  EXPECT_THAT(steps_on(world(), host, {"job"}, {3}), FailsWith(Code::unsupported));
}

}  // namespace
}  // namespace gridctl::control::host_work_test
