// SPDX-License-Identifier: Apache-2.0
// Small parts of following a job: what a host's word and its silence mean, secrets and their masks, costs, hosts that are
// asked to upload.
#include <gmock/gmock.h>

#include <filesystem>

#include "control/copies/chunks.hpp"
#include "control/copies/host_uploads.hpp"
#include "control/follow/heartbeat_rules.hpp"
#include "control/follow/masks.hpp"
#include "control/follow/secrets.hpp"
#include "control/follow/tuning.hpp"
#include "control/reach/pace.hpp"
#include "control/reach/ssh_network.hpp"
#include "hand_clock.hpp"
#include "unit/store/remote_fixtures.hpp"

namespace gridctl::control::follow_parts_test {
namespace {

using namespace std::chrono_literals;
using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// A job on "a", as far as its attempt has come.
struct Followed {
  job::State state;
  WallTime now{1'000'000};
  Followed() { happen(job::Placed{{job::Member{0, {"a"}, EngineKind::process, {}, 1, 0, 0}}, "x"}); }
  void happen(job::Event what) { state = job::step(state, {now, std::move(what)}).state; }
  void run() { happen(job::PayloadStarted{{1}}); }
  [[nodiscard]] Reading read(const wire::AttemptStatus& status, bool fenced = false, const char* host = "a") const {
    return read_status(state, {host}, fenced, status);
  }
};
wire::AttemptStatus told(wire::AttemptPhase phase, std::uint64_t epoch = 1) {
  wire::AttemptStatus status;
  status.epoch = {epoch};
  status.phase = phase;
  return status;
}
using wire::AttemptPhase;

TEST(HostsWord, OfAnotherEpochOrHostSaysNothing) {
  Followed job;
  job.run();
  EXPECT_TRUE(job.read(told(AttemptPhase::running)).output);
  EXPECT_FALSE(job.read(told(AttemptPhase::running, 2)).output);
  EXPECT_FALSE(job.read(told(AttemptPhase::running), false, "b").output);
  EXPECT_FALSE(read_status({}, {"a"}, false, told(AttemptPhase::running, 0)).output) << "there is no attempt";
}

TEST(HostsWord, StartsARunOnce) {
  Followed job;
  wire::AttemptStatus status = told(AttemptPhase::running);
  status.running_ms_ago = 700;
  const Reading first = job.read(status);
  ASSERT_THAT(first.events, SizeIs(1));
  EXPECT_EQ(std::get<job::PayloadStarted>(first.events[0]).ago, 700ms);
  EXPECT_TRUE(first.output && first.checkpoints);
  status.running_ms_ago = -1;
  EXPECT_EQ(std::get<job::PayloadStarted>(job.read(status).events[0]).ago, 0s) << "it did not tell";
  job.run();
  EXPECT_THAT(job.read(status).events, IsEmpty());
  EXPECT_TRUE(job.read(told(AttemptPhase::stopping)).checkpoints);
}

TEST(HostsWord, TellsWhatAStartIsDoing) {
  Followed job;
  wire::AttemptStatus status = told(AttemptPhase::starting);
  Reading reading = job.read(status);
  EXPECT_THAT(reading.events, IsEmpty());
  EXPECT_TRUE(reading.output) << "what setup says";
  EXPECT_FALSE(reading.checkpoints);
  status.doing = "image";
  reading = job.read(status);
  ASSERT_THAT(reading.events, SizeIs(1));
  EXPECT_EQ(std::get<job::Preparing>(reading.events[0]).doing, "image");
  job.happen(reading.events[0]);
  EXPECT_THAT(job.read(status).events, IsEmpty()) << "it is known";
}

TEST(HostsWord, NotHereIsNewsOnlyWhereItMustBeThere) {
  Followed job;
  EXPECT_THAT(job.read(told(AttemptPhase::absent)).events, IsEmpty()) << "START may be on its way";
  EXPECT_THAT(job.read(told(AttemptPhase::absent), true).events, SizeIs(1));
  job.run();
  const Reading gone = job.read(told(AttemptPhase::absent));
  ASSERT_THAT(gone.events, SizeIs(1));
  EXPECT_EQ(std::get<job::AttemptEnded>(gone.events[0]).end.kind, job::EndKind::absent);
}

TEST(HostsWord, EndsAnAttemptAsTheHostSays) {
  const std::map<wire::EndReason, job::EndKind> kinds{
      {wire::EndReason::none, job::EndKind::vanished},       {wire::EndReason::vanished, job::EndKind::vanished},
      {wire::EndReason::exited, job::EndKind::exited},       {wire::EndReason::signalled, job::EndKind::signalled},
      {wire::EndReason::oom, job::EndKind::oom},             {wire::EndReason::stopped, job::EndKind::stopped},
      {wire::EndReason::lease_expired, job::EndKind::lease_expired}, {wire::EndReason::host_rebooted, job::EndKind::host_rebooted},
      {wire::EndReason::start_failed, job::EndKind::start_failed},   {wire::EndReason::disk_full, job::EndKind::disk_full},
      {wire::EndReason::image_failed, job::EndKind::image_failed},   {wire::EndReason::limit, job::EndKind::limit}};
  for (const auto& [reason, kind] : kinds) {
    Followed job;
    wire::AttemptStatus status = told(AttemptPhase::ended);
    status.end = reason;
    status.exit_code = 3, status.signal = 9, status.detail = "why", status.ended_ms_ago = 500;
    const Reading reading = job.read(status);
    ASSERT_THAT(reading.events, SizeIs(1)) << "it never ran";
    const auto& ended = std::get<job::AttemptEnded>(reading.events[0]);
    EXPECT_EQ(ended.end.kind, kind);
    EXPECT_EQ(ended.end.exit_code, 3);
    EXPECT_EQ(ended.end.signal, 9);
    EXPECT_EQ(ended.end.detail, "why");
    EXPECT_EQ(ended.ago, 500ms);
    status.started_ms_ago = 0;
    EXPECT_THAT(job.read(status).events, SizeIs(2)) << "it ran, and nobody saw it begin";
    job.run();
    EXPECT_THAT(job.read(status).events, SizeIs(1));
    job.happen(job.read(status).events[0]);
    EXPECT_THAT(job.read(status).events, IsEmpty()) << "it has ended";
  }
}

TEST(HostsWord, NamesTheNewestCheckpointThatIsNotKnown) {
  wire::AttemptStatus status;
  EXPECT_EQ(newest_beyond(status, 0), nullptr);
  status.checkpoints.resize(3);
  status.checkpoints[0].number = 4, status.checkpoints[1].number = 6, status.checkpoints[2].number = 5;
  EXPECT_EQ(newest_beyond(status, 5), &status.checkpoints[1]);
  EXPECT_EQ(newest_beyond(status, 6), nullptr);
}

TEST(HostsSilence, LosesAMemberWhenItsJobGivesUp) {
  Followed job;
  job.run();
  job.state.policy.lost_after = 3s;
  job::FailureDetector silence(5s);
  const job::Member& member = job.state.attempt()->lead();
  for (std::int64_t second = 1; second <= 3; ++second) silence.tick({second * 1'000'000'000}, true);
  EXPECT_FALSE(read_silence(job.state, member, silence)) << "two seconds";
  silence.tick({4'000'000'000}, true);
  const auto lost = read_silence(job.state, member, silence);
  ASSERT_TRUE(lost);
  EXPECT_EQ(lost->epoch.value, 1u);
  EXPECT_EQ(lost->silent_for, 3s);
  job::Member collected = member;
  collected.part = job::Part::collected;
  EXPECT_FALSE(read_silence(job.state, collected, silence)) << "nothing of it is needed any more";
  EXPECT_FALSE(read_silence({}, member, silence));
}

TEST(Heartbeat, IsATwelfthOfTheShortestPatience) {
  EXPECT_EQ(heartbeat_for({}, false), k_heartbeat_idle);
  EXPECT_EQ(heartbeat_for({}, true), k_heartbeat_max);
  EXPECT_EQ(heartbeat_for({60s, 24s}, true), 2s);
  EXPECT_EQ(heartbeat_for({1s}, true), k_heartbeat_min);
  EXPECT_EQ(heartbeat_for({10min}, true), k_heartbeat_max);
}

TEST(MeasuredCostOf, ACheckpointIsItsMedianWithoutStrays) {
  std::vector<registry::Checkpoint> saved(4);
  saved[0].stall = 1s, saved[0].upload = 4s;
  saved[1].stall = 3s, saved[1].upload = 6s;
  saved[2].stall = 2s, saved[2].upload = 5s;
  saved[3].stall = 100s, saved[3].upload = 100s, saved[3].stray = true;
  registry::Provider host;
  sched::CheckpointCost cost = measured_cost(saved, host, 60s);
  EXPECT_EQ(cost.stall, 2s);
  EXPECT_EQ(cost.upload, 5s);
  EXPECT_EQ(cost.restart, 90s);
  host.figures["start_time"] = 2.5;
  saved.resize(1);
  saved[0].stall = 0s;
  cost = measured_cost(saved, host, 60s);
  EXPECT_EQ(cost.stall, 10ms) << "nothing is free";
  EXPECT_EQ(cost.restart, 62500ms);
  EXPECT_EQ(measured_cost({}, host, 60s).stall, 0s);
}

TEST(Secrets, AreFilesForTheirOwnerAlone) {
  const gridctl::testing::TempDir dir;
  const os::Path folder = dir / "secrets";
  ASSERT_THAT(write_secrets(folder, {}), IsOk());
  EXPECT_FALSE(std::filesystem::exists(folder)) << "there are none";
  EXPECT_THAT(*read_secrets(folder), IsEmpty());
  ASSERT_THAT(write_secrets(folder, {{"A", "one"}, {"B", "two"}}), IsOk());
  EXPECT_EQ(std::filesystem::status(folder).permissions(), std::filesystem::perms{0700});
  EXPECT_EQ(std::filesystem::status(folder / "A").permissions(), std::filesystem::perms{0600});
  EXPECT_THAT(*read_secrets(folder), ElementsAre(std::pair("A", "one"), std::pair("B", "two")));
  EXPECT_THAT(*read_secrets(folder, {"B"}), ElementsAre(std::pair("B", "two")));
  const auto missing = read_secrets(folder, {"A", "C"});
  ASSERT_THAT(missing, FailsWith(Code::not_found));
  EXPECT_THAT(missing.error().message, HasSubstr("secret C is missing from the state directory"));
}

TEST(MaskedText, OfNothingButTheSecretIsAllStars) {
  const Masks masks(std::map<std::string, std::string>{{"TOKEN", "secret"}});
  std::string text = "secret";
  masks.mask(text);
  EXPECT_EQ(text, "******");
  text = "secre";
  masks.mask(text);
  EXPECT_EQ(text, "secre");
  EXPECT_EQ(masks.held("my secre"), 5u);
  EXPECT_EQ(masks.held("my secret"), 0u) << "it is whole";
  EXPECT_EQ(masks.held("nothing"), 0u);
}

// --- Hosts that put packs into a bucket themselves -------------------------------------------------------------------

// A bucket that cannot sign, as far as anybody asks.
class Bucket : public store::Backend {
 public:
  Result<std::vector<store::Object>> list(std::string_view) override { return make_error(Code::io, "not asked"); }
  Result<Bytes> read(std::string_view, std::uint64_t, std::size_t) override { return make_error(Code::io, "not asked"); }
  Result<void> put(std::string_view, std::uint64_t, const store::ReadAt&, const std::function<bool(std::uint64_t)>&) override {
    return make_error(Code::io, "not asked");
  }
  Result<bool> put_new(std::string_view, ByteView) override { return make_error(Code::io, "not asked"); }
  Result<void> remove(std::string_view) override { return make_error(Code::io, "not asked"); }
  Result<std::optional<store::SignedPut>> sign_put(std::string_view name, const Digest&) override {
    asked.emplace_back(name);
    if (problem) return *problem;
    return std::optional<store::SignedPut>();
  }
  std::vector<std::string> asked;
  std::optional<Error> problem;
};

class Uploads : public ::testing::Test {
 protected:
  Uploads() {
    registry::Provider provider;
    provider.name = {"ada"};
    EXPECT_THAT(registry.add_provider(provider), IsOk());
    job::Spec spec;
    spec.name = "train";
    spec.run = "true";
    EXPECT_THAT(registry.submit(id, spec, {1}), IsOk());
    EXPECT_THAT(registry.apply(id, {{2}, job::Placed{{job::Member{0, {"ada"}, {}, {}, 1, 0, 0}}, "x"}}), IsOk());
    checkpoint.job = id;
    checkpoint.epoch = registry.attempts(id)->front().epoch;
    checkpoint.host_number = 4;
    checkpoint.root = store::testing::save(chunks, {{"a", store::testing::noise(3 << 20, 1)}}, 1).root;
    const auto found = chunks.packs_of(std::vector{checkpoint.root});
    EXPECT_THAT(found, IsOk());
    pack = found->front();
  }
  void put(const registry::Checkpoint& of, const store::PackFile& which) {
    HostUploads uploads({net, registry, chunks, *key, bucket, clock, memory}, of);
    uploads.put(which, [] { return true; });
    uploads.put(which, [] { return true; });
  }
  [[nodiscard]] Duration pause() { return memory.hosts[HostName{"ada"}].pause; }

  store::testing::Folder here;
  Paths paths{here / "state"};
  testing::HandClock clock;
  registry::Registry registry = *registry::Registry::open(paths.root);
  SshNetwork net{clock, paths, *registry.controller_id()};
  store::ChunkStore chunks = *open_chunks(paths);
  std::optional<store::StoreKey> key = *load_key(paths);
  const JobId id{"abcdefghijk23"};
  registry::Checkpoint checkpoint;
  store::PackFile pack;
  Bucket bucket;
  UploadMemory memory;
};

TEST_F(Uploads, ThatCannotBeAreNotTriedAgainForTenMinutesAndThenTwiceAsLong) {
  put(checkpoint, pack);
  EXPECT_THAT(bucket.asked, SizeIs(1)) << "no more for this checkpoint";
  EXPECT_EQ(pause(), 10min);
  clock.pass(10min - 1s);
  put(checkpoint, pack);
  EXPECT_THAT(bucket.asked, SizeIs(1));
  clock.pass(1s);
  put(checkpoint, pack);
  EXPECT_THAT(bucket.asked, SizeIs(2));
  EXPECT_EQ(pause(), 20min);
  for (int i = 0; i < 12; ++i) {
    clock.pass(25h);
    put(checkpoint, pack);
  }
  EXPECT_EQ(pause(), 24h) << "and no longer than a day";
}

TEST_F(Uploads, AreLeftOutWhereTheyAreNotWorthwhileOrNobodyHasTheFiles) {
  store::PackFile small = pack;
  small.size = (1u << 20) - 1;
  put(checkpoint, small);
  registry::Checkpoint pushed = checkpoint;
  pushed.host_number = 0;
  put(pushed, pack);
  registry::Checkpoint stranger = checkpoint;
  stranger.epoch = {99};
  put(stranger, pack);
  EXPECT_THAT(bucket.asked, IsEmpty());
  EXPECT_THAT(memory.hosts, IsEmpty()) << "no host is to blame";
}

TEST_F(Uploads, ThatWereCancelledBlameNoHost) {
  bucket.problem = make_error(Code::cancelled, "the copy was cancelled");
  put(checkpoint, pack);
  EXPECT_THAT(bucket.asked, SizeIs(1));
  EXPECT_EQ(pause(), 0s);
  bucket.problem = make_error(Code::not_found, "what it differs from is gone there");
  put(checkpoint, pack);
  EXPECT_THAT(bucket.asked, SizeIs(3)) << "the next pack may be another matter";
  EXPECT_EQ(pause(), 0s);
}

TEST_F(Uploads, RememberTheNamesOfWhatTheNextMayDifferFrom) {
  put(checkpoint, pack);
  EXPECT_THAT(memory.names, SizeIs(2)) << "the tree and its only chunk";
}

}  // namespace
}  // namespace gridctl::control::follow_parts_test
