// SPDX-License-Identifier: Apache-2.0
// A device's name against the device: recorded on an H200, and every pair of the catalogue.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "a_host.hpp"
#include "base/inventory.hpp"
#include "base/text.hpp"
#include "sched/place.hpp"
#include "sched/standing/verdict.hpp"

namespace gridctl::sched::verdict_declared_test {
namespace {

using nlohmann::json;

// Reads a recorded report, and adds the driver's word, which the reports of that day did not keep.
Examination recorded(const std::string& name) {
  std::ifstream file(std::string(GRIDCTL_SOURCE_DIR) + "/tests/data/h200/" + name + ".json");
  std::stringstream text;
  text << file.rdbuf();
  const json report = json::parse(text.str());
  Examination found;
  found.declared = parse_inventory(report["inventory"].dump())->gpus.at(0);
  const json& figures = report["figures"];
  found.units = report["driver"]["units"].get<std::uint32_t>();
  found.memory_reported = report["driver"]["memory_bytes"].get<double>();
  found.memory_hashed = figures["memory_hashed_bytes"].get<double>();
  found.driver = {"NVIDIA H200", found.declared.uuid, "sm_90", "10de:2335"};
  for (const auto& [figure, metric] : {std::pair{"gemm16_tflops", Metric::gemm16},
                                       {"fp32_tflops", Metric::fp32},
                                       {"memory_hash_gbs", Metric::memory_fill},
                                       {"memory_read_gbs", Metric::memory_read},
                                       {"memory_copy_gbs", Metric::memory_copy},
                                       {"h2d_gbs", Metric::host_copy},
                                       {"d2h_gbs", Metric::host_copy}})
    found.readings.push_back({metric, Tool::gridctl_cuda, figures[figure].get<double>()});
  if (figures.contains("sustained_part")) found.sustained = figures["sustained_part"].get<double>();
  return found;
}

std::string findings_of(const GpuVerdict& verdict) {
  std::string text(verdict_name(verdict.kind));
  for (const GpuFinding& one : verdict.findings) text += "\n  " + std::string(verdict_name(one.kind)) + " " + one.text;
  return text;
}
bool says(const GpuVerdict& verdict, const std::string& part) {
  return findings_of(verdict).find(part) != std::string::npos;
}

struct Declaration {
  const char* name;
  std::uint64_t mib;
};
constexpr Declaration k_false[] = {{"NVIDIA B200", 183359},
                                   {"NVIDIA H100 PCIe", 81559},
                                   {"NVIDIA A100-SXM4-80GB", 81920},
                                   {"NVIDIA A100-SXM4-40GB", 40960},
                                   {"NVIDIA L40S", 46068},
                                   {"NVIDIA GeForce RTX 4090", 24564},
                                   {"NVIDIA RTX A6000", 49140},
                                   {"Tesla V100-SXM2-32GB", 32768},
                                   {"NVIDIA L4", 23034},
                                   {"Tesla T4", 15360}};

TEST(Declarations, AnHonestMachineIsOk) {
  for (const char* report : {"bench-full", "bench-quick"}) {
    Examination found = recorded(report);
    // Full load meets the power cap.
    found.loaded = found.declared;
    found.loaded->throttle = {{"sw_power_cap"}};
    const GpuVerdict verdict = judge(found);
    EXPECT_EQ(verdict_name(verdict.kind), "ok") << findings_of(verdict);
    EXPECT_EQ(verdict.cause, "");
  }
}

TEST(Declarations, EveryRecordedLieIsAMismatch) {
  for (const char* report : {"declared-b200", "declared-h100-pcie", "declared-rtx-4090", "declared-t4"}) {
    const GpuVerdict verdict = judge(recorded(report));
    EXPECT_EQ(verdict_name(verdict.kind), "mismatch") << report << ": " << findings_of(verdict);
  }
  const GpuVerdict verdict = judge(recorded("declared-t4"));
  EXPECT_TRUE(says(verdict,
                   "named Tesla T4; compute capability 9.0, a T4 has 7.5; 143155 MiB, a T4 has 16 GB; "
                   "132 multiprocessors, a T4 has 40; PCI device 10de:2335 is an H200 SXM"))
      << findings_of(verdict);
  EXPECT_TRUE(says(verdict, "the tools say the name is Tesla T4, the driver says NVIDIA H200")) << findings_of(verdict);
}

TEST(Declarations, TenNamesOfTenAreFoundWhoeverLies) {
  for (const Declaration& lie : k_false) {
    Examination tools = recorded("bench-quick");
    tools.declared.name = lie.name;
    tools.declared.model.clear();
    tools.declared.memory_bytes = lie.mib << 20;
    EXPECT_EQ(verdict_name(judge(tools).kind), "mismatch") << lie.name << ": the tools lie";
    // A shim before the driver calls it so too; what the device is gives it away.
    Examination both = tools;
    both.driver = {lie.name, both.driver.uuid, "", ""};
    EXPECT_EQ(verdict_name(judge(both).kind), "mismatch") << lie.name << ": the driver lies too";
    // And one that says nothing wrong at all is caught by a figure, unless the card is the better one.
    const ModelMatch named = find_model(GpuClues{Vendor::nvidia, lie.name, lie.mib << 20});
    ASSERT_NE(named.model, nullptr) << lie.name;
    Examination all = both;
    all.declared.arch = all.driver.isa = named.model->isa;
    all.units = named.model->units;
    all.memory_reported = static_cast<double>(lie.mib << 20);
    all.memory_hashed = all.memory_reported * 0.97;
    EXPECT_GE(judge(all).kind, VerdictKind::degraded) << lie.name << ": " << findings_of(judge(all));
  }
}

TEST(Declarations, AnUnknownNameIsUnverifiedAndNeverOk) {
  for (const char* name : {"NVIDIA X9000", "NVIDIA H200 Ultra", "GRID A40-8Q", "NVIDIA Stub", ""}) {
    Examination found = recorded("bench-quick");
    found.declared.name = found.driver.name = name;
    found.declared.model.clear();
    EXPECT_EQ(verdict_name(judge(found).kind), "unverified") << name << ": " << findings_of(judge(found));
  }
}

TEST(Declarations, EachModelNamedAsEachOtherOfAnotherArchitectureOrMemoryIsAMismatch) {
  int pairs = 0;
  for (const GpuModel& real : catalogue())
    for (const GpuModel& told : catalogue()) {
      if (real.vendor != told.vendor || real.family == "gaudi" || told.family == "gaudi") continue;
      const auto shown = static_cast<std::uint64_t>(real.memory_gb * 1.03e9);
      const bool same_isa = real.isa == told.isa || !(real.isa.starts_with("sm_") || real.isa.starts_with("gfx"));
      const bool halved = memory_is_nominal(shown, told.memory_gb / 2);  // a die of two
      if (same_isa && (memory_is_nominal(shown, told.memory_gb) || halved)) continue;
      Examination found;
      found.declared.vendor = real.vendor;
      found.declared.name = told.aliases.empty() ? told.key : told.aliases.front();
      found.declared.memory_bytes = shown;
      found.declared.arch = real.isa;
      found.declared.units = real.units;
      found.units = real.units;
      found.memory_reported = static_cast<double>(shown);
      ++pairs;
      EXPECT_EQ(verdict_name(judge(found).kind), "mismatch")
          << real.key << " named " << found.declared.name << ": " << findings_of(judge(found));
    }
  std::printf("FIGURE %d pairs of another architecture or memory, all found\n", pairs);
  EXPECT_GT(pairs, 1000);
}

TEST(Declarations, BoardsOfOtherSizesAreNoLiars) {
  struct Board {
    const char* name;
    double gb;
    std::uint32_t units;
    const char* isa;
  };
  for (const Board& board :
       {Board{"NVIDIA GeForce RTX 3060", 8, 28, "sm_86"}, Board{"NVIDIA GeForce RTX 4090", 48, 128, "sm_89"},
        Board{"NVIDIA H100 96GB HBM3", 96, 132, "sm_90"}, Board{"Tesla M40 24GB", 24, 24, "sm_52"}}) {
    Examination found;
    found.declared.name = board.name;
    found.declared.uuid = "GPU-1";
    found.declared.memory_bytes = static_cast<std::uint64_t>(board.gb * 1.07e9);
    found.declared.arch = board.isa;
    found.units = board.units;
    found.memory_reported = board.gb * 1.06e9;
    EXPECT_EQ(verdict_name(judge(found).kind), "unverified") << board.name << ": " << findings_of(judge(found));
  }
}

TEST(Declarations, TwoRunsMustDoubtASpeed) {
  Examination slow = recorded("bench-quick");
  for (Reading& reading : slow.readings)
    if (reading.metric == Metric::fp32) reading.value *= 0.7;
  const GpuVerdict first = judge(slow), calm = judge(recorded("bench-quick"));
  EXPECT_EQ(verdict_name(first.kind), "degraded");
  EXPECT_TRUE(deserves_another_run(first));
  EXPECT_EQ(verdict_name(confirmed(first, calm).kind), "ok");
  EXPECT_EQ(verdict_name(confirmed(first, first).kind), "degraded");
  EXPECT_EQ(verdict_name(confirmed(calm, first).kind), "ok");
  EXPECT_FALSE(deserves_another_run(judge(recorded("declared-t4")))) << "a name does not become right in time";
  EXPECT_FALSE(deserves_another_run(calm));
}

TEST(Declarations, AJobThatNamesAModelStaysAwayFromWhatIsNotSurelyThat) {
  const auto rejection = [](const std::string& wanted, std::uint64_t memory, const HostFacts& host) {
    job::Spec spec;
    spec.run = "true";
    job::GpuRequest request;
    if (!wanted.empty()) request.names = {wanted};
    if (memory > 0) request.memory_min = memory;
    spec.resources.gpus = {request};
    const Decision decision = place(spec, {host}, {});
    return decision.placement ? "" : decision.rejections.at(0).code + ": " + decision.rejections.at(0).detail;
  };
  HostFacts unknown = AHost("lab").with_gpus(1, "NVIDIA X9000", 49140);
  EXPECT_EQ(rejection("X9000", 0, unknown), "") << "nobody has looked yet";
  unknown.unverified_gpus = {"lab-gpu0"};
  EXPECT_NE(rejection("X9000", 0, unknown).find("unverified: NVIDIA X9000"), std::string::npos);
  EXPECT_NE(rejection("X9000", 0, unknown).find("accelerators: 51GB"), std::string::npos) << "what would work";
  EXPECT_EQ(rejection("", 40'000'000'000, unknown), "") << "memory alone takes it";
  // A lie that shows without any measurement.
  const HostFacts liar = AHost("liar").with_gpus(1, "Tesla T4", 15360).set([](HostFacts& host) {
    host.inventory.edit().gpus[0].arch = "sm_90";
  });
  EXPECT_NE(rejection("T4", 0, liar).find("compute capability 9.0, a T4 has 7.5"), std::string::npos);
}

}  // namespace
}  // namespace gridctl::sched::verdict_declared_test
