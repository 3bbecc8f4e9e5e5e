// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/job_file.hpp"
#include "unit/config/job_context.hpp"

namespace gridctl::config::service_test {
namespace {
using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Result<ParsedJob> service_file(std::string_view service, std::string_view rest = "") {
  return parse_job_file("run: python server.py\n" + std::string(rest) + "\nservice: " + std::string(service) + "\n",
                        "job.yaml", ada_s_laptop({}));
}
std::string service_refusal(std::string_view service, std::string_view rest = "") {
  const auto job = service_file(service, rest);
  return job ? "accepted" : job.error().message;
}

TEST(ServiceFile, ReadsEveryKey) {
  const auto job = service_file(
      "{port: 8000, probe: {path: /health, initial_delay: 5m, every: 2s, timeout: 4s}, replicas: 3, retry_post: [/v1/, "
      "/generate], "
      "drain: 2m, affinity: none, gateway: here, auth: {keys: keys.txt}}",
      "ports: [9000]");
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(*job->spec.service,
            (job::Service{8000, "/health", 5min, 2s, 4s, 2min, {"/v1/", "/generate"}, "/home/ada/job/keys.txt"}));
  EXPECT_EQ(job->spec.twins, 3);
  EXPECT_EQ(job->spec.envs.at("GRIDCTL_FORWARD_PORTS"), "9000,8000");
  EXPECT_TRUE(job->spec.recovery.endless);
  EXPECT_EQ(job->spec.recovery.lost_after, 15s);
  EXPECT_EQ(job->spec.recovery.max_failures, job::k_service_failures);
  EXPECT_EQ(job->spec.checkpoint.interval, job::CheckpointPolicy::Interval::off);
  const auto again = job::parse_spec(job::to_json(job->spec));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(*again, job->spec);
}

TEST(ServiceFile, AProbeMayRunACommandAndRequestsMayStay) {
  for (const auto& [word, affinity] :
       {std::pair{"session", job::Affinity::session}, {"prefix", job::Affinity::prefix}, {"none", job::Affinity::none}}) {
    const auto job = service_file("{port: 8000, probe: {command: test -e ready, timeout: 5s}, affinity: " + std::string(word) + "}");
    ASSERT_TRUE(job) << job.error().message;
    EXPECT_EQ(job->spec.service->probe_command, "test -e ready");
    EXPECT_EQ(job->spec.service->path, "");
    EXPECT_EQ(job->spec.service->affinity, affinity);
    const auto again = job::parse_spec(job::to_json(job->spec));
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(*again, job->spec);
  }
}

TEST(ServiceFile, SkyServesWordsMeanTheSame) {
  const auto job = service_file(
      "{readiness_probe: {path: /v1/models, initial_delay_seconds: 1800, timeout_seconds: 15}, replica_policy: "
      "{min_replicas: 2, max_replicas: 2, "
      "target_qps_per_replica: 5}, load_balancing_policy: least_load}",
      "resources: {ports: 8080}\nrecovery: {lost_after: 40s, max_failures: 2}");
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(job->spec.service->port, 8080);
  EXPECT_EQ(job->spec.service->path, "/v1/models");
  EXPECT_EQ(job->spec.service->initial_delay, 30min);
  EXPECT_EQ(job->spec.service->timeout, 15s);
  EXPECT_EQ(job->spec.twins, 2);
  EXPECT_EQ(job->spec.recovery.lost_after, 40s);
  EXPECT_EQ(job->spec.recovery.max_failures, 2);
  const auto simple = service_file("{readiness_probe: /, replicas: 1, ports: 80}");
  ASSERT_TRUE(simple) << simple.error().message;
  EXPECT_EQ(simple->spec.service->path, "/");
  EXPECT_EQ(simple->spec.service->port, 80);
  EXPECT_EQ(simple->spec.twins, 1);
}

TEST(ServiceFile, ARangeOfReplicasFollowsTheRequestsUnderWay) {
  const auto job = service_file("{port: 1, replicas: 1..4, scale: {concurrency: 3, up_after: 5s, down_after: 1m}}");
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(job->spec.twins, 4);
  EXPECT_EQ(job->spec.service->replicas_min, 1);
  EXPECT_EQ(job->spec.service->scale_concurrency, 3);
  EXPECT_EQ(job->spec.service->up_after, 5s);
  EXPECT_EQ(job->spec.service->down_after, 1min);
  const auto sky = service_file("{port: 1, replica_policy: {min_replicas: 2, max_replicas: 5, downscale_delay_seconds: 30}}");
  ASSERT_TRUE(sky) << sky.error().message;
  EXPECT_EQ(sky->spec.twins, 5);
  EXPECT_EQ(sky->spec.service->replicas_min, 2);
  EXPECT_EQ(sky->spec.service->scale_concurrency, 8);
  EXPECT_EQ(sky->spec.service->down_after, 30s);
  const auto again = job::parse_spec(job::to_json(sky->spec));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(*again, sky->spec);
}

TEST(ServiceFile, TheNumberOfReplicasFollowsRequestsPerSecondInstead) {
  const auto job = service_file("{port: 1, replicas: 1..4, scale: {requests_per_second: 2.5}}");
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(job->spec.service->scale_rate, 2.5);
  EXPECT_EQ(job->spec.service->scale_concurrency, 0);
  const auto sky = service_file("{port: 1, replica_policy: {min_replicas: 1, max_replicas: 5, target_qps_per_replica: 7}}");
  ASSERT_TRUE(sky) << sky.error().message;
  EXPECT_EQ(sky->spec.service->scale_rate, 7);
  EXPECT_EQ(sky->spec.service->scale_concurrency, 0);
  const auto again = job::parse_spec(job::to_json(sky->spec));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(*again, sky->spec);
}

TEST(ServiceFile, AProbeMaySendHeadersAndData) {
  const auto job = service_file(
      "{port: 1, readiness_probe: {path: /v1/chat/completions, post_data: {model: m, messages: [{role: user, content: "
      "Hello}], max_tokens: 1, stream: false}, headers: {X-Key: \"it's 100%\"}}}");
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(job->spec.service->probe_body,
            R"({"model":"m","messages":[{"role":"user","content":"Hello"}],"max_tokens":1,"stream":false})");
  EXPECT_EQ(job->spec.service->probe_headers,
            (std::map<std::string, std::string>{{"Content-Type", "application/json"}, {"X-Key", "it's 100%"}}));
  const auto again = job::parse_spec(job::to_json(job->spec));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(*again, job->spec);
  const auto text = service_file("{port: 1, probe: {path: /p, post_data: hello, headers: {content-type: text/plain}}}");
  ASSERT_TRUE(text) << text.error().message;
  EXPECT_EQ(text->spec.service->probe_body, "hello");
  EXPECT_EQ(text->spec.service->probe_headers.size(), 1U);
  EXPECT_THAT(service_refusal("{port: 1, probe: {path: /, headers: [a]}}"), HasSubstr("'service.probe.headers'"));
  EXPECT_THAT(service_refusal("{port: 1, probe: {path: /, headers: {\"a b\": c}}}"), HasSubstr("names of headers"));
  EXPECT_THAT(service_refusal("{port: 1, probe: {path: /, headers: {A: \"b\\nc\"}}}"), HasSubstr("of one line"));
  EXPECT_THAT(service_refusal("{port: 1, probe: {path: /, post_data: \"a\\nb\"}}"), HasSubstr("of one line"));
  EXPECT_THAT(service_refusal("{port: 1, probe: {path: /, post_data: " + std::string(1100, 'x') + "}}"), HasSubstr("too long"));
}

TEST(ServiceFile, VariablesOfTheJobAreFilledIntoAProbe) {
  const auto job = service_file(
      "{port: 1, readiness_probe: {path: \"/v1/${MODEL}\", post_data: {model: $MODEL, n: 2}, headers: {X-Model: $MODEL}}}",
      "envs: {MODEL: 'a/\"b\"'}");
  ASSERT_FALSE(job) << "a path has no quotes";
  const auto good = service_file(
      "{port: 1, readiness_probe: {path: \"/v1/${VERSION}\", post_data: {model: $MODEL, n: 2}, headers: {X-Model: $OTHER}}}",
      "envs: {MODEL: 'a/\"b\"', VERSION: two}");
  ASSERT_TRUE(good) << good.error().message;
  EXPECT_EQ(good->spec.service->path, "/v1/two");
  EXPECT_EQ(good->spec.service->probe_body, R"({"model":"a/\"b\"","n":2})");
  EXPECT_EQ(good->spec.service->probe_headers.at("X-Model"), "$OTHER") << "it is no variable of the job";
}

TEST(ServiceFile, WhatIsNotBuiltIsNamedWithWhatToWriteInstead) {
  EXPECT_THAT(service_refusal("{port: 1, replicas: 4..2}"), HasSubstr("a range such as 1..4"));
  EXPECT_THAT(service_refusal("{port: 1, replicas: 0}"), HasSubstr("1 to 8"));
  EXPECT_THAT(service_refusal("{port: 1, replicas: 0..0}"), HasSubstr("0..4"));
  EXPECT_THAT(service_refusal("{port: 1, scale: {concurrency: 8}}"), HasSubstr("'service.scale': needs a range"));
  EXPECT_THAT(service_refusal("{port: 1, replicas: 1..2, scale: {requests_per_second: 8, concurrency: 2}}"),
              HasSubstr("follows only one of them"));
  EXPECT_THAT(service_refusal("{port: 1, affinity: sticky}"), HasSubstr("expected none, session or prefix"));
  EXPECT_THAT(service_refusal("{port: 1, gateway: ada}"), HasSubstr("write 'gateway: here'"));
  EXPECT_THAT(service_refusal("{port: 1, probe: {command: " + std::string(4097, 'x') + "}}"),
              HasSubstr("'service.probe.command': is longer than 4,096 bytes"));
  EXPECT_THAT(service_refusal("{probe: /}"), HasSubstr("'service.port': missing"));
  EXPECT_THAT(service_refusal("{port: 1, probe: health}"), HasSubstr("begins with '/'"));
  EXPECT_THAT(service_refusal("{port: 1, probe: \"/a b\"}"), HasSubstr("begins with '/'"));
  EXPECT_THAT(service_refusal("{port: 1, retry_post: [v1]}"), HasSubstr("path prefixes"));
  EXPECT_THAT(service_refusal("{port: 1, auth: {}}"), HasSubstr("'service.auth.keys': missing"));
  EXPECT_THAT(service_refusal("8000"), HasSubstr("a mapping such as {port: 8000"));
  EXPECT_THAT(service_refusal("{port: 1}", "num_nodes: 2"), HasSubstr("each replica of a service runs on one host"));
  EXPECT_THAT(service_refusal("{port: 1}", "tasks: 5"), HasSubstr("a service cannot have tasks"));
  EXPECT_THAT(service_refusal("{prot: 1}"), HasSubstr("did you mean 'port'"));
}

}  // namespace
}  // namespace gridctl::config::service_test
