// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "control/measure/bench.hpp"
#include "control/measure/network_record.hpp"
#include "hand_clock.hpp"
#include "measured_hosts.hpp"
#include "support/results.hpp"

namespace gridctl::control::network_json_test {
namespace {

using namespace std::chrono_literals;
using gridctl::testing::IsOk;
using nlohmann::json;

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

}  // namespace
}  // namespace gridctl::control::network_json_test
