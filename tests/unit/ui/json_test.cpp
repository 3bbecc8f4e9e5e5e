// SPDX-License-Identifier: Apache-2.0
#include "ui/json.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace gridctl::ui::json_test {
namespace {

using Json = nlohmann::ordered_json;

std::vector<std::string> keys(const Json& value) {
  std::vector<std::string> names;
  for (const auto& [key, part] : value.items()) names.push_back(key);
  return names;
}
std::vector<std::string> first_keys(const Json& value, std::size_t count) {
  std::vector<std::string> names = keys(value);
  names.resize(std::min(count, names.size()));
  return names;
}
using Keys = std::vector<std::string>;

registry::Job a_job() {
  registry::Job job;
  job.id = JobId{"abcdefghijkmn"};
  job.name = "train";
  job.state = job::JobState::running;
  job.submitted_at = WallTime{1'800'000'000'123};
  return job;
}

TEST(Json, SubmitHasExactlyThePromisedKeys) {
  EXPECT_EQ(submitted_json(JobId{"abc"}, "train", job::JobState::pending),
            R"({"job_id":"abc","name":"train","state":"PENDING"})");
}

TEST(Json, JobShowBeginsWithThePromisedKeysInTheirOrder) {
  registry::AttemptRecord attempt;
  attempt.number = AttemptNumber{1};
  attempt.resumed_from = CheckpointSeq{3};
  const std::vector<registry::AttemptRecord> attempts{attempt};
  const Json value = Json::parse(job_json(a_job(), attempts));
  EXPECT_EQ(first_keys(value, 11), (Keys{"job_id", "name", "state", "reason", "exit_code", "submitted_at", "ended_at",
                                         "attempts", "recoveries", "lost_seconds", "cost"}));
  EXPECT_EQ(first_keys(value["attempts"][0], 9), (Keys{"number", "epoch", "provider", "state", "reason", "started_at",
                                                       "ended_at", "resumed_from", "exit_code"}));
  EXPECT_EQ(value["attempts"][0]["resumed_from"], "abcdefghijkmn@3");
  EXPECT_EQ(value["submitted_at"], "2027-01-15T08:00:00.123Z");
  EXPECT_TRUE(value["ended_at"].is_null());
  EXPECT_TRUE(value["exit_code"].is_null());
}

TEST(Json, CheckpointAndProviderHaveThePromisedKeys) {
  registry::Checkpoint checkpoint;
  checkpoint.job = JobId{"abc"};
  checkpoint.seq = CheckpointSeq{2};
  EXPECT_EQ(first_keys(Json::parse(checkpoint_json(checkpoint)), 10),
            (Keys{"checkpoint_id", "job_id", "attempt", "epoch", "created_at", "bytes", "stored_bytes", "files",
                  "verified", "pinned"}));
  registry::Provider provider;
  provider.name = HostName{"ada"};
  provider.inventory.edit().gpus.push_back({});
  const Json value = Json::parse(provider_json(provider));
  EXPECT_EQ(first_keys(value, 11), (Keys{"name", "address", "state", "engine", "gpus", "cpus", "memory_bytes", "price",
                                         "region", "reliability", "last_seen"}));
  EXPECT_EQ(keys(value["gpus"][0]), (Keys{"vendor", "name", "memory_bytes", "uuid"}));
}

TEST(Json, ADrainedProviderSaysSo) {
  registry::Provider provider;
  provider.liveness = "answering";
  EXPECT_EQ(Json::parse(provider_json(provider))["state"], "answering");
  provider.drained = true;
  EXPECT_EQ(Json::parse(provider_json(provider))["state"], "drained");
}

TEST(Json, AnErrorIsOneObjectWithAllItsKeys) {
  Error error = make_error(Code::not_found, "no job 'x'", "gridctl job ls");
  error.context = {"while looking"};
  EXPECT_EQ(error_json(error, 3),
            R"({"type":"error","code":"not_found","exit_code":3,"message":"no job 'x'","context":["while looking"],)"
            R"("hint":"gridctl job ls","retry":"needs_user"})");
}

TEST(Json, SurvivesForeignBytes) {
  registry::Job job = a_job();
  job.name = "x\xff\x1b[31m";
  EXPECT_TRUE(Json::accept(job_json(job, {})));
  EXPECT_EQ(quoted("a\"\xff"), "\"a\\\"\xef\xbf\xbd\"");
}

TEST(Json, EmptyListsAreEmptyArrays) {
  EXPECT_EQ(jobs_json({}), "[]");
  EXPECT_EQ(providers_json({}), "[]");
  EXPECT_EQ(checkpoints_json({}), "[]");
}

}  // namespace
}  // namespace gridctl::ui::json_test
