// SPDX-License-Identifier: Apache-2.0
// Who knows, besides the remote that is asked, which checkpoint of a job is the newest.
#include "control/copies/newest.hpp"

#include "control/copies/chunks.hpp"
#include "control/copies/remote_work.hpp"
#include "control/reach/ssh_network.hpp"
#include "registry/registry.hpp"
#include "unit/store/remote_fixtures.hpp"

namespace gridctl::control::newest_test {
namespace {

using namespace store::testing;
using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
namespace fs = std::filesystem;

class NewestTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_THAT(own_mark(paths, registry), IsOk());
    key.emplace(**load_key(paths));
  }
  static store::Newest seen(const std::string& job, std::uint64_t seq, std::int64_t at, const std::string& where = "nas") {
    return {{job}, "train", {seq}, {at}, {at + 1}, where};
  }
  static store::CopyRecord shown(const std::string& job, std::uint64_t seq, std::int64_t at) {
    store::CopyRecord record;
    record.job = {job};
    record.job_name = "train";
    record.seq = {seq};
    record.created_at = {at};
    return record;
  }
  void add(const std::string& name) {
    const registry::Remote remote{name, "dir:" + (there / name).native(), "", "", "", {1}, {}, {}, "", ""};
    fs::create_directories(there / name);
    const auto backend = open_remote(*access_to(registry, remote), net, clock, false);
    ASSERT_THAT(store::write_mark(**backend, *own_mark(paths, registry)), IsOk());
    ASSERT_THAT(registry.add_remote(remote), IsOk());
  }
  void copy_to(const std::string& name, const std::string& job, std::uint64_t seq, std::int64_t at,
               const std::string& job_name = "train") {
    auto chunks = open_chunks(paths);
    store::CopyRecord record = save(*chunks, {{"a", job + std::to_string(seq)}}, seq);
    record.job = {job};
    record.seq = {seq};
    record.created_at = {at};
    record.job_name = job_name;
    const auto backend = open_remote(*access_to(registry, *registry.remote(name)), net, clock);
    store::RemoteListing listing = *store::list_remote(**backend);
    ASSERT_THAT(store::copy_checkpoint(*chunks, {backend->get(), &*key}, listing, record, {}), IsOk());
  }
  std::vector<std::string> witnesses(const store::CopyRecord& record) {
    const auto said = ask_witnesses(registry, paths, net, *key, "nas", record, clock);
    EXPECT_THAT(said, IsOk());
    silent = said->silent;
    std::vector<std::string> lines;
    for (const Witness& one : said->witnesses)
      lines.push_back(one.who.substr(0, one.who.find(" of 19")) + " " + one.job.value + "/" + std::to_string(one.seq.value) +
                      (one.remote.empty() ? "" : " at " + one.remote) + (one.is_itself ? " itself" : ""));
    return lines;
  }

  Folder here, there;
  Paths paths{here / "state"};
  os::Clock& clock = os::system_clock();
  registry::Registry registry = *registry::Registry::open(paths.root);
  SshNetwork net{clock, paths, *registry.controller_id()};
  std::optional<store::StoreKey> key;
  std::vector<std::string> silent;
};

TEST_F(NewestTest, IsRememberedByTheHighestNumberOfEachJob) {
  EXPECT_THAT(*seen_newest(paths, *key), IsEmpty());
  ASSERT_THAT(remember_newest(paths, *key, {}), IsOk());
  EXPECT_FALSE(fs::exists(paths.newest())) << "there was nothing to remember";
  ASSERT_THAT(remember_newest(paths, *key, {seen("a", 3, 100)}), IsOk());
  ASSERT_THAT(remember_newest(paths, *key, {seen("a", 2, 90), seen("b", 1, 50)}), IsOk());
  EXPECT_THAT(*seen_newest(paths, *key), ::testing::UnorderedElementsAre(seen("a", 3, 100), seen("b", 1, 50)));
  const auto written = fs::last_write_time(paths.newest());
  ASSERT_THAT(remember_newest(paths, *key, {seen("a", 2, 90)}), IsOk());
  EXPECT_EQ(fs::last_write_time(paths.newest()), written) << "nothing is new";
}

TEST_F(NewestTest, BelievesNoFileThatWasChanged) {
  ASSERT_THAT(remember_newest(paths, *key, {seen("a", 3, 100)}), IsOk());
  std::string text = *os::read_file(paths.newest());
  text.replace(text.find(" 3 "), 3, " 4 ");
  ASSERT_THAT(os::write_file_atomically(paths.newest(), text), IsOk());
  const auto refused = seen_newest(paths, *key);
  ASSERT_THAT(refused, FailsWith(Code::state_unreadable));
  EXPECT_EQ(refused.error().hint, "rm " + paths.newest().native());
  EXPECT_THAT(remember_newest(paths, *key, {seen("a", 5, 110)}), FailsWith(Code::state_unreadable));
}

TEST_F(NewestTest, GoesAlongWithAKeyFile) {
  job::Spec spec;
  spec.name = "train";
  spec.run = "true";
  ASSERT_THAT(registry.submit({"abcdefghijk23"}, spec, {1}), IsOk());
  add("nas");
  auto chunks = open_chunks(paths);
  registry::Checkpoint checkpoint;
  checkpoint.job = {"abcdefghijk23"};
  checkpoint.root = save(*chunks, {{"a", "x"}}, 1).root;
  std::vector<registry::Checkpoint> kept;
  for (std::int64_t i = 0; i < 3; ++i) {
    checkpoint.created_at = {500 + i};
    kept.push_back(registry.commit_checkpoint(checkpoint)->checkpoint);
  }
  for (const int i : {0, 1}) ASSERT_THAT(registry.add_copy({"nas", kept[static_cast<std::size_t>(i)].job, kept[static_cast<std::size_t>(i)].seq, {1}}), IsOk());
  ASSERT_THAT(remember_newest(paths, *key, {seen("other", 7, 100)}), IsOk());
  const auto taken = newest_to_export(registry, paths, *key, {9000});
  ASSERT_THAT(taken, IsOk());
  ASSERT_THAT(*taken, SizeIs(2));
  const store::Newest& ours = (*taken)[0].job.value == "other" ? (*taken)[1] : (*taken)[0];
  EXPECT_EQ(ours.seq, kept[1].seq) << "the newest that a remote has";
  EXPECT_EQ(ours.job_name, "train");
  EXPECT_EQ(ours.created_at.ms, 501);
  EXPECT_EQ(ours.seen_at.ms, 9000);
  EXPECT_EQ(ours.seen_at_remote, store::k_seen_in_key_file);
}

TEST_F(NewestTest, IsAskedOfWhatWasSeenAndOfEveryOtherRemote) {
  for (const char* name : {"nas", "usb", "away"}) add(name);
  fs::remove_all(there / "away");
  ASSERT_THAT(remember_newest(paths, *key, {seen("job", 3, 100, "nas"), seen("old", 9, 90, "usb"), seen("key", 1, 80, "-")}), IsOk());
  store::Newest stranger = seen("stranger", 9, 90);
  stranger.job_name = "another";
  ASSERT_THAT(remember_newest(paths, *key, {stranger}), IsOk());
  copy_to("usb", "job", 4, 110);
  copy_to("usb", "job", 5, 120);
  copy_to("usb", "twin", 1, 130);
  copy_to("usb", "stranger", 1, 140, "another");
  copy_to("nas", "job", 9, 200);
  const auto said = witnesses(shown("job", 5, 120));
  EXPECT_THAT(said, ::testing::UnorderedElementsAre(HasSubstr(" job/3 itself"), HasSubstr(" old/9"), HasSubstr("the key file"),
                                                    "remote usb job/5 at usb", "remote usb twin/1 at usb"));
  ASSERT_THAT(silent, SizeIs(1));
  EXPECT_THAT(silent[0], HasSubstr("away: "));
}

TEST_F(NewestTest, ARemoteThatHasNothingOfTheJobSaysSo) {
  for (const char* name : {"nas", "usb"}) add(name);
  copy_to("usb", "stranger", 1, 140, "another");
  EXPECT_THAT(witnesses(shown("job", 5, 120)), ElementsAre("remote usb job/0"));
}

TEST_F(NewestTest, ThisMachineKnowsWhatItHasCopiedThere) {
  job::Spec spec;
  spec.name = "train";
  spec.run = "true";
  const JobId id{"abcdefghijk23"};
  ASSERT_THAT(registry.submit(id, spec, {1}), IsOk());
  add("nas"), add("usb");
  auto chunks = open_chunks(paths);
  registry::Checkpoint checkpoint;
  checkpoint.job = id;
  checkpoint.root = save(*chunks, {{"a", "x"}}, 1).root;
  checkpoint.created_at = {500};
  const auto kept = registry.commit_checkpoint(checkpoint)->checkpoint;
  ASSERT_THAT(registry.add_copy({"usb", id, kept.seq, {1}}), IsOk());
  EXPECT_THAT(witnesses(shown(id.value, 1, 120)), ElementsAre(HasSubstr("remote usb"))) << "it was copied elsewhere";
  ASSERT_THAT(registry.add_copy({"nas", id, kept.seq, {1}}), IsOk());
  EXPECT_THAT(witnesses(shown(id.value, 1, 120)),
              ElementsAre(HasSubstr("this machine, which copied it there abcdefghijk23/1"), HasSubstr("remote usb")));
}

TEST(TestimonyTest, NamesTheNewestAndWhereItCanBeHad) {
  store::CopyRecord shown;
  shown.job = {"job"};
  shown.seq = {5};
  shown.created_at = {100};
  Testimony all;
  const auto newest = [&]() -> std::string {
    const Witness* one = all.newer_than(shown);
    return one == nullptr ? "none" : one->who;
  };
  EXPECT_EQ(newest(), "none");
  all.witnesses = {{"same", "", {"job"}, {5}, {100}}, {"older", "", {"job"}, {4}, {200}}, {"nothing", "", {"twin"}, {}, {300}}};
  EXPECT_EQ(newest(), "none");
  all.witnesses.push_back({"six", "", {"job"}, {6}, {150}});
  EXPECT_EQ(newest(), "six");
  all.witnesses.push_back({"six there", "usb", {"job"}, {6}, {150}});
  EXPECT_EQ(newest(), "six there") << "where it can be had";
  all.witnesses.push_back({"six elsewhere", "nas", {"job"}, {6}, {150}});
  EXPECT_EQ(newest(), "six there");
  all.witnesses.push_back({"twin", "", {"twin"}, {1}, {100}});
  EXPECT_EQ(newest(), "six there") << "as old as what is shown";
  all.witnesses.push_back({"later twin", "", {"twin"}, {1}, {160}});
  EXPECT_EQ(newest(), "later twin");
  EXPECT_TRUE((Witness{"", "", {"job"}, {5}, {100}}.agrees_with(shown)));
  EXPECT_FALSE((Witness{"", "", {"job"}, {5}, {100}, true}.agrees_with(shown)));
  EXPECT_FALSE((Witness{"", "", {"job"}, {6}, {100}}.agrees_with(shown)));
  EXPECT_FALSE((Witness{"", "", {"twin"}, {5}, {100}}.agrees_with(shown)));
}

}  // namespace
}  // namespace gridctl::control::newest_test
