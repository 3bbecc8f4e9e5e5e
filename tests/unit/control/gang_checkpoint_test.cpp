// SPDX-License-Identifier: Apache-2.0
// How a checkpoint of several members is put together, over lines by hand.

#include "gang_on_hosts.hpp"

namespace gridctl::control::gang_checkpoint_test {
namespace {

using namespace std::chrono_literals;
using gridctl::testing::Fate, gridctl::testing::Point;
using testing::tree;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

TEST_F(GangOnHosts, ACheckpointOfAllIsWrittenDownAsOne) {
  runs();
  merges_to(50, {3, 4, 5});
  bulk.bytes = 100;
  says("ada", wire::AttemptPhase::running, 3);
  EXPECT_EQ(bulk.merged, 0) << "nobody knows yet whether the others save anything";
  says("bob", wire::AttemptPhase::running, 4);
  says("eve", wire::AttemptPhase::running, 5);
  EXPECT_EQ(bulk.merged, 1);
  ASSERT_THAT(bulk.parts, SizeIs(3));
  EXPECT_EQ(bulk.parts[1][0].member, "bob");
  EXPECT_EQ(bulk.parts[1][0].root, tree(4));
  EXPECT_EQ(bulk.parts[1][0].number, 4u);
  EXPECT_EQ(bulk.parts[1][0].first_rank, 1u);
  EXPECT_EQ(bulk.parts[2][0].first_rank, 2u);
  EXPECT_EQ(bulk.parts[2][0].ranks, 1u);
  EXPECT_EQ(bulk.parts[2][0].step, 50);
  EXPECT_FALSE(bulk.parts[2][0].nothing);
  const auto kept = *registry.checkpoints({"gang"});
  ASSERT_THAT(kept, SizeIs(1));
  EXPECT_EQ(kept[0].root, tree(50));
  EXPECT_EQ(kept[0].host_number, 12u) << "the sum grows with every new part";
  EXPECT_EQ(kept[0].bytes, 3000u);
  EXPECT_EQ(kept[0].files, 12u);
  EXPECT_EQ(kept[0].how, "torch:whole");
  EXPECT_FALSE(kept[0].provisional);
  EXPECT_EQ(state().head.value, 1u);
  EXPECT_EQ(attempts.newest_there(job("gang")), 12u);
  says("eve", wire::AttemptPhase::running, 5);
  EXPECT_THAT(*registry.checkpoints({"gang"}), SizeIs(1)) << "there is nothing new";
}

TEST_F(GangOnHosts, WhenAPartWasSavedIsCountedBackFromItsArrival) {
  runs();
  merges_to(50, {3, 3, 3});
  bulk.took = 2s;
  says("ada", wire::AttemptPhase::running, 3, [](wire::AttemptStatus& status) { status.checkpoints[0].age_ms = 700; });
  ASSERT_THAT(bulk.parts, SizeIs(3));
  EXPECT_EQ(bulk.parts[0][0].saved_at, clock.boot() - 2700ms);
}

TEST_F(GangOnHosts, ACheckpointOfWhichAPartIsUnsureIsUnsure) {
  runs();
  merges_to(50, {3, 4, 5});
  for (const auto& [name, number] : {std::pair{"ada", 3}, {"bob", 4}, {"eve", 5}})
    says(name, wire::AttemptPhase::running, static_cast<std::uint64_t>(number),
         [&](wire::AttemptStatus& status) { status.checkpoints[0].provisional = std::string(name) == "bob"; });
  later(20s);
  for (const char* name : {"ada", "bob", "eve"}) says(name, wire::AttemptPhase::running);
  ASSERT_THAT(*registry.checkpoints({"gang"}), SizeIs(1));
  EXPECT_TRUE(registry.checkpoints({"gang"})->front().provisional);
}

TEST_F(GangOnHosts, AMemberThatSavesNothingIsNotWaitedForWhenItHasToldSo) {
  runs();
  merges_to(50, {3, 0, 0});
  says("ada", wire::AttemptPhase::running, 3);
  for (const char* name : {"bob", "eve"}) says(name, wire::AttemptPhase::running);
  later(2s);
  EXPECT_EQ(bulk.merged, 0) << "they have not told since";
  for (const char* name : {"bob", "eve"}) says(name, wire::AttemptPhase::running);
  later(2s);
  EXPECT_EQ(bulk.merged, 1);
  EXPECT_TRUE(bulk.parts[1][0].nothing);
  EXPECT_FALSE(bulk.parts[1][0].settled);
  EXPECT_EQ(bulk.parts[1][0].member, "bob");
  EXPECT_THAT(*registry.checkpoints({"gang"}), SizeIs(1));
}

TEST_F(GangOnHosts, AMemberThatSavesNothingIsNotWaitedForLongerWhenAnotherSavesOften) {
  runs();
  bulk.merges = [this]() -> Result<MergedParts> {
    MergedParts merged;
    merged.root = testing::tree(50);
    merged.numbers = {bulk.parts[0].back().number, 0, 0};
    return merged;
  };
  for (std::uint64_t save = 1; save <= 8; ++save) {
    says("ada", wire::AttemptPhase::running, save, [](wire::AttemptStatus& status) {
      status.checkpoints[0].how = "overdue", status.checkpoints[0].provisional = true;
    });
    for (const char* name : {"bob", "eve"}) says(name, wire::AttemptPhase::running);
    later(2s);
  }
  EXPECT_THAT(*registry.checkpoints({"gang"}), Not(IsEmpty()));
}

TEST_F(GangOnHosts, WhyThereIsNoneYetIsToldWhenItStaysSo) {
  runs();
  misses("no step that all members have saved yet");
  for (const auto& [name, number] : {std::pair{"ada", 3}, {"bob", 4}, {"eve", 5}})
    says(name, wire::AttemptPhase::running, static_cast<std::uint64_t>(number));
  EXPECT_THAT(told("checkpoint_incomplete"), IsEmpty()) << "parts come one after the other";
  later(20s);
  EXPECT_THAT(told("checkpoint_incomplete"), ElementsAre("no step that all members have saved yet"));
  says("ada", wire::AttemptPhase::running, 6);
  later(20s);
  EXPECT_THAT(told("checkpoint_incomplete"), SizeIs(1)) << "once";
  misses("bob holds something else");
  says("ada", wire::AttemptPhase::running, 7);
  later(20s);
  EXPECT_THAT(told("checkpoint_incomplete"), SizeIs(2));
  bulk.merges = []() -> Result<MergedParts> { return make_error(Code::no_space, "our disk is full"); };
  says("ada", wire::AttemptPhase::running, 8);
  EXPECT_THAT(told("checkpoint_fetch_failed"), ElementsAre(HasSubstr("our disk is full")));
}

TEST_F(GangOnHosts, OfEachMemberFourPartsAreKept) {
  runs();
  misses("not yet");
  for (std::uint64_t number = 1; number <= 6; ++number) says("ada", wire::AttemptPhase::running, number);
  for (const char* name : {"bob", "eve"}) says(name, wire::AttemptPhase::running, 1);
  ASSERT_THAT(bulk.parts, SizeIs(3));
  std::vector<std::uint64_t> numbers;
  for (const CheckpointPart& part : bulk.parts[0]) numbers.push_back(part.number);
  EXPECT_THAT(numbers, ElementsAre(3, 4, 5, 6));
}

TEST_F(GangOnHosts, PartsOfItsEndBecomeALastCheckpoint) {
  runs();
  merges_to(50, {3, 4, 5});
  all_end();
  later(1s);
  EXPECT_EQ(state().visible(), job::JobState::succeeded);
  ASSERT_THAT(*registry.checkpoints({"gang"}), SizeIs(1));
  EXPECT_EQ(registry.checkpoints({"gang"})->front().root, tree(50));
}

// Its hosts are cleaned when it has ended.
TEST_F(GangOnHosts, DoesNotEndBeforeItsLastCheckpointIsPutTogether) {
  runs();
  Code trouble = Code::no_space;
  bulk.merges = [&]() -> Result<MergedParts> { return make_error(trouble, "our disk is in trouble"); };
  all_end();
  for (int i = 0; i < 3; ++i) later(1s);
  trouble = Code::io;
  for (int i = 0; i < 3; ++i) later(1s);
  EXPECT_NE(job("gang").in<job::Collecting>(), nullptr) << state().reason_text;
  EXPECT_THAT(script.asked, Not(Contains("clean")));
  EXPECT_THAT(told("checkpoint_fetch_failed"), ElementsAre(HasSubstr("our disk is in trouble")));
  EXPECT_LT(bulk.merged, 20) << "it is tried again now and then";
  merges_to(50, {3, 4, 5});
  for (int i = 0; i < 3; ++i) later(1s);
  EXPECT_EQ(state().visible(), job::JobState::succeeded);
  ASSERT_THAT(*registry.checkpoints({"gang"}), SizeIs(1));
  EXPECT_EQ(registry.checkpoints({"gang"})->front().root, tree(50));
}

TEST_F(GangOnHosts, DoesNotEndBeforeItsLastCheckpointIsWrittenDown) {
  runs();
  merges_to(50, {3, 4, 5});
  records.fates[Point::records_commit_checkpoint] = {Fate::fails, Fate::fails, Fate::lost};
  all_end();
  EXPECT_THAT(*registry.checkpoints({"gang"}), IsEmpty());
  EXPECT_NE(job("gang").in<job::Collecting>(), nullptr);
  EXPECT_THAT(script.asked, Not(Contains("clean")));
  for (int i = 0; i < 6; ++i) later(1s);
  EXPECT_EQ(state().visible(), job::JobState::succeeded);
  EXPECT_THAT(*registry.checkpoints({"gang"}), SizeIs(1)) << "what was written without our being told is there once";
}

TEST_F(GangOnHosts, DoesNotEndBeforeWhatItsMembersLeftIsWrittenDown) {
  runs();
  bulk.merges = [this]() -> Result<MergedParts> {
    MergedParts merged;
    if (!bulk.parts[0][0].as_left) return merged.missing = "nothing was saved", merged;
    if (bulk.merged < 5) return make_error(Code::no_space, "the disk is full");
    return merged.root = tree(60), merged;
  };
  records.fates[Point::records_commit_checkpoint] = {Fate::fails, Fate::lost};
  for (const char* name : {"ada", "bob", "eve"})
    says(name, wire::AttemptPhase::ended, 1, [](wire::AttemptStatus& status) {
      status.end = wire::EndReason::exited, status.exit_code = 0;
      status.checkpoints[0].as_left = status.checkpoints[0].provisional = true;
    });
  EXPECT_NE(job("gang").in<job::Collecting>(), nullptr);
  for (int i = 0; i < 10; ++i) later(1s);
  EXPECT_EQ(state().visible(), job::JobState::succeeded);
  ASSERT_THAT(*registry.checkpoints({"gang"}), SizeIs(1));
  EXPECT_EQ(registry.checkpoints({"gang"})->front().root, tree(60));
}

TEST_F(GangOnHosts, EndsWithALineWhenItsLastCheckpointCannotBePutTogether) {
  runs();
  bulk.merges = []() -> Result<MergedParts> { return make_error(Code::checkpoint_damaged, "a part is damaged"); };
  all_end();
  for (int i = 0; i < 3; ++i) later(1s);
  EXPECT_EQ(state().visible(), job::JobState::succeeded);
  EXPECT_THAT(told("checkpoint_fetch_failed"), ElementsAre(HasSubstr("a part is damaged")));
}

TEST_F(GangOnHosts, EndsWithALineWhenItsLastPartsAreNoCheckpoint) {
  runs();
  misses("no step that all members have saved yet");
  all_end();
  for (int i = 0; i < 3; ++i) later(1s);
  EXPECT_EQ(state().visible(), job::JobState::succeeded);
  EXPECT_THAT(told("checkpoint_incomplete"), ElementsAre("no step that all members have saved yet"));
}

TEST_F(GangOnHosts, OutputsThatComeWhenThoseOfItsEndAreHereChangeNothing) {
  placed([](job::Spec& spec) { spec.outputs = {{"out/", job::OutputWhen::always, 60s}}; });
  for (const char* name : {"ada", "bob", "eve"}) says(name, wire::AttemptPhase::running);
  for (const int root : {9, 8}) {  // those of the end are asked for first
    wire::ResultsReply reply;
    reply.files = 1;
    reply.root = testing::tree(root);
    script.answers("results", wire::encode(reply));
  }
  misses("");
  bool ends = true, ended = false;
  bulk.fails_reaching = [&](const HostReach& reach) -> std::optional<Error> {
    if (std::exchange(ends, false)) all_end(), ended = true;  // while outputs of the running job are under way
    if (ended || reach.provider.name.value != "eve") return std::nullopt;
    return make_error(Code::host_unreachable, "no route");  // its end is not here yet: the attempt is not over
  };
  clock.pass(60s);
  says("ada", wire::AttemptPhase::running);
  const auto results = registry.results({"gang"});
  ASSERT_TRUE(results && *results);
  EXPECT_EQ((*results)->root, testing::tree(9));
}

// Else nobody would know where they are.
TEST_F(GangOnHosts, DoesNotEndBeforeItIsWrittenDownThatItsOutputsStayOnTheirHost) {
  placed([](job::Spec& spec) { spec.outputs = {{"out/", job::OutputWhen::always, 0s}}; });
  for (const char* name : {"ada", "bob", "eve"}) says(name, wire::AttemptPhase::running);
  script.answers("results", make_error(Code::usage, "a name there cannot be read"));
  misses("no step that all members have saved yet");
  records.fates[Point::records_save_results] = {Fate::fails, Fate::fails, Fate::lost};
  all_end();
  EXPECT_NE(job("gang").in<job::Collecting>(), nullptr) << state().reason_text;
  for (int i = 0; i < 12; ++i) later(1s);
  EXPECT_EQ(state().visible(), job::JobState::succeeded);
  EXPECT_TRUE(records.fates[Point::records_save_results].empty()) << "it was tried again";
  const auto results = registry.results({"gang"});
  ASSERT_TRUE(results && *results && (*results)->left);
  EXPECT_EQ((*results)->left->host, HostName{"ada"});
}

TEST_F(GangOnHosts, PartsThatCouldNotBeWrittenDownAreAgainWhileItRuns) {
  runs();
  merges_to(50, {3, 4, 5});
  records.fates[Point::records_commit_checkpoint] = {Fate::fails};
  for (const auto& [name, number] : {std::pair{"ada", 3}, {"bob", 4}, {"eve", 5}})
    says(name, wire::AttemptPhase::running, static_cast<std::uint64_t>(number));
  EXPECT_THAT(*registry.checkpoints({"gang"}), IsEmpty());
  later(2s);
  EXPECT_THAT(*registry.checkpoints({"gang"}), SizeIs(1)) << "also when nothing new is saved";
}

}  // namespace
}  // namespace gridctl::control::gang_checkpoint_test
