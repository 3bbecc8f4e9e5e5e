// SPDX-License-Identifier: Apache-2.0
// Red team: one host makes a checkpoint of few bytes that would fill the disk of the next one, where others' jobs run.
#include "agent/prepare.hpp"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/resource.h>

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

}  // namespace
}  // namespace gridctl::agent::prepare_test
