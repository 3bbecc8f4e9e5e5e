// SPDX-License-Identifier: Apache-2.0
#include "sched/query/query.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/text.hpp"
#include "support/results.hpp"

namespace gridctl::sched::query_test {
namespace {
using ::gridctl::testing::FailsWith;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct AHost {
  AHost() {
    inventory.cpus = 16;
    inventory.cpu.threads = 32;
    inventory.cpu.max_mhz = 5700;
    inventory.cpu.features = {"avx2"};
    inventory.cpu_model = "AMD Ryzen 9 7950X 16-Core Processor";
    inventory.arch = "x86_64";
    inventory.os = "Ubuntu 22.04.3 LTS";
    inventory.kernel = "6.1.0-18-amd64";
    inventory.cuda = "12.4";
    inventory.memory_bytes = 64ull << 30;
    inventory.disk_free_bytes = 500ull << 30;
    for (int i = 0; i < 2; ++i) {
      Gpu gpu;
      gpu.name = "NVIDIA GeForce RTX 4090";
      gpu.uuid = "GPU-" + std::to_string(i);
      gpu.memory_bytes = 24564ull << 20;
      gpu.driver = i == 0 ? "550.54.15" : "535.104.05";
      gpu.arch = "sm_89";
      gpu.power.cap_watts = 450;
      gpu.pcie.width = i == 0 ? 16 : 8;
      inventory.gpus.push_back(gpu);
    }
    figures = {{"inet_up", 230}, {"rtt", 12.5}, {"total_flops", 330}, {"verified", 1}};
  }
  [[nodiscard]] Subject subject() const {
    Subject s;
    s.name = name;
    s.state = state;
    s.region = region;
    s.host_class = host_class;
    s.engine = "auto";
    s.price_per_hour = 0.5;
    s.labels = &labels;
    s.inventory = &inventory;
    s.figures = &figures;
    return s;
  }
  std::string name = "ada", state = "answering", region = "DE-BY", host_class = "home";
  Inventory inventory;
  std::map<std::string, std::string> labels{{"rack", "7"}};
  Figures figures;
};

bool matches(const std::string& text, const AHost& host = {}) {
  const Result<Query> query = Query::parse(text);
  EXPECT_TRUE(query) << text << ": " << query.error().one_line();
  return query && query->matches(host.subject());
}

TEST(Query, AnswersWhatVastUsersType) {
  for (const char* text : {
           "",
           "gpu_name=RTX_4090 num_gpus>=2 reliability>0.98 geolocation in [DE,FI]",
           "reliability>0.9 num_gpus=2 gpu_name in [\"RTX 4090\",\"RTX 3090\"] geolocation notin [CN,VN] "
           "cuda_vers>=12.1 "
           "disk_space>146 inet_up>200",
           "gpu_ram >= 24 dph < 1 rentable=true verified=true",
           "gpu_ram>=24GB cpu_ram>=64 cpu_cores_effective=16 cpu_cores=32 cpu_ghz>5",
           "driver_version >= 535 driver_version < 550 compute_cap>=800 compute_cap=8.9",
           "datacenter=false has_avx ubuntu_version=22.04 gpu_arch=nvidia cpu_arch=amd64",
           "name eq ada, num_gpus gte 2, class neq market",
           "dlperf>100 dlperf_usd>200 flops_usd=660 gpu_max_power>=450 gpu_lanes<16",
           "os=ubuntu cpu_name='ryzen 9' label.rack=7 price=0.5 gpu_price=0.25",
       })
    EXPECT_TRUE(matches(text)) << text;
  for (const char* text :
       {"gpu_name=RTX_3090", "gpu_name=\"RTX 4090 Laptop\"", "num_gpus>2", "num_gpus<2", "gpu_ram>24", "gpu_ram>=40",
        "region=FI", "region=D", "geolocation notin [DE]", "cuda_vers>12.4", "cuda_vers<12.4", "inet_up>=1Gbps",
        "rentable=false", "datacenter", "label.rack=8", "driver_version>=535.105", "rtt<10ms", "has_avx=no"})
    EXPECT_FALSE(matches(text)) << text;
}

TEST(Query, TurnsTermsRound) {
  EXPECT_TRUE(matches("not region=FI"));
  EXPECT_TRUE(matches("!datacenter rentable"));
  EXPECT_FALSE(matches("not not region=FI"));
  EXPECT_FALSE(matches("not region notin [FI]"));
  EXPECT_TRUE(matches("region not in [FI,SE]"));
  EXPECT_TRUE(matches("name!=bob label.rack!=8 label.row!=1"));
}

TEST(Query, TakesRangesAndUnits) {
  EXPECT_TRUE(matches("gpu_ram=24GB.. num_gpus=2..4 price=..0.5 gpu_ram=16..24GB"));
  EXPECT_TRUE(matches("num_gpus in [1,2..3] cpu_ram=60GiB..70GiB inet_up=100Mbps..1Gbps"));
  EXPECT_FALSE(matches("num_gpus=3.."));
  EXPECT_FALSE(matches("gpu_ram=..16GB"));
  EXPECT_TRUE(matches("reliability>=90% mtbf>=3d mtbf<100h rtt<100ms price<$0.6"));
}

TEST(Query, TakesGpuNotationOfDstack) {
  EXPECT_TRUE(matches("RTX4090:2"));
  EXPECT_TRUE(matches("24GB.."));
  EXPECT_TRUE(matches("nvidia:RTX4090,A100:24GB..:1..4 price<1"));
  EXPECT_TRUE(matches("gpu=RTX_4090:2"));
  EXPECT_FALSE(matches("A100:2..4"));
  EXPECT_FALSE(matches("gpu=RTX4090:3"));
  EXPECT_FALSE(matches("not RTX4090:1..2"));
  EXPECT_TRUE(matches("gpu in [A100:1,RTX4090:1]"));
}

TEST(Query, DoesNotGuessWhatIsNotKnown) {
  AHost host;
  host.region.clear();
  host.figures.clear();
  EXPECT_FALSE(matches("region=DE", host));
  EXPECT_FALSE(matches("region!=DE", host));
  EXPECT_FALSE(matches("not region=DE", host));
  EXPECT_TRUE(matches("region=any inet_up=any", host));
  EXPECT_FALSE(matches("inet_up>0", host));
  EXPECT_FALSE(matches("not inet_up>0", host));
  EXPECT_FALSE(matches("verified", host));
  EXPECT_FALSE(matches("!verified", host));
}

TEST(Query, ExpectsOfAnUnwatchedHostWhatItsClassDoes) {
  AHost host;
  host.figures.clear();
  EXPECT_TRUE(matches("mtbf>90 mtbf<91 reliability>0.98", host));
  host.host_class = "datacenter";
  EXPECT_TRUE(matches("mtbf>6000", host));
  host.figures = {{"mtbf", 3}, {"reliability", 0.5}};
  EXPECT_TRUE(matches("mtbf=3 reliability<0.6", host));
}

TEST(Query, SaysWhyAHostDoesNotMatch) {
  const AHost host;
  const auto why = [&](const char* text) {
    const auto refusal = Query::parse(text)->refusal(host.subject());
    return refusal ? refusal->text + (refusal->passing ? " (for now)" : "") : "fits";
  };
  EXPECT_EQ(why("num_gpus>=2"), "fits");
  EXPECT_EQ(why("num_gpus>=2 gpu_ram>=40GB"), "gpu_ram>=40GB: it is 24 GiB");
  EXPECT_EQ(why("inet_up > 1Gbps"), "inet_up > 1Gbps: it is 230 Mbit/s (for now)");
  EXPECT_EQ(why("inet_up>1Gbps region=FI"), "region=FI: it is DE-BY");  // what waiting cannot cure comes first
  EXPECT_EQ(why("disk_bw>1"), "disk_bw>1: this is not known");
  EXPECT_EQ(why("cuda_vers>12.10"), "cuda_vers>12.10: it is 12.4");
  EXPECT_EQ(why("datacenter"), "datacenter: it is false");
  EXPECT_EQ(why("A100:2"), "A100:2: it has NVIDIA GeForce RTX 4090 (24 GiB), NVIDIA GeForce RTX 4090 (24 GiB)");
}

TEST(Query, NamesThePlaceOfAMistakeAndTheNearestField) {
  const std::pair<const char*, const char*> cases[] = {
      {"num_gpus>=2 gpu_nam=RTX_4090",
       "character 13 of the query: there is no field 'gpu_nam'; did you mean gpu_name?"},
      {"relibility>0.9", "character 1 of the query: there is no field 'relibility'; did you mean reliability?"},
      {"price<1 num_gpus", "character 17 of the query: after 'num_gpus' one of = != < <= > >= in notin must follow"},
      {"num_gpus>=", "character 11 of the query: expected a value here"},
      {"num_gpus>=two", "character 11 of the query: 'num_gpus' wants a number, not 'two'"},
      {"gpu_ram>=16..24",
       "character 10 of the query: 'gpu_ram' wants a number of GiB, or one with its unit, not '16..24'"},
      {"reliability>98", "character 13 of the query: 'reliability' wants a share such as 0.98 or 98%, not '98'"},
      {"region>DE", "character 7 of the query: 'region' cannot be ordered: use = != in notin"},
      {"region in [DE, FI", "character 11 of the query: this list has no ]"},
      {"region in []", "character 11 of the query: the list is empty"},
      {"name='ada", "character 6 of the query: this quote is not closed"},
      {"min_bid<1", "character 1 of the query: 'min_bid' has no meaning here: there are no auctions: use price"},
      {"rentable=maybe", "character 10 of the query: 'rentable' wants true or false, not 'maybe'"},
      {"=3", "character 1 of the query: expected a field here"},
      {"A100:0",
       "character 1 of the query: expected vendor:names:memory:count, e.g. A100,H100:40GB..:2, got 'A100:0'; "
       "the count must be 1 to 256"},
  };
  for (const auto& [text, message] : cases) {
    const Result<Query> query = Query::parse(text);
    ASSERT_THAT(query, FailsWith(Code::usage)) << text;
    EXPECT_EQ(query.error().message, message);
  }
}

TEST(Query, PointsAtTheMistake) {
  const Error error = Query::parse("num_gpus>=2 gpu_nam=RTX_4090").error();
  EXPECT_THAT(error.context, ElementsAre("  num_gpus>=2 gpu_nam=RTX_4090", "              ^"));
  const Error far = Query::parse(std::string(200, ' ') + "wrong\x1b=1").error();
  for (const std::string& line : far.context) EXPECT_TRUE(is_plain(line)) << line;
}

TEST(Query, HasLimits) {
  EXPECT_THAT(Query::parse(std::string(5000, ' ')), FailsWith(Code::usage));
  std::string many, list = "num_gpus in [";
  for (int i = 0; i < 65; ++i) many += "num_gpus>0 ";
  for (int i = 0; i < 300; ++i) list += "1,";
  EXPECT_THAT(Query::parse(many), FailsWith(Code::usage));
  EXPECT_THAT(Query::parse(list + "]"), FailsWith(Code::usage));
}

TEST(Query, SurvivesEveryPrefixAndEveryChangedByte) {
  const std::string text = "gpu_name in [\"RTX 4090\",A100] num_gpus=2..4 !datacenter nvidia:H100:80GB..:2 label.x!=y";
  for (std::size_t i = 0; i <= text.size(); ++i) (void)Query::parse(text.substr(0, i));
  for (std::size_t i = 0; i < text.size(); ++i)
    for (const char c : {'\0', ' ', '[', ']', '"', '=', '.', ':', '!', '\xff'}) {
      std::string changed = text;
      changed[i] = c;
      const Result<Query> query = Query::parse(changed);
      if (query) (void)query->matches(AHost().subject());
    }
}

TEST(QueryFields, HaveUniqueNamesAndWaysToReadThem) {
  std::set<std::string> names;
  for (const Field& field : query_fields()) {
    std::vector<std::string> own = split(field.aliases, ' ');
    own.emplace_back(field.name);
    std::erase(own, "");
    for (const std::string& name : own) EXPECT_TRUE(names.insert(name).second) << name;
    const bool special = field.unit == Unit::gpu_spec || field.name == "label.KEY";
    EXPECT_EQ(field.number == nullptr && field.texts == nullptr, special) << field.name;
    EXPECT_FALSE(field.meaning.empty());
  }
  for (const Foreign& foreign : foreign_fields()) EXPECT_TRUE(names.insert(std::string(foreign.name)).second);
  // Every field of Vast.ai's is known, be it with a meaning or with the reason why it has none.
  for (const char* name : {"bw_nvlink",
                           "compute_cap",
                           "cpu_arch",
                           "cpu_cores",
                           "cpu_cores_effective",
                           "cpu_ghz",
                           "cpu_ram",
                           "cuda_vers",
                           "datacenter",
                           "direct_port_count",
                           "disk_bw",
                           "disk_space",
                           "dlperf",
                           "dlperf_usd",
                           "dph",
                           "driver_version",
                           "duration",
                           "external",
                           "flops_usd",
                           "geolocation",
                           "gpu_arch",
                           "gpu_max_power",
                           "gpu_max_temp",
                           "gpu_mem_bw",
                           "gpu_name",
                           "gpu_ram",
                           "gpu_total_ram",
                           "gpu_frac",
                           "gpu_display_active",
                           "has_avx",
                           "id",
                           "inet_down",
                           "inet_down_cost",
                           "inet_up",
                           "inet_up_cost",
                           "machine_id",
                           "min_bid",
                           "num_gpus",
                           "pci_gen",
                           "pcie_bw",
                           "reliability",
                           "rentable",
                           "static_ip",
                           "storage_cost",
                           "total_flops",
                           "ubuntu_version",
                           "verified",
                           "vms_enabled"})
    EXPECT_TRUE(names.contains(name)) << name;
}

TEST(Order, SortsBySeveralFieldsAndPutsTheUnknownLast) {
  AHost ada, bob, cyd, dan;
  bob.name = "bob";
  cyd.name = "cyd";
  dan.name = "dan";
  bob.figures["inet_up"] = 500;
  cyd.figures.erase("inet_up");
  dan.figures["inet_up"] = 500;
  const auto sorted = [&](const char* text) {
    const Result<Order> order = Order::parse(text);
    EXPECT_TRUE(order) << order.error().message;
    std::vector<Subject> hosts{ada.subject(), bob.subject(), cyd.subject(), dan.subject()};
    std::stable_sort(hosts.begin(), hosts.end(),
                     [&](const Subject& a, const Subject& b) { return order->before(a, b); });
    std::string names;
    for (const Subject& host : hosts) names += host.name.substr(0, 1);
    return names;
  };
  EXPECT_EQ(sorted("name-"), "dcba");
  EXPECT_EQ(sorted("inet_up"), "abdc");
  EXPECT_EQ(sorted("inet_up-,name-"), "dbac");
  EXPECT_EQ(sorted("price inet_up- name"), "bdac");
  EXPECT_THAT(Order::parse("prise"), FailsWith(Code::usage));
  EXPECT_THAT(Order::parse("prise").error().message, HasSubstr("did you mean price?"));
  EXPECT_THAT(Order::parse(" "), FailsWith(Code::usage));
}

TEST(Query, TellsWhatItNeeds) {
  EXPECT_TRUE(Query::parse("inet_up>1")->asks(FieldSource::links));
  EXPECT_FALSE(Query::parse("price<1")->asks(FieldSource::links));
  EXPECT_TRUE(Order::parse("price,rtt")->asks(FieldSource::links));
  EXPECT_TRUE(Order::parse("latency")->asks(FieldSource::links)) << "another word for rtt";
}

TEST(VersionNumber, OrdersLikeVersionsDo) {
  EXPECT_LT(*version_number("12.1"), *version_number("12.10"));
  EXPECT_LT(*version_number("535.104.05"), *version_number("550"));
  EXPECT_EQ(version_number("6.1.0-18-amd64"), version_number("6.1"));
  EXPECT_FALSE(version_number("none"));
  EXPECT_EQ(version_text(*version_number("535.104.5")), "535.104.5");
  EXPECT_EQ(version_text(*version_number("12")), "12.0");
}

}  // namespace
}  // namespace gridctl::sched::query_test
