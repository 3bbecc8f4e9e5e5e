// SPDX-License-Identifier: Apache-2.0
// What the registry knows of a job that bears on where it runs best.
#include "control/follow/job_knowledge.hpp"

#include "followed_jobs.hpp"
#include "unit/sched/a_host.hpp"

namespace gridctl::control::job_knowledge_test {
namespace {

using namespace std::chrono_literals;
using gridctl::testing::IsOk;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

class Knowledge : public testing::FollowedJobs {
 protected:
  void save(const std::string& id, std::uint64_t number, std::uint64_t bytes, Duration stall) {
    registry::Checkpoint saved;
    saved.job = {id};
    saved.epoch = job(id).state().epoch;
    saved.attempt = job(id).state().attempt()->number;
    saved.root.bytes[0] = static_cast<std::byte>(number);
    saved.created_at = clock.wall();
    saved.bytes = bytes;
    saved.host_number = number;
    saved.stall = stall;
    const auto committed = registry.commit_checkpoint(saved);
    ASSERT_THAT(committed, IsOk());
    book.take({id}, committed->step);
  }
  sched::JobKnowledge known(const std::string& id) {
    const auto known = knowledge_of(registry, *registry.job({id}), hosts, clock.wall());
    EXPECT_THAT(known, IsOk());
    return *known;
  }
  std::optional<sched::CurrentRun> present(const std::string& id) {
    const auto present = present_of(registry, *registry.job({id}), hosts, clock.wall());
    EXPECT_THAT(present, IsOk());
    return *present;
  }

  std::vector<sched::HostFacts> hosts{sched::AHost("ada").at(2), sched::AHost("bob")};
};

TEST_F(Knowledge, OfAJobThatWasJustSubmittedIsWhatItSays) {
  submit("job", [](job::Spec& spec) {
    spec.workload.work = 1000s;
    spec.deadline = job::Deadline{{}, 1h, false};
  }, {{"workdir", "", {}, 100}, {"mount", "/data", {}, 23}});
  clock.pass(10min);
  const sched::JobKnowledge it = known("job");
  EXPECT_DOUBLE_EQ(it.task.input_bytes, 123);
  EXPECT_DOUBLE_EQ(it.task.stall, 0);
  EXPECT_FALSE(it.task.resumes);
  EXPECT_TRUE(it.work_known);
  EXPECT_DOUBLE_EQ(it.task.work, 1000);
  EXPECT_DOUBLE_EQ(it.time_left.value_or(0), 3000);
  EXPECT_TRUE(it.is_due());
  EXPECT_THAT(it.bytes_there, IsEmpty());
  EXPECT_FALSE(present("job")) << "it runs nowhere";
}

TEST_F(Knowledge, OfWorkThatNobodyToldIsNone) {
  submit("job");
  place("job", "ada", 2);
  EXPECT_FALSE(known("job").work_known);
  EXPECT_FALSE(known("job").time_left);
  EXPECT_FALSE(known("job").is_due());
  EXPECT_FALSE(present("job"));
}

TEST_F(Knowledge, GrowsWhileItRuns) {
  submit("job", [](job::Spec& spec) { spec.workload.work = 1000s; }, {{"workdir", "", {}, 100}});
  place("job", "ada", 2);
  clock.pass(200s);
  save("job", 1, 4000, 1s);
  save("job", 2, 5000, 3s);
  clock.pass(100s);
  const sched::JobKnowledge it = known("job");
  EXPECT_TRUE(it.task.resumes);
  EXPECT_DOUBLE_EQ(it.task.state_bytes, 5000) << "the newest";
  EXPECT_DOUBLE_EQ(it.task.stall, 3);
  EXPECT_DOUBLE_EQ(it.task.work, 800) << "from the checkpoint on";
  EXPECT_THAT(it.bytes_there, ElementsAre(Pair(HostName{"ada"}, 100.0)));
  const auto it_runs = present("job");
  ASSERT_TRUE(it_runs);
  EXPECT_EQ(it_runs->host.value, "ada");
  EXPECT_DOUBLE_EQ(it_runs->work, 700) << "from where it is";
  EXPECT_DOUBLE_EQ(it_runs->rest.start, 0);
  EXPECT_DOUBLE_EQ(it_runs->rest.transfer, 0);
  EXPECT_DOUBLE_EQ(it_runs->rest.work, 700);
  EXPECT_DOUBLE_EQ(it_runs->rest.price_per_hour, 2);
  clock.pass(1h);
  EXPECT_DOUBLE_EQ(present("job")->work, 1) << "longer than it said: it is about to end";
  hosts.erase(hosts.begin());
  EXPECT_FALSE(present("job")) << "nobody knows its host";
}

TEST_F(Knowledge, OfAnAttemptThatDoesNotRunYetIsNoPresent) {
  submit("job", [](job::Spec& spec) { spec.workload.work = 1000s; }, {{"workdir", "", {}, 100}});
  place("job", "ada", 2, false);
  EXPECT_FALSE(present("job"));
  EXPECT_THAT(known("job").bytes_there, IsEmpty()) << "nobody knows whether all was sent";
}

TEST_F(Knowledge, OfLinksIsAskedForWhenMuchIsToBeSentOrAQueryWantsIt) {
  ASSERT_THAT(registry.save_link({std::string(registry::k_here), "ada", {1}, 2500, 3e8}), IsOk());
  const auto figures = [&](const std::string& query, double inputs, double state) {
    job::Spec spec;
    spec.constraints.query = query;
    sched::JobKnowledge it;
    it.task.input_bytes = inputs;
    it.task.state_bytes = state;
    std::vector<sched::HostFacts> all = hosts;
    EXPECT_THAT(apply_links(registry, spec, it, all), IsOk());
    EXPECT_THAT(all[1].figures, IsEmpty());
    return all[0].figures;
  };
  EXPECT_THAT(figures("", 0, 0), IsEmpty());
  EXPECT_THAT(figures("", k_bytes_worth_links / 2, k_bytes_worth_links / 2 - 1), IsEmpty());
  EXPECT_THAT(figures("num_gpus >= 0", 0, 0), IsEmpty());
  for (const auto& found : {figures("", k_bytes_worth_links / 2, k_bytes_worth_links / 2), figures("rtt < 5", 0, 0)}) {
    ASSERT_TRUE(found.contains("inet_down"));
    EXPECT_DOUBLE_EQ(found.find("inet_down")->second, 300);
    EXPECT_DOUBLE_EQ(found.find("rtt")->second, 2.5);
  }
}

}  // namespace
}  // namespace gridctl::control::job_knowledge_test
