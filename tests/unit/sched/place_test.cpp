// SPDX-License-Identifier: Apache-2.0
#include "sched/place.hpp"

#include <map>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/sched/a_host.hpp"

namespace gridctl::sched::place_test {
namespace {
using ::testing::ElementsAre;
using ::testing::HasSubstr;

job::Spec a_job() {
  job::Spec spec;
  spec.name = "train";
  spec.image = "python:3.11";
  spec.run = "true";
  return spec;
}
job::Spec a_gpu_job(std::vector<std::string> names, int count = 1) {
  job::Spec spec = a_job();
  spec.resources.gpus = {{std::nullopt, std::move(names), std::nullopt, std::nullopt, count, count}};
  return spec;
}
std::vector<std::string> codes(const Decision& decision) {
  std::vector<std::string> out;
  for (const Rejection& no : decision.rejections) out.push_back(no.host.value + " " + no.code);
  return out;
}
std::string code_of(const job::Spec& spec, HostFacts host) {
  const Decision decision = place(spec, {std::move(host)}, {});
  return decision.placement ? "placed" : decision.rejections.at(0).code + (decision.could_ever_fit ? "?" : "");
}

TEST(Place, TakesTheCheapestThenTheFirstByName) {
  const Decision decision = place(a_job(), {AHost("cyd").at(1), AHost("bob").at(0.5), AHost("ada").at(0.5)}, {});
  ASSERT_TRUE(decision.placement);
  EXPECT_EQ(decision.placement->host.value, "ada");
  ASSERT_EQ(decision.runners_up.size(), 2u);
  EXPECT_EQ(decision.runners_up[0].host.value, "bob");
  EXPECT_THAT(decision.runners_up[0].reason, HasSubstr("later alphabetically"));
  EXPECT_THAT(decision.runners_up[1].reason, HasSubstr("more expensive"));
  EXPECT_THAT(decision.placement->reason, HasSubstr("cheapest of 3 suitable hosts"));
  EXPECT_TRUE(decision.could_ever_fit);
}

TEST(Place, DoesNotDependOnTheOrderOfHosts) {
  std::vector<HostFacts> hosts{AHost("ada").at(2), AHost("bob").at(1), AHost("cyd").at(1), AHost("dan").in("US")};
  job::Spec spec = a_job();
  spec.constraints.region_not = {"US"};
  for (HostFacts& host : hosts)
    if (host.region.empty()) host.region = "DE";
  const auto first = explain(place(spec, hosts, {}));
  std::reverse(hosts.begin(), hosts.end());
  EXPECT_EQ(explain(place(spec, hosts, {})), first);
}

// Thousands of hosts are considered on several threads.
TEST(Place, FindsOfThousandsWhatItFindsOfEachAlone) {
  std::mt19937 random(11);
  std::vector<HostFacts> hosts;
  for (int i = 0; i < 4001; ++i)
    hosts.push_back(
        AHost("h" + std::to_string(i)).at(0.25 * static_cast<double>(1 + random() % 8)).set([&](HostFacts& h) {
          h.region = random() % 4 == 0 ? "US" : "DE";
          if (random() % 4 == 0) h.cpus_free = 0;
        }));
  job::Spec spec = a_job();
  spec.constraints.region_not = {"US"};
  const std::vector<Avoid> avoided{{HostName{"h7"}, "exit 1"}, {HostName{"h3999"}, "exit 1"}};
  const Decision decision = place(spec, hosts, avoided);
  ASSERT_TRUE(decision.placement);
  std::map<std::string, std::string> expected;
  std::vector<std::pair<double, std::string>> fitting;
  for (const HostFacts& host : hosts) {
    const Decision alone = place(spec, {host}, {});
    if (!alone.placement) expected[host.name.value] = alone.rejections.at(0).code;
    else if (host.name.value == "h7" || host.name.value == "h3999") expected[host.name.value] = "avoided";
    else fitting.emplace_back(host.price_per_hour, host.name.value);
  }
  std::map<std::string, std::string> rejected;
  for (const Rejection& no : decision.rejections) rejected[no.host.value] = no.code;
  EXPECT_EQ(rejected, expected);
  EXPECT_EQ(decision.rejections.size(), expected.size());
  EXPECT_EQ(decision.fitting, fitting.size());
  std::sort(fitting.begin(), fitting.end());
  EXPECT_EQ(decision.placement->host.value, fitting[0].second);
  for (std::size_t i = 0; i < decision.runners_up.size(); ++i)
    EXPECT_EQ(decision.runners_up[i].host.value, fitting[i + 1].second);
}

TEST(Place, RefusesEachHostWithItsReason) {
  job::Spec spec = a_gpu_job({"A100"});
  spec.constraints.region_in = {"DE", "FI"};
  spec.constraints.max_price = 1.5;
  spec.constraints.classes = {"home"};
  spec.constraints.labels = {{"rack", "7"}};
  const auto good = [&](const char* name) {
    return AHost(name).with_gpus(1, "NVIDIA A100-SXM4-80GB", 81920).in("DE").at(1).set([](HostFacts& h) {
      h.labels["rack"] = "7";
    });
  };
  const auto but = [&](auto change) { return code_of(spec, good("ada").set(change)); };
  EXPECT_EQ(but([](HostFacts&) {}), "placed");
  EXPECT_EQ(but([](HostFacts& h) { h.region = "de-by"; }), "placed");
  EXPECT_EQ(but([](HostFacts& h) { h.region = "US"; }), "region");
  EXPECT_EQ(but([](HostFacts& h) { h.region = ""; }), "region");
  EXPECT_EQ(but([](HostFacts& h) { h.price_per_hour = 1.51; }), "price");
  EXPECT_EQ(but([](HostFacts& h) { h.host_class = "cloud"; }), "class");
  EXPECT_EQ(but([](HostFacts& h) { h.labels["rack"] = "8"; }), "label");
  EXPECT_EQ(but([](HostFacts& h) { h.labels.clear(); }), "label");
  EXPECT_EQ(but([](HostFacts& h) { h.drained = true; }), "drained");
  EXPECT_EQ(but([](HostFacts& h) { h.inventory.edit().gpus[0].name = "NVIDIA H100"; }), "gpu");
  EXPECT_EQ(but([](HostFacts& h) { h.inventory.edit().gpus.clear(); }), "gpu");
  EXPECT_EQ(but([](HostFacts& h) { h.reachable = false; }), "unreachable?");
  EXPECT_EQ(but([](HostFacts& h) { h.busy_gpus = {"ada-gpu0"}; }), "busy?");
  EXPECT_EQ(but([](HostFacts& h) { h.cpus_free = 0; }), "busy?");
  // what waiting cannot cure is named first
  EXPECT_EQ(but([](HostFacts& h) {
              h.reachable = false;
              h.region = "US";
            }),
            "region");
  EXPECT_EQ(but([](HostFacts& h) {
              h.reachable = false;
              h.inventory.edit().gpus.clear();
            }),
            "gpu");
}

TEST(Place, KeepsPrivateJobsOffLentHosts) {
  job::Spec spec = a_job();
  const auto lent = [](HostFacts& h) { h.labels["lent"] = "true"; };
  const auto market = [](HostFacts& h) { h.host_class = "market"; };
  spec.image.clear();
  EXPECT_EQ(code_of(spec, AHost("ada").set(market)), "placed");
  spec.constraints.is_private = true;
  EXPECT_EQ(code_of(spec, AHost("ada").set(market)), "sensitivity");
  EXPECT_EQ(code_of(spec, AHost("ada").set(lent)), "sensitivity");
  EXPECT_EQ(code_of(spec, AHost("ada").set([](HostFacts& h) { h.labels["lent"] = "false"; })), "placed");
  EXPECT_EQ(code_of(spec, AHost("ada")), "placed");
}

TEST(Place, ChecksCpusMemoryAndDisk) {
  job::Spec spec = a_job();
  spec.resources = {{}, 16, 0, 0};
  EXPECT_EQ(code_of(spec, AHost("ada")), "cpus");
  spec.resources = {{}, 0, 64ull << 30, 0};
  EXPECT_EQ(code_of(spec, AHost("ada")), "memory");
  spec.resources = {{}, 0, 0, 500ull << 30};
  EXPECT_EQ(code_of(spec, AHost("ada")), "disk");
  spec.resources = {{}, 4, 16ull << 30, 50ull << 30};
  const Decision decision = place(spec, {AHost("ada")}, {});
  ASSERT_TRUE(decision.placement);
  EXPECT_EQ(decision.placement->cpus, 4);
  EXPECT_EQ(decision.placement->memory_bytes, 16ull << 30);
  EXPECT_EQ(code_of(spec, AHost("ada").set([](HostFacts& h) { h.memory_free = 1ull << 30; })), "busy?");
}

TEST(Place, CountsTenthsOfCpusSoThatTheLastOneFits) {
  for (const double share : {0.1, 0.2, 0.3, 0.7, 1.0 / 3}) {
    HostFacts host = AHost("ada").set([](HostFacts& h) { h.inventory.edit().cpus = 2.1; });
    job::Spec spec;
    spec.resources.cpus = share;
    int placed = 0;
    for (; place(spec, {host}, {}).placement; ++placed) take_away(host, {}, share, 0);
    EXPECT_EQ(placed, static_cast<int>(2.1001 / share)) << share;
  }
}

TEST(Place, GivesNothingToAStrangerWhoseRegionIsImpossible) {
  const auto lie = [](HostFacts& h) { h.region_doubt = "declared DE, but 0.3 ms from a landmark in US"; };
  const HostFacts market = AHost("bob").in("DE").at(1).set(lie).set([](HostFacts& h) { h.host_class = "market"; });
  const HostFacts lent = AHost("eve").in("DE").at(1).set(lie).set([](HostFacts& h) { h.labels["lent"] = "true"; });
  for (const HostFacts& host : {market, lent}) {
    const Decision decision = place({}, {host}, {});
    EXPECT_FALSE(decision.could_ever_fit) << host.name.value;
    EXPECT_EQ(decision.rejections[0].code, "region");
  }
}

TEST(Place, DoesNotBelieveARegionThatIsImpossible) {
  const HostFacts honest = AHost("ada").in("DE").at(2);
  const HostFacts lying = AHost("bob").in("DE").at(1).set(
      [](HostFacts& h) { h.region_doubt = "declared DE, but 0.3 ms from a landmark in US"; });
  job::Spec spec;
  EXPECT_EQ(place(spec, {honest, lying}, {}).placement->host.value, "bob");  // who asks for no region is not concerned
  spec.constraints.region_in = {"DE"};
  const Decision decision = place(spec, {honest, lying}, {});
  EXPECT_EQ(decision.placement->host.value, "ada");
  EXPECT_EQ(decision.rejections[0].code, "region");
  EXPECT_EQ(decision.rejections[0].detail, "declared DE, but 0.3 ms from a landmark in US");
  spec.constraints = {};
  spec.constraints.region_not = {"US"};
  EXPECT_FALSE(place(spec, {lying}, {}).could_ever_fit);
  spec.constraints = {};
  spec.constraints.query = "region=DE";
  EXPECT_FALSE(place(spec, {lying}, {}).could_ever_fit);
}

TEST(Place, LeavesAHostAloneThatRestsAndNamesWhatIsBusyThere) {
  HostFacts host = AHost("ada");
  host.resting = "the next try is at 12:00";
  Decision decision = place({}, {host}, {});
  EXPECT_FALSE(decision.placement);
  EXPECT_TRUE(decision.could_ever_fit);
  EXPECT_EQ(decision.rejections[0].code, "resting");
  EXPECT_EQ(decision.rejections[0].detail, "the next try is at 12:00");
  take_away(host, {}, 8, 0);
  decision = place({}, {host}, {});
  EXPECT_EQ(decision.rejections[0].code, "resting");
  EXPECT_EQ(decision.rejections[0].detail, "the next try is at 12:00; busy, too: 0 of its 8 CPUs are free, wanted 1");
}

TEST(Place, GivesAJobWithoutCpusOneCpu) {
  EXPECT_EQ(place(a_job(), {AHost("ada")}, {}).placement->cpus, 1);
  EXPECT_EQ(place(a_job(), {AHost("ada").set([](HostFacts& h) { h.inventory.edit().cpus = 0.5; })}, {}).placement->cpus, 0.5);
}

TEST(Place, TellsGpuMemoryFromModelAndCount) {
  job::Spec spec = a_gpu_job({"A100"}, 2);
  EXPECT_EQ(code_of(spec, AHost("a").with_gpus(1, "NVIDIA A100-SXM4-80GB", 81920)), "gpu_count");
  spec.resources.gpus[0].memory_min = 60'000'000'000;
  EXPECT_EQ(code_of(spec, AHost("a").with_gpus(2, "NVIDIA A100-SXM4-40GB", 40960)), "gpu_memory");
  EXPECT_EQ(code_of(spec, AHost("a").with_gpus(2, "NVIDIA H100 PCIe", 81559)), "gpu");
  EXPECT_EQ(code_of(spec, AHost("a").with_gpus(2, "NVIDIA A100-SXM4-80GB", 81920)), "placed");
}

TEST(Place, LeasesFreeGpusOnlyAndUpToTheMaximum) {
  job::Spec spec = a_gpu_job({"L4"}, 2);
  spec.resources.gpus[0].count_max = 3;
  HostFacts host = AHost("ada").with_gpus(5, "NVIDIA L4", 23034);
  host.busy_gpus = {"ada-gpu1"};
  EXPECT_THAT(place(spec, {host}, {}).placement->gpu_uuids, ElementsAre("ada-gpu0", "ada-gpu2", "ada-gpu3"));
  host.busy_gpus = {"ada-gpu0", "ada-gpu1", "ada-gpu2"};
  EXPECT_THAT(place(spec, {host}, {}).placement->gpu_uuids, ElementsAre("ada-gpu3", "ada-gpu4"));
  host.busy_gpus.push_back("ada-gpu3");
  EXPECT_EQ(code_of(spec, host), "busy?");
}

TEST(Place, PrefersOneModelAndNeverMixesVendors) {
  job::Spec spec = a_job();
  spec.resources.gpus = {{std::nullopt, {}, std::nullopt, std::nullopt, 2, 2}};
  HostFacts mixed = AHost("ada").with_gpus(1, "NVIDIA L4", 23034).with_gpus(2, "NVIDIA L40S", 46068);
  EXPECT_THAT(place(spec, {mixed}, {}).placement->gpu_uuids, ElementsAre("ada-gpu1", "ada-gpu2"));
  spec.resources.gpus[0].count_min = spec.resources.gpus[0].count_max = 3;
  EXPECT_EQ(place(spec, {mixed}, {}).placement->gpu_uuids.size(), 3u);
  const HostFacts vendors =
      AHost("ada").with_gpus(2, "NVIDIA L4", 23034).with_gpus(1, "AMD Instinct MI210", 65520, Vendor::amd);
  EXPECT_EQ(code_of(spec, vendors), "gpu_count");
}

TEST(Place, TakesAnEarlierAlternativeBeforeACheaperHost) {
  job::Spec spec = a_gpu_job({"H100"});
  spec.resources.gpus.push_back({std::nullopt, {"A100"}, std::nullopt, std::nullopt, 1, 1});
  const HostFacts h100 = AHost("zoe").with_gpus(1, "NVIDIA H100 PCIe", 81559).at(3);
  const HostFacts a100 = AHost("ada").with_gpus(1, "NVIDIA A100-SXM4-80GB", 81920).at(1);
  EXPECT_EQ(place(spec, {a100, h100}, {}).placement->host.value, "zoe");
  EXPECT_THAT(place(spec, {a100, h100}, {}).runners_up[0].reason, HasSubstr("later choice"));
  EXPECT_EQ(place(spec, {a100}, {}).placement->host.value, "ada");
}

TEST(Place, ChoosesAnEngineThatWorks) {
  const auto engine_for = [](const job::Spec& spec, auto change) -> std::string {
    const Decision d = place(spec, {AHost("ada").set(change)}, {});
    return d.placement ? std::string(engine_name(d.placement->engine)) : d.rejections.at(0).code;
  };
  job::Spec image = a_job(), plain = a_job();
  plain.image.clear();
  EXPECT_EQ(engine_for(image, [](HostFacts&) {}), "docker");
  EXPECT_EQ(engine_for(image, [](HostFacts& h) { h.engine = EngineKind::podman; }), "podman");
  EXPECT_EQ(engine_for(image, [](HostFacts& h) { h.inventory.edit().engines[0].problem = "no permission"; }), "podman");
  EXPECT_EQ(engine_for(image, [](HostFacts& h) { h.inventory.edit().engines[0].limits_enforced = false; }), "podman");
  EXPECT_EQ(engine_for(image,
                       [](HostFacts& h) {
                         h.engine = EngineKind::docker;
                         h.inventory.edit().engines[0].problem = "x";
                       }),
            "engine");
  EXPECT_EQ(engine_for(image, [](HostFacts& h) { h.inventory.edit().engines.clear(); }), "engine");
  EXPECT_EQ(engine_for(image, [](HostFacts& h) { h.engine = EngineKind::process; }), "engine");
  EXPECT_EQ(engine_for(plain, [](HostFacts&) {}), "process");
  EXPECT_EQ(engine_for(plain, [](HostFacts& h) { h.engine = EngineKind::docker; }), "engine");
  EXPECT_EQ(engine_for(plain, [](HostFacts& h) { h.inventory.edit().engines[2].problem = "no bash"; }), "engine");
}

TEST(Place, GivesHostsOfOthersImagesByDigestOnly) {
  const HostFacts own = AHost("ada");
  const HostFacts lent = AHost("ada").set([](HostFacts& h) { h.labels["lent"] = "true"; });
  const HostFacts market = AHost("ada").set([](HostFacts& h) { h.host_class = "market"; });
  job::Spec spec = a_job();
  EXPECT_EQ(code_of(spec, own), "placed");
  EXPECT_EQ(code_of(spec, lent), "image_tag?") << "its registry may still say the digest";
  EXPECT_EQ(code_of(spec, market), "image_tag?");
  HostFacts offline = lent;
  offline.image_problems["python:3.11"] = "registry docker.io: no route";
  EXPECT_THAT(place(spec, {offline}, {}).rejections[0].detail,
              testing::AllOf(HasSubstr("image python:3.11 is a tag: registry docker.io: no route; name the image as docker.io/library/python@sha256:…"),
                             HasSubstr("constraints: {images: tags}")));
  spec.image_digests["python:3.11"] = "sha256:" + std::string(64, 'a');
  EXPECT_EQ(code_of(spec, lent), "placed");
  spec.image_digests.clear();
  spec.constraints.image_tags = true;
  EXPECT_EQ(code_of(spec, lent), "placed");
  spec = a_job();
  spec.image = "localhost/mine:1";
  EXPECT_EQ(code_of(spec, own), "placed");
  EXPECT_EQ(code_of(spec, lent), "image_tag") << "waiting cures nothing";
  spec.image_is_archive = true;
  EXPECT_EQ(code_of(spec, lent), "placed");
  spec = a_gpu_job({"H100"});
  EXPECT_EQ(code_of(spec, lent), "gpu") << "what no registry can cure comes first";
}

TEST(Place, StaysAwayFromAvoidedHostsWhileAnotherMayTakeTheJob) {
  const std::vector<Avoid> avoided{{HostName{"ada"}, "exit 139 there"}};
  const Decision other = place(a_job(), {AHost("ada").at(0), AHost("bob").at(9)}, avoided);
  EXPECT_EQ(other.placement->host.value, "bob");
  EXPECT_THAT(codes(other), ElementsAre("ada avoided"));
  const Decision wait =
      place(a_job(), {AHost("ada"), AHost("bob").set([](HostFacts& h) { h.cpus_free = 0; })}, avoided);
  EXPECT_FALSE(wait.placement);
  EXPECT_TRUE(wait.could_ever_fit);
  EXPECT_THAT(codes(wait), ElementsAre("ada avoided", "bob busy"));
}

TEST(Place, TakesAnAvoidedHostWhenNoOtherCanAndSaysSo) {
  const std::vector<Avoid> avoided{{HostName{"ada"}, "exit 139 there"}};
  const auto gone = [](HostFacts& h) { h.reachable = false; };
  for (const HostFacts& other :
       {HostFacts(AHost("bob").set(gone)), HostFacts(AHost("bob").set([](HostFacts& h) { h.drained = true; }))}) {
    const Decision decision = place(a_job(), {AHost("ada"), other}, avoided);
    ASSERT_TRUE(decision.placement);
    EXPECT_EQ(decision.placement->host.value, "ada");
    EXPECT_THAT(decision.placement->reason, HasSubstr("gridctl would avoid it (exit 139 there)"));
  }
}

TEST(Place, LetsAvoidedHostsTakeTurnsWhenThereAreNoOthers) {
  const std::vector<Avoid> avoided{{HostName{"bob"}, "exit 1"}, {HostName{"ada"}, "exit 1"}};
  const Decision decision = place(a_job(), {AHost("ada"), AHost("bob").at(9)}, avoided);
  ASSERT_TRUE(decision.placement);
  EXPECT_EQ(decision.placement->host.value, "bob");
}

TEST(Place, TwoAvoidedHostsDoNotWaitForEachOther) {
  const std::vector<Avoid> avoided{{HostName{"ada"}, "exit 1"}, {HostName{"bob"}, "exit 1"}};
  const Decision decision =
      place(a_job(), {AHost("ada"), AHost("bob").set([](HostFacts& h) { h.cpus_free = 0; })}, avoided);
  ASSERT_TRUE(decision.placement);
  EXPECT_EQ(decision.placement->host.value, "ada");
}

TEST(Place, HonoursAPin) {
  job::Spec spec = a_job();
  spec.constraints.providers = {"bob"};
  const Decision decision = place(spec, {AHost("ada"), AHost("bob").at(9)}, {{HostName{"bob"}, "exit 1"}});
  EXPECT_EQ(decision.placement->host.value, "bob");
  EXPECT_THAT(codes(decision), ElementsAre("ada pinned"));
}

TEST(Place, RefusesSeveralHostsPerJob) {
  job::Spec spec = a_job();
  spec.num_nodes = 2;
  EXPECT_EQ(code_of(spec, AHost("ada")), "nodes");
}

TEST(Explain, NamesTheChoiceTheOthersAndEachReason) {
  job::Spec spec = a_gpu_job({"A100"}, 2);
  spec.resources.gpus[0].memory_min = 60'000'000'000;
  const Decision decision =
      place(spec,
            {AHost("ada").with_gpus(2, "NVIDIA A100-SXM4-80GB", 81920).at(1.2),
             AHost("bob").with_gpus(2, "NVIDIA A100-SXM4-80GB", 81920).at(1.3),
             AHost("cyd").with_gpus(2, "NVIDIA A100-SXM4-40GB", 40960),
             AHost("dan").with_gpus(2, "NVIDIA A100-SXM4-80GB", 81920).set([](HostFacts& h) { h.reachable = false; })},
            {});
  EXPECT_THAT(
      explain(decision),
      ElementsAre(
          "placed on ada: cheapest of 2 suitable hosts: 2x NVIDIA A100-SXM4-80GB (80 GiB), docker, 1.20 "
          "USD/h, 0.61 USD per A100-hour of work, failures included",
          "fault tolerance 1 of 4: no checkpoint yet, so the job would start over on the other suitable host",
          "bob would do equally well: more expensive: 2x NVIDIA A100-SXM4-80GB (80 GiB), docker, 1.30 USD/h, 0.66 USD per "
          "A100-hour of work, failures included",
          "cyd cannot (gpu_memory): it has 2x NVIDIA A100-SXM4-40GB (40 GiB), wanted A100:60GB..:2",
          "dan cannot (unreachable, for now): it does not answer"));
}

TEST(Explain, TellsWhatBecomesOfTheJobWhenItsHostIsLost) {
  const auto level = [](const job::Spec& spec, const std::vector<HostFacts>& hosts, bool drilled = true) {
    JobKnowledge known = knowledge_of(spec);
    known.drilled = drilled;
    return place(spec, hosts, {}, known).tolerance->level;
  };
  job::Spec forgetful = a_job();
  forgetful.checkpoint.interval = job::CheckpointPolicy::Interval::off;
  EXPECT_EQ(level(forgetful, {AHost("ada"), AHost("bob")}), 1);
  EXPECT_EQ(level(a_job(), {AHost("ada")}), 2);
  EXPECT_EQ(level(a_job(), {AHost("ada"), AHost("bob")}), 3);
  EXPECT_EQ(level(a_job(), {AHost("ada"), AHost("bob")}, false), 1) << "nobody has seen a checkpoint of it";
  EXPECT_FALSE(place(a_job(), {}, {}).tolerance);
}

TEST(Explain, FollowsTheFirstCheckpoint) {
  const auto told = [](const std::vector<HostFacts>& hosts, bool drilled) {
    JobKnowledge known = knowledge_of(a_job());
    known.drilled = drilled;
    return explain(place(a_job(), hosts, {}, known))[1];
  };
  for (const std::vector<HostFacts>& hosts : {std::vector<HostFacts>{AHost("ada"), AHost("bob")}, {AHost("ada"), AHost("bob"), AHost("cyd")}}) {
    EXPECT_NE(told(hosts, false), told(hosts, true));
    EXPECT_EQ(explained_with_checkpoint(told(hosts, false)), told(hosts, true));
    EXPECT_EQ(explained_with_checkpoint(told(hosts, true)), told(hosts, true));
  }
  EXPECT_EQ(explained_with_checkpoint(told({AHost("ada")}, false)),
            "fault tolerance 2 of 4: if it dies, the job waits for another host and continues from its last checkpoint");
}

TEST(Explain, CountsTheReasonsOfAPendingJob) {
  const Decision decision =
      place(a_gpu_job({"A100"}),
            {AHost("ada"), AHost("bob"),
             AHost("cyd").with_gpus(1, "NVIDIA A100-SXM4-80GB", 81920).set([](HostFacts& h) { h.reachable = false; })},
            {});
  EXPECT_EQ(summary(decision), "0 of 3 providers fit: 2 gpu, 1 unreachable");
  EXPECT_EQ(summary(place(a_job(), {}, {})), "no provider is registered");
  EXPECT_FALSE(place(a_job(), {}, {}).could_ever_fit);
}
}  // namespace
}  // namespace gridctl::sched::place_test
