// SPDX-License-Identifier: Apache-2.0
#include "sched/geo/country.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "sched/geo/country_table.hpp"

namespace gridctl::sched::country_test {
namespace {
using namespace std::chrono_literals;
using ::testing::HasSubstr;

const Landmark k_frankfurt{"fra", {50.11, 8.68}, "DE"};
const Landmark k_berlin{"ber", {52.52, 13.40}, "DE"};
const Landmark k_sydney{"syd", {-33.87, 151.21}, "AU"};

TEST(Countries, HoldEveryCityOfTheTimeZoneDatabase) {
  std::ifstream file(GRIDCTL_SOURCE_DIR "/tests/data/zone_cities.txt");
  std::string code, name;
  Position at;
  int cities = 0;
  while (file >> code >> at.latitude >> at.longitude >> name) {
    const auto distance = distance_to(code, at);
    ASSERT_TRUE(distance) << code;
    EXPECT_EQ(distance->nearest_km, 0) << name;
    ++cities;
  }
  EXPECT_EQ(cities, 418);
}

TEST(Countries, AreEachOnTheGlobe) {
  std::set<std::string> codes;
  for (const CountryCircle& circle : country_circles()) {
    codes.insert(circle.code);
    EXPECT_LE(std::abs(circle.latitude), 90);
    EXPECT_LE(std::abs(circle.longitude), 180);
    EXPECT_GT(circle.radius_km, 30);
    EXPECT_LT(circle.radius_km, 3500) << circle.code;
  }
  EXPECT_EQ(codes.size(), 250U);
  for (const CountryPart& part : country_parts()) {
    EXPECT_TRUE(codes.contains(part.part)) << part.part;
    EXPECT_TRUE(codes.contains(part.whole)) << part.whole;
  }
}

TEST(Countries, IncludeTheirTerritories) {
  const Position reunion{-20.88, 55.45}, guam{13.44, 144.79};
  EXPECT_EQ(distance_to("FR", reunion)->nearest_km, 0);
  EXPECT_EQ(distance_to("US", guam)->nearest_km, 0);
  EXPECT_GT(distance_to("DE", reunion)->nearest_km, 8000);
  EXPECT_FALSE(distance_to("QQ", guam));
}

TEST(Regions, NameACountryInTheirFirstTwoLetters) {
  EXPECT_EQ(country_of("DE"), "DE");
  EXPECT_EQ(country_of("de-by"), "DE");
  EXPECT_EQ(country_of("us_east"), "US");
  EXPECT_EQ(country_of("UK"), "GB");
  EXPECT_FALSE(country_of("europe"));
  EXPECT_FALSE(country_of("zz"));
  EXPECT_FALSE(country_of("d"));
  EXPECT_FALSE(country_of(""));
}

TEST(Distances, AgreeWithTheAtlas) {
  EXPECT_NEAR(distance_km(k_frankfurt.at, k_berlin.at), 424, 5);
  EXPECT_NEAR(distance_km(k_frankfurt.at, k_sydney.at), 16480, 60);
  EXPECT_NEAR(distance_km({0, 179.5}, {0, -179.5}), 111.2, 1);
}

TEST(DeclaredCountry, IsImpossibleWhereLightCouldNotHaveComeBack) {
  const CountryFinding found = judge_country("AU", {{k_frankfurt, 1100us, Witness::here}});
  EXPECT_EQ(found.verdict, CountryVerdict::impossible);
  EXPECT_THAT(found.text, HasSubstr("declared AU, but 1.1 ms from landmark fra: light reaches 165 km in that time, and "
                                    "AU begins "));
  EXPECT_TRUE(contradicts(found.verdict));
}

TEST(DeclaredCountry, IsImplausibleWhereOnlyRadioWouldBeQuickEnough) {
  // from Frankfurt, Australia begins beyond 10,000 km
  const double nearest = distance_to("AU", k_frankfurt.at)->nearest_km;
  const auto rtt = std::chrono::duration_cast<Duration>(std::chrono::duration<double, std::milli>(nearest / 125));
  EXPECT_EQ(judge_country("AU", {{k_frankfurt, rtt, Witness::here}}).verdict, CountryVerdict::implausible);
}

TEST(DeclaredCountry, IsSuspiciousFarFromEveryLandmarkOfIt) {
  const CountryFinding found =
      judge_country("DE", {{k_frankfurt, 184ms, Witness::provider}, {k_berlin, 180ms, Witness::here}});
  EXPECT_EQ(found.verdict, CountryVerdict::far);
  EXPECT_THAT(found.text, HasSubstr("declared DE, but 180 ms from the nearest of 2 landmarks there"));
  // one near landmark is enough
  EXPECT_EQ(judge_country("DE", {{k_frankfurt, 184ms, Witness::here}, {k_berlin, 20ms, Witness::here}}).verdict,
            CountryVerdict::plausible);
}

TEST(DeclaredCountry, IsNeverAccusedForDelayAlone) {
  // Any delay at all, from a landmark abroad: a slow link proves nothing.
  for (const Duration rtt : {200ms, 600ms, 3000ms})
    EXPECT_FALSE(contradicts(judge_country("DE", {{k_sydney, rtt, Witness::here}}).verdict));
  // and across each border at the speed of a straight cable
  std::ifstream file(GRIDCTL_SOURCE_DIR "/tests/data/zone_cities.txt");
  std::string code, name;
  Position at;
  while (file >> code >> at.latitude >> at.longitude >> name) {
    const double ms = distance_km(at, k_frankfurt.at) / k_fibre_km_per_rtt_ms;
    const auto rtt = std::chrono::duration_cast<Duration>(std::chrono::duration<double, std::milli>(ms + 0.001));
    const Landmark abroad{"fra", k_frankfurt.at, ""};
    EXPECT_FALSE(contradicts(judge_country(code, {{abroad, rtt, Witness::here}}).verdict)) << name;
  }
}

TEST(DeclaredCountry, IsNotAcquittedByItsOwnWord) {
  EXPECT_EQ(judge_country("DE", {{k_frankfurt, 2ms, Witness::itself}}).verdict, CountryVerdict::unverified);
  EXPECT_EQ(judge_country("AU", {{k_frankfurt, 2ms, Witness::itself}}).verdict, CountryVerdict::impossible);
  EXPECT_EQ(judge_country("DE", {{k_frankfurt, 2ms, Witness::provider}}).verdict, CountryVerdict::plausible);
  EXPECT_EQ(judge_country("", {{k_frankfurt, 2ms, Witness::provider}}).verdict, CountryVerdict::undeclared);
}

}  // namespace
}  // namespace gridctl::sched::country_test
