// SPDX-License-Identifier: Apache-2.0
#include "sched/topology.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace gridctl::sched::topology_test {
namespace {
using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr double k_fast = 9.4e9;

void link(std::vector<PairLink>& links, const char* a, const char* b, Duration rtt, std::optional<double> rate) {
  links.push_back({a, b, rtt, rate});
  links.push_back({b, a, rtt, rate});
}

std::vector<std::vector<std::string>> hosts_of(const std::vector<Site>& sites) {
  std::vector<std::vector<std::string>> found;
  for (const Site& site : sites) found.push_back(site.hosts);
  return found;
}

TEST(Islands, NeedEveryPairFastSoThatAChainIsNoIsland) {
  const std::vector<SiteHost> hosts{{"a", ""}, {"b", ""}, {"c", ""}};
  std::vector<PairLink> links;
  link(links, "a", "b", 200us, 2 * k_fast);
  link(links, "b", "c", 200us, k_fast);
  link(links, "a", "c", 200us, 1e9);  // single linkage would put a and c together
  EXPECT_THAT(derive_topology(hosts, links).islands, ElementsAre(ElementsAre("a", "b")));
  links[4].bits_per_second = links[5].bits_per_second = k_fast;
  EXPECT_THAT(derive_topology(hosts, links).islands, ElementsAre(ElementsAre("a", "b", "c")));
}

TEST(Islands, TakeAnUnmeasuredPairForSlow) {
  const std::vector<SiteHost> hosts{{"a", ""}, {"b", ""}, {"c", ""}};
  std::vector<PairLink> links;
  link(links, "a", "b", 200us, k_fast);
  link(links, "b", "c", 200us, k_fast);
  EXPECT_THAT(derive_topology(hosts, links).islands, ElementsAre(ElementsAre("a", "b")));
}

TEST(Islands, NeedBothDirections) {
  const std::vector<SiteHost> hosts{{"a", ""}, {"b", ""}};
  std::vector<PairLink> links;
  link(links, "a", "b", 200us, k_fast);
  links[1].bits_per_second = 1e9;  // a home line: fast down, slow up
  EXPECT_THAT(derive_topology(hosts, links).islands, IsEmpty());
  links[1].bits_per_second.reset();
  EXPECT_THAT(derive_topology(hosts, links).islands, IsEmpty());
  links[1].bits_per_second = k_fast;
  EXPECT_THAT(derive_topology(hosts, links).islands, ElementsAre(ElementsAre("a", "b")));
  links[0].rtt = 3ms;
  EXPECT_THAT(derive_topology(hosts, links).islands, IsEmpty());
}

TEST(Islands, AreTheSameWhateverTheOrderOfLinks) {
  std::vector<SiteHost> hosts;
  std::vector<PairLink> links;
  const std::string names = "abcdefgh";
  for (const char name : names) hosts.push_back({std::string(1, name), ""});
  for (std::size_t i = 0; i < names.size(); ++i)
    for (std::size_t j = i + 1; j < names.size(); ++j)
      if ((i + j) % 3 != 0) link(links, hosts[i].name.c_str(), hosts[j].name.c_str(), 300us, k_fast);
  const Topology before = derive_topology(hosts, links);
  std::reverse(links.begin(), links.end());
  std::reverse(hosts.begin(), hosts.end());
  const Topology after = derive_topology(hosts, links);
  EXPECT_EQ(before.islands, after.islands);
  EXPECT_EQ(hosts_of(before.sites), hosts_of(after.sites));
  EXPECT_FALSE(before.islands.empty());
}

TEST(Sites, GatherHostsThatWereMeasuredNear) {
  const std::vector<SiteHost> hosts{{"a", ""}, {"b", ""}, {"c", ""}, {"d", ""}};
  std::vector<PairLink> links;
  link(links, "a", "b", 1ms, {});
  link(links, "b", "c", 1ms, {});
  link(links, "c", "d", 40ms, {});
  const Topology topology = derive_topology(hosts, links);
  EXPECT_THAT(hosts_of(topology.sites), ElementsAre(ElementsAre("a", "b", "c"), ElementsAre("d")));
  EXPECT_EQ(topology.sites[0].name, "near-a");
  EXPECT_FALSE(topology.sites[0].declared);
}

TEST(Sites, DoNotChainHostsThatAreKnownToBeFar) {
  const std::vector<SiteHost> hosts{{"a", ""}, {"b", ""}, {"c", ""}};
  std::vector<PairLink> links;
  link(links, "a", "b", 4ms, {});
  link(links, "b", "c", 5ms, {});
  link(links, "a", "c", 30ms, {});
  EXPECT_THAT(hosts_of(derive_topology(hosts, links).sites), ElementsAre(ElementsAre("a", "b"), ElementsAre("c")));
}

TEST(Sites, BelieveADeclarationThatNothingContradicts) {
  const std::vector<SiteHost> hosts{{"a", "hpc"}, {"b", "hpc"}, {"c", ""}, {"d", "office"}};
  std::vector<PairLink> links;
  link(links, "b", "c", 1ms, {});
  link(links, "c", "d", 2ms, {});  // a neighbour, but the user gave it another name
  const Topology topology = derive_topology(hosts, links);
  EXPECT_THAT(hosts_of(topology.sites), ElementsAre(ElementsAre("a", "b", "c"), ElementsAre("d")));
  EXPECT_EQ(topology.sites[0].name, "hpc");
  EXPECT_TRUE(topology.sites[0].declared);
  EXPECT_THAT(topology.contradictions, IsEmpty());
}

TEST(Sites, ShowWhoDoesNotStandWhereItWasDeclared) {
  const std::vector<SiteHost> hosts{{"a", "hpc"}, {"b", "hpc"}, {"c", "hpc"}};
  std::vector<PairLink> links;
  link(links, "a", "b", 1ms, {});
  link(links, "a", "c", 38ms, {});
  link(links, "b", "c", 39ms, {});
  const Topology topology = derive_topology(hosts, links);
  ASSERT_EQ(topology.contradictions.size(), 1U);
  EXPECT_EQ(topology.contradictions[0].host, "c");
  EXPECT_EQ(topology.contradictions[0].text, "declared site hpc, but 39 ms from its other hosts");
  EXPECT_THAT(hosts_of(topology.sites), ElementsAre(ElementsAre("a", "b"), ElementsAre("c")));
  EXPECT_EQ(topology.sites[1].name, "near-c");
}

TEST(Sites, AccuseBothOfTwoThatAreFarFromEachOther) {
  const std::vector<SiteHost> hosts{{"a", "hpc"}, {"b", "hpc"}};
  std::vector<PairLink> links;
  link(links, "a", "b", 38ms, {});
  const Topology topology = derive_topology(hosts, links);
  ASSERT_EQ(topology.contradictions.size(), 2U);
  EXPECT_EQ(topology.contradictions[0].text, "declared site hpc, but 38 ms from its other host");
}

TEST(Sites, CountTheShorterOfTwoRoundTrips) {
  const std::vector<SiteHost> hosts{{"a", "hpc"}, {"b", "hpc"}};
  const std::vector<PairLink> links{{"a", "b", 3ms, {}}, {"b", "a", 20ms, {}}};
  EXPECT_THAT(derive_topology(hosts, links).contradictions, IsEmpty());
}

TEST(Topology, IgnoresLinksOfStrangersAndToOneself) {
  const std::vector<SiteHost> hosts{{"a", ""}, {"b", ""}};
  std::vector<PairLink> links;
  link(links, "a", "gone", 1ms, k_fast);
  link(links, "@here", "b", 1ms, k_fast);
  link(links, "a", "a", 1ms, k_fast);
  const Topology topology = derive_topology(hosts, links);
  EXPECT_EQ(topology.sites.size(), 2U);
  EXPECT_THAT(topology.islands, IsEmpty());
}

}  // namespace
}  // namespace gridctl::sched::topology_test
