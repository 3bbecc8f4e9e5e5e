// SPDX-License-Identifier: Apache-2.0
#include "sched/gang.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <random>

#include "unit/sched/a_host.hpp"

namespace gridctl::sched::gang_test {
namespace {
using ::testing::ElementsAre;
using ::testing::HasSubstr;

job::Spec a_gang(int gpus = 8) {
  job::Spec spec;
  spec.name = "pretrain";
  spec.run = "torchrun train.py";
  spec.num_nodes = 2;
  spec.resources.gpus = {{std::nullopt, {}, std::nullopt, std::nullopt, gpus, gpus}};
  return spec;
}
HostFacts h100s(const char* name, const char* site, double price) {
  HostFacts host = AHost(name).with_gpus(8, "NVIDIA H100 80GB HBM3", 81559).at(price);
  host.site = site;
  return host;
}
HostFacts a100s(const char* name, const char* site, double price) {
  HostFacts host = AHost(name).with_gpus(8, "NVIDIA A100-SXM4-80GB", 81920).at(price);
  host.site = site;
  return host;
}
std::vector<std::string> names_of(const GangPlan& plan) {
  std::vector<std::string> names;
  for (const Placement& member : plan.members) names.push_back(member.host.value);
  return names;
}

struct World {
  std::vector<HostFacts> hosts;
  std::vector<PairLink> links;
  void link(const std::string& a, const std::string& b, double gbit, double rtt_ms) {
    const Duration rtt = std::chrono::microseconds{static_cast<int>(rtt_ms * 1000)};
    links.push_back({a, b, rtt, gbit * 1e9});
    links.push_back({b, a, rtt, gbit * 1e9});
  }
  [[nodiscard]] Topology topology() const {
    std::vector<SiteHost> sites;
    for (const HostFacts& host : hosts) sites.push_back({host.name.value, host.site});
    return derive_topology(sites, links);
  }
  [[nodiscard]] GangDecision place(const job::Spec& spec, const GangWish& wish,
                                   const std::vector<Avoid>& avoided = {}) const {
    return place_gang(spec, wish, hosts, topology(), links, avoided, knowledge_of(spec));
  }
};

TEST(Gang, IsAllOrNothing) {
  World world{{h100s("ada", "hpc", 20), h100s("bob", "hpc", 20), h100s("cyd", "lab", 10)}, {}};
  const GangDecision three = world.place(a_gang(), {.members = 3});
  EXPECT_FALSE(three.plan);
  EXPECT_FALSE(three.could_ever_fit);
  EXPECT_THAT(three.short_pools, ElementsAre("site hpc: 2 hosts fit and are alike, 3 are wanted",
                                             "site lab: 1 host fits, 3 are wanted"));
  const GangDecision two = world.place(a_gang(), {.members = 2});
  ASSERT_TRUE(two.plan);
  EXPECT_THAT(names_of(*two.plan), ElementsAre("ada", "bob"));
  EXPECT_EQ(two.plan->members[0].gpu_uuids.size(), 8u);
}

HostFacts lent(HostFacts host) {
  host.host_class = "market";
  return host;
}

TEST(Gang, TalksWithNoHostOfOthersInTheClear) {
  World world{{lent(h100s("ada", "hpc", 1)), h100s("bob", "hpc", 20), h100s("cyd", "hpc", 20), lent(h100s("dan", "hpc", 1))}, {}};
  const GangDecision own = world.place(a_gang(), {.members = 2});
  ASSERT_TRUE(own.plan);
  EXPECT_THAT(names_of(*own.plan), ElementsAre("bob", "cyd")) << "the cheap ones belong to others";
  ASSERT_EQ(own.rejections.size(), 2u);
  EXPECT_EQ(own.rejections[0].code, "clear_text");
  EXPECT_FALSE(own.rejections[0].temporary);
  world.hosts[2].labels["lent"] = "true";  // one borrowed host is enough
  for (const Near near : {Near::island, Near::site, Near::any}) {
    const GangDecision none = world.place(a_gang(), {.members = 2, .near = near});
    EXPECT_FALSE(none.plan);
    EXPECT_FALSE(none.could_ever_fit);
    EXPECT_EQ(none.rejections.size(), 3u);
    EXPECT_THAT(explain(none, {.members = 2, .near = near}),
                ::testing::Contains(HasSubstr("ada cannot (clear_text): it is owned by others, and the members of a gang exchange "
                                              "data unencrypted; constraints: {traffic: clear} in the job file allows that")));
    EXPECT_THAT(summary(none, {.members = 2, .near = near}), HasSubstr("others: 3 clear_text"));
  }
  world.hosts[0].reachable = false;
  EXPECT_FALSE(world.place(a_gang(), {.members = 2}).could_ever_fit) << "it would not do when it answers either";
  world.hosts[0].reachable = true;
  job::Spec open = a_gang();
  open.constraints.clear_traffic = true;
  const GangDecision allowed = world.place(open, {.members = 2});
  ASSERT_TRUE(allowed.plan);
  EXPECT_THAT(names_of(*allowed.plan), ElementsAre("ada", "dan"));
}

TEST(Gang, OfOneHostMayBeOnAHostOfOthers) {
  World world{{lent(h100s("ada", "hpc", 1)), h100s("bob", "hpc", 20), lent(h100s("cyd", "hpc", 2))}, {}};
  const GangWish wish{.members = 3, .members_min = 1};
  const GangDecision alone = world.place(a_gang(), wish);
  ASSERT_TRUE(alone.plan);
  EXPECT_THAT(names_of(*alone.plan), ElementsAre("ada"));
  ASSERT_EQ(alone.rejections.size(), 1u) << "cyd cannot join it";
  EXPECT_EQ(alone.rejections[0].host.value, "cyd");
  world.hosts.push_back(h100s("dan", "hpc", 20));
  const GangDecision two = world.place(a_gang(), wish);
  ASSERT_TRUE(two.plan);
  EXPECT_THAT(names_of(*two.plan), ElementsAre("bob", "dan")) << "two of one's own are more than one of others";
}

TEST(Gang, WaitsForMembersThatAreOnlyBusy) {
  World world{{h100s("ada", "hpc", 20), h100s("bob", "hpc", 20)}, {}};
  for (const Gpu& gpu : world.hosts[1].inventory->gpus) world.hosts[1].busy_gpus.push_back(gpu.uuid);
  const GangDecision decision = world.place(a_gang(), {.members = 2});
  EXPECT_FALSE(decision.plan);
  EXPECT_TRUE(decision.could_ever_fit);
}

TEST(Gang, IsMadeOfIdenticalGpus) {
  World world{{h100s("ada", "hpc", 20), a100s("bob", "hpc", 1), a100s("cyd", "hpc", 1), h100s("dan", "hpc", 20)}, {}};
  const GangDecision decision = world.place(a_gang(), {.members = 2});
  ASSERT_TRUE(decision.plan);
  EXPECT_THAT(names_of(*decision.plan), ElementsAre("bob", "cyd"));  // the A100s are cheaper to the end
  ASSERT_EQ(decision.runners_up.size(), 1u);
  EXPECT_THAT(names_of(decision.runners_up[0]), ElementsAre("ada", "dan"));
  EXPECT_FALSE(world.place(a_gang(), {.members = 3}).plan);
}

TEST(Gang, PrefersMeasuredIslandsToSitesOnTrust) {
  World world{{h100s("ada", "cheap", 2), h100s("bob", "cheap", 2), h100s("cyd", "fast", 20), h100s("dan", "fast", 20)},
              {}};
  world.link("cyd", "dan", 100, 0.1);
  const GangDecision decision = world.place(a_gang(), {.members = 2});
  ASSERT_TRUE(decision.plan);
  EXPECT_THAT(names_of(*decision.plan), ElementsAre("cyd", "dan"));
  EXPECT_EQ(decision.plan->unmeasured, "");
  ASSERT_FALSE(decision.runners_up.empty());
  EXPECT_THAT(decision.runners_up.back().unmeasured, HasSubstr("were not measured"));
  world.link("ada", "bob", 1, 0.1);  // measured, and slow: no longer taken on trust
  for (const GangPlan& other : world.place(a_gang(), {.members = 2}).runners_up)
    EXPECT_THAT(names_of(other), ElementsAre("cyd", "dan"));
}

// A rate that a busy host has lowered refuses nobody for ever.
TEST(Gang, TakesTheFastestLinksThatThereAreWhenItSaysNothingOfItsExchanges) {
  World world{{h100s("ada", "hpc", 20), h100s("bob", "hpc", 20), h100s("cyd", "hpc", 20)}, {}};
  world.link("ada", "bob", 1, 0.1);
  world.link("ada", "cyd", 5, 0.1);
  world.link("bob", "cyd", 2, 0.1);
  const GangDecision decision = world.place(a_gang(), {.members = 2});
  ASSERT_TRUE(decision.plan);
  EXPECT_THAT(names_of(*decision.plan), ElementsAre("ada", "cyd"));
  EXPECT_TRUE(decision.slow_links);
  EXPECT_THAT(decision.plan->unmeasured, HasSubstr("less than 10 Gbit/s, some at little more than 4.5 Gbit/s"));
  const GangDecision needs = world.place(a_gang(), {.members = 2, .bits_per_second = 8e9});
  EXPECT_FALSE(needs.plan);
  EXPECT_TRUE(needs.slow_links);
  EXPECT_TRUE(needs.could_ever_fit) << "they are measured again";
  world.links.clear();
  world.link("ada", "bob", 5, 30);
  world.link("ada", "cyd", 5, 30);
  world.link("bob", "cyd", 5, 30);
  const GangDecision far = world.place(a_gang(), {.members = 2});
  EXPECT_FALSE(far.plan);
  EXPECT_FALSE(far.could_ever_fit);
}

TEST(Gang, MayBeSpreadWhenLooselyCoupled) {
  HostFacts amd = AHost("mia").with_gpus(1, "AMD Instinct MI300X", 196608, Vendor::amd).at(1);
  HostFacts nvidia = AHost("ned").with_gpus(1, "NVIDIA A100-SXM4-80GB", 81920).at(1);
  const World world{{amd, nvidia}, {}};
  EXPECT_FALSE(world.place(a_gang(1), {.members = 2, .near = Near::any}).plan);
  const GangDecision mixed = world.place(a_gang(1), {.members = 2, .near = Near::any, .mixed_vendors = true});
  ASSERT_TRUE(mixed.plan);
  EXPECT_THAT(names_of(*mixed.plan), ElementsAre("mia", "ned"));
  EXPECT_EQ(mixed.plan->gpus, "mixed");
}

TEST(Gang, TakesOneMachineOnceWhateverItsNames) {
  World world{{h100s("ada", "hpc", 20), h100s("alias", "hpc", 20)}, {}};
  world.hosts[0].inventory.edit().machine_id = world.hosts[1].inventory.edit().machine_id = "m1";
  EXPECT_FALSE(world.place(a_gang(), {.members = 2}).plan);
  world.hosts[0].inventory.edit().machine_id = world.hosts[1].inventory.edit().machine_id = "";  // a container without one
  EXPECT_TRUE(world.place(a_gang(), {.members = 2}).plan);
  world.hosts[0].inventory.edit().boot_id = world.hosts[1].inventory.edit().boot_id = "b1";
  EXPECT_FALSE(world.place(a_gang(), {.members = 2}).plan);
}

TEST(Gang, LeavesAvoidedHostsOutWhileItCan) {
  World world{{h100s("ada", "hpc", 20), h100s("bob", "hpc", 20), h100s("cyd", "hpc", 90)}, {}};
  EXPECT_THAT(names_of(*world.place(a_gang(), {.members = 2}, {{HostName{"ada"}, "it failed"}}).plan),
              ElementsAre("bob", "cyd"));
  EXPECT_THAT(names_of(*world.place(a_gang(), {.members = 3}, {{HostName{"ada"}, "it failed"}}).plan),
              ElementsAre("ada", "bob", "cyd"));
}

TEST(Gang, TakesHostsThatFailedItInTurns) {
  World world{{h100s("ada", "hpc", 20), h100s("bob", "hpc", 30), h100s("cyd", "hpc", 90)}, {}};
  const auto after = [&](std::vector<std::string> failed) {
    std::vector<Avoid> avoided;
    for (const std::string& host : failed) avoided.push_back({HostName{host}, "it failed"});
    return names_of(*world.place(a_gang(), {.members = 2}, avoided).plan);
  };
  EXPECT_THAT(after({"cyd", "bob", "ada"}), ElementsAre("bob", "cyd"));  // ada was the last to fail
  EXPECT_THAT(after({"cyd", "ada", "bob"}), ElementsAre("ada", "cyd"));
  EXPECT_THAT(after({"ada", "bob"}), ElementsAre("ada", "cyd"));
  world.hosts[2].shunned = "its engine breaks";
  EXPECT_THAT(after({"ada"}), ElementsAre("bob", "cyd"));
  EXPECT_THAT(after({"ada", "bob"}), ElementsAre("ada", "cyd")) << "bob may fail it every time";
  EXPECT_THAT(after({"ada", "bob", "cyd"}), ElementsAre("ada", "bob"));
}

TEST(Gang, IsNotForbiddenByLinksThatNobodyMeasured) {
  for (const Near near : {Near::island, Near::site}) {
    World world{{h100s("ada", "", 20), h100s("bob", "", 20)}, {}};
    const GangDecision decision = world.place(a_gang(), {.members = 2, .near = near});
    ASSERT_TRUE(decision.plan);
    EXPECT_THAT(decision.plan->unmeasured, HasSubstr("--measure"));
    world.link("ada", "bob", 1, 40);
    const GangDecision measured = world.place(a_gang(), {.members = 2, .near = near});
    EXPECT_FALSE(measured.plan);
    EXPECT_FALSE(measured.could_ever_fit);
  }
  const World apart{{h100s("ada", "hpc", 20), h100s("bob", "lab", 20)}, {}};
  EXPECT_FALSE(apart.place(a_gang(), {.members = 2}).could_ever_fit);
}

TEST(Gang, MayBeOfTwoHostsThatAnIslandDivides) {
  World world{{h100s("h1", "", 20), h100s("h2", "", 20), h100s("h3", "", 20)}, {}};
  world.link("h1", "h3", 33, 0.006);
  world.link("h2", "h3", 11, 0.006);
  world.link("h1", "h2", 5, 0.006);
  ASSERT_THAT(world.topology().islands, ElementsAre(ElementsAre("h1", "h3")));
  world.hosts[0].reachable = false;
  const GangDecision decision = world.place(a_gang(), {.members = 2});
  ASSERT_TRUE(decision.plan);
  EXPECT_THAT(names_of(*decision.plan), ElementsAre("h2", "h3"));
  EXPECT_EQ(decision.plan->pool, "the island of h2 and 1 other");
  EXPECT_EQ(decision.plan->unmeasured, "");
}

TEST(Gang, NamesBusyHostsBesideAllOtherReasons) {
  World world{{h100s("ada", "hpc", 20), h100s("bob", "hpc", 20), h100s("cyd", "lab", 20)}, {}};
  for (const Gpu& gpu : world.hosts[1].inventory->gpus) world.hosts[1].busy_gpus.push_back(gpu.uuid);
  EXPECT_THAT(summary(world.place(a_gang(), {.members = 2}), {.members = 2}), HasSubstr("1 busy"));
}

TEST(Gang, ExplainsItself) {
  World world{{h100s("ada", "hpc", 20), h100s("bob", "hpc", 20), a100s("cyd", "hpc", 1)}, {}};
  const GangWish wish{.members = 2};
  const std::vector<std::string> lines = explain(world.place(a_gang(), wish), wish);
  EXPECT_THAT(lines.at(0), HasSubstr("2 hosts of site hpc: ada, bob; each 8x "));
  EXPECT_THAT(lines.at(0), HasSubstr("40.00 USD/h together"));
  EXPECT_THAT(lines.at(1), HasSubstr("were not measured"));
}

// --- Against brute force
// -----------------------------------------------------------------------------------------------

class Draw {
 public:
  explicit Draw(unsigned seed) : random_(seed) {}
  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  bool chance(double p) { return std::uniform_real_distribution<double>()(random_) < p; }
  double between(double low, double high) { return std::uniform_real_distribution<double>(low, high)(random_); }

 private:
  std::mt19937 random_;
};

World random_world(Draw& draw) {
  World world;
  const int count = 3 + draw.below(8);
  for (int i = 0; i < count; ++i) {
    const std::string name = "h" + std::to_string(i);
    HostFacts host = draw.chance(0.6) ? h100s(name.c_str(), "", 1) : a100s(name.c_str(), "", 1);
    if (draw.chance(0.3)) host.inventory.edit().gpus.resize(static_cast<std::size_t>(4 + draw.below(4)));
    host.price_per_hour = draw.chance(0.3) ? 2 : draw.between(0.5, 9);
    host.figures["mtbf"] = draw.chance(0.3) ? 100 : draw.between(2, 2000);
    host.figures["total_flops"] = 600.0 * static_cast<double>(host.inventory->gpus.size()) * draw.between(0.5, 1);
    if (draw.chance(0.5)) host.figures["start_time"] = draw.between(10, 4000);
    if (draw.chance(0.5)) host.figures["inet_up"] = draw.between(5, 900);
    if (draw.chance(0.5)) host.figures["inet_down"] = draw.between(5, 900);
    host.site = std::vector<std::string>{"", "hpc", "lab"}[static_cast<std::size_t>(draw.below(3))];
    host.region = draw.chance(0.8) ? "DE" : "US";
    if (draw.chance(0.1)) host.reachable = false;
    if (draw.chance(0.15)) host.busy_gpus.push_back(host.inventory->gpus.front().uuid);
    host.inventory.edit().machine_id = draw.chance(0.1) && i > 0 ? "m" + std::to_string(i - 1) : "m" + std::to_string(i);
    world.hosts.push_back(std::move(host));
  }
  for (int i = 0; i < count; ++i)
    for (int j = 0; j < i; ++j)
      if (draw.chance(0.7))
        world.link("h" + std::to_string(i), "h" + std::to_string(j), draw.chance(0.7) ? 25 : 1,
                   draw.chance(0.8) ? 0.2 : 30);
  return world;
}

// What the test holds for true of a set, written down without the scheduler.
struct Judge {
  const World& world;
  const job::Spec& spec;
  const GangWish& wish;
  Topology topology;
  std::size_t gpus = 4;

  [[nodiscard]] bool host_is_good(const HostFacts& host) const {
    return host.reachable && host.region == "DE" && host.inventory->gpus.size() - host.busy_gpus.size() >= gpus;
  }
  [[nodiscard]] bool pair_is_slow(const HostFacts& a, const HostFacts& b) const {
    return std::any_of(world.links.begin(), world.links.end(), [&](const PairLink& link) {
      const bool theirs = (link.source == a.name.value && link.target == b.name.value) ||
                          (link.source == b.name.value && link.target == a.name.value);
      return theirs && (*link.bits_per_second < k_island_bits_per_second || *link.rtt > k_island_rtt);
    });
  }
  [[nodiscard]] bool pair_is_fast(const HostFacts& a, const HostFacts& b) const {
    return 2 == std::count_if(world.links.begin(), world.links.end(), [&](const PairLink& link) {
             const bool theirs = (link.source == a.name.value && link.target == b.name.value) ||
                                 (link.source == b.name.value && link.target == a.name.value);
             return theirs && *link.bits_per_second >= k_island_bits_per_second && *link.rtt <= k_island_rtt;
           });
  }
  [[nodiscard]] bool all_pairs(const std::vector<const HostFacts*>& set, const auto& hold) const {
    for (std::size_t i = 0; i < set.size(); ++i)
      for (std::size_t j = 0; j < i; ++j)
        if (!hold(*set[i], *set[j])) return false;
    return true;
  }
  [[nodiscard]] bool one_site(const std::vector<const HostFacts*>& set) const {
    return std::any_of(topology.sites.begin(), topology.sites.end(), [&](const Site& site) {
      return site.declared && std::all_of(set.begin(), set.end(), [&](const HostFacts* host) {
               return std::find(site.hosts.begin(), site.hosts.end(), host->name.value) != site.hosts.end();
             });
    });
  }
  // 0: not allowed; 1: nothing speaks against it; 2: a declared site, on trust; 3: known to be fast.
  [[nodiscard]] int allowed(const std::vector<const HostFacts*>& set) const {
    for (const HostFacts* host : set)
      if (!host_is_good(*host)) return 0;
    for (std::size_t i = 0; i < set.size(); ++i)
      for (std::size_t j = 0; j < i; ++j) {
        if (set[i]->inventory->machine_id == set[j]->inventory->machine_id) return 0;
        if (wish.near == Near::any) continue;
        if (set[i]->inventory->gpus[0].name != set[j]->inventory->gpus[0].name) return 0;
        if (pair_is_slow(*set[i], *set[j])) return 0;
      }
    if (wish.near == Near::any) return 3;
    if (all_pairs(set, [&](const HostFacts& a, const HostFacts& b) { return pair_is_fast(a, b); })) return 3;
    if (one_site(set)) return 2;
    return all_pairs(set,
                     [&](const HostFacts& a, const HostFacts& b) {
                       return a.site.empty() || b.site.empty() || a.site == b.site || pair_is_fast(a, b);
                     })
               ? 1
               : 0;
  }
  // How often the rate of an island is to be halved until these hosts have it; nullopt: more than rates speak against them.
  [[nodiscard]] std::optional<int> halvings(const std::vector<const HostFacts*>& set) const {
    double least = k_island_bits_per_second;
    const bool together = std::ranges::any_of(topology.sites, [&](const Site& site) {
      return std::ranges::all_of(set, [&](const HostFacts* one) { return std::ranges::count(site.hosts, one->name.value) > 0; });
    });
    for (std::size_t i = 0; i < set.size(); ++i) {
      if (!host_is_good(*set[i])) return std::nullopt;
      for (std::size_t j = 0; j < i; ++j) {
        const HostFacts &a = *set[i], &b = *set[j];
        if (a.inventory->machine_id == b.inventory->machine_id) return std::nullopt;
        if (a.inventory->gpus[0].name != b.inventory->gpus[0].name) return std::nullopt;
        bool near = false;
        for (const PairLink& link : world.links) {
          if (std::minmax(link.source, link.target) != std::minmax(a.name.value, b.name.value)) continue;
          if (*link.rtt > k_site_rtt) return std::nullopt;
          near = true;
          least = std::min(least, *link.bits_per_second);
        }
        if (!near && !together && !a.site.empty() && !b.site.empty() && a.site != b.site) return std::nullopt;
      }
    }
    int count = 0;
    for (double rate = k_island_bits_per_second; rate > least; rate /= 2) ++count;
    return count;
  }
  [[nodiscard]] Estimate end_of(const std::vector<const HostFacts*>& set) const {
    HostGroup group{.speed = 1e9, .start = 0};
    for (const HostFacts* host : set) {
      std::vector<const Gpu*> some;
      for (std::size_t i = 0; i < gpus; ++i) some.push_back(&host->inventory->gpus[i]);
      const HostGroup one = group_of(*host, some);
      group.price_per_hour += one.price_per_hour;
      group.failures_per_hour += one.failures_per_hour;
      group.speed = std::min(group.speed, one.speed);
      group.start = std::max(group.start, one.start);
      if (one.down > 0) group.down = group.down > 0 ? std::min(group.down, one.down) : one.down;
      if (one.up > 0) group.up = group.up > 0 ? std::min(group.up, one.up) : one.up;
    }
    group.speed *= static_cast<double>(set.size());
    WorkEstimate task = knowledge_of(spec).task;
    task.state_bytes = 20e9;
    task.input_bytes = 5e9;
    return to_finish(task, group);
  }
};

class AgainstBruteForce : public ::testing::TestWithParam<Near> {};

TEST_P(AgainstBruteForce, NoCheaperSetExistsAndEveryConstraintHolds) {
  int placed = 0, refused = 0;
  for (unsigned seed = 0; seed < 1500; ++seed) {
    Draw draw(seed);
    const World world = random_world(draw);
    job::Spec spec = a_gang(4);
    spec.constraints.region_in = {"DE"};
    if (draw.chance(0.3)) spec.optimize = job::Optimize::time;
    const GangWish wish{.members = 2 + draw.below(3), .near = GetParam()};
    JobKnowledge known = knowledge_of(spec);
    known.task.state_bytes = 20e9;
    known.task.input_bytes = 5e9;
    const Judge judge{world, spec, wish, world.topology()};
    const GangDecision decision = place_gang(spec, wish, world.hosts, judge.topology, world.links, {}, known);
    int best_kind = 0, fewest = 100;
    double best = 0;
    for (unsigned bits = 0; bits < 1u << world.hosts.size(); ++bits) {
      if (std::popcount(bits) != wish.members) continue;
      std::vector<const HostFacts*> set;
      for (std::size_t i = 0; i < world.hosts.size(); ++i)
        if ((bits >> i & 1u) != 0) set.push_back(&world.hosts[i]);
      const int kind = judge.allowed(set);
      if (wish.near == Near::island) fewest = std::min(fewest, judge.halvings(set).value_or(100));
      if (kind == 0 || kind < best_kind) continue;
      const Estimate end = judge.end_of(set);
      const double aim = spec.optimize == job::Optimize::time ? end.takes() : end.cost();
      if (kind > best_kind || aim < best) best = aim;
      best_kind = kind;
    }
    ASSERT_EQ(decision.plan.has_value(), best_kind > 0 || fewest < 100) << "seed " << seed;
    if (!decision.plan) {
      ++refused;
      continue;
    }
    ++placed;
    ASSERT_EQ(decision.slow_links, best_kind == 0) << "seed " << seed;
    std::vector<const HostFacts*> set;
    for (const Placement& member : decision.plan->members)
      for (const HostFacts& host : world.hosts)
        if (host.name == member.host) set.push_back(&host);
    ASSERT_EQ(judge.allowed(set), best_kind) << "seed " << seed;
    if (best_kind == 0) {
      ASSERT_EQ(judge.halvings(set), fewest) << "seed " << seed;
      continue;
    }
    ASSERT_TRUE(decision.plan->exact);
    const Estimate& end = decision.plan->estimate;
    const double aim = spec.optimize == job::Optimize::time ? end.takes() : end.cost();
    ASSERT_NEAR(aim, best, best * 1e-9) << "seed " << seed;
    for (const Placement& member : decision.plan->members) {
      ASSERT_EQ(member.gpu_uuids.size(), 4u) << "seed " << seed;
      for (const HostFacts& host : world.hosts)
        if (host.name == member.host) {
          for (const std::string& busy : host.busy_gpus)
            ASSERT_EQ(std::count(member.gpu_uuids.begin(), member.gpu_uuids.end(), busy), 0) << "seed " << seed;
        }
    }
  }
  EXPECT_GT(placed, 100);
  EXPECT_GT(refused, 100);
}

INSTANTIATE_TEST_SUITE_P(Gang, AgainstBruteForce, ::testing::Values(Near::island, Near::any),
                         [](const auto& tested) { return tested.param == Near::any ? "anywhere" : "island"; });

}  // namespace
}  // namespace gridctl::sched::gang_test
