// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "registry/registry.hpp"
#include "support/results.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::registry::remotes_test {
namespace {
using ::gridctl::testing::FailsWith;
using ::gridctl::testing::IsOk;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class Remotes : public ::testing::Test {
 protected:
  Remote a_remote(const std::string& name) {
    return {name, "s3://ckpt/" + name, "https://s3.lab", "eu", "work", {123}, {}, {}, "", "", "DE", name == "zoe"};
  }
  CheckpointSeq commit(const JobId& job, bool stray = false) {
    Checkpoint checkpoint;
    checkpoint.job = job;
    checkpoint.epoch = {stray ? 99u : 0u};
    checkpoint.created_at = {++time};
    checkpoint.how = "push";
    return registry.commit_checkpoint(checkpoint)->checkpoint.seq;
  }
  JobId submit(const std::string& id, int copies) {
    job::Spec spec;
    spec.name = id;
    spec.run = "true";
    spec.checkpoint.copies = copies;
    EXPECT_THAT(registry.submit({id}, spec, {1}), IsOk());
    return {id};
  }
  gridctl::testing::TempDir dir;
  Registry registry = *Registry::open(dir.path());
  std::int64_t time = 1000;
};

TEST_F(Remotes, AreKeptInTheOrderTheyWereAdded) {
  ASSERT_THAT(registry.add_remote(a_remote("zoe")), IsOk());
  ASSERT_THAT(registry.add_remote(a_remote("ada")), IsOk());
  EXPECT_THAT(registry.add_remote(a_remote("zoe")), FailsWith(Code::exists));
  EXPECT_THAT(*registry.remotes(), ElementsAre(a_remote("zoe"), a_remote("ada")));
  ASSERT_THAT(registry.remove_remote("zoe"), IsOk());
  EXPECT_THAT(registry.remove_remote("zoe"), FailsWith(Code::not_found));
  EXPECT_THAT(registry.remote("zoe"), FailsWith(Code::not_found));
}

TEST_F(Remotes, RememberTroubleUntilTheyAnswer) {
  ASSERT_THAT(registry.add_remote(a_remote("nas")), IsOk());
  const Error away = make_error(Code::host_unreachable, "no route");
  EXPECT_TRUE(*registry.note_trouble("nas", {10}, away));
  EXPECT_FALSE(*registry.note_trouble("nas", {20}, away));
  EXPECT_TRUE(*registry.note_trouble("nas", {30}, make_error(Code::auth_refused, "expired")));
  const Remote troubled = *registry.remote("nas");
  EXPECT_EQ(troubled.trouble_at, WallTime{10});
  EXPECT_EQ(troubled.trouble_code, "auth_refused");
  EXPECT_EQ(troubled.trouble, "expired");
  ASSERT_THAT(registry.note_answer("nas", {40}), IsOk());
  Remote sound = a_remote("nas");
  sound.answered_at = WallTime{40};
  EXPECT_EQ(*registry.remote("nas"), sound);
  EXPECT_TRUE(*registry.note_trouble("nas", {50}, away));
}

TEST_F(Remotes, CopiesOutliveTheirCheckpointsAndEndWithTheirPlace) {
  ASSERT_THAT(registry.add_remote(a_remote("nas")), IsOk());
  const JobId job = submit("jobone", 2);
  const CheckpointSeq first = commit(job), second = commit(job);
  ASSERT_THAT(registry.add_copy({"nas", job, first, {5}}), IsOk());
  ASSERT_THAT(registry.add_copy({"nas", job, second, {6}}), IsOk());
  EXPECT_THAT(registry.checkpoint(job, first)->copies, ElementsAre("nas"));
  ASSERT_THAT(registry.remove_checkpoint(job, first), IsOk());
  EXPECT_THAT(*registry.kept_checkpoints(), ElementsAre(CheckpointRef{job, second}));
  EXPECT_THAT(*registry.copies(), SizeIs(2));  // it is still to be removed there
  ASSERT_THAT(registry.remove_copy({"nas", job, first, {}}), IsOk());
  EXPECT_THAT(*registry.copies_of(job), ElementsAre(Copy{"nas", job, second, {6}}));
  ASSERT_THAT(registry.remove_remote("nas"), IsOk());
  EXPECT_THAT(*registry.copies(), IsEmpty());
}

TEST_F(Remotes, GetStraysOnlyWhenPinned) {
  const JobId job = submit("jobone", 3), other = submit("jobtwo", 1);
  const CheckpointSeq first = commit(job), stray = commit(job, true), last = commit(other);
  const auto numbers = [&] {
    std::vector<std::pair<std::uint64_t, int>> out;
    for (const auto all = *registry.copyable(); const CopyWanted& one : all)
      out.emplace_back(one.checkpoint.seq.value, one.copies);
    return out;
  };
  EXPECT_THAT(numbers(), ElementsAre(std::pair{last.value, 1}, std::pair{first.value, 3}));
  ASSERT_THAT(registry.set_pinned(job, stray, true), IsOk());
  EXPECT_THAT(numbers(), SizeIs(3));
}

}  // namespace
}  // namespace gridctl::registry::remotes_test
