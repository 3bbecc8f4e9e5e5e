// SPDX-License-Identifier: Apache-2.0
#include "wire/health.hpp"

#include <nlohmann/json.hpp>
#include <random>

#include "support/results.hpp"

namespace gridctl::wire::health_test {
namespace {

using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;
using nlohmann::json;

HealthReport sample() {
  HealthReport report;
  report.boot_id = "a7d1";
  report.taken_at = {123'000'000'000};
  report.wall_ms = 1'795'000'000'000;
  report.gpus_at = report.taken_at;
  GpuHealth gpu;
  gpu.uuid = "GPU-11111111-2222-3333-4444-555555555555";
  gpu.pci = "0000:01:00.0";
  gpu.memory_total = 80ull << 30;
  gpu.memory_used = 3ull << 30;
  gpu.processes = std::vector{GpuProcess{4711, "python3", 2ull << 30, false, ProcessOwner::leftover}};
  gpu.throttle = {"hw_slowdown"};
  gpu.temperature_c = -5;
  gpu.ecc_uncorrected = 1;
  gpu.remap_pending = true;
  gpu.recovery = "reset";
  report.gpus = {gpu, GpuHealth{}};
  report.hung = {{"nvidia-smi", true}};
  report.events = {{"xid", 79, "0000:01:00.0", "NVRM: Xid (PCI:0000:01:00): 79", 5'000'000, 1000, 2}};
  report.disk = {1, 2, true, "no space", 7, 3, "sda is offline"};
  report.engines = {{EngineKind::podman, "podman: no answer within 10s"}};
  report.memory_bytes = 8, report.memory_available = 4;
  report.memory_pressure = 12.5;
  report.load1 = 0.5, report.cpus = 8, report.leased_cpus = 2;
  report.busy_cpus = 3.25;
  report.packages = {{"openssh", "1:9.2p1-2+deb12u7", true}};
  return report;
}

TEST(Health, AReportSurvivesTheWire) {
  const auto again = parse_health_report(encode(sample()));
  ASSERT_THAT(again, IsOk());
  EXPECT_EQ(*again, sample());
  EXPECT_THAT(parse_health_report(encode(HealthReport{})), IsOk());
}

TEST(Health, RequestAndReplySurviveTheWire) {
  const HealthRequest request{std::chrono::seconds{45}, std::chrono::seconds{8}, true, true, {77}};
  const auto asked = parse_health_request(encode(request));
  ASSERT_THAT(asked, IsOk());
  EXPECT_EQ(asked->max_age, request.max_age);
  EXPECT_EQ(asked->wait, request.wait);
  EXPECT_TRUE(asked->gpus && asked->packages);
  EXPECT_EQ(asked->known.ns, 77);
  const auto reply = parse_health_reply(encode(HealthReply{{5}, 9, true, sample()}));
  ASSERT_THAT(reply, IsOk());
  EXPECT_TRUE(reply->under_way);
  EXPECT_EQ(*reply->report, sample());
  const auto empty = parse_health_reply(encode(HealthReply{{5}, 9, false, {}}));
  ASSERT_THAT(empty, IsOk());
  EXPECT_FALSE(empty->report);
}

TEST(Health, NobodyIsMadeToWaitLongerThanTheLimit) {
  HealthRequest request;
  request.wait = std::chrono::hours{1};
  EXPECT_EQ(parse_health_request(encode(request))->wait, k_health_wait_max);
}

TEST(Health, WhatBreaksALimitIsRefused) {
  const auto with = [](const auto& change) {
    json report = json::parse(encode(sample()));
    change(report);
    return parse_health_report(report.dump());
  };
  EXPECT_THAT(with([](json& r) { r["events"] = json(k_health_events_max + 1, r["events"][0]); }),
              FailsWith(Code::protocol_violation));
  EXPECT_THAT(with([](json& r) { r["gpus"] = json(k_health_gpus_max + 1, r["gpus"][0]); }),
              FailsWith(Code::protocol_violation));
  EXPECT_THAT(with([](json& r) { r["events"][0]["text"] = std::string(k_health_text_max + 1, 'x'); }),
              FailsWith(Code::protocol_violation));
  EXPECT_THAT(with([](json& r) { r["load1"] = -1; }), FailsWith(Code::protocol_violation));
  EXPECT_THAT(with([](json& r) { r["gpus"][0]["temperature_c"] = 100000; }), FailsWith(Code::protocol_violation));
  EXPECT_THAT(with([](json& r) { r.erase("disk"); }), FailsWith(Code::protocol_violation));
}

TEST(Health, AnOwnerOfANewerAgentIsAStranger) {
  json report = json::parse(encode(sample()));
  report["gpus"][0]["processes"][0]["owner"] = "borrowed";
  const auto read = parse_health_report(report.dump());
  ASSERT_THAT(read, IsOk());
  EXPECT_EQ(read->gpus[0].processes->front().owner, ProcessOwner::foreign);
}

TEST(Health, DamagedBytesAreRefusedOrReadNeverWorse) {
  const std::string whole = encode(HealthReply{{5}, 9, true, sample()});
  std::mt19937 random(7);
  for (int turn = 0; turn < 2000; ++turn) {
    std::string damaged = whole;
    for (int bytes = 0; bytes < 3; ++bytes) damaged[random() % damaged.size()] = static_cast<char>(random() % 256);
    if (turn % 3 == 0) damaged.resize(random() % damaged.size());
    const auto read = parse_health_reply(damaged);
    if (!read || !read->report) continue;
    EXPECT_LE(read->report->events.size(), k_health_events_max);
  }
}

}  // namespace
}  // namespace gridctl::wire::health_test
