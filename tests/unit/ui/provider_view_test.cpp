// SPDX-License-Identifier: Apache-2.0
#include "ui/provider_view.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "ui/json.hpp"

namespace gridctl::ui::provider_view_test {
namespace {

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

ProviderView view_of_two() {
  ProviderView view;
  view.provider.name = HostName{"ada"};
  view.provider.address = "me@ada:22";
  view.provider.declared_gpus = "H100:4";
  Inventory& in = view.provider.inventory.edit();
  in.hostname = "ada";
  in.os = "Ubuntu 22.04";
  in.kernel = "6.8.0";
  in.cpus = 64;
  in.memory_bytes = 512ull << 30;
  for (int i = 0; i < 2; ++i) {
    Gpu gpu;
    gpu.name = "NVIDIA H100 80GB HBM3";
    gpu.model = i == 0 ? "H100 SXM5 80GB" : "";
    gpu.uuid = "GPU-" + std::to_string(i);
    gpu.memory_bytes = 85520809984;
    gpu.driver = "570.1";
    gpu.clocks.core_mhz = 345;
    gpu.clocks.core_max_mhz = 1980;
    gpu.power.cap_watts = 500;
    gpu.power.default_watts = 700;
    gpu.pcie = {1, 5, 16, 16};
    gpu.gaps = {{"units", GapReason::needs_bench, "nvidia-smi does not report it"}};
    in.gpus.push_back(std::move(gpu));
  }
  in.gpus[1].throttle = std::vector<std::string>{"sw_power_cap"};
  in.links = {{0, 1, LinkKind::nvlink, 18, {}}};
  in.disks = {{"/data", "xfs", "/dev/nvme0n1", DiskKind::nvme, 2ull << 40, 1ull << 40, false}};
  in.nics = {{"mlx5_0", "ib0", 1, NicKind::infiniband, true, 400e9, "MT4129", "0000:18:00.0", 0}};
  in.gaps = {{"oneapi", GapReason::not_applicable, "no GPU of intel"}};
  view.contradictions = {"declared H100:4, found 2 of that kind among its 2 GPUs"};
  view.history = {{1, HostName{"ada"}, WallTime{1700000000000}, "rebooted", "started anew"}};
  return view;
}

TEST(ProviderView, ShowsEachPartOfTheMachine) {
  const std::string text = provider_view(view_of_two(), WallTime{1700000100000}, 0, Style{});
  for (const char* part :
       {"contradiction  declared H100:4, found 2", "NVIDIA H100 80GB HBM3 = H100 SXM5 80GB", "(model uncertain)",
        "345 of 1980", "500 W, made for 700 W", "gen 1 of 5, x16", "held down: sw_power_cap", "NV18", "/data", "nvme",
        "mlx5_0 (ib0)", "400 Gbit/s", "units: needs_bench (nvidia-smi does not report it)",
        "oneapi: not_applicable (no GPU of intel)", "rebooted: started anew"})
    EXPECT_TRUE(contains(text, part)) << part << " in\n" << text;
}

TEST(ProviderView, ShowsHowReliableItIs) {
  ProviderView view = view_of_two();
  EXPECT_TRUE(contains(provider_view(view, WallTime{}, 0, Style{}), "?\n")) << "what its class lets expect";
  view.provider.figures = {{"mtbf", 96},          {"mtbf_low", 24},  {"mtbf_high", 504},
                           {"watched", 288},      {"failures", 3},   {"uptime", 0.992},
                           {"reliability", 0.99}, {"start_time", 8}, {"bench_drift", 0.12}};
  view.gpus["GPU-1"] = sched::estimate(sched::k_gpu_rate_per_hour, {{{0}, {3'600'000}, true}}, {7'200'000});
  const std::string text = provider_view(view, WallTime{}, 0, Style{});
  for (const char* part : {"4d (24h-21d)", "up 99.20 % of the time", "3 failures in 12d",
                           "9 of 10 jobs start in under 8s", "12 % slower than usual", ", 1 failure"})
    EXPECT_TRUE(contains(text, part)) << part << " in\n" << text;
}

TEST(ProviderView, MarksWhatOnlyABenchmarkTold) {
  ProviderView view = view_of_two();
  Gpu& gpu = view.provider.inventory.edit().gpus[0];
  gpu.units = 132;
  gpu.memory_bus_bits = 5120;
  view.measured["GPU-0"] = {"units", "memory_bus_bits"};
  const std::string text = provider_view(view, WallTime{}, 0, Style{});
  EXPECT_TRUE(contains(text, "memory bus of 5120 bits (measured: units, memory_bus_bits)")) << text;
  const auto value = nlohmann::json::parse(provider_detail_json(view))["inventory"]["gpus"];
  EXPECT_EQ(value[0]["units"], 132);
  EXPECT_EQ(value[0]["measured"].size(), 2u);
  EXPECT_FALSE(value[1].contains("measured"));
}

TEST(ProviderView, TellsToRescanWhenTheAgentWasOlder) {
  ProviderView view = view_of_two();
  view.provider.inventory.edit().version = 1;
  const std::string text = provider_view(view, WallTime{}, 0, Style{});
  EXPECT_TRUE(contains(text, "gridctl provider rescan ada"));
  EXPECT_FALSE(contains(text, "needs_bench"));
}

TEST(ProviderView, IsSafeForATerminalWhateverTheHostSays) {
  ProviderView view = view_of_two();
  Inventory& in = view.provider.inventory.edit();
  const std::string evil = "\x1b]0;owned\x07\n\x1b[2J";
  in.hostname = in.product = in.os = in.gpus[0].name = in.gpus[0].driver = in.disks[0].mount = evil;
  in.disks[0].source = in.nics[0].model = in.nics[0].interface = evil;
  in.gpus[1].throttle = std::vector<std::string>{evil};
  in.notes = {evil};
  in.gaps = {{evil, GapReason::denied, evil}};
  view.history[0].text = evil;
  view.contradictions = {evil};
  for (const std::size_t columns : {std::size_t{0}, std::size_t{80}})
    for (const char c : provider_view(view, WallTime{}, columns, Style{}))
      EXPECT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 0x20) << static_cast<int>(c);
}

TEST(ProviderView, CountsLinksWhereAMatrixWouldNotFit) {
  ProviderView view = view_of_two();
  Inventory& in = view.provider.inventory.edit();
  while (in.gpus.size() < 20) in.gpus.push_back(in.gpus[0]);
  in.links.clear();
  for (std::uint32_t a = 0; a < 20; ++a)
    for (std::uint32_t b = a + 1; b < 20; ++b) in.links.push_back({a, b, LinkKind::sys, {}, {}});
  EXPECT_TRUE(contains(provider_view(view, WallTime{}, 80, Style{}), "190 pairs"));
}

TEST(ProviderView, SaysShortlyWhatIsNowAndAtMost) {
  EXPECT_EQ(pcie_text({}), "-");
  EXPECT_EQ(pcie_text({4, 4, 16, 16}), "gen 4, x16");
  EXPECT_EQ(pcie_text({1, 4, 8, 16}), "gen 1 of 4, x8 of 16");
  EXPECT_EQ(pcie_text({{}, 5, {}, 8}), "gen ? of 5, x? of 8");
  EXPECT_EQ(power_text({}), "-");
  EXPECT_EQ(power_text({{}, 449.6, 450, {}}), "450 W");
  EXPECT_EQ(power_text({{}, {}, 450, {}}), "made for 450 W");
}

TEST(ProviderView, GivesScriptsAllOfIt) {
  ProviderView view = view_of_two();
  EXPECT_TRUE(nlohmann::json::parse(provider_detail_json(view))["standing"].is_null()) << "never looked at";
  view.provider.figures = {{"uptime", 0.99}, {"start_time", 8}, {"bench_drift", 0.12}};
  view.gpus["GPU-0"] = sched::estimate(sched::k_gpu_rate_per_hour, {{{0}, {3'600'000}, true}}, {7'200'000});
  view.standing.emplace();
  view.standing->units["GPU-1"] = {sched::UnitState::quarantined, "xid-79", "gone", {1000}, {2000}, 1, {1000}, 0, 0};
  view.standing->busy["GPU-0"] = "miner";
  const auto value = nlohmann::json::parse(provider_detail_json(view));
  EXPECT_EQ(value["name"], "ada");
  EXPECT_EQ(value["uptime"], 0.99);
  EXPECT_EQ(value["start_seconds_p90"], 8);
  EXPECT_EQ(value["bench_drift"], 0.12);
  EXPECT_EQ(value["gpu_reliability"][0]["uuid"], "GPU-0");
  EXPECT_EQ(value["gpu_reliability"][0]["failures"], 1);
  EXPECT_LT(value["gpu_reliability"][0]["mtbf_low_hours"], value["gpu_reliability"][0]["mtbf_hours"]);
  EXPECT_EQ(value["standing"]["state"], "ok");
  EXPECT_EQ(value["standing"]["gpus"][0]["uuid"], "GPU-1");
  EXPECT_EQ(value["standing"]["gpus"][0]["state"], "quarantined");
  EXPECT_EQ(value["standing"]["gpus"][0]["not_before"], "1970-01-01T00:00:02.000Z");
  EXPECT_EQ(value["standing"]["in_use"][0]["by"], "miner");
  EXPECT_EQ(value["gpus"].size(), 2u) << "the promised keys stay";
  EXPECT_EQ(value["declared_gpus"], "H100:4");
  EXPECT_EQ(value["contradictions"].size(), 1u);
  EXPECT_EQ(value["inventory"]["gpus"][0]["pcie"]["generation_max"], 5);
  EXPECT_EQ(value["inventory"]["gpus"][0]["gaps"][0]["reason"], "needs_bench");
  EXPECT_EQ(value["history"][0]["kind"], "rebooted");
}

}  // namespace
}  // namespace gridctl::ui::provider_view_test
