// SPDX-License-Identifier: Apache-2.0
#include "agent/attempt_dir.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "support/disk_calls.hpp"
#include "support/results.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::agent::attempt_dir_fence_test {
namespace {

using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;

TEST(Fence, IsZeroForAJobThatWasNeverSeen) {
  const gridctl::testing::TempDir home;
  const auto job = JobDir::at(home.path(), {"c"}, {"j"});
  EXPECT_EQ(read_fence(*job)->value, 0u);
}

TEST(Fence, IsWhatWasWritten) {
  const gridctl::testing::TempDir home;
  const auto job = JobDir::at(home.path(), {"c"}, {"j"});
  const auto lock = job->lock();
  ASSERT_THAT(lock, IsOk());
  EXPECT_THAT(write_fence(*job, Epoch{5}), IsOk());
  EXPECT_EQ(read_fence(*job)->value, 5u);
}

TEST(Fence, IsOnTheDiskWhenItHasBeenPromised) {
  const gridctl::testing::TempDir home;
  const auto job = JobDir::at(home.path(), {"c"}, {"j"});
  const auto lock = job->lock();
  ASSERT_THAT(lock, IsOk());
  const testing::DiskRecord disk(home.path());
  EXPECT_THAT(write_fence(*job, Epoch{5}), IsOk());
  EXPECT_GT(disk.durable(job->path / "fence"), 0u) << disk.text();
}

TEST(Fence, IsAnErrorWhenItCannotBeRead) {
  const gridctl::testing::TempDir home;
  const auto job = JobDir::at(home.path(), {"c"}, {"j"});
  const auto lock = job->lock();
  std::ofstream(job->path / "fence") << "garbage";
  EXPECT_THAT(read_fence(*job), FailsWith(Code::io));
}

TEST(JobDir, TakesNoIdThatLeadsElsewhere) {
  for (const char* bad : {"", "..", "a/b", "A", "-x", "a b", "a.b"}) {
    EXPECT_THAT(JobDir::at("/home", {bad}, {"j"}), FailsWith(Code::refused)) << bad;
    EXPECT_THAT(JobDir::at("/home", {"c"}, {bad}), FailsWith(Code::refused)) << bad;
  }
}

}  // namespace
}  // namespace gridctl::agent::attempt_dir_fence_test
