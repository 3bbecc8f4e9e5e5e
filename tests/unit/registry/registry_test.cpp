// SPDX-License-Identifier: Apache-2.0
#include "registry/registry.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "db/database.hpp"
#include "os/random.hpp"
#include "registry/forget.hpp"

namespace gridctl::registry::registry_test {
namespace {

class RegistryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    directory = os::temporary_directory() / ("gridctl-registry-" + os::random_id(10));
    reopen();
  }
  void TearDown() override {
    registry.reset();
    EXPECT_TRUE(os::remove_tree(directory));
  }
  void reopen() {
    registry.reset();
    Result<Registry> opened = Registry::open(directory);
    ASSERT_TRUE(opened) << opened.error().one_line();
    registry.emplace(std::move(*opened));
  }
  JobId submit(const std::string& name = "train", const std::string& owner = "") {
    job::Spec spec;
    spec.name = name;
    spec.run = "true";
    spec.owner = owner;
    const JobId id{"job" + std::to_string(++count)};
    EXPECT_TRUE(registry->submit(id, spec, {1000}, {{"workdir", "", Digest{}, 5}}));
    return id;
  }
  Epoch run(const JobId& id, const std::string& host) {
    EXPECT_TRUE(registry->apply(id, {{2000}, job::Placed{{job::Member{0, {host}, {}, {}, 1, 0, 3.6}}, "cheapest"}}));
    const Epoch epoch = registry->job(id)->machine.epoch;
    EXPECT_TRUE(registry->apply(id, {{3000}, job::PayloadStarted{epoch}}));
    return epoch;
  }
  Checkpoint checkpoint(const JobId& id, Epoch epoch, std::uint64_t number) {
    Checkpoint c;
    c.job = id;
    c.epoch = epoch;
    c.host_number = number;
    c.root.bytes[0] = static_cast<std::byte>(number);
    c.created_at = {4000};
    c.bytes = 100;
    c.files = 1;
    c.how = "format";
    return c;
  }

  os::Path directory;
  std::optional<Registry> registry;
  int count = 0;
};

TEST_F(RegistryTest, KeepsWhatItAcknowledgedOverAReopening) {
  const JobId id = submit();
  const Epoch epoch = run(id, "a");
  ASSERT_TRUE(registry->commit_checkpoint(checkpoint(id, epoch, 1)));
  const ControllerId controller = *registry->controller_id();
  reopen();
  EXPECT_EQ(registry->controller_id()->value, controller.value);
  const Result<Job> job = registry->job(id);
  ASSERT_TRUE(job) << job.error().one_line();
  EXPECT_EQ(job->state, job::JobState::running);
  EXPECT_EQ(job->provider.value, "a");
  EXPECT_EQ(job->machine.head.value, 1u);
  EXPECT_EQ(registry->inputs(id)->at(0).role, "workdir");
  EXPECT_EQ(registry->attempts(id)->at(0).state, "running");
}

TEST_F(RegistryTest, AForgottenJobIsGoneButForWhatItCost) {
  const JobId keep = submit("keep"), id = submit("gone", "ada");
  const Epoch epoch = run(id, "a");
  ASSERT_TRUE(registry->commit_checkpoint(checkpoint(id, epoch, 1)));
  const Result<std::vector<JobId>> early = forget_job(directory, id, {0}, {5000});
  ASSERT_FALSE(early);
  EXPECT_EQ(early.error().code, Code::busy);
  ASSERT_TRUE(registry->apply(id, {{4000}, job::CancelRequested{Duration{}}}));
  ASSERT_TRUE(registry->apply(id, {{5000}, job::HostForgotten{{"a"}}}));
  ASSERT_FALSE(registry->job(id)->machine.needs_controller());
  const double cost = registry->spending("ada", {0}, {9000})->usd;
  ASSERT_GT(cost, 0);
  ASSERT_TRUE(registry->set_pinned(id, {1}, true));
  EXPECT_FALSE(forget_job(directory, id, {0}, {9000}));
  ASSERT_TRUE(registry->set_pinned(id, {1}, false));
  const std::int64_t before = registry->changes(0)->revision;

  const Result<std::vector<JobId>> gone = forget_job(directory, id, {0}, {9000});
  ASSERT_TRUE(gone) << gone.error().one_line();
  EXPECT_THAT(*gone, ::testing::ElementsAre(id));
  EXPECT_EQ(registry->job(id).error().code, Code::not_found);
  EXPECT_EQ(registry->checkpoints(id)->size(), 0u);
  EXPECT_DOUBLE_EQ(registry->spending("ada", {0}, {9000})->usd, cost);
  EXPECT_DOUBLE_EQ(registry->spending("", {0}, {9000})->usd, cost);
  EXPECT_EQ(registry->spending("bob", {0}, {9000})->usd, 0);
  EXPECT_EQ(registry->spending("ada", {1}, {9000})->usd, 0) << "of another month";
  EXPECT_GT(registry->changes(before)->revision, before) << "revisions never go back";
  EXPECT_TRUE(registry->job(keep));
}

TEST_F(RegistryTest, ChangesAreSeenAfterTheOnlyJobWasForgotten) {
  const JobId id = submit();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(registry->update_spec(id, registry->job(id)->spec));
  ASSERT_TRUE(registry->apply(id, {{4000}, job::CancelRequested{Duration{}}}));
  const std::int64_t seen = registry->changes(0)->revision;
  ASSERT_TRUE(forget_job(directory, id, {0}, {9000}));
  const JobId next = submit("next");
  EXPECT_THAT(registry->changes(seen)->jobs, ::testing::ElementsAre(next));
}

TEST_F(RegistryTest, AJobThatCannotBeReadStopsNoOther) {
  const JobId broken = submit("broken"), good = submit("good");
  run(broken, "a");
  run(good, "b");
  {
    Result<db::Database> raw = db::Database::open(directory / "state.db");
    ASSERT_TRUE(raw &&
                raw->execute("UPDATE jobs SET machine = '{\"host\":\"a\",', state = 'NEWER' WHERE name = 'broken'"));
  }
  ASSERT_EQ(registry->running()->size(), 1u);
  EXPECT_EQ(registry->running()->front().id, good);
  const Result<std::vector<JobRow>> rows = registry->jobs({});
  ASSERT_TRUE(rows) << rows.error().one_line();
  ASSERT_EQ(rows->size(), 2u);
  EXPECT_EQ(rows->back().reason, "unreadable");
  EXPECT_EQ(*registry->jobs_on({"a"}), std::vector<JobId>{broken}) << "nobody knows that it is not there";
  EXPECT_EQ(*registry->jobs_on({"b"}), std::vector<JobId>{good});
  EXPECT_EQ(registry->job(broken).error().code, Code::state_unreadable);
}

TEST_F(RegistryTest, KeepsWhatJobsLeft) {
  const JobId id = submit();
  EXPECT_EQ(*registry->results(id), std::nullopt);
  Results results{id, Digest{}, 3, 100, {5000}, Results::Left{{"a"}, {2}, 1, 7, {6000}}};
  results.root->bytes[0] = std::byte{9};
  ASSERT_TRUE(registry->save_results(results));
  reopen();
  EXPECT_EQ(*registry->results(id), results);
  const Result<std::vector<Digest>> live = registry->live_roots();
  EXPECT_NE(std::find(live->begin(), live->end(), *results.root), live->end()) << "the store must not remove them";
  results.root.reset();
  results.left.reset();
  ASSERT_TRUE(registry->save_results(results));
  EXPECT_EQ(*registry->results(id), results);
}

TEST_F(RegistryTest, TakesTheLastJobForTheOneThatSomebodySubmitted) {
  const JobId mine = submit();
  job::Spec drill;
  drill.name = "train-drill";
  drill.run = "true";
  drill.envs["GRIDCTL_DRILL"] = "1";
  ASSERT_TRUE(registry->submit({"drill"}, drill, {1000}));
  job::Spec twin;
  twin.name = "train-r2";
  twin.run = "true";
  twin.twin_of = mine;
  ASSERT_TRUE(registry->submit(twin_id(mine, 2), twin, {1000}));
  EXPECT_EQ(registry->resolve("@last")->value, mine.value);
}

TEST_F(RegistryTest, MovesTheHeadOnlyForTheCurrentEpoch) {
  const JobId id = submit();
  const Epoch old = run(id, "a");
  ASSERT_TRUE(registry->apply(id, {{5000}, job::HostLost{old, {}}}));
  const Epoch now = run(id, "b");
  const auto late = registry->commit_checkpoint(checkpoint(id, old, 7));
  ASSERT_TRUE(late) << late.error().one_line();
  EXPECT_FALSE(late->became_head);
  EXPECT_TRUE(late->checkpoint.stray);
  EXPECT_EQ(registry->job(id)->machine.head.value, 0u);
  const auto good = registry->commit_checkpoint(checkpoint(id, now, 1));
  ASSERT_TRUE(good);
  EXPECT_TRUE(good->became_head);
  EXPECT_EQ(registry->job(id)->machine.head, good->checkpoint.seq);
  EXPECT_EQ(registry->checkpoint(id, std::nullopt)->epoch, now);
}

TEST_F(RegistryTest, CommitsTheSameCheckpointOnce) {
  const JobId id = submit();
  const Epoch epoch = run(id, "a");
  const auto first = registry->commit_checkpoint(checkpoint(id, epoch, 3));
  const auto again = registry->commit_checkpoint(checkpoint(id, epoch, 3));
  ASSERT_TRUE(first && again);
  EXPECT_EQ(again->checkpoint.seq, first->checkpoint.seq);
  EXPECT_EQ(registry->checkpoints(id)->size(), 1u);
}

TEST_F(RegistryTest, NeverMovesTheHeadBackToAnOlderCheckpointOfItsEpoch) {
  const JobId id = submit();
  const Epoch epoch = run(id, "a");
  const auto newer = registry->commit_checkpoint(checkpoint(id, epoch, 2));
  const auto late = registry->commit_checkpoint(checkpoint(id, epoch, 1));  // its bytes were longer under way
  ASSERT_TRUE(newer && late);
  EXPECT_FALSE(late->became_head);
  EXPECT_EQ(late->checkpoint.seq, newer->checkpoint.seq);
  EXPECT_EQ(registry->checkpoint(id, std::nullopt)->host_number, 2u);
  EXPECT_EQ(registry->checkpoints(id)->size(), 1u);
  EXPECT_TRUE(registry->commit_checkpoint(checkpoint(id, epoch, 3))->became_head);
}

TEST_F(RegistryTest, PrefersCheckpointsOfWhichSomebodyWasSure) {
  const JobId id = submit();
  const Epoch epoch = run(id, "a");
  const auto commit = [&](std::uint64_t number, bool provisional) {
    Checkpoint c = checkpoint(id, epoch, number);
    c.provisional = provisional;
    return *registry->commit_checkpoint(c);
  };
  EXPECT_TRUE(commit(1, true).became_head) << "nothing better exists";
  EXPECT_TRUE(commit(2, true).became_head);
  EXPECT_TRUE(commit(3, false).became_head);
  const auto waits = commit(4, true);
  EXPECT_FALSE(waits.became_head);
  EXPECT_FALSE(waits.checkpoint.stray);
  EXPECT_EQ(registry->checkpoint(id, std::nullopt)->host_number, 3u);
  EXPECT_TRUE(registry->checkpoint(id, waits.checkpoint.seq)->provisional);
  EXPECT_TRUE(commit(5, false).became_head);
}

TEST_F(RegistryTest, KeepsTheNewestProvenCheckpointAndTheSuspectOnesBesideThoseOfTheJobFile) {
  const JobId id = submit();
  const Epoch first = run(id, "a");
  for (std::uint64_t n = 1; n <= 3; ++n) ASSERT_TRUE(registry->commit_checkpoint(checkpoint(id, first, n)));
  ASSERT_TRUE(registry->apply(id, {{4000}, job::HostLost{first}}));
  const auto fail = [&](const std::string& host) {
    const Epoch epoch = run(id, host);
    ASSERT_TRUE(registry->apply(id, {{5000}, job::AttemptEnded{epoch, {job::EndKind::exited, 3, 0, ""}}}));
    ASSERT_TRUE(registry->apply(id, {{6000}, job::Collected{epoch, ""}}));
  };
  fail("b");
  fail("c");
  EXPECT_TRUE(registry->checkpoint(id, CheckpointSeq{3})->suspect);
  EXPECT_EQ(registry->job(id)->machine.start().value, 2u);
  const Epoch now = run(id, "b");
  EXPECT_EQ(registry->job(id)->machine.attempt()->resumed_from.value, 2u);
  EXPECT_EQ(registry->remove_checkpoint(id, {2}).error().code, Code::usage);
  for (std::uint64_t n = 1; n <= 4; ++n) ASSERT_TRUE(registry->commit_checkpoint(checkpoint(id, now, n)));
  EXPECT_TRUE(registry->checkpoint(id, CheckpointSeq{3})->suspect);
  ASSERT_TRUE(registry->apply(id, {{7000}, job::HostLost{now}}));
  run(id, "b");  // from checkpoint 7; it has proven nothing yet
  std::vector<std::uint64_t> prunable;
  const auto list = registry->prunable(id, job::KeepPolicy::newest(1));
  ASSERT_TRUE(list);
  for (const Checkpoint& c : *list) prunable.push_back(c.seq.value);
  EXPECT_THAT(prunable, ::testing::ElementsAre(1, 4, 5)) << "2 was restored with success, 3 is suspect";
}

TEST_F(RegistryTest, TellsWhyNoCheckpointCanBeTakenUntilItCan) {
  const JobId id = submit();
  const Epoch epoch = run(id, "a");
  EXPECT_EQ(*registry->no_checkpoint(id), "");
  ASSERT_TRUE(registry->note(id, {5000}, {"no_checkpoint", "because", epoch, {}}));
  EXPECT_EQ(*registry->no_checkpoint(id), "because");
  ASSERT_TRUE(registry->note(id, {6000}, {"checkpoints_again", "again", epoch, {}}));
  EXPECT_EQ(*registry->no_checkpoint(id), "");
}

TEST_F(RegistryTest, KeepsTheBestByTheMetricThatCameWithIt) {
  const JobId id = submit();
  const Epoch epoch = run(id, "a");
  for (std::uint64_t n = 1; n <= 5; ++n) {
    Checkpoint c = checkpoint(id, epoch, n);
    if (n != 3) c.metrics = {{"loss", n == 2 ? -1.5e-9 : 1.0}};
    ASSERT_TRUE(registry->commit_checkpoint(c));
  }
  EXPECT_EQ(registry->checkpoint(id, CheckpointSeq{2})->metrics, (Metrics{{"loss", -1.5e-9}}));
  EXPECT_TRUE(registry->checkpoint(id, CheckpointSeq{3})->metrics.empty());
  job::KeepPolicy keep = job::KeepPolicy::newest(1);
  keep.best = 1;
  keep.metric = "loss";
  const auto list = registry->prunable(id, keep);
  ASSERT_TRUE(list);
  std::vector<std::uint64_t> prunable;
  for (const Checkpoint& c : *list) prunable.push_back(c.seq.value);
  EXPECT_THAT(prunable, ::testing::ElementsAre(1, 3));
}

TEST_F(RegistryTest, PrunesOldCheckpointsButNeverPinnedOnesNorTheLastTwo) {
  const JobId id = submit();
  const Epoch epoch = run(id, "a");
  for (std::uint64_t n = 1; n <= 6; ++n) ASSERT_TRUE(registry->commit_checkpoint(checkpoint(id, epoch, n)));
  ASSERT_TRUE(registry->set_pinned(id, {2}, true));
  std::vector<std::uint64_t> prunable;
  const auto list = registry->prunable(id, job::KeepPolicy::newest(1));
  ASSERT_TRUE(list);
  for (const Checkpoint& c : *list) prunable.push_back(c.seq.value);
  EXPECT_THAT(prunable, ::testing::ElementsAre(1, 3, 4));
  EXPECT_EQ(registry->remove_checkpoint(id, {2}).error().code, Code::usage);
  EXPECT_EQ(registry->remove_checkpoint(id, {6}).error().code, Code::usage) << "the head of an unfinished job";
  EXPECT_TRUE(registry->remove_checkpoint(id, {1}));
  EXPECT_EQ(registry->checkpoint(id, CheckpointSeq{1}).error().code, Code::not_found);
}

TEST_F(RegistryTest, FindsJobsByIdPrefixNameAndLast) {
  const JobId one = submit("alpha");
  const JobId two = submit("alpha");
  EXPECT_EQ(registry->resolve(one.value)->value, one.value);
  EXPECT_EQ(registry->resolve("alpha")->value, two.value);
  EXPECT_EQ(registry->resolve("@last")->value, two.value);
  EXPECT_EQ(registry->resolve("job").error().code, Code::not_found) << "ambiguous";
  EXPECT_EQ(registry->resolve("nope").error().code, Code::not_found);
  EXPECT_EQ(registry->resolve("x' OR 1=1 --").error().code, Code::not_found);
}

TEST_F(RegistryTest, ListsEventsInOrderFromAnyPoint) {
  const JobId id = submit();
  run(id, "a");
  const auto all = registry->events(id, 0, 0);
  ASSERT_TRUE(all);
  ASSERT_GE(all->size(), 3u);
  EXPECT_EQ(all->front().kind, "submitted");
  EXPECT_EQ(registry->events(id, all->front().id, 1)->at(0).id, all->at(1).id);
}

TEST_F(RegistryTest, RefusesASecondProviderOfOneNameAndSuggestsTheNearest) {
  Provider provider;
  provider.name = {"lab-one"};
  ASSERT_TRUE(registry->add_provider(provider));
  EXPECT_EQ(registry->add_provider(provider).error().code, Code::exists);
  EXPECT_NE(registry->provider({"lab-on"}).error().message.find("lab-one"), std::string::npos);
}

TEST_F(RegistryTest, ShowsOtherProcessesCommitsByItsDataVersion) {
  Result<Registry> other = Registry::open(directory);
  ASSERT_TRUE(other);
  const std::int64_t before = *other->data_version();
  submit();
  EXPECT_NE(*other->data_version(), before);
}

TEST_F(RegistryTest, TellsWhichJobsHaveChangedSinceOneLooked) {
  const JobId first = submit(), second = submit(), third = submit();
  EXPECT_TRUE(registry->apply(third, {{1500}, job::CancelRequested{}}));
  Result<Registry::Changes> seen = registry->changes(0);
  EXPECT_EQ(seen->jobs, (std::vector{first, second})) << "those that are unfinished";
  seen = registry->changes(seen->revision);
  EXPECT_TRUE(seen->jobs.empty());
  Result<Registry> other = Registry::open(directory);
  const Epoch epoch = run(second, "ada");
  EXPECT_TRUE(other->apply(first, {{2500}, job::CancelRequested{}}));
  const Result<Registry::Changes> newer = registry->changes(seen->revision);
  EXPECT_EQ(newer->jobs, (std::vector{second, first})) << "in the order of their last changes, finished or not";
  EXPECT_TRUE(other->commit_checkpoint(checkpoint(second, epoch, 1)));
  EXPECT_TRUE(other->save_explanation(first, {"why"}));
  EXPECT_TRUE(other->note(first, {2600}, {"noted", "a line", {}, {}}));
  const Result<Registry::Changes> head = registry->changes(newer->revision);
  EXPECT_EQ(head->jobs, std::vector{second}) << "what is told of a job does not change it";
  job::Spec spec = registry->job(first)->spec;
  spec.priority = 3;
  EXPECT_TRUE(other->update_spec(first, spec));
  EXPECT_EQ(registry->changes(head->revision)->jobs, std::vector{first});
}

TEST_F(RegistryTest, ALineOfAnExplanationStaysOneLine) {
  const JobId id = submit("told");
  ASSERT_TRUE(registry->save_explanation(id, {"first: it said\nhint: gridctl evil\r\nmore", "second"}));
  EXPECT_EQ(registry->explanation(id).value(), (std::vector<std::string>{"first: it said | hint: gridctl evil | more", "second"}));
}

TEST_F(RegistryTest, RefusesANewerSchemaAndADamagedFile) {
  registry.reset();
  {
    Result<db::Database> raw = db::Database::open(directory / "state.db");
    ASSERT_TRUE(raw);
    ASSERT_TRUE(raw->set_user_version(999));
  }
  const Result<Registry> newer = Registry::open(directory);
  ASSERT_FALSE(newer);
  EXPECT_EQ(newer.error().code, Code::state_unreadable);
  EXPECT_NE(newer.error().message.find("newer gridctl"), std::string::npos);
  ASSERT_TRUE(os::write_file_durably(directory / "state.db", std::string(8192, 'x')));
  const Result<Registry> damaged = Registry::open(directory);
  ASSERT_FALSE(damaged);
  EXPECT_EQ(damaged.error().code, Code::state_unreadable);
}

TEST_F(RegistryTest, CountsWhatAMonthHasCostOfAnOwnerAndOfAll) {
  const auto spent = [&](const std::string& owner, std::int64_t from, std::int64_t now) {
    return *registry->spending(owner, {from}, {now});
  };
  const JobId ended = submit("a", "vision"), running = submit("b"), begun_later = submit("c", "vision");
  const Epoch epoch = run(ended, "h");  // from 3,000 ms on, at 3.6 USD an hour
  run(running, "h");
  ASSERT_TRUE(registry->apply(ended, {{13'000}, job::AttemptEnded{epoch, job::End{job::EndKind::exited, 0, 0, ""}}}));
  ASSERT_TRUE(registry->apply(ended, {{13'000}, job::Collected{epoch, ""}}));
  EXPECT_NEAR(spent("", 0, 23'000).usd, (10 + 20) * 0.001, 1e-9);
  EXPECT_NEAR(spent("", 0, 23'000).usd_per_hour, 3.6, 1e-9);
  EXPECT_NEAR(spent("vision", 0, 23'000).usd, 10 * 0.001, 1e-9);
  EXPECT_EQ(spent("vision", 0, 23'000).usd_per_hour, 0);
  EXPECT_NEAR(spent("", 8'000, 23'000).usd, (5 + 15) * 0.001, 1e-9) << "what was before the month does not count";
  EXPECT_NEAR(spent("", 20'000, 23'000).usd, 3 * 0.001, 1e-9);
  EXPECT_EQ(spent("speech", 0, 23'000).usd, 0);
  EXPECT_NEAR(spent("", 0, 1'000).usd, 10 * 0.001, 1e-9) << "the clock was set back: what runs counts nothing";
  run(begun_later, "h");
  EXPECT_NEAR(spent("vision", 0, 3'000).usd_per_hour, 3.6, 1e-9);
}

TEST_F(RegistryTest, KeepsOneBudgetOfEachOwner) {
  ASSERT_TRUE(registry->save_budget({"vision", 50}));
  ASSERT_TRUE(registry->save_budget({"", 200}));
  ASSERT_TRUE(registry->note_used_up("vision", "2026-11"));
  EXPECT_EQ(registry->budgets()->at(1).used_up, "2026-11");
  ASSERT_TRUE(registry->save_budget({"vision", 60}));
  reopen();
  const Result<std::vector<Budget>> told = registry->budgets();
  ASSERT_TRUE(told) << told.error().one_line();
  const std::vector<Budget>& kept = *told;
  ASSERT_EQ(kept.size(), 2u);
  EXPECT_EQ(kept[0].owner, "");
  EXPECT_EQ(kept[1].usd_month, 60);
  EXPECT_EQ(kept[1].used_up, "") << "there is more";
  ASSERT_TRUE(registry->remove_budget("vision"));
  EXPECT_EQ(registry->budgets()->size(), 1u);
}

TEST_F(RegistryTest, KeepsTheNewestDrillOfAName) {
  EXPECT_FALSE(*registry->drill("train"));
  ASSERT_TRUE(registry->save_drill({"train", "f1", {"job1"}, {1000}, "no", "it began anew", {}, {}}));
  const Drill newest{"train", "f2", {"job2"}, {2000}, "yes", "41 s", std::chrono::milliseconds{41500}, 38};
  ASSERT_TRUE(registry->save_drill(newest));
  reopen();
  const Result<std::optional<Drill>> kept = registry->drill("train");
  ASSERT_TRUE(kept && *kept);
  EXPECT_EQ((*kept)->fingerprint, "f2");
  EXPECT_EQ((*kept)->id.value, "job2");
  EXPECT_EQ((*kept)->verdict, "yes");
  EXPECT_EQ((*kept)->took, newest.took);
  EXPECT_EQ((*kept)->steps_lost, 38u);
  EXPECT_FALSE(*registry->drill("other"));
}

TEST_F(RegistryTest, TakesTheNewestCheckpointOfATwinAsTheResult) {
  const JobId leader = submit("train");
  const JobId twin = twin_id(leader, 2);
  EXPECT_EQ(leader_of(twin), leader);
  job::Spec spec = registry->job(leader)->spec;
  spec.name = "train-r2";
  spec.twin_of = leader;
  ASSERT_TRUE(registry->submit(twin, spec, {1000}));
  EXPECT_EQ(registry->job(twin)->spec.twin_of, leader);
  const Epoch mine = run(leader, "a"), its = run(twin, "b");
  ASSERT_TRUE(registry->commit_checkpoint(checkpoint(leader, mine, 1)));
  ASSERT_TRUE(registry->commit_checkpoint(checkpoint(twin, its, 8)));
  ASSERT_TRUE(registry->commit_checkpoint(checkpoint(twin, its, 9)));
  const auto step = registry->take_result(leader, twin, {{5000}, job::TwinSucceeded{"the other was first"}});
  ASSERT_TRUE(step) << step.error().one_line();
  EXPECT_EQ(step->state, registry->job(leader)->machine);

  ASSERT_TRUE(registry->commit_checkpoint(checkpoint(leader, mine, 2)));  // saved before it was killed
  const auto newest = registry->checkpoint(leader, std::nullopt);
  ASSERT_TRUE(newest);
  EXPECT_EQ(newest->root, checkpoint(twin, its, 9).root);
  EXPECT_EQ(newest->seq, CheckpointSeq{2});
  EXPECT_TRUE(registry->checkpoints(leader)->back().stray);
  const auto again = registry->take_result(leader, twin, {{5000}, job::TwinSucceeded{"the other was first"}});
  ASSERT_TRUE(again);
  EXPECT_EQ(registry->checkpoints(leader)->size(), 3U);

  // What it costs is both's; a beginning of the leader's id means the leader.
  EXPECT_NEAR(registry->spent(leader, {1003000})->usd, 2.0, 1e-9);
  EXPECT_NEAR(registry->spent(twin, {1003000})->usd, 1.0, 1e-9);
  EXPECT_NEAR(registry->pasts({1003000})->at(leader.value).usd, 2.0, 1e-9) << "asked of all jobs at once, it is the same";
  EXPECT_NEAR(registry->pasts({1003000})->at(twin.value).usd, 1.0, 1e-9);
  EXPECT_EQ(registry->pasts({1003000})->at(twin.value).host.value, "b");
  EXPECT_EQ(registry->spent(leader, {1003000})->ran, Duration{std::chrono::seconds{1000}});
  EXPECT_EQ(*registry->resolve(leader.value.substr(0, 3)), leader);
  ASSERT_EQ(registry->twins(leader)->size(), 1U);
  EXPECT_EQ(registry->twins(leader)->front().id, twin);
}

TEST_F(RegistryTest, CountsEachPriceForTheTimeThatItHeld) {
  const JobId id = submit("train", "vision");
  const Epoch epoch = run(id, "a");  // from 3 s on at 3.60 USD an hour
  ASSERT_TRUE(registry->apply(id, {{1003000}, job::PriceChanged{epoch, 7.2}}));
  ASSERT_TRUE(registry->apply(id, {{1003000}, job::PriceChanged{epoch, 7.2}}));  // told twice
  ASSERT_TRUE(registry->apply(id, {{2003000}, job::PriceChanged{epoch, 0}}));
  EXPECT_NEAR(registry->spent(id, {1503000})->usd, 1.0 + 1.0, 1e-9);
  EXPECT_NEAR(registry->spent(id, {9003000})->usd, 1.0 + 2.0, 1e-9);
  EXPECT_NEAR(registry->pasts({9003000})->at(id.value).usd, 1.0 + 2.0, 1e-9);
  EXPECT_EQ(*registry->count_unfinished(), registry->unfinished()->size());
  EXPECT_NEAR(registry->spending("vision", {1203000}, {9003000})->usd, 1.6, 1e-9);
  EXPECT_NEAR(registry->spending("", {0}, {1503000})->usd_per_hour, 0, 1e-9);
  ASSERT_TRUE(registry->apply(id, {{3003000}, job::PriceChanged{epoch, 1.8}}));
  EXPECT_NEAR(registry->spending("vision", {0}, {4003000})->usd, 3.5, 1e-9);
  EXPECT_NEAR(registry->spending("vision", {0}, {4003000})->usd_per_hour, 1.8, 1e-9);
  EXPECT_EQ(registry->spending("sound", {0}, {4003000})->usd, 0);
  ASSERT_TRUE(registry->apply(id, {{4003000}, job::AttemptEnded{epoch, {job::EndKind::exited, 0, 0, ""}}}));
  ASSERT_TRUE(registry->apply(id, {{4003000}, job::Collected{epoch, ""}}));
  EXPECT_NEAR(registry->job(id)->cost, 3.5, 1e-9);
}

TEST_F(RegistryTest, APausedAttemptCostsNothingAndDoesNotRun) {
  using std::chrono::seconds;
  const JobId id = submit();
  run(id, "ada");
  EXPECT_TRUE(registry->begin_pause(id, {103000}, std::nullopt).value());  // the daemon notices it first
  EXPECT_FALSE(registry->begin_pause(id, {104000}, std::chrono::hours{1}).value()) << "begun already";
  EXPECT_FALSE(registry->begin_pause(id, {105000}, std::nullopt).value());
  ASSERT_TRUE(registry->paused(id).value().has_value());
  EXPECT_EQ(registry->paused(id).value()->since.ms, 103000);
  EXPECT_EQ(registry->paused(id).value()->most, std::chrono::hours{1}) << "what the user said";
  EXPECT_EQ(registry->job(id)->reason, "paused");
  EXPECT_EQ(registry->spent(id, {203000})->ran, seconds{100});
  EXPECT_NEAR(registry->spent(id, {203000})->usd, 0.1, 1e-9);
  EXPECT_NEAR(registry->spending("", {0}, {203000})->usd, 0.1, 1e-9);
  EXPECT_EQ(registry->spending("", {0}, {203000})->usd_per_hour, 0);
  EXPECT_TRUE(registry->end_pause(id, {303000}).value());
  EXPECT_FALSE(registry->end_pause(id, {304000}).value());
  EXPECT_FALSE(registry->paused(id).value().has_value());
  EXPECT_NE(registry->job(id)->reason, "paused");
  EXPECT_EQ(registry->spent(id, {403000})->ran, seconds{200});
  EXPECT_NEAR(registry->spent(id, {403000})->usd, 0.2, 1e-9);
  EXPECT_NEAR(registry->spending("", {353000}, {403000})->usd, 0.05, 1e-9) << "of what came after it";
  EXPECT_GT(registry->spending("", {0}, {403000})->usd_per_hour, 0);
}

TEST_F(RegistryTest, AnAttemptThatHasEndedIsNotPaused) {
  const JobId id = submit();
  const Epoch epoch = run(id, "ada");
  ASSERT_TRUE(registry->apply(id, {{103000}, job::AttemptEnded{epoch, {job::EndKind::exited, 0, 0, ""}}}));
  EXPECT_FALSE(registry->begin_pause(id, {104000}, std::nullopt).value());
  EXPECT_NE(registry->job(id)->reason, "paused");
  EXPECT_FALSE(registry->paused(id).value().has_value());
}

}  // namespace
}  // namespace gridctl::registry::registry_test
