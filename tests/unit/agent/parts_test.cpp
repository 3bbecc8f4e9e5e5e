// SPDX-License-Identifier: Apache-2.0
// Parts of the agent at their limits: leases, the output's ring, folders that are prepared, measures of the host.
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <limits>

#include "agent/bench.hpp"
#include "agent/bench_host.hpp"
#include "agent/job_view.hpp"
#include "agent/ledger.hpp"
#include "agent/log_ring.hpp"
#include "agent/prepare.hpp"
#include "store/scan.hpp"
#include "store/tree.hpp"
#include "support/results.hpp"
#include "unit/store/fixtures.hpp"
#include "wire/bench.hpp"

namespace gridctl::agent::parts_test {
namespace {

using namespace std::chrono_literals;
using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;
using gridctl::testing::TempDir;
using ::testing::HasSubstr;

BootTime at(std::int64_t s) { return {s * 1'000'000'000}; }

// --- leases ---------------------------------------------------------------------------------------------------------

Lease lease(const std::string& job, double cpus = 0, std::uint64_t memory = 0, std::vector<std::string> gpus = {}) {
  Lease lease;
  lease.controller = {"c"};
  lease.job = {job};
  lease.epoch = Epoch{1};
  lease.uid = 5;
  lease.boot_id = "boot";
  lease.pid_namespace = 7;
  lease.supervisor = {10, 1};
  lease.deadline = at(100);
  lease.grace = 30s;
  lease.cpus = cpus;
  lease.memory_bytes = memory;
  lease.gpus = std::move(gpus);
  return lease;
}

const Machine k_machine{"boot", 7, [](const os::ProcessId& process) { return process.pid == 10; }};

TEST(Leases, FitUpToWhatTheMachineHas) {
  Capacity capacity;
  capacity.cpus = 4;
  capacity.memory_bytes = 1000;
  const std::vector<std::optional<Lease>> held{lease("a", 3, 600)};
  const auto plan = [&](const Lease& wanted) { return plan_take(held, wanted, capacity, k_machine, at(50)); };
  EXPECT_THAT(plan(lease("b", 1, 400)), IsOk());
  EXPECT_THAT(plan(lease("b", 1.01)), FailsWith(Code::busy));
  EXPECT_THAT(plan(lease("b", 0, 401)), FailsWith(Code::busy));
  EXPECT_THAT(plan(lease("b", 1.01)).error().message,
              HasSubstr("not enough CPUs are free on this host; some is free at the latest in 50s"));
  EXPECT_THAT(plan(lease("a", 4, 1000)), IsOk()) << "its own share is replaced";
  capacity = {};
  EXPECT_THAT(plan(lease("b", 1000, 100'000)), IsOk()) << "what the machine has is not known";
}

TEST(Leases, TakeTheFirstFreeSlotAndReplaceTheirOwn) {
  Lease dead = lease("dead");
  dead.supervisor = {99, 1};
  Lease twin = lease("b");
  twin.uid = 6;
  const std::vector<std::optional<Lease>> held{lease("a"), dead, std::nullopt, lease("b"), twin};
  const auto planned = plan_take(held, lease("b"), {}, k_machine, at(50));
  ASSERT_THAT(planned, IsOk());
  EXPECT_EQ(planned->slot, 1u);
  EXPECT_EQ(planned->replaces, std::vector<std::size_t>{3}) << "another user's twin replaces nothing";
  EXPECT_EQ(plan_take({lease("a")}, lease("b"), {}, k_machine, at(50))->slot, 1u);
  const auto leased = plan_take({lease("a", 0, 0, {"G1", "G2"})}, lease("b", 0, 0, {"G2"}), {}, k_machine, at(100));
  ASSERT_THAT(leased, FailsWith(Code::busy));
  EXPECT_EQ(leased.error().message, "gpu G2 is leased; it is free when its holder has ended");
}

TEST(Leases, AreVoidWhenNobodyCanHoldThem) {
  EXPECT_FALSE(is_void(lease("a"), k_machine, at(10'000))) << "its supervisor lives";
  Lease other = lease("a");
  other.boot_id = "before";
  EXPECT_TRUE(is_void(other, k_machine, at(1)));
  other = lease("a");
  other.supervisor = {99, 1};
  EXPECT_TRUE(is_void(other, k_machine, at(1)));
  other.payload = {10, 1};
  EXPECT_FALSE(is_void(other, k_machine, at(1)));
  other.payload = {};
  other.launching = true;
  EXPECT_FALSE(is_void(other, k_machine, at(190)));
  EXPECT_TRUE(is_void(other, k_machine, {190'000'000'001})) << "deadline, grace and a minute are over";
  other = lease("a");
  other.pid_namespace = 8;
  EXPECT_FALSE(is_void(other, k_machine, at(190)));
  EXPECT_TRUE(is_void(other, k_machine, {190'000'000'001}));
}

TEST(Leases, OfOthersAreNumbersWithinTheirLimits) {
  const std::string good = to_text(lease("a", 1.5, 7, {"G"}));
  ASSERT_TRUE(parse_lease(good));
  EXPECT_EQ(parse_lease(good)->gpus, std::vector<std::string>{"G"});
  const auto with = [&](const std::string& was, const std::string& becomes) {
    std::string text = good;
    EXPECT_NE(text.find(was), std::string::npos) << was;
    return parse_lease(text.replace(text.find(was), was.size(), becomes)).has_value();
  };
  for (const auto& [was, becomes] : {std::pair{"cpus=1.500", "cpus=1000000"},
                                     {"memory=7", "memory=1125899906842624"},
                                     {"grace=30000000000", "grace=1000000000000000000"},
                                     {"deadline=100000000000", "deadline=0"},
                                     {"launching=0", "launching=1"}})
    EXPECT_TRUE(with(was, becomes)) << becomes;
  for (const auto& [was, becomes] : {std::pair{"cpus=1.500", "cpus=1000000.1"},
                                     {"cpus=1.500", "cpus=-1"},
                                     {"cpus=1.500", "cpus=nan"},
                                     {"cpus=1.500", "cpus=x"},
                                     {"memory=7", "memory=1125899906842625"},
                                     {"grace=30000000000", "grace=1000000000000000001"},
                                     {"grace=30000000000", "grace=-1"},
                                     {"deadline=100000000000", "deadline=-1"},
                                     {"deadline=100000000000", "deadline=1000000000000000001"},
                                     {"controller=c", "controller="},
                                     {"job=a", "job="},
                                     {"boot=boot", "boot="},
                                     {"epoch=1", "epoch=x"},
                                     {"uid=5", "uid=-5"},
                                     {"pidns=7", "pidns=7x"},
                                     {"supervisor=10 1", "supervisor=10"},
                                     {"payload=0 0", "payload=0 x"},
                                     {"cpus=1.500\n", "cpus\n"}})
    EXPECT_FALSE(with(was, becomes)) << becomes;
}

TEST(Leases, AreBelievedOfTheirOwnersProcessesOnly) {
  Machine machine = k_machine;
  EXPECT_TRUE(is_believed(lease("a"), 5, machine));
  EXPECT_FALSE(is_believed(lease("a"), 6, machine));
  machine.owned = [](const os::ProcessId& process, unsigned) { return process.pid != 10; };
  EXPECT_FALSE(is_believed(lease("a"), 5, machine)) << "it lives and is another's";
  Lease dead = lease("a");
  dead.supervisor = {99, 1};
  EXPECT_TRUE(is_believed(dead, 5, machine));
  dead.payload = {10, 1};
  EXPECT_FALSE(is_believed(dead, 5, machine));
}

// --- the output's ring ----------------------------------------------------------------------------------------------

TEST(OutputRing, TakesAgainWhatItMayWhenTimeHasPassed) {
  const TempDir dir;
  auto ring = LogRing::open(dir.path(), 64 * 1024);
  ASSERT_THAT(ring, IsOk());
  ring->append(std::string(64 * 1024, 'a'), at(1));
  EXPECT_EQ(ring->end(), 64u * 1024) << "a burst of one ring";
  ring->append("lost", at(1));
  EXPECT_EQ(ring->end(), 64u * 1024);
  ring->append("found", at(2));
  const auto end = read_log(dir.path(), 64 * 1024, 1000);
  EXPECT_EQ(end->bytes, "\n[gridctl: 4 bytes of output dropped]\nfound");
}

TEST(OutputRing, IsAtLeastSixtyFourKibibytes) {
  const TempDir dir;
  auto ring = LogRing::open(dir.path(), 1);
  ring->append(std::string(64 * 1024, 'a'), at(1));
  EXPECT_EQ(ring->end(), 64u * 1024);
}

TEST(OutputRing, IsReadFromWhereItBegins) {
  const TempDir dir;
  EXPECT_EQ(read_log(dir.path(), 5, 10)->bytes, "");
  EXPECT_EQ(log_end(dir.path()), 0u);
  std::ofstream(dir / "00000000000000000010") << "abcde";
  std::ofstream(dir / "00000000000000000015") << "fgh";
  std::ofstream(dir / "00000000000000000030") << "xyz";
  std::ofstream(dir / "notes") << "no piece";
  EXPECT_EQ(log_end(dir.path()), 33u);
  const auto slice = [&](std::uint64_t offset, std::uint32_t bytes) {
    const auto read = read_log(dir.path(), offset, bytes);
    return std::to_string(read->offset) + ":" + read->bytes;
  };
  EXPECT_EQ(slice(0, 3), "10:abc");
  EXPECT_EQ(slice(12, 4), "12:cdef");
  EXPECT_EQ(slice(15, 100), "15:fgh") << "a gap: the next request begins behind it";
  EXPECT_EQ(slice(18, 100), "30:xyz");
  EXPECT_EQ(slice(20, 2), "30:xy");
  EXPECT_EQ(slice(99, 2), "33:");
  EXPECT_EQ(read_log(dir.path(), 0, 1)->end_offset, 33u);
}

// --- folders that are prepared --------------------------------------------------------------------------------------

class Prepares : public ::testing::Test {
 protected:
  Prepares() {
    EXPECT_TRUE(os::make_directories(attempt_.path));
    spec_.job = {"j"};
    spec_.epoch = Epoch{3};
  }
  Digest tree(const std::map<std::string, std::string>& files) {
    const TempDir source;
    for (const auto& [name, content] : files) store::testing::write(source / name, content);
    auto cache = store::ChunkStore::open(dir_ / "home/cache");
    store::ScanOptions options;
    options.on_chunk = [&](const Digest& digest, ByteView bytes) { return cache->put(digest, bytes); };
    const Bytes manifest = store::to_manifest(store::scan(source.path(), options)->tree);
    EXPECT_THAT(cache->put(store::root_of(manifest), manifest), IsOk());
    EXPECT_THAT(cache->seal(), IsOk());
    return store::root_of(manifest);
  }
  Result<Prepared> prepare() {
    words_.clear();
    return prepare_folders(attempt_, spec_, [&](const std::string& word) { words_.push_back(word); });
  }
  std::string content(const os::Path& path) { return os::read_file(path).value_or("-"); }

  TempDir dir_;
  const AttemptDir attempt_{dir_ / "home/jobs/c/j/3"};
  wire::AttemptSpec spec_;
  std::vector<std::string> words_;
};

TEST_F(Prepares, EmptyFoldersWhereNothingIsWanted) {
  store::testing::write(attempt_.work() / "old", "x");
  ASSERT_THAT(prepare(), IsOk());
  for (const os::Path& folder : {attempt_.work(), attempt_.mounts(), attempt_.checkpoints(), attempt_.home()})
    EXPECT_TRUE(std::filesystem::is_empty(folder)) << folder;
  EXPECT_EQ(words_, std::vector<std::string>{"workdir"});
}

TEST_F(Prepares, MountsWhereTheyAreWanted) {
  spec_.workdir = tree({{"code", "1"}});
  const Digest data = tree({{"a", "A"}, {"b", "B"}}), single = tree({{"conf", "C"}});
  spec_.mounts = {{data, "deep/data"}, {single, "conf"}, {single, "folder/"}, {data, (dir_ / "absolute").native()}};
  const auto prepared = prepare();
  ASSERT_THAT(prepared, IsOk());
  EXPECT_TRUE(prepared->binds.empty()) << "a plain process has links";
  EXPECT_EQ(content(attempt_.work() / "code"), "1");
  EXPECT_EQ(content(attempt_.work() / "deep/data/b"), "B");
  EXPECT_EQ(content(attempt_.work() / "conf"), "C") << "the only file of that name is mounted itself";
  EXPECT_EQ(content(attempt_.work() / "folder/conf"), "C");
  EXPECT_EQ(content(dir_ / "absolute/a"), "A");
  EXPECT_TRUE(std::filesystem::is_symlink(dir_ / "absolute"));
  EXPECT_THAT(prepare(), IsOk()) << "its own link is in nobody's way";
  remove_links(attempt_);
  EXPECT_FALSE(os::exists(dir_ / "absolute"));
}

TEST_F(Prepares, WhatBeginsWithATildeIsInTheHome) {
  spec_.mounts = {{tree({{"a", "A"}}), "~/in-home"}};
  EXPECT_THAT(prepare(), IsOk());
  EXPECT_EQ(content(attempt_.home() / "in-home/a"), "A") << "in the job's own home; outside_test";
  spec_.engine = EngineKind::podman;
  const auto inside = prepare();
  ASSERT_THAT(inside, IsOk());
  ASSERT_GE(inside->binds.size(), 1u);
  EXPECT_EQ(inside->binds[0].target, "/gridctl/home/in-home");
}

TEST_F(Prepares, WhatAContainerBindsIntoIt) {
  spec_.engine = EngineKind::podman;
  const Digest data = tree({{"a", "A"}, {"b", "B"}}), single = tree({{"conf", "C"}});
  spec_.mounts = {{data, "/data/set//"}, {single, "/etc/conf"}, {single, "/etc/other"}, {data, "in/work"}};
  const auto prepared = prepare();
  ASSERT_THAT(prepared, IsOk());
  ASSERT_EQ(prepared->binds.size(), 4u);
  const auto is = [&](std::size_t i, const os::Path& host, const std::string& target) {
    EXPECT_EQ(prepared->binds[i].host, host);
    EXPECT_EQ(prepared->binds[i].target, target);
    EXPECT_FALSE(prepared->binds[i].read_only);
  };
  is(0, attempt_.mounts() / "0", "/data/set");
  is(1, attempt_.mounts() / "1" / "conf", "/etc/conf");
  is(2, attempt_.mounts() / "2", "/etc/other");
  is(3, attempt_.checkpoints(), "/ckpt");
  EXPECT_EQ(content(attempt_.work() / "in/work/b"), "B");
  EXPECT_FALSE(os::exists("/data/set"));
}

TEST_F(Prepares, NoMountOverWhatTheWorkingDirectoryHas) {
  spec_.workdir = tree({{"data/own", "1"}});
  spec_.mounts = {{tree({{"a", "A"}, {"b", "B"}}), "data"}};
  const auto refused = prepare();
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().one_line(), HasSubstr("cannot put the mount data into the working directory"));
  EXPECT_EQ(content(attempt_.work() / "data/own"), "1");
}

TEST_F(Prepares, AnImageAgainAfterAKill) {
  spec_.engine = EngineKind::podman;
  spec_.image_archive = tree({{"image.tar", "I"}});
  store::testing::write(attempt_.path / "image/half", "x");
  EXPECT_EQ(content(prepare()->image_archive), "I");
  EXPECT_FALSE(os::exists(attempt_.path / "image/half"));
}

TEST_F(Prepares, NothingInThePlaceOfWhatIsThere) {
  store::testing::write(dir_ / "there", "mine");
  spec_.mounts = {{tree({{"a", "A"}}), (dir_ / "there").native()}};
  EXPECT_THAT(prepare(), FailsWith(Code::refused));
  EXPECT_EQ(content(dir_ / "there"), "mine");
  // A link that somebody else has put there meanwhile is not removed.
  std::ofstream(attempt_.path / "links") << (dir_ / "foreign").native() << "\n";
  std::filesystem::create_symlink(dir_ / "there", dir_ / "foreign");
  remove_links(attempt_);
  EXPECT_TRUE(os::exists(dir_ / "foreign"));
  EXPECT_FALSE(os::exists(attempt_.path / "links"));
}

TEST_F(Prepares, ACheckpointWhereTheProgramLooksForIt) {
  spec_.restore = tree({{"model", "M"}});
  spec_.restore_name = "j@1";
  spec_.workdir = tree({{"out/stale", "S"}});
  spec_.checkpoint_path = "out";
  ASSERT_THAT(prepare(), IsOk());
  EXPECT_EQ(content(attempt_.work() / "out/model"), "M");
  EXPECT_FALSE(os::exists(attempt_.work() / "out/stale")) << "exactly the checkpoint";
  EXPECT_EQ(words_, (std::vector<std::string>{"workdir", "restore"}));
  spec_.workdir.reset();
  spec_.checkpoint_path = (dir_ / "elsewhere").native();
  ASSERT_THAT(prepare(), IsOk());
  EXPECT_EQ(content(dir_ / "elsewhere/model"), "M");
  remove_links(attempt_);
  spec_.engine = EngineKind::docker;
  const auto inside = prepare();
  ASSERT_EQ(inside->binds.size(), 1u);
  EXPECT_EQ(inside->binds[0].target, spec_.checkpoint_path);
  spec_.checkpoint_path.clear();
  EXPECT_EQ(prepare()->binds.at(0).target, "/ckpt");
}

TEST_F(Prepares, NoDirectoryThatTheProgramMakesItself) {
  spec_.checkpoint_path = "runs/out";
  spec_.checkpoint_late = true;
  ASSERT_THAT(prepare(), IsOk());
  EXPECT_FALSE(os::exists(attempt_.work() / "runs/out"));
  spec_.restore = tree({{"model", "M"}});
  ASSERT_THAT(prepare(), IsOk());
  EXPECT_EQ(content(attempt_.work() / "runs/out/model"), "M") << "what is restored is there";
  spec_.restore.reset();
  spec_.checkpoint_late = false;
  ASSERT_THAT(prepare(), IsOk());
  EXPECT_TRUE(os::exists(attempt_.work() / "runs/out"));
}

TEST_F(Prepares, AFolderOfItsOwnForTemporaryFilesWherePodmanHasAWritableRoot) {
  spec_.engine = EngineKind::podman;
  spec_.root_writable = true;
  const auto prepared = prepare();
  const auto tmp = std::ranges::find(prepared->binds, "/tmp", &Bind::target);
  ASSERT_NE(tmp, prepared->binds.end());
  EXPECT_EQ(std::filesystem::status(tmp->host).permissions() & std::filesystem::perms(07777), std::filesystem::perms(01777));
  spec_.mounts = {{tree({{"a", "A"}}), "/tmp"}};
  EXPECT_EQ(std::ranges::count(prepare()->binds, "/tmp", &Bind::target), 1) << "the user's own";
}

TEST_F(Prepares, AnImageOfOneFile) {
  spec_.image_archive = tree({{"image.tar", "I"}});
  EXPECT_EQ(prepare()->image_archive, os::Path{}) << "a plain process needs none";
  spec_.engine = EngineKind::podman;
  EXPECT_EQ(content(prepare()->image_archive), "I");
  spec_.image_archive = tree({{"image.tar", "I"}, {"second", "x"}});
  EXPECT_THAT(prepare(), FailsWith(Code::refused));
}

TEST_F(Prepares, TellsWhichTreeIsMissing) {
  spec_.mounts = {{Digest{}, "data"}};
  const auto missing = prepare();
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().one_line(), HasSubstr("the mount data"));
}

// --- what a job may ask for -----------------------------------------------------------------------------------------

TEST(Specs, AreTakenUpToTheirLimits) {
  const auto refused = [](const std::function<void(wire::AttemptSpec&)>& change) {
    wire::AttemptSpec spec;
    spec.job = {"job"};
    spec.run = "true";
    change(spec);
    const auto checked = check_spec(spec);
    return checked ? std::string() : checked.error().message;
  };
  using Spec = wire::AttemptSpec;
  EXPECT_EQ(refused([](Spec&) {}), "");
  EXPECT_EQ(refused([](Spec& s) { s.run = std::string(256 * 1024, 'x'); }), "");
  EXPECT_THAT(refused([](Spec& s) { s.run = std::string(256 * 1024 + 1, 'x'); }), HasSubstr("larger than 256 KiB"));
  EXPECT_THAT(refused([](Spec& s) { s.setup = std::string(256 * 1024 + 1, 'x'); }), HasSubstr("larger than 256 KiB"));
  EXPECT_THAT(refused([](Spec& s) { s.run = ""; }), HasSubstr("no command"));
  EXPECT_EQ(refused([](Spec& s) { s.mounts.resize(256, {Digest{}, "a"}); }), "");
  EXPECT_THAT(refused([](Spec& s) { s.mounts.resize(257, {Digest{}, "a"}); }), HasSubstr("more than 256"));
  EXPECT_THAT(refused([](Spec& s) { s.gpu_uuids.resize(257, "G"); }), HasSubstr("more than 256"));
  for (const char* bad : {"", "a,b", "a\"b", "a\\b", "a\nb", "../x", "a/./b"})
    EXPECT_THAT(refused([&](Spec& s) { s.mounts = {{Digest{}, bad}}; }), HasSubstr("bad mount target")) << bad;
  EXPECT_EQ(refused([](Spec& s) { s.mounts = {{Digest{}, std::string(1024, 'x')}}; }), "");
  EXPECT_NE(refused([](Spec& s) { s.mounts = {{Digest{}, std::string(1025, 'x')}}; }), "");
  EXPECT_THAT(refused([](Spec& s) { s.checkpoint_path = "/"; }), HasSubstr("bad checkpoint path"));
  EXPECT_EQ(refused([](Spec& s) { s.checkpoint_path = "/x"; }), "");
  for (const std::string& bad : {std::string(), std::string(61, 'g'), std::string("a=b"), std::string("a,b")})
    EXPECT_THAT(refused([&](Spec& s) { s.gpu_uuids = {bad}; }), HasSubstr("bad gpu id")) << bad;
  EXPECT_EQ(refused([](Spec& s) { s.gpu_uuids = {std::string(60, 'g')}; }), "");
  for (const std::string& bad : {std::string(), std::string("-x"), std::string(513, 'i')})
    EXPECT_THAT(refused([&](Spec& s) { s.engine = EngineKind::podman, s.image = bad; }), HasSubstr("bad image")) << bad;
  EXPECT_EQ(refused([](Spec& s) { s.engine = EngineKind::podman, s.image = std::string(512, 'i'); }), "");
  EXPECT_EQ(refused([](Spec& s) { s.engine = EngineKind::podman, s.image_archive = Digest{}; }), "");
  EXPECT_EQ(refused([](Spec& s) { s.cpus = 65536; }), "");
  for (const double bad : {-0.1, 65536.1, std::numeric_limits<double>::quiet_NaN()})
    EXPECT_THAT(refused([&](Spec& s) { s.cpus = bad; }), HasSubstr("bad number of CPUs")) << bad;
  EXPECT_EQ(refused([](Spec& s) { s.stop_grace = std::chrono::hours{24}; }), "");
  EXPECT_THAT(refused([](Spec& s) { s.stop_grace = std::chrono::hours{24} + Duration{1}; }),
              HasSubstr("bad stop grace"));
  EXPECT_THAT(refused([](Spec& s) { s.stop_grace = Duration{-1}; }), HasSubstr("bad stop grace"));
  for (const std::string& bad : {std::string(), std::string("1A"), std::string("a-b"), std::string(256, 'a')})
    EXPECT_THAT(refused([&](Spec& s) { s.envs[bad] = "x"; }), HasSubstr("bad name")) << bad;
  EXPECT_EQ(refused([](Spec& s) { s.envs[std::string(255, 'A')] = s.envs["_z9"] = "x"; }), "");
  EXPECT_EQ(refused([](Spec& s) { s.envs["A"] = std::string(128 * 1024, 'x'); }), "");
  EXPECT_THAT(refused([](Spec& s) { s.envs["A"] = std::string(128 * 1024 + 1, 'x'); }), HasSubstr("the value of A"));
  EXPECT_THAT(refused([](Spec& s) { s.envs["A"] = std::string(1, '\0'); }), HasSubstr("the value of A"));
  EXPECT_THAT(refused([](Spec& s) {
                for (int i = 0; i < 5; ++i) s.envs["A" + std::to_string(i)] = std::string(128 * 1024, 'x');
              }),
              HasSubstr("larger than 512 KiB"));
  EXPECT_EQ(refused([](Spec& s) {
              for (int i = 0; i < 1024; ++i) s.envs["A" + std::to_string(i)] = "x";
            }),
            "");
  EXPECT_THAT(refused([](Spec& s) {
                for (int i = 0; i < 1025; ++i) s.envs["A" + std::to_string(i)] = "x";
              }),
              HasSubstr("too many"));
}

TEST(Specs, HaveAValueForEachSecretAndNoOther) {
  wire::AttemptSpec spec;
  spec.secret_names = {"A"};
  EXPECT_THAT(check_secrets(spec, {{"A", "x"}}), IsOk());
  EXPECT_THAT(check_secrets(spec, {}), FailsWith(Code::refused));
  EXPECT_THAT(check_secrets(spec, {{"A", "x"}, {"B", "y"}}), FailsWith(Code::refused));
  EXPECT_THAT(check_secrets(spec, {{"a-b", "x"}}), FailsWith(Code::refused));
}

TEST(Specs, BecomeTheVariablesOfTheJob) {
  const AttemptDir attempt{"/h/jobs/c/j/3"};
  wire::AttemptSpec spec;
  spec.envs = {{"MINE", "1"}, {"GRIDCTL_CKPT_DIR", "forged"}};
  using namespace std::string_literals;
  std::string text = job_environment(spec, view_of(attempt, spec, 2), {});
  EXPECT_THAT(text, HasSubstr("MINE=1\0"s));
  EXPECT_THAT(text, HasSubstr("GRIDCTL_CKPT_DIR=/h/jobs/c/j/3/ckpt\0"s));
  EXPECT_THAT(text, HasSubstr("GRIDCTL_RESUME_FROM=\0"s));
  EXPECT_THAT(text, HasSubstr("GRIDCTL_METRICS=/h/jobs/c/j/3/run/2/metrics\0"s));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("LOGNAME=")));
  spec.engine = EngineKind::docker;
  spec.restore = Digest{};
  spec.restore_name = "j@4";
  spec.envs["HOME"] = "/mine";
  text = job_environment(spec, view_of(attempt, spec, 2), {});
  EXPECT_THAT(text, HasSubstr("GRIDCTL_RESUME_FROM=j@4\0"s));
  EXPECT_THAT(text, HasSubstr("HOME=/mine\0"s)) << "the user's word is the last";
  EXPECT_THAT(text, HasSubstr("LOGNAME=job\0"s));
  EXPECT_THAT(text, HasSubstr("GRIDCTL_CKPT_DIR=/ckpt\0"s));
}

TEST(Specs, TellWhereTheCheckpointsLie) {
  const AttemptDir attempt{"/h/jobs/c/j/3"};
  wire::AttemptSpec spec;
  const auto lies = [&](EngineKind engine, const std::string& path) {
    spec.engine = engine;
    spec.checkpoint_path = path;
    const JobView view = view_of(attempt, spec, 1);
    return view.checkpoints.native() + " = " + view.checkpoint_base.native() + " + " + view.checkpoint_relative;
  };
  EXPECT_EQ(lies(EngineKind::process, ""), "/h/jobs/c/j/3/ckpt = /h/jobs/c/j/3 + ckpt");
  EXPECT_EQ(lies(EngineKind::process, "out//x/"), "/h/jobs/c/j/3/work/out/x = /h/jobs/c/j/3/work + out/x");
  EXPECT_EQ(lies(EngineKind::process, "/work/x"), "/work/x = /h/jobs/c/j/3 + ckpt");
  EXPECT_EQ(lies(EngineKind::podman, "/work/x"), "/work/x = /h/jobs/c/j/3/work + x");
  EXPECT_EQ(lies(EngineKind::podman, "/work/"), "/work/ = /h/jobs/c/j/3 + ckpt");
  EXPECT_EQ(lies(EngineKind::podman, "/data"), "/data = /h/jobs/c/j/3 + ckpt");
}

// --- measures of the host -------------------------------------------------------------------------------------------

TEST(HostMeasures, AreAllThereAndLeaveNothing) {
  const TempDir dir;
  const auto found = bench_host(dir.path(), 2ms, os::system_clock());
  for (const char* name : {"cpu_gflops", "cpu_all_gflops", "memory_copy_gbs", "disk_write_mbs", "disk_sync_ms"}) {
    ASSERT_TRUE(found.contains(name)) << name;
    EXPECT_GT(found.at(name), 0) << name;
    EXPECT_TRUE(std::isfinite(found.at(name))) << name;
  }
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
  const auto nowhere = bench_host(dir / "none", 1ms, os::system_clock());
  EXPECT_EQ(nowhere.size(), 3u) << "what cannot be measured is left out";
}

TEST(Benches, AnswerTheirFourOperations) {
  const TempDir dir;
  ::setenv("GRIDCTL_LEASE_DIR", (dir / "leases").c_str(), 1);
  for (const char* operation : {"bench-list", "bench-begin", "bench-seed", "bench-host"})
    EXPECT_TRUE(Bench::serves(operation));
  EXPECT_FALSE(Bench::serves("bench"));
  {
    Bench bench(dir / "home", {"controller"}, os::system_clock());
    const auto list = bench.handle("bench-list", "{}");
    ASSERT_THAT(list, IsOk());
    EXPECT_THAT(wire::parse_bench_devices(*list), IsOk());
    const auto host = bench.handle("bench-host", wire::encode(wire::BenchHost{1ms}));
    ASSERT_THAT(host, IsOk());
    EXPECT_TRUE(wire::parse_bench_stage(*host)->done);
    EXPECT_GT(wire::parse_bench_stage(*host)->number("cpu_gflops"), 0);
    EXPECT_THAT(bench.handle("bench-seed", wire::encode(wire::BenchSeed{7})), FailsWith(Code::refused));
    wire::BenchBegin begin;
    begin.test = "no-such-test";
    begin.backend = "cuda";
    begin.gpu = "GPU-1";
    begin.peer = "GPU-2";
    begin.deadline = 20s;
    EXPECT_FALSE(bench.handle("bench-begin", wire::encode(begin)));
    Ledger ledger(lease_directory(), Machine::real(), os::system_clock());
    EXPECT_TRUE(ledger.valid()->empty()) << "the GPUs are free again";
    Lease held = lease("other", 0, 0, {"GPU-2"});
    held.uid = ::geteuid();
    held.boot_id = Machine::real().boot_id;
    held.pid_namespace = Machine::real().pid_namespace;
    held.supervisor = os::identify(::getpid()).value();
    held.deadline = os::system_clock().boot() + 60s;
    ASSERT_THAT(ledger.take(held, machine_capacity()), IsOk());
    EXPECT_THAT(bench.handle("bench-begin", wire::encode(begin)), FailsWith(Code::busy));
    EXPECT_FALSE(bench.handle("bench-begin", "{}"));
  }
  ::unsetenv("GRIDCTL_LEASE_DIR");
}

}  // namespace
}  // namespace gridctl::agent::parts_test
