// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "control/measure/network_record.hpp"
#include "hand_clock.hpp"
#include "measured_hosts.hpp"
#include "support/results.hpp"

namespace gridctl::control::network_record_test {
namespace {

using namespace std::chrono_literals;
using gridctl::testing::IsOk;
using ::testing::SizeIs;

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

}  // namespace
}  // namespace gridctl::control::network_record_test
