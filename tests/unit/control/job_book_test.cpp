// SPDX-License-Identifier: Apache-2.0
// The book of unfinished jobs: what it follows, what it tells whom, and what it does where it is not sure.
#include "control/follow/job_book.hpp"

#include "followed_jobs.hpp"

namespace gridctl::control::job_book_test {
namespace {

using namespace std::chrono_literals;
using gridctl::testing::IsOk;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Listener : JobListener {
  void found(const TrackedJob& job) override { heard.push_back("found " + job.id().value); }
  void changed(const TrackedJob& job, const job::State& before) override {
    heard.push_back(job.id().value + " was " + std::string(job::state_name(before.visible())) + " is " +
                    std::string(job::state_name(job.state().visible())));
  }
  void stepped(const job::State& before, const job::Step&) override { heard.push_back("stepped " + before.id.value); }
  void became_unsure(const TrackedJob& job) override { heard.push_back("unsure " + job.id().value); }
  void forgotten(const JobId& id) override { heard.push_back("forgotten " + id.value); }
  std::vector<std::string> take() { return std::exchange(heard, {}); }
  std::vector<std::string> heard;
};

class Book : public testing::FollowedJobs {
 protected:
  Book() {
    book.listen(ears_of_jobs);
    book.on_due([this](TrackedJob& job) { due.push_back(job.id().value); });
  }
  std::vector<std::string> was_due() { return std::exchange(due, {}); }
  void finish(const std::string& id) {
    place(id, "ada", 0);
    const Epoch epoch = job(id).state().epoch;
    end(id, {job::EndKind::exited, 0, 0, "", 0});
    book.apply({id}, job::Collected{epoch, ""});
    book.apply({id}, job::CleanedUp{{"ada"}, epoch});
  }

  Listener ears_of_jobs;
  std::vector<std::string> due;
};

TEST_F(Book, FindsJobsThatOthersSubmit) {
  EXPECT_TRUE(book.is_idle());
  EXPECT_FALSE(book.has_work());
  EXPECT_EQ(book.find({"a"}), nullptr);
  submit("a");
  EXPECT_THAT(ears_of_jobs.take(), ElementsAre("found a", "a was PENDING is PENDING"));
  EXPECT_THAT(was_due(), ElementsAre("a"));
  EXPECT_EQ(book.size(), 1u);
  EXPECT_FALSE(book.is_idle());
  EXPECT_TRUE(book.has_work());
  EXPECT_TRUE(book.is_certain());
  EXPECT_EQ(std::as_const(book).find({"a"}), book.find({"a"}));
  EXPECT_EQ(std::as_const(book).find({"b"}), nullptr);
  book.refresh();
  EXPECT_THAT(ears_of_jobs.take(), IsEmpty()) << "nothing is new";
}

TEST_F(Book, KnowsOfWorkThatItHasNotReadYet) {
  job::Spec spec;
  spec.name = "a";
  spec.run = "true";
  ASSERT_THAT(registry.submit({"a"}, spec, {1}), IsOk());
  EXPECT_TRUE(book.is_idle());
  EXPECT_TRUE(book.has_work());
}

TEST_F(Book, CommitsAnEventAndTellsOfIt) {
  submit("a");
  ears_of_jobs.take(), was_due();
  place("a", "ada", 0, false);
  EXPECT_THAT(ears_of_jobs.take(), ElementsAre("stepped a", "a was PENDING is STARTING"));
  EXPECT_THAT(was_due(), ElementsAre("a"));
  EXPECT_EQ(registry.job({"a"})->machine, job("a").state());
  start("a");
  EXPECT_THAT(ears_of_jobs.take(), ElementsAre("stepped a", "a was STARTING is RUNNING"));
  was_due();
  start("a");
  EXPECT_THAT(ears_of_jobs.take(), ElementsAre("stepped a")) << "it changed nothing";
  EXPECT_THAT(was_due(), IsEmpty());
  book.apply({"nobody"}, job::CancelRequested{});
  EXPECT_THAT(ears_of_jobs.take(), IsEmpty());
}

TEST_F(Book, ForgetsWhatIsDoneWhenNothingRefersToIt) {
  submit("a");
  submit("b");
  finish("a");
  finish("b");
  EXPECT_TRUE(book.is_idle());
  book.find({"a"})->holds = 1;
  EXPECT_FALSE(book.is_idle()) << "work is under way";
  ears_of_jobs.take();
  book.refresh();
  EXPECT_THAT(ears_of_jobs.take(), ::testing::Contains("forgotten b"));
  EXPECT_NE(book.find({"a"}), nullptr);
  EXPECT_EQ(book.find({"b"}), nullptr);
  book.find({"a"})->holds = 0;
  book.refresh();
  EXPECT_EQ(book.find({"a"}), nullptr);
  EXPECT_FALSE(book.has_work());
  book.refresh();
  EXPECT_EQ(book.size(), 0u) << "what is done is not followed again";
}

TEST_F(Book, WhoseCommitFailedIsNotSureUntilItHasReadAnew) {
  submit("a");
  submit("b");
  place("a", "ada", 0, false);
  ears_of_jobs.take(), was_due();
  EXPECT_FALSE(book.wants_refresh());
  book.take({"a"}, make_error(Code::io, "the disk has failed"));
  EXPECT_THAT(ears_of_jobs.take(), ElementsAre("unsure a"));
  EXPECT_TRUE(book.find({"a"})->unsure);
  EXPECT_FALSE(book.is_certain());
  EXPECT_TRUE(book.wants_refresh());
  EXPECT_THAT(was_due(), IsEmpty());
  book.remind();
  EXPECT_THAT(was_due(), ElementsAre("b")) << "nothing is done for who is unsure";
  // The commit had gone through, whatever was told.
  ASSERT_THAT(registry.apply({"a"}, {clock.wall(), job::PayloadStarted{job("a").state().epoch}}), IsOk());
  book.refresh();
  EXPECT_FALSE(book.find({"a"})->unsure);
  EXPECT_TRUE(book.is_certain());
  EXPECT_FALSE(book.wants_refresh());
  EXPECT_THAT(ears_of_jobs.take(), ElementsAre("a was STARTING is RUNNING"));
  EXPECT_THAT(was_due(), ElementsAre("a"));
}

TEST_F(Book, IsReadAnewAlsoWhereNothingWasCommitted) {
  submit("a");
  ears_of_jobs.take();
  book.take({"a"}, make_error(Code::io, "the disk has failed"));
  book.refresh();
  EXPECT_FALSE(book.find({"a"})->unsure);
  EXPECT_THAT(ears_of_jobs.take(), ElementsAre("unsure a", "a was PENDING is PENDING"));
  book.take({"nobody"}, make_error(Code::io, "the disk has failed"));
  EXPECT_TRUE(book.is_certain());
}

TEST_F(Book, TakesOverWhatOthersWrite) {
  submit("a");
  place("a", "ada", 0);
  ears_of_jobs.take();
  ASSERT_THAT(registry.apply({"a"}, {clock.wall(), job::CancelRequested{5s}}), IsOk());
  EXPECT_FALSE(job("a").state().cancel);
  book.refresh_soon();
  EXPECT_TRUE(book.wants_refresh());
  book.refresh();
  EXPECT_EQ(job("a").state().cancel, 5s);
  EXPECT_THAT(ears_of_jobs.take(), ElementsAre("a was RUNNING is RUNNING"));
  EXPECT_FALSE(job("a").goes_on());
}

TEST_F(Book, TakesOverAFileThatWasChanged) {
  submit("a");
  was_due(), ears_of_jobs.take();
  job::Spec other = job("a").spec();
  other.run = "false";
  ASSERT_THAT(registry.update_spec({"a"}, other), IsOk());
  book.refresh();
  EXPECT_EQ(job("a").spec().run, "false");
  EXPECT_THAT(ears_of_jobs.take(), IsEmpty()) << "its state is the same";
  EXPECT_THAT(was_due(), ElementsAre("a"));
}

TEST_F(Book, VisitsJobsThatAreThereAlsoWhileEventsAreApplied) {
  for (const char* id : {"a", "b", "c"}) submit(id);
  std::vector<std::string> seen;
  book.each([&](TrackedJob& job) {
    seen.push_back(job.id().value);
    book.apply(job.id(), job::CancelRequested{});
  });
  EXPECT_THAT(seen, ElementsAre("a", "b", "c"));
}

TEST_F(Book, WritesLinesOfHistoryWithoutSecrets) {
  submit("a");
  ASSERT_THAT(folders.keep_secrets({"a"}, {{"TOKEN", "hunter2hunter2"}}), IsOk());
  book.note({"a"}, {"stacks", "login(hunter2hunter2)", {}, {"ada"}});
  EXPECT_THAT(registry.events({"a"}, 0, 0)->back().text, "login(**************)");
  place("a", "ada", 0, false);
  const Epoch epoch = job("a").state().epoch;
  book.apply({"a"}, job::Preparing{epoch, "hunter2hunter2"});
  EXPECT_EQ(job("a").state().attempt()->lead().doing.find("hunter2"), std::string::npos);
  start("a");
  end("a", {job::EndKind::start_failed, 1, 0, "setup said hunter2hunter2", 0});
  book.apply({"a"}, job::Collected{epoch,
                                   "no hunter2hunter2 here",
                                   0,
                                   "hunter2hunter2 again",
                                   {job::Advice::stop, "a module is missing", "Error: hunter2hunter2"}});
  for (const auto events = *registry.events({"a"}, 0, 0); const registry::EventRecord& event : events)
    EXPECT_EQ(event.text.find("hunter2"), std::string::npos) << event.text;
  EXPECT_EQ(job::to_json(registry.job({"a"})->machine).find("hunter2"), std::string::npos);
}

}  // namespace
}  // namespace gridctl::control::job_book_test
