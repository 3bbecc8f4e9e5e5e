// SPDX-License-Identifier: Apache-2.0
#include "forecast/hosts_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "grid.hpp"
#include "sched/catalogue/gpu_spec.hpp"
#include "sched/standing/reliability.hpp"

namespace gridctl::forecast::hosts_file_test {
namespace {
using ::testing::HasSubstr;
using ::testing::StartsWith;

job::Spec a_gpu_job(std::string_view gpus) {
  job::Spec spec = a_job(0);
  spec.resources.gpus = {*sched::parse_gpu_spec(gpus)};
  return spec;
}

TEST(HostsFile, GivesWhatIsWrittenAndWhatItsClassLetsExpect) {
  const auto hosts = parse_hosts_file(
      "hosts:\n"
      "  - {name: spot, count: 2, class: market, price: 1.1, mtbf: 6h, outage: 20m, start: 90s}\n"
      "  - {name: lab, speed: 0.5, uplink: 100, failures_per_hour: 0.25, region: DE, site: attic}\n"
      "  - {name: rock, mtbf: never, class: datacenter}\n",
      "hosts.yaml", a_job(0));
  ASSERT_TRUE(hosts) << hosts.error().message;
  ASSERT_EQ(hosts->size(), 4u);
  const HostModel& spot = (*hosts)[1];
  EXPECT_EQ(spot.facts.name.value, "spot-2");
  EXPECT_NEAR(spot.rate_per_hour, 1.0 / 6, 1e-12);
  EXPECT_EQ(spot.outage, 1200);
  EXPECT_EQ(spot.start, 90);
  EXPECT_EQ(spot.facts.price_per_hour, 1.1);
  EXPECT_EQ(spot.uplink, assumed_uplink("market"));
  const HostModel& lab = (*hosts)[2];
  EXPECT_EQ(lab.facts.host_class, "home");
  EXPECT_EQ(lab.speed, 0.5);
  EXPECT_EQ(lab.facts.site, "attic");
  EXPECT_EQ(lab.uplink, 100);
  EXPECT_EQ(lab.rate_per_hour, 0.25);
  EXPECT_EQ(lab.outage, k_outage_assumed);
  EXPECT_EQ(lab.start, k_start_assumed);
  EXPECT_EQ((*hosts)[3].rate_per_hour, 0);
}

TEST(HostsFile, TakesAHostToHaveWhatTheJobAsksFor) {
  job::Spec job = a_gpu_job("A100:80GB:4");
  job.resources.cpus = 32;
  job.resources.memory_bytes = 64ull << 30;
  const auto hosts =
      parse_hosts_file("hosts: [{name: ada}, {name: bo, gpus: 'RTX_4090:4'}, {name: cy, gpus: none}]", "h", job);
  ASSERT_TRUE(hosts) << hosts.error().message;
  std::vector<sched::HostFacts> facts;
  for (const HostModel& host : *hosts) facts.push_back(host.facts);
  const sched::Decision decision = sched::place(job, facts, {});
  ASSERT_TRUE(decision.placement);
  EXPECT_EQ(decision.placement->host.value, "ada");
  EXPECT_EQ(decision.placement->gpu_uuids.size(), 4u);
  EXPECT_EQ(decision.rejections.size(), 2u);
}

TEST(HostsFile, SaysWhereItIsWrong) {
  const auto error = [](std::string_view text) {
    const auto hosts = parse_hosts_file(text, "h", a_job(0));
    EXPECT_FALSE(hosts) << text;
    return hosts ? std::string() : hosts.error().message;
  };
  EXPECT_THAT(error(""), HasSubstr("the file is empty"));
  EXPECT_THAT(error("hosts: []"), StartsWith("h:1:8: key 'hosts': expected a list of hosts"));
  EXPECT_THAT(error("host: []"), HasSubstr("did you mean 'hosts'"));
  EXPECT_THAT(error("hosts:\n  - {name: a, mtfb: 3h}"),
              StartsWith("h:2:15: key 'hosts[0].mtfb': not a known key; did you mean 'mtbf'"));
  EXPECT_THAT(error("hosts:\n  - {price: 3}"), HasSubstr("key 'hosts[0].name': expected a name"));
  EXPECT_THAT(error("hosts:\n  - {name: A b}"), StartsWith("h:2:12: key 'hosts[0].name': expected at most 63"));
  EXPECT_THAT(error("hosts: [{name: a}, {name: a}]"), HasSubstr("a second host with the name 'a'"));
  EXPECT_THAT(error("hosts:\n  - {name: a, price: -1}"),
              HasSubstr("key 'hosts[0].price': expected a decimal number from 0 to"));
  EXPECT_THAT(error("hosts:\n  - {name: a, price: nan}"), HasSubstr("got 'nan'"));
  EXPECT_THAT(error("hosts:\n  - {name: a, price: 1e300}"), HasSubstr("expected a decimal number"));
  EXPECT_THAT(error("hosts:\n  - {name: a, speed: 0}"), HasSubstr("key 'hosts[0].speed'"));
  EXPECT_THAT(error("hosts:\n  - {name: a, mtbf: 1s}"), HasSubstr("expected a duration from 1m to"));
  EXPECT_THAT(error("hosts:\n  - {name: a, mtbf: often}"), HasSubstr("got 'often'"));
  EXPECT_THAT(error("hosts:\n  - {name: a, mtbf: 3h, failures_per_hour: 1}"), HasSubstr("means the same as 'mtbf'"));
  EXPECT_THAT(error("hosts:\n  - {name: a, class: moon}"),
              HasSubstr("expected datacenter, cloud, market or home, got 'moon'"));
  EXPECT_THAT(error("hosts:\n  - {name: a, gpus: 'H100:many'}"), HasSubstr("key 'hosts[0].gpus'"));
  EXPECT_THAT(error("hosts:\n  - {name: a, count: 2000}"), HasSubstr("key 'hosts[0].count'"));
  EXPECT_THAT(error("hosts:\n  - {name: a, count: 600}\n  - {name: b, count: 600}"), HasSubstr("more than 1000 hosts"));
  EXPECT_THAT(error("hosts: [{name: a"), StartsWith("h:1:"));
}

}  // namespace
}  // namespace gridctl::forecast::hosts_file_test
