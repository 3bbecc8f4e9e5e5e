// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "control/fleet/host_facts.hpp"
#include "control/follow/job_knowledge.hpp"
#include "control/measure/network_record.hpp"
#include "registry/registry.hpp"
#include "sched/query/query.hpp"
#include "support/results.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::control::network_test {
namespace {
using namespace std::chrono_literals;
using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;
using gridctl::testing::TempDir;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr WallTime k_now{1'795'000'000'000};
WallTime later(Duration by) { return {k_now.ms + std::chrono::duration_cast<std::chrono::milliseconds>(by).count()}; }

class Network : public ::testing::Test {
 protected:
  Network() {
    add("a", "hpc", "DE");
    add("b", "hpc", "AU");
  }
  void add(const char* name, const char* site, const char* region) {
    registry::Provider provider;
    provider.name = {name};
    provider.address = std::string("me@") + name;
    provider.site = site;
    provider.region = region;
    provider.registered_at = k_now;
    EXPECT_THAT(registry.add_provider(provider), IsOk());
  }
  registry::Provider provider(const char* name) { return *registry.provider({name}); }
  NetworkPicture picture() { return *network_picture(registry, paths); }
  std::vector<std::string> events(const char* name) {
    std::vector<std::string> kinds;
    const auto kept = registry.host_events({name}, 0);
    EXPECT_THAT(kept, IsOk());
    for (const registry::HostEvent& event : *kept) kinds.push_back(event.kind);
    return kinds;
  }
  std::vector<sched::LinkTask> due(WallTime now) {
    return due_measurements(picture(), now, [](const std::string&) { return true; });
  }
  static PairMeasured pair(Duration rtt, std::optional<double> rate) {
    PairMeasured measured;
    measured.a_to_b = {true, "10.0.0.2", ""};
    measured.b_to_a = {false, "", "10.0.0.1: connection refused"};
    measured.rtt_a = measured.rtt_b = rtt;
    measured.rate_ab = measured.rate_ba = rate;
    measured.bytes = rate ? 1000 : 0;
    return measured;
  }

  TempDir folder;
  Paths paths{folder.path()};
  registry::Registry registry = *registry::Registry::open(folder.path());
  NetworkRecorder recorder{registry, paths};
};

TEST_F(Network, KeepsBothDirectionsOfAPairAndTheReasonOfTheOneThatIsClosed) {
  ASSERT_THAT(recorder.pair({"a"}, {"b"}, pair(3ms, 5e8), k_now), IsOk());
  const NetworkPicture seen = picture();
  ASSERT_EQ(seen.links.size(), 2U);
  EXPECT_EQ(seen.links[0].rtt_us, 3000);
  EXPECT_EQ(seen.reports.at("b").contacts.at("a").reason, "");
  EXPECT_EQ(seen.reports.at("a").contacts.at("b").reason, "10.0.0.1: connection refused");
  EXPECT_EQ(seen.reports.at("a").spent_today(k_now), 1000U);
  EXPECT_EQ(seen.reports.at("a").spent_today(later(25h)), 0U);
}

TEST_F(Network, CallsAMeasuredLinkDueAgainWhenItIsStale) {
  ASSERT_THAT(recorder.here(provider("a"), {5ms, 1e8, 2e8, 4000}, k_now), IsOk());
  ASSERT_THAT(recorder.here(provider("b"), {5ms, 1e8, 2e8, 4000}, k_now), IsOk());
  using Kind = sched::LinkTask::Kind;
  EXPECT_THAT(due(k_now), ElementsAre(sched::LinkTask{Kind::pair, "a", "b"}));
  ASSERT_THAT(recorder.pair({"a"}, {"b"}, pair(3ms, 5e8), k_now), IsOk());
  EXPECT_EQ(due(later(61min)).size(), 1U) << "hosts this near may have been busy";
  ASSERT_THAT(recorder.pair({"a"}, {"b"}, pair(3ms, 2e10), k_now), IsOk());
  EXPECT_THAT(due(later(61min)), IsEmpty());
  EXPECT_EQ(due(later(25h)).size(), 2U);
  EXPECT_EQ(due(later(8 * 24h)).size(), 3U);
}

TEST_F(Network, TakesATransferForAMeasurementWhenItWasFast) {
  ASSERT_THAT(recorder.here(provider("a"), {5ms, 1e8, 2e8, 4000}, k_now), IsOk());
  const auto rate = [&] { return networks_of(picture().links)["a"]; };
  EXPECT_EQ(rate().down_bits_per_second, 1e8);
  EXPECT_EQ(rate().up_bits_per_second, 2e8);
  EXPECT_EQ(rate().latency, Duration{5ms});
  EXPECT_EQ(picture().reports.at("a").bytes_last, 4000U);
  // 10 MB in 10 s: held up by something else, no evidence
  ASSERT_THAT(recorder.transferred({{"a"}, true, 10'000'000, 10s}, later(2h)), IsOk());
  EXPECT_EQ(rate().down_bits_per_second, 1e8);
  // as fast as known: confirms; faster: corrects. Then nothing is due where a measurement would have been.
  ASSERT_THAT(recorder.transferred({{"a"}, true, 11'000'000, 1s}, later(20h)), IsOk());
  ASSERT_THAT(recorder.transferred({{"a"}, false, 50'000'000, 1s}, later(20h)), IsOk());
  EXPECT_EQ(rate().down_bits_per_second, 1e8);
  EXPECT_EQ(rate().up_bits_per_second, 4e8);
  for (const sched::LinkTask& task : due(later(30h)))
    EXPECT_FALSE(task.kind == sched::LinkTask::Kind::here && task.a == "a");
}

TEST_F(Network, GivesQueriesTheSameFiguresAsPeople) {
  const std::string here(registry::k_here);
  ASSERT_THAT(registry.save_link({here, "a", k_now, 12'500, 80e6}), IsOk());
  ASSERT_THAT(registry.save_link({"a", here, k_now, {}, 20e6}), IsOk());
  ASSERT_THAT(registry.save_link({"a", "b", k_now, 300, 9e9}), IsOk());
  const auto figures = *link_figures(registry);
  EXPECT_EQ(figures.at("a"), (sched::Figures{{"inet_down", 80}, {"inet_up", 9000}, {"rtt", 12.5}}));
  EXPECT_EQ(figures.at("b"), (sched::Figures{{"inet_down", 9000}}));
  EXPECT_FALSE(figures.contains(here));
  std::vector<sched::HostFacts> hosts{facts_of(provider("a"))};
  job::Spec spec;
  spec.constraints.query = "cpus>=1";
  ASSERT_THAT(apply_links(registry, spec, {}, hosts), IsOk());
  EXPECT_TRUE(hosts[0].figures.empty()) << "nobody asks";
  sched::JobKnowledge heavy;
  heavy.task.input_bytes = 1e9;  // it matters how fast they travel
  std::vector<sched::HostFacts> weighed = hosts;
  ASSERT_THAT(apply_links(registry, spec, heavy, weighed), IsOk());
  EXPECT_EQ(weighed[0].figures.at("inet_up"), 9000);
  spec.constraints.query = "latency<20ms inet_up>=1Gbps";
  ASSERT_THAT(apply_links(registry, spec, {}, hosts), IsOk());
  EXPECT_TRUE(sched::Query::parse("latency<20ms inet_up>=1Gbps")->matches(sched::subject_of(hosts[0])));
  EXPECT_FALSE(sched::Query::parse("latency<10ms")->matches(sched::subject_of(hosts[0])));
}

TEST_F(Network, TellsOnceOfAHostThatIsNotWhereItSays) {
  ASSERT_THAT(write_landmarks(paths, {{{"fra", {50.1, 8.7}, "DE"}, "@a"}}), IsOk());
  ASSERT_THAT(recorder.pair({"a"}, {"b"}, pair(1ms, 5e8), k_now), IsOk());
  ASSERT_THAT(recorder.judge(k_now), IsOk());
  ASSERT_THAT(recorder.judge(later(1min)), IsOk());
  EXPECT_THAT(events("b"), ElementsAre("country_contradicted"));
  EXPECT_THAT(events("a"), IsEmpty());
  EXPECT_THAT(*network_line(registry, paths, {"b"}), HasSubstr("declared AU, but 1.0 ms from landmark fra"));
  // The owner corrects what was declared.
  registry::Provider b = provider("b");
  b.region = "DE";
  ASSERT_THAT(registry.update_provider(b), IsOk());
  ASSERT_THAT(recorder.judge(later(2min)), IsOk());
  EXPECT_THAT(events("b"), ElementsAre("country_contradicted", "country_settled"));
}

TEST_F(Network, TellsOfASiteThatIsContradicted) {
  ASSERT_THAT(recorder.pair({"a"}, {"b"}, pair(38ms, 5e8), k_now), IsOk());
  ASSERT_THAT(recorder.judge(k_now), IsOk());
  EXPECT_THAT(events("a"), ElementsAre("site_contradicted"));
  ASSERT_THAT(recorder.pair({"a"}, {"b"}, pair(1ms, 5e8), later(1h)), IsOk());
  ASSERT_THAT(recorder.judge(later(1h)), IsOk());
  EXPECT_THAT(events("a"), ElementsAre("site_contradicted", "site_settled"));
}

TEST_F(Network, KeepsTheSmallestRoundTripUntilTheAddressChanges) {
  probe::RttWindow slow, fast;
  slow.add(20ms);
  fast.add(10ms);
  ASSERT_THAT(recorder.pinged(provider("a"), fast, {}, k_now), IsOk());
  ASSERT_THAT(recorder.pinged(provider("a"), slow, {}, later(1min)), IsOk());
  EXPECT_EQ(picture().reports.at("a").rtt_min, Duration{10ms});
  EXPECT_EQ(picture().reports.at("a").rtt_median, Duration{20ms});
  registry::Provider moved = provider("a");
  moved.address = "me@elsewhere";
  ASSERT_THAT(recorder.pinged(moved, slow, {}, later(2min)), IsOk());
  EXPECT_EQ(picture().reports.at("a").rtt_min, Duration{20ms});
}

TEST(UsableAddresses, LeaveOutWhatAHostCannotProveToBeItsOwn) {
  EXPECT_THAT(usable_addresses({"192.0.2.7"}, {"10.0.0.5", "8.8.8.8", "127.0.0.1", "169.254.169.254", "192.0.2.7"}),
              ElementsAre("192.0.2.7", "10.0.0.5"));
  EXPECT_THAT(usable_addresses({"127.0.0.1", "fe80::1"}, {"name.example"}), IsEmpty());
  EXPECT_EQ(usable_addresses({}, {"10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4", "10.0.0.5"}).size(), 4U);
}

TEST(Landmarks, SurviveTheirFile) {
  const TempDir folder;
  const Paths paths{folder.path()};
  EXPECT_THAT(*read_landmarks(paths), IsEmpty());
  const auto row = parse_landmark({"syd", "33.87S", "151.21E", "www.example.org:443", "AU"});
  ASSERT_THAT(row, IsOk());
  const auto here = parse_landmark({"home", "52.52", "-13.4", "@here"});
  ASSERT_THAT(here, IsOk());
  ASSERT_THAT(write_landmarks(paths, {*row, *here}), IsOk());
  const auto rows = read_landmarks(paths);
  ASSERT_THAT(rows, IsOk());
  ASSERT_EQ(rows->size(), 2U);
  EXPECT_EQ((*rows)[0].mark.name, "home");
  EXPECT_TRUE((*rows)[0].is_here());
  EXPECT_NEAR((*rows)[1].mark.at.latitude, -33.87, 1e-9);
  EXPECT_EQ((*rows)[1].mark.country, "AU");
}

TEST(Landmarks, AreRefusedWithTheReason) {
  EXPECT_THAT(parse_landmark({"syd", "33.87S", "151.21E"}), FailsWith(Code::usage));
  EXPECT_THAT(parse_landmark({"syd", "133S", "151.21E", "@here"}), FailsWith(Code::usage));
  EXPECT_THAT(parse_landmark({"syd", "33S", "x", "@here"}), FailsWith(Code::usage));
  EXPECT_THAT(parse_landmark({"syd", "33S", "151E", "example.org"}), FailsWith(Code::usage));
  EXPECT_THAT(parse_landmark({"syd", "33S", "151E", "@here", "QQ"}), FailsWith(Code::usage));
  const auto swapped = parse_landmark({"fra", "8.68N", "50.11E", "@here", "DE"});
  ASSERT_FALSE(swapped);
  EXPECT_THAT(swapped.error().message, HasSubstr("km outside DE"));
}

TEST(NetworkReports, SurviveTheRegistryAndDamage) {
  NetworkReport report;
  report.address = "me@a";
  report.rtt_min = 1500us;
  report.spend(77, k_now);
  report.contacts["b"] = {k_now, "no answer", "", true};
  report.landmarks["fra"] = {k_now, 9ms, ""};
  report.verdict = "far";
  const NetworkReport back = parse_network_report(encode(report));
  EXPECT_EQ(back.rtt_min, Duration{1500us});
  EXPECT_EQ(back.spent_today(k_now), 77U);
  EXPECT_EQ(back.contacts.at("b").reason, "no answer");
  EXPECT_EQ(back.landmarks.at("fra").rtt, Duration{9ms});
  EXPECT_FALSE(back.rtt_median);
  for (const char* damaged : {"", "[]", "{\"contacts\":3}", "{\"address\":[]}"})
    EXPECT_EQ(parse_network_report(damaged).address, "") << damaged;
  for (int i = 0; i < 400; ++i)
    report.contacts["h" + std::to_string(i)] = {later(std::chrono::seconds{i}), "", "", true};
  EXPECT_EQ(parse_network_report(encode(report)).contacts.size(), k_network_peers_max);
}

}  // namespace
}  // namespace gridctl::control::network_test
