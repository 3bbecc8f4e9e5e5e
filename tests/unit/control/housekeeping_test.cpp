// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <fcntl.h>
#include <filesystem>

#include "control/copies/housekeeping.hpp"
#include "hand_clock.hpp"
#include "os/clock.hpp"
#include "registry/registry.hpp"
#include "remotes_fixture.hpp"
#include "support/results.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::control::housekeeping_test {
namespace {

constexpr std::int64_t k_two_days_ms = 2 * 24 * 3600 * 1000ll;

class SweepLeftovers : public ::testing::Test {
 protected:
  void write(const os::Path& path) {
    ASSERT_TRUE(os::make_directories(path.parent_path()));
    ASSERT_TRUE(os::write_file_atomically(path, "x"));
  }
  // As it is now, and as it will be when what is here now has become old.
  std::uint64_t sweep(bool later = true) {
    const WallTime now = os::system_clock().wall();
    const Result<std::uint64_t> removed = sweep_leftovers(paths_, {now.ms + (later ? k_two_days_ms : 0)});
    if (removed) return *removed;
    ADD_FAILURE() << removed.error().one_line();
    return 0;
  }

  const gridctl::testing::TempDir directory_;
  const Paths paths_{directory_.path() / "state"};
};

using namespace std::chrono_literals;
using namespace store::testing;
using gridctl::testing::IsOk;
namespace fs = std::filesystem;

class Leftovers : public ::testing::Test {
 protected:
  // A file so old, to the millisecond, at `now`.
  os::Path put(const os::Path& path, Duration age) {
    fs::create_directories(path.parent_path());
    EXPECT_THAT(os::write_file_atomically(path, "x"), IsOk());
    touch(path, age);
    return path;
  }
  void touch(const os::Path& path, Duration age) const {
    const std::int64_t ns = now.ms * 1'000'000 - age.count();
    const timespec at{static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
    const timespec both[2] = {at, at};
    EXPECT_EQ(::utimensat(AT_FDCWD, path.c_str(), both, 0), 0);
  }
  Folder here;
  Paths paths{here / "state"};
  const WallTime now{1'790'000'000'000};
};

TEST_F(SweepLeftovers, RemovesOldSecretsOfJobsThatNeedNoneAnyMore) {
  {
    auto registry = registry::Registry::open(paths_.root);
    ASSERT_TRUE(registry);
    job::Spec spec;
    spec.name = "train";
    for (const char* id : {"runs", "ended"}) ASSERT_TRUE(registry->submit({id}, spec, {1}));
    ASSERT_TRUE(registry->apply({"ended"}, {{2}, job::CancelRequested{Duration{0}}}));
  }
  for (const char* id : {"runs", "ended", "never-recorded"}) write(paths_.secrets_of({id}) / "TOKEN");
  EXPECT_EQ(sweep(false), 0u);
  EXPECT_EQ(sweep(), 2u);
  EXPECT_TRUE(os::exists(paths_.secrets_of({"runs"}) / "TOKEN"));
  EXPECT_FALSE(os::exists(paths_.secrets_of({"ended"})));
  EXPECT_FALSE(os::exists(paths_.secrets_of({"never-recorded"})));
}

TEST_F(SweepLeftovers, RemovesLogsOfJobsThatWereForgotten) {
  {
    auto registry = registry::Registry::open(paths_.root);
    ASSERT_TRUE(registry);
    job::Spec spec;
    spec.name = "train";
    ASSERT_TRUE(registry->submit({"known"}, spec, {1}));
  }
  for (const char* id : {"known", "forgotten"}) write(paths_.log_of({id}, {1}));
  write(paths_.bag_of({"forgotten"}) / "journal");
  EXPECT_EQ(sweep(false), 0u);
  EXPECT_EQ(sweep(), 2u);
  EXPECT_TRUE(os::exists(paths_.log_of({"known"}, {1})));
  EXPECT_FALSE(os::exists(paths_.logs_of({"forgotten"})));
}

TEST_F(SweepLeftovers, RemovesOldFilesThatNeverGotTheirName) {
  const os::Path left[] = {paths_.root / ".known_hosts.tmp-ab34567890", paths_.chunk_store() / ".format.tmp-ab34567890",
                           paths_.logs_of({"job"}) / ".attempt-1.log.seen.tmp-ab34567890"};
  for (const os::Path& path : left) write(path);
  write(paths_.known_hosts());
  write(paths_.root / "mine.tmp-1");
  EXPECT_EQ(sweep(false), 0u);
  EXPECT_EQ(sweep(), 3u);
  for (const os::Path& path : left) EXPECT_FALSE(os::exists(path));
  EXPECT_TRUE(os::exists(paths_.known_hosts()));
  EXPECT_TRUE(os::exists(paths_.root / "mine.tmp-1"));
}

TEST_F(SweepLeftovers, DoesNothingWhereThereIsNothing) {
  ASSERT_TRUE(os::make_directories(paths_.root));
  EXPECT_EQ(sweep(), 0u);
}

TEST_F(Leftovers, AreTemporaryFilesOfADay) {
  const os::Path old = put(paths.root / ".a.tmp-ab34567890", 24h), young = put(paths.root / ".b.tmp-ab34567890", 24h - 1ms);
  const os::Path folder = paths.root / ".c.tmp-ab34567890";
  fs::create_directories(folder);
  touch(folder, 48h);
  const os::Path hidden = put(paths.root / ".profile", 48h);
  EXPECT_EQ(*sweep_leftovers(paths, now), 1u);
  EXPECT_FALSE(fs::exists(old));
  for (const os::Path& stays : {young, folder, hidden}) EXPECT_TRUE(fs::exists(stays)) << stays;
}

TEST_F(Leftovers, AreSecretsOfAnHourOfNobody) {
  for (const char* name : {"old", "young"}) put(paths.secrets_of({name}) / "TOKEN", 48h);
  touch(paths.secrets_of({"old"}), 1h);
  touch(paths.secrets_of({"young"}), 1h - 1ms);
  EXPECT_EQ(*sweep_leftovers(paths, now), 1u);
  EXPECT_FALSE(fs::exists(paths.secrets_of({"old"})));
  EXPECT_TRUE(fs::exists(paths.secrets_of({"young"})));
}

}  // namespace
}  // namespace gridctl::control::housekeeping_test
