// SPDX-License-Identifier: Apache-2.0
#include "sched/link_schedule.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace gridctl::sched::link_schedule_test {
namespace {
using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Kind = LinkTask::Kind;

LinkHost fresh(const std::string& name, const std::string& site) {
  LinkHost host;
  host.name = name, host.site = site;
  host.bytes_expected = 1 << 20;
  host.here_age = host.asked_age = 1h;
  return host;
}

TEST(LinkSchedule, MeasuresEveryPairOfASiteAndOnePairOfTwoSites) {
  const std::vector<LinkHost> hosts{fresh("a1", "a"), fresh("a2", "a"), fresh("a3", "a"), fresh("b1", "b"),
                                    fresh("b2", "b")};
  EXPECT_THAT(
      due_links(hosts, {}, false),
      ElementsAre(LinkTask{Kind::pair, "a1", "a2"}, LinkTask{Kind::pair, "a1", "a3"}, LinkTask{Kind::pair, "a2", "a3"},
                  LinkTask{Kind::pair, "b1", "b2"}, LinkTask{Kind::pair, "a1", "b1"}));
}

TEST(LinkSchedule, LeavesFreshLinksAlone) {
  std::vector<LinkHost> hosts{fresh("a", "s"), fresh("b", "s")};
  EXPECT_THAT(due_links(hosts, std::vector<LinkAge>{{"b", "a", 24h, false}}, true), IsEmpty());
  EXPECT_THAT(due_links(hosts, std::vector<LinkAge>{{"b", "a", 8 * 24h, false}}, true).size(), 1U);
  EXPECT_THAT(due_links(hosts, std::vector<LinkAge>{{"a", "b", 5h, true}}, true), IsEmpty());
  EXPECT_THAT(due_links(hosts, std::vector<LinkAge>{{"a", "b", 7h, true}}, true).size(), 1U);
  hosts[0].here_age = 25h;
  hosts[1].asked_age.reset();
  EXPECT_THAT(due_links(hosts, std::vector<LinkAge>{{"a", "b", 1h, false}}, true),
              ElementsAre(LinkTask{Kind::landmarks, "b", ""}, LinkTask{Kind::here, "a", ""}));
}

TEST(LinkSchedule, AsksSlowLinksBetweenNeighboursAgainForHalfTheDaysBytes) {
  std::vector<LinkHost> hosts{fresh("a", "s"), fresh("b", "s")};
  LinkAge slow{"a", "b", 59min};
  slow.slow = true;
  EXPECT_THAT(due_links(hosts, std::vector{slow}, true), IsEmpty());
  slow.age = 61min;
  EXPECT_THAT(due_links(hosts, std::vector{slow}, true).size(), 1U);
  hosts[1].bytes_today = k_link_day_bytes / 2 + 1;
  EXPECT_THAT(due_links(hosts, std::vector{slow}, true), IsEmpty());
}

TEST(LinkSchedule, StopsAtTheDaysBytes) {
  std::vector<LinkHost> hosts{fresh("a", "s"), fresh("b", "s")};
  hosts[1].bytes_today = k_link_day_bytes - (1 << 20) + 1;
  EXPECT_THAT(due_links(hosts, {}, false), IsEmpty());
  hosts[1].bytes_today -= 1;
  EXPECT_EQ(due_links(hosts, {}, false).size(), 1U);
}

TEST(LinkSchedule, MovesNothingForAHostThatIsNotToBeMeasured) {
  std::vector<LinkHost> hosts{fresh("a", "s"), fresh("b", "s")};
  hosts[1].bytes_a_day = 0;
  hosts[1].here_age.reset();
  EXPECT_THAT(due_links(hosts, {}, false), IsEmpty());
}

TEST(LinkSchedule, AsksNobodyWhoIsDown) {
  std::vector<LinkHost> hosts{fresh("a", "s"), fresh("b", "s"), fresh("c", "t")};
  hosts[1].up = false;
  hosts[1].here_age.reset();
  EXPECT_THAT(due_links(hosts, {}, true), ElementsAre(LinkTask{Kind::pair, "a", "c"}));
}

TEST(LinkSchedule, LetsLandmarksMeasureEveryHostForAFewBytes) {
  std::vector<LinkHost> hosts{fresh("a", "s"), fresh("b", "t"), fresh("c", "t")};
  hosts[2].is_landmark = true;
  const std::vector<LinkAge> known{{"a", "b", 1h, false}, {"b", "c", 1h, false}};
  const std::vector<LinkTask> due = due_links(hosts, known, false);
  ASSERT_FALSE(due.empty());
  EXPECT_EQ(due[0], (LinkTask{Kind::round_trip, "a", "c"}));
  // Round trips alone do not stand for rates, where those are wanted.
  const std::vector<LinkAge> light{{"a", "b", 1h, false}, {"b", "c", 1h, false, false}, {"a", "c", 1h, false, false}};
  EXPECT_THAT(due_links(hosts, light, false), ElementsAre(LinkTask{Kind::pair, "b", "c"}));
}

// O(n^2) is bounded: a thousand hosts cost a thousand times a constant.
TEST(LinkSchedule, GrowsWithTheHostsNotWithTheirSquare) {
  std::vector<LinkHost> one_site, own_sites;
  for (int i = 0; i < 1000; ++i) {
    const std::string name = "h" + std::to_string(1000 + i);
    one_site.push_back(fresh(name, "s"));
    own_sites.push_back(fresh(name, name));
    own_sites.back().rtt_here = std::chrono::microseconds{i * 37 % 1000};
  }
  EXPECT_LE(due_links(one_site, {}, false).size(), 1000 * k_pairs_near_max);
  const std::vector<LinkTask> tasks = due_links(own_sites, {}, false);
  EXPECT_LE(tasks.size(), 1000 * k_pairs_far_max);
  std::set<std::string> seen;
  for (const LinkTask& task : tasks) seen.insert(task.a), seen.insert(task.b);
  EXPECT_EQ(seen.size(), 1000U);
}

}  // namespace
}  // namespace gridctl::sched::link_schedule_test
