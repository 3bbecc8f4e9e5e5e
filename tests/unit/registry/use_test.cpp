// SPDX-License-Identifier: Apache-2.0
#include "registry/use.hpp"

#include <gmock/gmock.h>

#include "support/results.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::registry::use_test {
namespace {

using gridctl::testing::IsOk;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const WallTime k_written{1'800'000'000'000};

UseNow a_use() {
  UseNow use;
  use.at = k_written;
  MemberUse member;
  member.rank = 1;
  member.host = {"ada"};
  member.at = k_written;
  member.cpus_given = 4;
  member.use = Use{0, 1.5, 1ull << 30, {{50, 1ull << 30, 2ull << 30, 60}, {}}};
  member.history = {10, 50};
  use.jobs = {{{"job"}, {3}, {member}}};
  use.hosts = {{{"ada"}, k_written, 0.5, 1ull << 40, 2}};
  return use;
}

TEST(UseFile, IsReadAsItWasWritten) {
  const gridctl::testing::TempDir dir;
  ASSERT_THAT(write_use(dir.path(), a_use()), IsOk());
  const UseNow read = read_use(dir.path(), k_written);
  ASSERT_NE(read.of(JobId{"job"}), nullptr);
  EXPECT_EQ(read.of(JobId{"other"}), nullptr);
  const MemberUse& member = read.of(JobId{"job"})->members.at(0);
  EXPECT_EQ(member.rank, 1);
  EXPECT_EQ(member.use, a_use().jobs[0].members[0].use);
  EXPECT_EQ(member.history, (std::vector{10, 50}));
  ASSERT_NE(read.of(HostName{"ada"}), nullptr);
  EXPECT_EQ(read.of(HostName{"ada"})->gpus_held, 2);
}

TEST(UseFile, ShowsNothingThatIsOldOrBroken) {
  const gridctl::testing::TempDir dir;
  EXPECT_THAT(read_use(dir.path(), k_written).jobs, IsEmpty());
  ASSERT_THAT(write_use(dir.path(), a_use()), IsOk());
  EXPECT_THAT(read_use(dir.path(), WallTime{k_written.ms + 60'000}).jobs, SizeIs(1));
  for (const std::int64_t ms : {60'001, -60'001}) {
    EXPECT_THAT(read_use(dir.path(), WallTime{k_written.ms + ms}).jobs, IsEmpty());
    EXPECT_THAT(read_use(dir.path(), WallTime{k_written.ms + ms}).hosts, IsEmpty());
  }
  ASSERT_THAT(os::write_file_atomically(dir.path() / "use.json", "{\"jobs\": 3"), IsOk());
  EXPECT_THAT(read_use(dir.path(), k_written).jobs, IsEmpty());
}

TEST(BusyPercent, IsOfGpusElseOfTheProcessorsThatWereGiven) {
  MemberUse member = a_use().jobs[0].members[0];
  EXPECT_EQ(busy_percent(member), 50) << "the GPU that tells nothing does not count";
  member.use.gpus.clear();
  EXPECT_EQ(busy_percent(member), 38);
  member.use.cpus = 9;
  EXPECT_EQ(busy_percent(member), 100);
  member.use.cpus.reset();
  EXPECT_EQ(busy_percent(member), std::nullopt);
}

}  // namespace
}  // namespace gridctl::registry::use_test
