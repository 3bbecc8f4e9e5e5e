// SPDX-License-Identifier: Apache-2.0
// Red team: one host makes a checkpoint of few bytes that would fill the disk of the next one, where others' jobs run.
#include <gmock/gmock.h>

#include <fstream>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "agent/ledger.hpp"
#include "agent/prepare.hpp"
#include "store/scan.hpp"
#include "store/tree.hpp"
#include "support/results.hpp"
#include "unit/store/fixtures.hpp"

namespace gridctl::agent::prepare_test {
namespace {

using namespace gridctl::testing;
using ::testing::HasSubstr;

class RestoredCheckpoint : public ::testing::Test {
 protected:
  // No file of more than 64 MB: a test that fails does not fill the disk.
  void SetUp() override {
    ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before_), 0);
    ::signal(SIGXFSZ, SIG_IGN);
    rlimit limited = before_;
    limited.rlim_cur = 64u << 20;
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limited), 0);
    ASSERT_THAT(os::make_directories(attempt_.path), IsOk());
    spec_.job = {"j"};
    spec_.epoch = Epoch{3};
    spec_.engine = EngineKind::process;
  }
  void TearDown() override { (void)::setrlimit(RLIMIT_FSIZE, &before_); }

  // A file of so many times 4 MiB of `byte`.
  Result<Prepared> restore(char byte, std::size_t times) {
    store::ChunkStore cache = *store::ChunkStore::open(dir_ / "home/cache");
    const std::string content(store::k_chunk_max, byte);
    store::Entry file{store::EntryKind::file, 0644, "model", times * store::k_chunk_max, {}, {}};
    file.chunks.assign(times, {store::testing::put(cache, content), store::k_chunk_max});
    const Bytes manifest = to_manifest(*store::make_tree({file}));
    spec_.restore = store::root_of(manifest);
    EXPECT_THAT(cache.put(*spec_.restore, manifest), IsOk());
    EXPECT_THAT(cache.seal(), IsOk());
    return prepare_folders(attempt_, spec_, [](const std::string&) {});
  }

  store::testing::Folder dir_;
  const AttemptDir attempt_{dir_ / "home/jobs/c/j/3"};
  wire::AttemptSpec spec_;
  rlimit before_{};
};

using namespace std::chrono_literals;
using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;
using gridctl::testing::TempDir;

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

TEST_F(RestoredCheckpoint, CannotFillTheDiskOfTheNextHost) {
  const auto refused = restore('x', 1'000'000);
  ASSERT_THAT(refused, FailsWith(Code::no_space));
  EXPECT_THAT(refused.error().one_line(), HasSubstr("it takes 3.8 TiB"));
  EXPECT_FALSE(os::exists(attempt_.checkpoints() / "model"));
}

TEST_F(RestoredCheckpoint, OfAUsualSizeIsThere) {
  ASSERT_THAT(restore('x', 2), IsOk());
  EXPECT_EQ(store::testing::slurp(attempt_.checkpoints() / "model").size(), 2u * store::k_chunk_max);
}

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

}  // namespace
}  // namespace gridctl::agent::prepare_test
