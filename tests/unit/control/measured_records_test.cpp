// SPDX-License-Identifier: Apache-2.0
// What was measured, as it is kept, shown and used: reports of benchmarks, links, landmarks.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "control/measure/bench.hpp"
#include "control/measure/measuring_budget.hpp"
#include "control/measure/network_record.hpp"
#include "hand_clock.hpp"
#include "sched/link_schedule.hpp"
#include "support/results.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::control::measured_records_test {
namespace {

using namespace std::chrono_literals;
using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;
using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using enum sched::VerdictKind;

constexpr WallTime k_now{1'795'000'000'000};
WallTime later(Duration by) { return {k_now.ms + by / 1ms}; }

GpuBench gpu(const std::string& uuid, sched::VerdictKind kind, const std::string& text = "", const std::string& cause = "") {
  GpuBench bench;
  bench.gpu.uuid = uuid;
  bench.gpu.name = "NVIDIA H100 80GB HBM3";
  bench.gpu.model = "H100";
  bench.verdict.kind = kind;
  bench.verdict.cause = cause;
  if (!text.empty()) bench.verdict.findings = {{kind, "driver", text}};
  return bench;
}

TEST(BenchSummary, TellsTheGravestVerdictAndItsReason) {
  BenchReport report;
  EXPECT_EQ(report.summary(), "no GPU");
  EXPECT_EQ(report.verdict(), ok);
  report.gpus = {gpu("a", ok, "fine")};
  EXPECT_EQ(report.summary(), "ok, H100");
  EXPECT_EQ(report.mismatch(), "");
  report.gpus.push_back(gpu("b", degraded, "slow", "power cap"));
  EXPECT_EQ(report.summary(), "degraded: power cap, H100 (2 devices)");
  EXPECT_EQ(report.verdict(), degraded);
  EXPECT_EQ(report.mismatch(), "") << "a slow one may be used";
  report.gpus[0] = gpu("a", mismatch, "another device");
  report.gpus[0].gpu.model.clear();
  EXPECT_EQ(report.summary(), "mismatch: another device, NVIDIA H100 80GB HBM3 (2 devices)");
  EXPECT_EQ(report.mismatch(), "NVIDIA H100 80GB HBM3: another device");
  report.gpus = {gpu("a", suspect)};
  EXPECT_EQ(report.summary(), "suspect, H100");
}

TEST(BenchJson, ReturnsWhatItWasGiven) {
  BenchReport report;
  report.at = k_now;
  report.quick = true;
  report.round_trip_ms = 2.5;
  report.host = {{"cpu_gflops", 9}};
  report.problems = {"cuda: none"};
  report.gpus = {gpu("a", degraded, "slow", "cap")};
  GpuBench& one = report.gpus[0];
  one.backend = "cuda";
  one.gpu.memory_bytes = 80;
  one.figures = {{"fp32_tflops", 60}};
  one.trends["fp32_tflops"] = {{59, 60}, 60};
  one.verdict.notes = {"a note"};
  one.transcripts = {{"gemm", k_now, 3, 4, {{"groups", 2}}, "ab", {1}, {7}, 1.5, 1.25, "right"}};
  const auto back = parse_bench_report(to_json(report));
  ASSERT_THAT(back, IsOk());
  EXPECT_EQ(to_json(*back), to_json(report));
  EXPECT_EQ(back->at, k_now);
  EXPECT_TRUE(back->quick);
  EXPECT_EQ(back->gpus[0].verdict, one.verdict);
  EXPECT_EQ(back->gpus[0].trends, one.trends);
  EXPECT_EQ(back->gpus[0].transcripts[0].words, one.transcripts[0].words);
  EXPECT_EQ(back->gpus[0].gpu.memory_bytes, 80u);
  EXPECT_THAT(parse_bench_report("no JSON"), FailsWith(Code::state_unreadable));
  one.transcripts.assign(1000, one.transcripts[0]);
  for (BenchTranscript& transcript : one.transcripts) transcript.outcome = std::string(1000, 'x');
  EXPECT_LT(to_json(report).size(), 900u * 1024) << "the registry takes no more";
  EXPECT_THAT(parse_bench_report(to_json(report))->gpus[0].transcripts, IsEmpty());
}

class Kept : public ::testing::Test {
 protected:
  Kept() {
    for (const char* name : {"ada", "bob"}) {
      registry::Provider provider;
      provider.name = {name};
      provider.address = std::string("me@") + name;
      EXPECT_THAT(registry.add_provider(provider), IsOk());
    }
  }
  std::size_t events(const std::string& name) { return registry.host_events({name}, 0)->size(); }

  gridctl::testing::TempDir dir;
  Paths paths{dir.path()};
  registry::Registry registry = *registry::Registry::open(dir.path());
  NetworkRecorder recorder{registry, paths};
};

TEST_F(Kept, ABenchmarkIsNewsOnlyWhenItSaysSomethingElse) {
  BenchReport report;
  report.at = k_now;
  report.gpus = {gpu("a", ok)};
  ASSERT_THAT(save_bench_report(registry, {"ada"}, report, {}), IsOk());
  EXPECT_EQ(events("ada"), 1u);
  ASSERT_THAT(save_bench_report(registry, {"ada"}, report, report), IsOk());
  EXPECT_EQ(events("ada"), 1u);
  BenchReport bad = report;
  bad.gpus[0] = gpu("a", mismatch, "another device");
  ASSERT_THAT(save_bench_report(registry, {"ada"}, bad, report), IsOk());
  EXPECT_EQ(events("ada"), 2u);
  EXPECT_EQ(registry.host_events({"ada"}, 0)->back().text, bad.summary());
  EXPECT_EQ((*load_bench_report(registry, {"ada"}))->mismatch(), bad.mismatch());
  EXPECT_FALSE(load_bench_report(registry, {"bob"})->has_value());
  ASSERT_THAT(registry.save_host_report({{"bob"}, "bench", k_now, "no JSON"}), IsOk());
  EXPECT_FALSE(load_bench_report(registry, {"bob"})->has_value()) << "what cannot be read is none";
}

TEST_F(Kept, TheSchedulerHearsOfHostsThatAreNotWhatTheyAreDeclaredToBe) {
  BenchReport good, bad;
  good.gpus = {gpu("a", ok)};
  good.problems = {"the word \"mismatch\" in a text"};
  bad.gpus = {gpu("a", mismatch, "another device")};
  ASSERT_THAT(save_bench_report(registry, {"ada"}, bad, {}), IsOk());
  ASSERT_THAT(save_bench_report(registry, {"bob"}, good, {}), IsOk());
  std::vector<sched::HostFacts> hosts(2);
  hosts[0].name = {"bob"}, hosts[1].name = {"ada"};
  ASSERT_THAT(apply_bench(registry, hosts), IsOk());
  EXPECT_EQ(hosts[0].mismatch, "");
  EXPECT_EQ(hosts[1].mismatch, "H100: another device");
}

TEST_F(Kept, LandmarksAreReplacedByWhatAHostSaidLast) {
  const std::vector<LandmarkRow> asked{{{"fra", {50, 8}, "DE"}, "a:1"}, {{"syd", {-33, 151}, "AU"}, "b:1"}};
  ASSERT_THAT(recorder.landmarks({"ada"}, asked, {{{9ms, ""}, {{}, "refused"}}}, k_now), IsOk());
  NetworkReport report = network_picture(registry, paths)->reports.at("ada");
  EXPECT_EQ(report.landmarks_at, k_now);
  EXPECT_EQ(report.landmarks.at("fra").rtt, Duration{9ms});
  EXPECT_EQ(report.landmarks.at("syd").problem, "refused");
  EXPECT_EQ(report.landmarks.at("syd").at, k_now);
  ASSERT_THAT(recorder.landmarks({"ada"}, {asked[1]}, {{{300ms, ""}}}, later(1h)), IsOk());
  report = network_picture(registry, paths)->reports.at("ada");
  EXPECT_THAT(report.landmarks, SizeIs(1));
  EXPECT_EQ(report.landmarks.at("syd").rtt, Duration{300ms});
}

TEST_F(Kept, AFirstMeasurementFromHereIsARoundTripToo) {
  const registry::Provider ada = *registry.provider({"ada"});
  ASSERT_THAT(recorder.here(ada, {5ms, 1e8, 2e8, 0}, k_now), IsOk());
  NetworkReport report = network_picture(registry, paths)->reports.at("ada");
  EXPECT_EQ(report.rtt_min, Duration{5ms});
  EXPECT_EQ(report.rtt_samples, 1u);
  EXPECT_EQ(report.bytes_last, 1u) << "measured, if with nothing";
  EXPECT_EQ(report.here_at, k_now);
  ASSERT_THAT(recorder.here(ada, {3ms, 1e8, 2e8, 4000}, later(1h)), IsOk());
  report = network_picture(registry, paths)->reports.at("ada");
  EXPECT_EQ(report.rtt_samples, 1u) << "pings tell of round trips from now on";
  EXPECT_EQ(report.bytes_last, 4000u);
  EXPECT_EQ(report.spent_today(later(1h)), 4000u);
}

TEST_F(Kept, RoundTripsBeginAnewAfterAWeek) {
  const registry::Provider ada = *registry.provider({"ada"});
  const auto ping = [&](Duration rtt, WallTime now) {
    probe::RttWindow window;
    window.add(rtt);
    EXPECT_THAT(recorder.pinged(ada, window, {}, now), IsOk());
    return network_picture(registry, paths)->reports.at("ada");
  };
  ping(5ms, k_now);
  EXPECT_EQ(ping(9ms, later(7 * 24h)).rtt_min, Duration{5ms});
  EXPECT_EQ(ping(9ms, later(14 * 24h + 1s)).rtt_min, Duration{9ms});
  EXPECT_EQ(ping(9ms, later(14 * 24h + 2s)).rtt_samples, 2u);
  ASSERT_THAT(recorder.pinged(ada, {}, {}, later(15 * 24h)), IsOk());
  EXPECT_EQ(network_picture(registry, paths)->reports.at("ada").rtt_at, later(14 * 24h + 2s)) << "nothing was heard";
}

TEST_F(Kept, ARoundTripMakesNoRateYounger) {
  const registry::Provider ada = *registry.provider({"ada"});
  const std::string here(registry::k_here);
  probe::RttWindow window;
  window.add(5ms);
  const auto ping = [&](WallTime now) {
    const std::vector<registry::HostLink> known = *registry.links();
    EXPECT_THAT(recorder.pinged(ada, window, index_links(known), now), IsOk());
    return registry.links()->at(0).at;
  };
  EXPECT_EQ(ping(k_now), k_now);
  EXPECT_EQ(ping(later(1h)), later(1h)) << "without a rate it is as old as the round trip";
  ASSERT_THAT(registry.save_link({here, "ada", later(2h), {}, 1e8}), IsOk());
  EXPECT_EQ(ping(later(3h)), later(2h)) << "the rate was measured then";
}

TEST_F(Kept, APairKeepsThatItWasOnceMeasuredInFull) {
  PairMeasured full;
  full.a_to_b = {true, "10.0.0.2", ""};
  full.b_to_a = {false, "", "refused"};
  full.rtt_a = 3ms;
  full.rate_ab = 5e8;
  full.bytes = 1000;
  ASSERT_THAT(recorder.pair({"ada"}, {"bob"}, full, k_now), IsOk());
  PairMeasured pings = full;
  pings.rate_ab.reset();
  pings.bytes = 0;
  ASSERT_THAT(recorder.pair({"ada"}, {"bob"}, pings, later(1h)), IsOk());
  const NetworkPicture seen = *network_picture(registry, paths);
  EXPECT_TRUE(seen.reports.at("bob").contacts.at("ada").full);
  EXPECT_EQ(seen.reports.at("bob").contacts.at("ada").address, "10.0.0.2");
  EXPECT_FALSE(seen.reports.at("ada").contacts.at("bob").full) << "it does not connect any more";
  EXPECT_EQ(seen.reports.at("ada").bytes_last, 1000u);
  EXPECT_THAT(seen.links, SizeIs(1)) << "bob measured nothing";
  EXPECT_EQ(seen.links[0].bits_per_second, 5e8) << "what was known stays";
}

TEST_F(Kept, OnlyATransferThatTellsSomethingCounts) {
  const auto rate = [&] { return networks_of(network_picture(registry, paths)->links)["ada"].down_bits_per_second; };
  ASSERT_THAT(recorder.transferred({{"ada"}, true, k_telling_bytes - 1, 1s}, k_now), IsOk());
  ASSERT_THAT(recorder.transferred({{"ada"}, true, 1 << 30, 0s}, k_now), IsOk());
  EXPECT_FALSE(rate());
  ASSERT_THAT(recorder.transferred({{"ada"}, true, k_telling_bytes, 1s}, k_now), IsOk());
  EXPECT_EQ(rate(), k_telling_bytes * 8.0);
  ASSERT_THAT(recorder.transferred({{"ada"}, true, k_telling_bytes * 10, 1s}, k_now), IsOk());
  EXPECT_EQ(rate(), k_telling_bytes * 80.0);
  ASSERT_THAT(recorder.transferred({{"ada"}, true, k_telling_bytes * 8, 1s}, later(1h)), IsOk());
  EXPECT_EQ(rate(), k_telling_bytes * 80.0) << "four fifths confirm it";
  EXPECT_EQ(network_picture(registry, paths)->links[0].at, later(1h));
  ASSERT_THAT(recorder.transferred({{"ada"}, true, k_telling_bytes * 7, 1s}, later(2h)), IsOk());
  EXPECT_EQ(network_picture(registry, paths)->links[0].at, later(1h)) << "less may have been held up";
}

TEST_F(Kept, TheLineForPeopleNamesWhatIsKnown) {
  EXPECT_EQ(*network_line(registry, paths, {"ada"}), "");
  EXPECT_FALSE(network_line(registry, paths, {"eve"}));
  ASSERT_THAT(recorder.here(*registry.provider({"ada"}), {5ms, 91.4e6, 9.4e9, 4000}, k_now), IsOk());
  EXPECT_EQ(*network_line(registry, paths, {"ada"}), "round trip 5 ms, 91.4 Mbit/s down, 9.4 Gbit/s up");
  EXPECT_EQ(rate_text(1e9), "1 Gbit/s");
  EXPECT_EQ(rate_text(999e6), "999 Mbit/s");
  EXPECT_EQ(rtt_text(310us), "0.31 ms");
  EXPECT_EQ(rtt_text(100ms), "100 ms");
  EXPECT_EQ(rtt_text(1234567us), "1235 ms");
}

TEST_F(Kept, WhatMayStillBeMovedTodayIsWhatWasNotSpent) {
  const registry::Provider ada = *registry.provider({"ada"});
  const auto left = [&](WallTime now, bool asked) { return *measuring_bytes_left(registry, ada, now, asked); };
  EXPECT_EQ(left(k_now, false), sched::k_link_day_bytes);
  ASSERT_THAT(recorder.here(ada, {5ms, 1e8, 2e8, 4000}, k_now), IsOk());
  EXPECT_EQ(left(k_now, false), sched::k_link_day_bytes - 4000);
  EXPECT_EQ(left(later(25h), false), sched::k_link_day_bytes);
  ASSERT_THAT(recorder.here(ada, {5ms, 1e8, 2e8, 1ull << 40}, k_now), IsOk());
  EXPECT_EQ(left(k_now, true), 0u) << "and never less";
  ASSERT_THAT(recorder.here(ada, {5ms, 9e6, 2e8, 0}, later(48h)), IsOk());
  EXPECT_EQ(left(later(48h), false), 0u) << "the slowest of its links decides";
}

TEST_F(Kept, TheJsonTellsOfEachHostAndLink) {
  ASSERT_THAT(write_landmarks(paths, {{{"fra", {50.1, 8.7}, "DE"}, "x.example:443"}, {{"home", {52, 13}, ""}, "@here"}}), IsOk());
  for (const char* name : {"ada", "bob"}) {
    registry::Provider one = *registry.provider({name});
    one.site = "lab";
    one.region = name == std::string("ada") ? "DE" : "";
    ASSERT_THAT(registry.update_provider(one), IsOk());
  }
  ASSERT_THAT(recorder.here(*registry.provider({"ada"}), {5ms, 1e8, 2e8, 4000}, k_now), IsOk());
  PairMeasured pair;
  pair.a_to_b = {true, "10.0.0.2", ""};
  pair.b_to_a = {false, "", "refused"};
  pair.rtt_a = 3ms, pair.rtt_b = 4ms;
  ASSERT_THAT(recorder.pair({"ada"}, {"bob"}, pair, k_now), IsOk());
  ASSERT_THAT(recorder.landmarks({"ada"}, {{{"fra", {}, ""}, ""}, {{"gone", {}, ""}, ""}}, {{{9ms, ""}, {{}, "timed out"}}}, k_now), IsOk());
  const NetworkPicture seen = *network_picture(registry, paths);
  const json all = json::parse(to_json(seen, "", k_now));
  ASSERT_EQ(all["hosts"].size(), 2u);
  const json& ada = all["hosts"][0];
  EXPECT_EQ(ada["name"], "ada");
  EXPECT_EQ(ada["rtt_ms"], 5.0);
  EXPECT_EQ(ada["rtt_samples"], 1);
  EXPECT_EQ(ada["rtt_measured_at"], format_rfc3339(k_now));
  EXPECT_EQ(ada["down_bits_per_second"], 1e8);
  EXPECT_EQ(ada["up_bits_per_second"], 2e8);
  EXPECT_EQ(ada["declared_site"], "lab");
  EXPECT_EQ(ada["site"], "lab");
  EXPECT_EQ(ada["region"], "DE");
  EXPECT_EQ(ada["measuring_bytes_today"], 4000);
  EXPECT_EQ(ada["landmarks"].size(), 2u);
  EXPECT_EQ(ada["landmarks"][0]["rtt_ms"], 9.0);
  EXPECT_TRUE(ada["landmarks"][0]["problem"].is_null());
  EXPECT_EQ(ada["landmarks"][1]["problem"], "timed out");
  const json& bob = all["hosts"][1];
  EXPECT_TRUE(bob["rtt_ms"].is_null());
  EXPECT_TRUE(bob["region"].is_null());
  EXPECT_TRUE(bob["down_bits_per_second"].is_null());
  ASSERT_EQ(all["contacts"].size(), 2u);
  EXPECT_EQ(all["contacts"][0]["from"], "bob");
  EXPECT_EQ(all["contacts"][0]["connects"], false);
  EXPECT_EQ(all["contacts"][0]["reason"], "refused");
  EXPECT_TRUE(all["contacts"][0]["address"].is_null());
  EXPECT_EQ(all["contacts"][1]["connects"], true);
  EXPECT_EQ(all["contacts"][1]["address"], "10.0.0.2");
  EXPECT_EQ(all["links"].size(), 4u);
  EXPECT_EQ(all["landmarks"].size(), 2u);
  EXPECT_EQ(all["landmarks"][0]["country"], "DE");
  EXPECT_TRUE(all["landmarks"][1]["country"].is_null());
  EXPECT_EQ(all["sites"][0]["hosts"].size(), 2u);
  const json one = json::parse(to_json(seen, "bob", k_now));
  EXPECT_EQ(one["hosts"].size(), 1u);
  EXPECT_EQ(one["links"].size(), 2u) << "those of ada and here are not bob's";
  EXPECT_EQ(one["contacts"].size(), 2u);
}

TEST(ReachTargets, KeepTheirPlaceAlsoWhenTheyCannotBeLookedUp) {
  const auto targets = reach_targets({{{"a", {}, ""}, "127.0.0.1:443"}, {{"b", {}, ""}, "no name at all:80"}}, os::system_clock());
  ASSERT_THAT(targets, SizeIs(2));
  EXPECT_EQ(targets[0].address, "127.0.0.1");
  EXPECT_EQ(targets[0].port, 443);
  EXPECT_EQ(targets[1].address, "unknown");
  EXPECT_EQ(targets[1].port, 1);
}

TEST(LandmarkFile, IsReadLineByLine) {
  const gridctl::testing::TempDir dir;
  const Paths paths{dir.path()};
  const auto with = [&](const std::string& text) {
    EXPECT_THAT(os::write_file_atomically(dir / "landmarks", text), IsOk());
    return read_landmarks(paths);
  };
  EXPECT_THAT(*with("# a comment\n\n  \nsyd 33.87S 151.21E a.example:443 AU # there\n"), SizeIs(1));
  const auto wrong = with("# a comment\nsyd 33.87S\n");
  ASSERT_THAT(wrong, FailsWith(Code::state_unreadable));
  EXPECT_THAT(wrong.error().message, HasSubstr("landmarks:2: "));
  std::string many;
  for (std::size_t i = 0; i < k_landmarks_max; ++i) many += "m" + std::to_string(i) + " 1 1 @here\n";
  EXPECT_THAT(*with(many), SizeIs(k_landmarks_max));
  EXPECT_THAT(with(many + "more 1 1 @here\n"), FailsWith(Code::state_unreadable));
  EXPECT_THAT(write_landmarks(paths, std::vector<LandmarkRow>(k_landmarks_max + 1)), FailsWith(Code::usage));
}

TEST(Degrees, AreReadToTheirLimits) {
  EXPECT_EQ(*parse_degrees("90", 'N', 'S', 90), 90);
  EXPECT_EQ(*parse_degrees("90S", 'N', 'S', 90), -90);
  EXPECT_EQ(*parse_degrees("-12.5", 'N', 'S', 90), -12.5);
  for (const char* wrong : {"", "N", "90.1", "12X", "nan", "inf", "1 2", "12NS"}) EXPECT_FALSE(parse_degrees(wrong, 'N', 'S', 90)) << wrong;
}

}  // namespace
}  // namespace gridctl::control::measured_records_test
