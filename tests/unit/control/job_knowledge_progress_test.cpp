// SPDX-License-Identifier: Apache-2.0
#include "control/follow/job_knowledge.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gridctl::control::job_knowledge_progress_test {
namespace {
using namespace std::chrono_literals;

constexpr WallTime at(std::int64_t seconds) { return {1'000'000 + seconds * 1000}; }

// A job of 1000 s without GPUs.
struct Scene {
  registry::Job job;
  std::vector<registry::AttemptRecord> attempts;
  std::vector<registry::Checkpoint> checkpoints;

  Scene() { job.spec.workload.work = 1000s; }
  void happen(std::int64_t when, job::Event what) {
    job.machine = job::step(job.machine, {at(when), std::move(what)}).state;
  }
  void run(std::int64_t when) {
    happen(when, job::Placed{{job::Member{0, {"a"}, EngineKind::process, {}, 1, 0, 0}}, "x"});
    happen(when, job::PayloadStarted{job.machine.epoch});
    registry::AttemptRecord row;
    row.provider = {"a"};
    row.started_at = at(when);
    attempts.push_back(row);
  }
  void save(std::int64_t when, Metrics metrics = {}) {
    registry::Checkpoint saved;
    saved.seq = {job.machine.head.value + 1};
    saved.upload = 10s;
    saved.metrics = std::move(metrics);
    checkpoints.push_back(saved);
    happen(when, job::CheckpointCommitted{job.machine.epoch, saved.seq, "", saved.seq.value});
  }
  void lose(std::int64_t when) {
    happen(when, job::HostLost{job.machine.epoch, 60s});
    attempts.back().ended_at = at(when);
  }
  [[nodiscard]] Progress progress(std::int64_t now) const {
    return progress_of(job, attempts, checkpoints, {}, at(now));
  }
};

TEST(Progress, IsTheTimeItHasComputedUntilItsNewestCheckpoint) {
  Scene scene;
  scene.run(0);
  EXPECT_DOUBLE_EQ(scene.progress(100).saved, 0);
  EXPECT_DOUBLE_EQ(scene.progress(100).unsaved, 100);
  scene.save(210);  // taken 10 s before it was here
  const Progress progress = scene.progress(300);
  EXPECT_DOUBLE_EQ(progress.saved, 200);
  EXPECT_DOUBLE_EQ(progress.unsaved, 100);
  EXPECT_DOUBLE_EQ(progress.total.value(), 1000);
}

TEST(Progress, LosesWhatAFailureThrowsAway) {
  Scene scene;
  scene.run(0);
  scene.save(200);
  scene.lose(360);  // 160 s lost
  EXPECT_NEAR(scene.progress(400).saved, 200, 1e-6);
  scene.run(400);
  EXPECT_NEAR(scene.progress(450).saved, 200, 1e-6);
  EXPECT_DOUBLE_EQ(scene.progress(450).unsaved, 50);
}

TEST(Progress, IsNothingWithoutACheckpoint) {
  Scene scene;
  scene.run(0);
  scene.lose(500);
  EXPECT_DOUBLE_EQ(scene.progress(600).saved, 0);
}

TEST(Progress, CorrectsWhatWasDeclaredByWhatWasMeasured) {
  Scene scene;
  scene.run(0);
  scene.save(200, {{"progress", 0.5}});
  EXPECT_DOUBLE_EQ(scene.progress(210).saved, 190);
  EXPECT_DOUBLE_EQ(scene.progress(210).total.value(), 380);
  scene.save(400, {{"progress", 7}});  // nonsense
  EXPECT_DOUBLE_EQ(scene.progress(400).saved, 390);
}

TEST(Progress, TellsTheWholeFromTheShareThatIsDone) {
  Scene scene;
  scene.job.spec.workload.work.reset();
  scene.run(0);
  scene.save(210);
  EXPECT_FALSE(scene.progress(210).total);
  scene.save(410, {{"progress", 0.25}});
  EXPECT_DOUBLE_EQ(scene.progress(410).total.value(), 1600);
  EXPECT_DOUBLE_EQ(scene.progress(410).saved, 400);
}

}  // namespace
}  // namespace gridctl::control::job_knowledge_progress_test
