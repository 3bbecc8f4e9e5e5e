// SPDX-License-Identifier: Apache-2.0
// Images by tag, and borrowed hosts: when a registry is asked, what is kept with the jobs, and what is told meanwhile.
#include "control/concerns/table.hpp"
#include "followed_jobs.hpp"
#include "scripted_freight.hpp"

namespace gridctl::control::images_concern_test {
namespace {

using namespace std::chrono_literals;
using gridctl::testing::IsOk;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::string k_digest = "sha256:" + std::string(64, 'a');

struct Registries final : ImageRegistries {
  Result<std::string> digest_of(const job::ImageReference& image) override {
    asked.push_back(image.name() + ":" + image.tag);
    return answer;
  }
  Result<std::string> answer = k_digest;
  std::vector<std::string> asked;
};

class Images : public testing::FollowedJobs {
 protected:
  void begin(bool lent = true) {
    add("ada");
    if (lent) {
      registry::Provider provider = row("ada");
      provider.labels["lent"] = "true";
      EXPECT_THAT(registry.update_provider(provider), IsOk());
    }
    tick();
    const World world{clock, run, net, registry, bulk, folders, &registries};
    placement_.emplace(world, book, fleet());
    attempts_.emplace(world, book, fleet(), *placement_);
    mover_.emplace(world, book, fleet(), *attempts_, *placement_);
    concern = make_images({world, fleet(), book, *attempts_, *placement_, *mover_});
  }
  void wants(const std::string& id, const std::string& image) {
    submit(id, [&](job::Spec& spec) { spec.image = image; });
    concern->changed(job(id), job(id).state());
  }
  void look(Duration time = 1s) {
    clock.pass(time);
    concern->tick(clock.boot());
    run.settle();
  }
  std::map<std::string, std::string> kept(const std::string& id) { return registry.job({id})->spec.image_digests; }
  std::string problem(const std::string& id, const std::string& image) {
    Question question{job(id).spec(), {sched::HostFacts{}}, {}};
    concern->shape(job(id), question);
    return question.hosts[0].image_problems[image];
  }

  Registries registries;
  testing::ScriptedFreight bulk;
  std::optional<Placement> placement_;
  std::optional<Attempts> attempts_;
  std::optional<Mover> mover_;
  std::unique_ptr<Concern> concern;
};

TEST_F(Images, AreAskedForOnceAndKeptWithEachJob) {
  begin();
  wants("one", "debian:12");
  wants("two", "debian:12");
  wants("local", "localhost/mine:1");
  look();
  look(1h);
  EXPECT_THAT(registries.asked, ElementsAre("docker.io/library/debian:12"));
  for (const std::string id : {"one", "two"}) {
    EXPECT_EQ(kept(id)["debian:12"], k_digest);
    EXPECT_EQ(job(id).spec().image_digests.at("debian:12"), k_digest);
  }
  EXPECT_THAT(kept("local"), IsEmpty());
  registries.answer = "sha256:" + std::string(64, 'b');
  concern->changed(job("one"), job("one").state());
  look(1h);
  EXPECT_EQ(kept("one")["debian:12"], k_digest) << "a tag that moves changes nothing";
  wants("three", "debian:12");
  look();
  EXPECT_EQ(kept("three")["debian:12"], *registries.answer) << "a job of its own";
}

TEST_F(Images, OfOnesOwnHostsNeedNoRegistry) {
  begin(false);
  wants("one", "debian:12");
  look();
  EXPECT_THAT(registries.asked, IsEmpty());
}

TEST_F(Images, AreAskedForAgainAfterLongerPauses) {
  begin();
  registries.answer = make_error(Code::host_unreachable, "registry docker.io: no route");
  wants("one", "debian:12");
  look();
  EXPECT_EQ(problem("one", "debian:12"), "registry docker.io: no route");
  look(4s);
  EXPECT_EQ(registries.asked.size(), 1u);
  look(2s);
  EXPECT_EQ(registries.asked.size(), 2u);
  look(9s);
  EXPECT_EQ(registries.asked.size(), 2u);
  look(2s);
  EXPECT_EQ(registries.asked.size(), 3u);
  for (int i = 0; i < 20; ++i) look(5min);
  EXPECT_EQ(registries.asked.size(), 23u) << "never more than five minutes";
  registries.answer = k_digest;
  look(5min);
  EXPECT_EQ(kept("one")["debian:12"], k_digest);
  EXPECT_EQ(problem("one", "debian:12"), "");
}

TEST_F(Images, AreNoConcernOfAJobThatHasEndedOrAllowsTags) {
  begin();
  submit("tags", [](job::Spec& spec) { spec.image = "debian:12", spec.constraints.image_tags = true; });
  concern->changed(job("tags"), job("tags").state());
  wants("over", "debian:11");
  concern->forgotten({"over"});
  look();
  EXPECT_THAT(registries.asked, IsEmpty());
}

TEST_F(Images, LeaveAChangeOfAnotherProcessAlone) {
  begin();
  wants("one", "debian:12");
  job::Spec changed = registry.job({"one"})->spec;
  changed.priority = 7;
  ASSERT_THAT(registry.update_spec({"one"}, changed), IsOk());
  look();
  EXPECT_EQ(registry.job({"one"})->spec.priority, 7);
  EXPECT_EQ(kept("one")["debian:12"], k_digest);
}

}  // namespace
}  // namespace gridctl::control::images_concern_test
