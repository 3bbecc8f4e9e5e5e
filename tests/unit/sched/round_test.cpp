// SPDX-License-Identifier: Apache-2.0
#include "sched/round.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "unit/sched/a_host.hpp"

namespace gridctl::sched {
namespace {

job::Spec a_job(int gpus, double cpus = 1) {
  job::Spec spec;
  spec.name = "train";
  spec.run = "true";
  spec.resources.cpus = cpus;
  if (gpus > 0) spec.resources.gpus = {{std::nullopt, {}, std::nullopt, std::nullopt, gpus, gpus}};
  return spec;
}
std::string where(Round& round, const job::Spec& spec, const std::vector<Avoid>& avoided = {}) {
  const auto placement = round.place(spec, knowledge_of(spec), avoided);
  return placement ? placement->host.value : "";
}

TEST(Round, GivesNothingTwice) {
  Round round({AHost("ada").with_gpus(2, "NVIDIA A100-SXM4-80GB", 81920).at(1),
               AHost("bob").with_gpus(1, "NVIDIA A100-SXM4-80GB", 81920).at(2)});
  EXPECT_EQ(where(round, a_job(1)), "ada");
  EXPECT_EQ(where(round, a_job(1)), "ada");
  EXPECT_EQ(where(round, a_job(1)), "bob");
  EXPECT_EQ(where(round, a_job(1)), "");
}

TEST(Round, LeavesAvoidedHostsAloneWhileAnotherIsBusy) {
  Round round({AHost("ada").at(1), AHost("bob").at(2)});
  const std::vector<Avoid> avoided{{HostName{"bob"}, "it failed"}};
  EXPECT_EQ(where(round, a_job(0, 8), avoided), "ada");
  EXPECT_EQ(where(round, a_job(0, 8), avoided), "");  // bob is free, but ada is only busy
  EXPECT_EQ(where(round, a_job(0, 8)), "bob");
}

// The same as place(), asked for one job after the other.
TEST(Round, DoesAsPlaceDoesForOneAfterTheOther) {
  const char* models[] = {"NVIDIA A100-SXM4-80GB", "NVIDIA GeForce RTX 4090", "NVIDIA H100 80GB HBM3"};
  for (unsigned seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
    std::vector<HostFacts> hosts;
    for (int i = 0; i < 12; ++i) {
      AHost host("h" + std::to_string(i));
      HostFacts facts = std::move(host).with_gpus(below(4), models[below(3)], 81920).at(1 + 0.1 * below(20));
      facts.figures["mtbf"] = 10 + below(500);
      facts.reachable = below(8) != 0;
      facts.region = below(2) == 0 ? "DE" : "US";
      hosts.push_back(std::move(facts));
    }
    Round round(hosts);
    for (int i = 0; i < 40; ++i) {
      job::Spec spec = a_job(below(3), 1 + below(3));
      if (below(3) == 0) spec.constraints.region_in = {"DE"};
      if (below(4) == 0) spec.optimize = job::Optimize::time;
      if (!spec.resources.gpus.empty()) spec.resources.gpus[0].count_max += below(3);
      std::vector<Avoid> avoided;
      if (below(4) == 0) avoided.push_back({HostName{"h" + std::to_string(below(12))}, "it failed"});
      const Decision alone = place(spec, hosts, avoided);
      const std::optional<Placement> here = round.place(spec, knowledge_of(spec), avoided);
      ASSERT_EQ(here.has_value(), alone.placement.has_value()) << "seed " << seed << " job " << i;
      if (!here) continue;
      ASSERT_EQ(here->host.value, alone.placement->host.value) << "seed " << seed << " job " << i;
      ASSERT_EQ(here->gpu_uuids, alone.placement->gpu_uuids) << "seed " << seed << " job " << i;
      for (HostFacts& host : hosts)
        if (host.name == here->host) take_away(host, here->gpu_uuids, here->cpus, here->memory_bytes);
    }
  }
}

// Two gangs and smaller jobs compete for one site: whoever fits whole gets all of it, nobody holds a part, and the site
// is never idle while one of them would fit.
TEST(Round, GangsThatCompeteForASiteNeverDeadlock) {
  std::mt19937 random(3);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  std::vector<HostFacts> site;
  for (int i = 0; i < 6; ++i) {
    HostFacts host = AHost("h" + std::to_string(i)).with_gpus(2, "NVIDIA A100-SXM4-80GB", 81920).at(1);
    host.site = "hpc";
    site.push_back(std::move(host));
  }
  struct Running {
    std::vector<std::string> gpus;
    int until = 0;
  };
  std::vector<Running> running;
  int waiting[2] = {4, 5};  // members of the two gangs that wait
  int admitted[2] = {0, 0};
  constexpr int k_rounds = 100'000;
  for (int now = 0; now < k_rounds; ++now) {
    std::erase_if(running, [&](const Running& one) { return one.until <= now; });
    std::vector<HostFacts> hosts = site;
    std::map<std::string, int> held;
    for (const Running& one : running)
      for (const std::string& gpu : one.gpus) {
        ASSERT_EQ(++held[gpu], 1) << gpu << " is held twice in round " << now;
        for (HostFacts& host : hosts)
          if (gpu.starts_with(host.name.value + "-")) host.busy_gpus.push_back(gpu);
      }
    const std::size_t free_hosts = static_cast<std::size_t>(
        std::count_if(hosts.begin(), hosts.end(), [](const HostFacts& host) { return host.busy_gpus.empty(); }));
    Round round(std::move(hosts));
    const int first = below(2);
    bool any = false;
    for (const int which : {first, 1 - first}) {
      job::Spec spec = a_job(2);
      spec.num_nodes = waiting[which];
      const auto plan = round.place_gang(spec, {.members = waiting[which]}, {}, knowledge_of(spec), {});
      if (!plan) continue;
      ASSERT_EQ(plan->members.size(), static_cast<std::size_t>(waiting[which]));
      Running one{{}, now + 1 + below(4)};
      for (const Placement& member : plan->members)
        one.gpus.insert(one.gpus.end(), member.gpu_uuids.begin(), member.gpu_uuids.end());
      running.push_back(std::move(one));
      ++admitted[which];
      any = true;
      waiting[which] = 2 + below(5);
    }
    ASSERT_TRUE(any || free_hosts < static_cast<std::size_t>(std::min(waiting[0], waiting[1])))
        << "both wait in round " << now << " although " << free_hosts << " hosts are free";
    if (below(3) == 0)
      if (const auto small = round.place(a_job(1), knowledge_of(a_job(1)), {}))
        running.push_back({small->gpu_uuids, now + 1 + below(3)});
  }
  EXPECT_GT(admitted[0], k_rounds / 20);
  EXPECT_GT(admitted[1], k_rounds / 20);
}

}  // namespace
}  // namespace gridctl::sched
