// SPDX-License-Identifier: Apache-2.0
// What each line of a health report amounts to, at its limits; and what the registry keeps of it.
#include <gmock/gmock.h>

#include "control/fleet/health.hpp"
#include "control/fleet/host_facts.hpp"
#include "registry/registry.hpp"
#include "support/results.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::control::health_table_test {
namespace {

using namespace std::chrono_literals;
using gridctl::testing::IsOk;
using sched::UnitState;
using sched::Weight;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class Signs : public ::testing::Test {
 protected:
  Signs() {
    for (const auto& [uuid, pci, vendor] : {std::tuple{"GPU-1", "00000000:3b:00.0", Vendor::nvidia},
                                            std::tuple{"GPU-2", "00000000:43:00.0", Vendor::nvidia},
                                            std::tuple{"AMD-1", "0000:63:00.0", Vendor::amd},
                                            std::tuple{"INT-1", "0000:73:00.0", Vendor::intel}}) {
      Gpu gpu;
      gpu.uuid = uuid;
      gpu.pci = pci;
      gpu.vendor = vendor;
      inventory.gpus.push_back(gpu);
    }
    report.boot_id = before.boot_id = "one";
    report.taken_at = report.gpus_at = {1'000'000'000'000};
    report.wall_ms = 5'000'000;
    report.disk.total_bytes = 100ull << 30;
    report.disk.free_bytes = 50ull << 30;
    for (const char* uuid : {"GPU-1", "GPU-2"}) {
      wire::GpuHealth gpu;
      gpu.uuid = uuid;
      report.gpus.push_back(gpu);
    }
    context.now = {10'000'000};
    context.age_ms = 500;
  }
  // "unit code weight": of a lasting sign with a star.
  std::vector<std::string> signs() {
    look = look_of(report, inventory, before, context);
    std::vector<std::string> lines;
    for (const sched::Sign& sign : look.signs)
      lines.push_back(sign.unit + " " + sign.code + " " + std::to_string(static_cast<int>(sign.weight)) + (sign.lasting ? "*" : ""));
    return lines;
  }
  static std::string line(const std::string& unit, const std::string& code, Weight weight, bool lasting) {
    return unit + " " + code + " " + std::to_string(static_cast<int>(weight)) + (lasting ? "*" : "");
  }
  std::vector<std::string> of_event(wire::KernelEvent event) {
    event.stamp_us = 500;
    event.age_ms = 1000;
    report.events = {event};
    return signs();
  }

  wire::HealthReport report;
  Inventory inventory;
  sched::HostStanding before;
  HealthContext context;
  sched::Look look;
};

TEST_F(Signs, OfTheKernelLog) {
  const std::string gpu_at = "0000:3b:00.0";
  struct Row {
    wire::KernelEvent event;
    std::string unit, code;
    Weight weight;
  };
  for (const Row& row : std::vector<Row>{
           {{"xid", 95, gpu_at, "contained"}, "GPU-1", "xid-95", Weight::grave},
           {{"xid", 154, gpu_at, "changed from x to (None)"}, "GPU-1", "xid-154", Weight::note},
           {{"sxid", 12028, "", "SXid (PCI:0000:05:00.0): 12028, Non-fatal"}, "", "sxid-12028", Weight::note},
           {{"sxid", 12028, "", "SXid (PCI:0000:05:00.0): 12028, Fatal, Link 1"}, "", "sxid-12028", Weight::grave},
           {{"gpu_lost", 0, gpu_at, ""}, "GPU-1", "gpu_lost", Weight::grave},
           {{"gpu_lost", 0, "0000:99:00.0", ""}, "", "gpu_lost", Weight::grave},
           {{"ras", 0, gpu_at, ""}, "GPU-1", "ras", Weight::bad},
           {{"gpu_reset", 0, gpu_at, "", 0, 0, 2}, "GPU-1", "gpu_reset", Weight::note},
           {{"gpu_reset", 0, gpu_at, "", 0, 0, 3}, "GPU-1", "gpu_reset", Weight::bad},
           {{"gpu_hang", 0, gpu_at, "", 0, 0, 3}, "GPU-1", "gpu_hang", Weight::bad},
           {{"gpu_fault", 0, gpu_at, ""}, "GPU-1", "gpu_fault", Weight::note},
           {{"machine_check", 0, gpu_at, ""}, "", "machine_check", Weight::bad},
           {{"memory_error", 0, "", ""}, "", "memory_error", Weight::bad},
           {{"pcie_fatal", 0, gpu_at, ""}, "GPU-1", "pcie_fatal", Weight::bad},
           {{"pcie_fatal", 0, "0000:99:00.0", ""}, "", "pcie_fatal", Weight::note},
           {{"fs_error", 0, "", ""}, "", "fs_error", Weight::bad},
           {{"hung_task", 0, "", ""}, "", "hung_task", Weight::note},
           {{"oom", 0, "", ""}, "", "oom", Weight::note},
           {{"disk_error", 0, "", ""}, "", "disk_error", Weight::note}}) {
    EXPECT_THAT(of_event(row.event), ElementsAre(line(row.unit, row.code, row.weight, false))) << row.event.kind;
    EXPECT_EQ(look.signs.at(0).at.ms, 10'000'000 - 500 - 1000) << "as of then";
    EXPECT_EQ(look.log_us, 500u);
  }
  EXPECT_THAT(of_event({"xid", 95, "0000:99:00.0", ""}), SizeIs(2)) << "any of NVIDIA's may be meant";
  of_event({"oom", 0, "", ""});
  EXPECT_THAT(look.signs.at(0).text, HasSubstr("out of memory"));
  of_event({"disk_error", 0, "", "sda"});
  EXPECT_THAT(look.signs.at(0).text, HasSubstr("disk error: sda"));
  before.log_us = 499;
  EXPECT_THAT(of_event({"oom", 0, "", ""}), SizeIs(1));
  before.log_us = 500;
  EXPECT_THAT(of_event({"oom", 0, "", ""}), IsEmpty()) << "it was judged";
  before.boot_id = "another";
  EXPECT_THAT(of_event({"oom", 0, "", ""}), SizeIs(1)) << "of another boot";
}

TEST_F(Signs, OfAGpuItself) {
  const auto of = [&](const std::function<void(wire::GpuHealth&)>& shape) {
    const wire::GpuHealth former = report.gpus[0];
    shape(report.gpus[0]);
    const auto found = signs();
    report.gpus[0] = former;
    return found;
  };
  using wire::GpuHealth;
  EXPECT_THAT(of([](GpuHealth&) {}), IsEmpty());
  EXPECT_THAT(of([](GpuHealth& gpu) { gpu.problem = "GPU is lost"; }), ElementsAre(line("GPU-1", "gpu_gone", Weight::grave, true)));
  EXPECT_THAT(of([](GpuHealth& gpu) { gpu.recovery = "reset"; }), ElementsAre(line("GPU-1", "gpu_needs_reset", Weight::grave, true)));
  EXPECT_THAT(of([](GpuHealth& gpu) { gpu.recovery = "reboot"; }), ElementsAre(line("GPU-1", "gpu_needs_reboot", Weight::grave, true)));
  EXPECT_THAT(of([](GpuHealth& gpu) { gpu.recovery = "drain"; }), ElementsAre(line("GPU-1", "gpu_needs_drain", Weight::bad, true)));
  EXPECT_THAT(of([](GpuHealth& gpu) { gpu.remap_failed = true; }), ElementsAre(line("GPU-1", "remap_failed", Weight::grave, true)));
  EXPECT_THAT(of([](GpuHealth& gpu) { gpu.remap_failed = false; }), IsEmpty());
  EXPECT_THAT(of([](GpuHealth& gpu) { gpu.remap_pending = true; }), ElementsAre(line("GPU-1", "remap_pending", Weight::note, true)));
  EXPECT_THAT(of([](GpuHealth& gpu) { gpu.throttle = {"sw_power_cap"}; }), IsEmpty()) << "a cap is no fault";
  EXPECT_THAT(of([](GpuHealth& gpu) { gpu.throttle = {"hw_slowdown"}, gpu.temperature_c = 91; }),
              ElementsAre(line("GPU-1", "throttled", Weight::note, true)));
  EXPECT_THAT(look.signs.at(0).text, HasSubstr("hw_slowdown at 91 C"));
  EXPECT_THAT(of([](GpuHealth& gpu) { gpu.problem = "no driver", gpu.uuid.clear(); }),
              Contains(line("GPU-2", "driver_broken", Weight::doubt, true)));
}

TEST_F(Signs, OfItsMemoryErrors) {
  wire::GpuHealth& gpu = report.gpus[0];
  gpu.ecc_uncorrected = 0;
  EXPECT_THAT(signs(), IsEmpty());
  EXPECT_EQ(look.uncorrected.at("GPU-1"), 0u) << "from now on it is counted";
  gpu.ecc_uncorrected = 3;
  before.uncorrected["GPU-1"] = 3;
  EXPECT_THAT(signs(), IsEmpty());
  before.uncorrected["GPU-1"] = 2;
  EXPECT_THAT(signs(), ElementsAre(line("GPU-1", "ecc_uncorrected", Weight::bad, false)));
  EXPECT_THAT(look.signs.at(0).text, "1 uncorrectable memory errors");
  before.boot_id = "another";
  EXPECT_THAT(signs(), ElementsAre(line("GPU-1", "ecc_uncorrected", Weight::note, false)));
  EXPECT_THAT(look.signs.at(0).text, "3 uncorrectable memory errors since the driver was loaded");
}

TEST_F(Signs, OfWhoHoldsItsMemory) {
  wire::GpuHealth& gpu = report.gpus[0];
  gpu.processes.emplace();
  gpu.memory_total = 50ull << 30;
  gpu.memory_used = 2ull << 30;  // a gibibyte and a fiftieth
  EXPECT_THAT(signs(), IsEmpty());
  EXPECT_THAT(look.busy, IsEmpty());
  ++*gpu.memory_used;
  EXPECT_THAT(signs(), IsEmpty());
  EXPECT_THAT(look.busy.at("GPU-1"), HasSubstr("is in use by no known process visible to this user"));
  before.units["GPU-1"].state = UnitState::quarantined;
  EXPECT_THAT(signs(), ElementsAre(line("GPU-1", "leftover_memory", Weight::bad, true)));
  before.units.clear();
  context.vacated = {"GPU-1"};
  EXPECT_THAT(signs(), ElementsAre(line("GPU-1", "leftover_memory", Weight::bad, true)));
  context.vacated.clear();
  gpu.processes = {{7, "trainer", 1, false, wire::ProcessOwner::leased}};
  (void)signs();
  EXPECT_THAT(look.busy, IsEmpty()) << "a job's own";
  gpu.processes = {{7, "trainer", 1, false, wire::ProcessOwner::leased}, {8, "", 2, false, wire::ProcessOwner::foreign}};
  (void)signs();
  EXPECT_THAT(look.busy.at("GPU-1"), HasSubstr("a process (pid 8, 2 B) uses the GPU without a lease"));
  gpu.partitioned = true;
  (void)signs();
  EXPECT_THAT(look.busy, IsEmpty());
  before.busy = {{"GPU-1", "miner"}, {"GPU-9", "miner"}};
  (void)signs();
  EXPECT_THAT(look.busy, SizeIs(1)) << "what was not looked at stays";
}

TEST_F(Signs, OfAGpuThatIsGone) {
  report.gpus.pop_back();
  EXPECT_THAT(signs(), ElementsAre(line("GPU-2", "gpu_gone", Weight::grave, true)));
  EXPECT_TRUE(look.looked_at.contains("GPU-2"));
  EXPECT_FALSE(look.looked_at.contains("AMD-1")) << "another tool's";
}

TEST_F(Signs, OfToolsThatHang) {
  const auto of = [&](const std::string& tool) {
    report.hung = {{tool, false}};
    return signs();
  };
  EXPECT_THAT(of("nvidia-smi"), ElementsAre(line("GPU-1", "driver_hung", Weight::doubt, true), line("GPU-2", "driver_hung", Weight::doubt, true)));
  for (const char* tool : {"rocm-smi", "amd-smi", "rocminfo"})
    EXPECT_THAT(of(tool), ElementsAre(line("AMD-1", "driver_hung", Weight::doubt, true))) << tool;
  EXPECT_THAT(of("xpu-smi"), ElementsAre(line("INT-1", "driver_hung", Weight::doubt, true)));
}

TEST_F(Signs, OfTheDisk) {
  const auto of = [&](const std::function<void(wire::DiskHealth&)>& shape) {
    const wire::DiskHealth former = report.disk;
    shape(report.disk);
    const auto found = signs();
    report.disk = former;
    return found;
  };
  using wire::DiskHealth;
  EXPECT_THAT(of([](DiskHealth& disk) { disk.free_bytes = 2ull << 30; }), IsEmpty());
  EXPECT_THAT(of([](DiskHealth& disk) { disk.free_bytes = (2ull << 30) - 1; }), ElementsAre(line("", "disk_low", Weight::note, true)));
  EXPECT_THAT(of([](DiskHealth& disk) { disk.free_bytes = 256ull << 20; }), ElementsAre(line("", "disk_low", Weight::note, true)));
  EXPECT_THAT(of([](DiskHealth& disk) { disk.free_bytes = (256ull << 20) - 1; }), ElementsAre(line("", "disk_full", Weight::bad, true)));
  EXPECT_THAT(of([](DiskHealth& disk) { disk.free_bytes = disk.total_bytes = 0; }), IsEmpty()) << "nothing was told";
  EXPECT_THAT(of([](DiskHealth& disk) { disk.write_problem = "EIO"; }), ElementsAre(line("", "disk_write", Weight::bad, true)));
  EXPECT_THAT(of([](DiskHealth& disk) { disk.write_ms = 20'000; }), IsEmpty());
  EXPECT_THAT(of([](DiskHealth& disk) { disk.write_ms = 20'001; }), ElementsAre(line("", "disk_slow", Weight::doubt, true)));
  EXPECT_THAT(of([](DiskHealth& disk) { disk.drive_problem = "failing"; }), ElementsAre(line("", "drive", Weight::bad, true)));
  EXPECT_THAT(of([](DiskHealth& disk) { disk.read_only = true; }), ElementsAre(line("", "disk_read_only", Weight::bad, true)));
  before.file_system_errors = 3;
  EXPECT_THAT(of([](DiskHealth& disk) { disk.file_system_errors = 3; }), IsEmpty());
  EXPECT_EQ(look.file_system_errors, 3u);
  EXPECT_THAT(of([](DiskHealth& disk) { disk.file_system_errors = 4; }), ElementsAre(line("", "fs_errors", Weight::bad, false)));
  before.boot_id.clear();
  EXPECT_THAT(of([](DiskHealth& disk) { disk.file_system_errors = 4; }), ElementsAre(line("", "fs_errors", Weight::note, false)))
      << "never seen before: they may be old";
}

TEST_F(Signs, OfMemoryAndTheClock) {
  report.memory_pressure = 60;
  EXPECT_THAT(signs(), IsEmpty());
  report.memory_pressure = 60.5;
  EXPECT_THAT(signs(), ElementsAre(line("", "memory_pressure", Weight::doubt, true)));
  report.memory_pressure.reset();
  const auto off = [&](std::int64_t ms) {
    context.clock_offset_ms = ms;
    return signs();
  };
  EXPECT_THAT(off(5000), IsEmpty());
  EXPECT_THAT(off(-5001), ElementsAre(line("", "clock_off", Weight::note, true)));
  EXPECT_THAT(look.signs.at(0).text, HasSubstr("behind"));
  EXPECT_THAT(off(300'000), ElementsAre(line("", "clock_off", Weight::note, true)));
  EXPECT_THAT(look.signs.at(0).text, HasSubstr("ahead"));
  EXPECT_THAT(off(300'001), ElementsAre(line("", "clock", Weight::bad, true)));
  context.clock_offset_ms.reset();
  (void)signs();
  EXPECT_EQ(look.clock_base_ms, 5'000'000 - 1'000'000);
  before.clock_base_ms = look.clock_base_ms - 60'000;
  EXPECT_THAT(signs(), IsEmpty());
  --before.clock_base_ms;
  EXPECT_THAT(signs(), ElementsAre(line("", "clock_step", Weight::note, false)));
  EXPECT_THAT(look.signs.at(0).text, HasSubstr("forward"));
  before.clock_base_ms = look.clock_base_ms + 90'000;
  EXPECT_THAT(signs(), SizeIs(1));
  EXPECT_THAT(look.signs.at(0).text, HasSubstr("back by 1m"));
  before.boot_id = "another";
  EXPECT_THAT(signs(), IsEmpty()) << "a boot may set it";
}

class KeptHealth : public ::testing::Test {
 protected:
  KeptHealth() {
    registry::Provider provider;
    provider.name = {"ada"};
    EXPECT_THAT(registry.add_provider(provider), IsOk());
  }
  std::vector<std::string> lines() {
    std::vector<std::string> out;
    const auto pairs = *health_lines(registry, {"ada"}, {1'060'000});
    for (const auto& [label, text] : pairs) out.push_back(label + ": " + text);
    return out;
  }
  gridctl::testing::TempDir dir;
  registry::Registry registry = *registry::Registry::open(dir.path());
};

TEST_F(KeptHealth, IsToldInLines) {
  EXPECT_THAT(lines(), IsEmpty());
  EXPECT_FALSE(*was_looked_at(registry, {"ada"}));
  wire::HealthReport report;
  report.load1 = 3.6;
  report.cpus = 8;
  sched::HostStanding standing;
  ASSERT_THAT(save_health(registry, {"ada"}, {1'000'000}, report, standing), IsOk());
  EXPECT_TRUE(*was_looked_at(registry, {"ada"}));
  EXPECT_THAT(lines(), ElementsAre("standing: ok", "health: seen 1m ago; load 4 on 8 CPUs"));
  report.busy_cpus = 5;
  report.leased_cpus = 2.4;
  report.log_gap = "not root";
  report.events = {{"oom", 0, "", "killed"}};
  standing.units["GPU-1"] = {UnitState::quarantined, "x", "Xid 95", {}, {1'061'500}, 0, {}};
  standing.units["GPU-2"] = {UnitState::probation, "x", "was bad", {}, {}, 0, {}};
  standing.units["GPU-3"] = {};
  standing.busy["GPU-4"] = "miner";
  ASSERT_THAT(save_health(registry, {"ada"}, {1'000'000}, report, standing), IsOk());
  EXPECT_THAT(lines(), ElementsAre("standing: ok", "standing: GPU-1 is quarantined for at least 2s: Xid 95",
                                   "standing: GPU-2 is on probation: was bad", "in use: GPU-4: miner",
                                   "health: seen 1m ago; load 4 on 8 CPUs, at least 3 of them used by others",
                                   "kernel log: not readable: not root", "kernel log: killed"));
  standing.units[""] = {UnitState::quarantined, "x", "disk full", {}, {1'060'000}, 0, {}};
  ASSERT_THAT(save_health(registry, {"ada"}, {1'000'000}, report, standing), IsOk());
  EXPECT_EQ(lines().front(), "standing: quarantined until its checks pass: disk full");
  EXPECT_EQ(load_standings(registry)->at("ada"), standing);
  EXPECT_EQ(*load_standing(registry, {"ada"}), standing);
}

TEST_F(KeptHealth, BecomesEventsOfTheHostAndFailuresOfGpus) {
  const std::vector<sched::Change> changes{{"GPU-1", "quarantined", "xid-79", "fell off"},
                                           {"GPU-2", "quarantined", "xid-79", "fell off"},
                                           {"GPU-3", "quarantined", "xid-79", "another text"},
                                           {"GPU-4", "noted", "xid-79", "fell off"},
                                           {"", "quarantined", "xid-79", "fell off"}};
  ASSERT_THAT(record_changes(registry, {"ada"}, {1000}, changes), IsOk());
  std::vector<std::string> told;
  const auto events = *registry.host_events({"ada"}, 0);
  for (const registry::HostEvent& event : events) told.push_back(event.kind + ": " + event.text);
  EXPECT_THAT(told, ElementsAre("quarantined: 2 GPUs: fell off", "quarantined: GPU-3: another text", "noted: GPU-4: fell off",
                                "quarantined: fell off"));
  std::size_t failures = 0;
  for (const sched::Change& change : changes) failures += sched::is_gpu_failure(change) ? 1 : 0;
  EXPECT_THAT(*registry.host_spans({"ada"}), SizeIs(failures));
  EXPECT_GT(failures, 0u);
}

TEST(HostFacts, AreWhatWasRegistered) {
  registry::Provider provider;
  provider.name = {"ada"};
  provider.address = "me@ada";
  provider.region = "DE";
  provider.site = "lab";
  provider.host_class = "home";
  provider.engine = "podman";
  provider.price_per_hour = 1.5;
  provider.labels = {{"a", "b"}};
  provider.figures = {{"rtt", 5}};
  provider.liveness = "suspect";
  provider.inventory.edit().cpus = 8;
  const sched::HostFacts facts = facts_of(provider);
  EXPECT_EQ(facts.name.value + facts.region + facts.site + facts.host_class, "adaDElabhome");
  EXPECT_EQ(facts.engine, EngineKind::podman);
  EXPECT_EQ(facts.price_per_hour, 1.5);
  EXPECT_EQ(facts.labels, provider.labels);
  EXPECT_EQ(facts.figures, provider.figures);
  EXPECT_EQ(facts.inventory->cpus, 8);
  EXPECT_TRUE(facts.reachable);
  EXPECT_FALSE(facts.drained);
  const sched::Subject subject = subject_of(provider);
  EXPECT_EQ(std::string(subject.name) + std::string(subject.address) + std::string(subject.state), "adame@adasuspect");
  EXPECT_EQ(std::string(subject.region) + std::string(subject.site) + std::string(subject.host_class), "DElabhome");
  EXPECT_EQ(subject.engine, "podman");
  EXPECT_EQ(subject.price_per_hour, 1.5);
  EXPECT_EQ(subject.labels, &provider.labels);
  EXPECT_EQ(subject.inventory, &*provider.inventory);
  EXPECT_EQ(subject.figures, &provider.figures);
  provider.drained = true;
  provider.engine = "auto";
  EXPECT_TRUE(facts_of(provider).drained);
  EXPECT_FALSE(facts_of(provider).engine);
  EXPECT_EQ(subject_of(provider).state, "drained");
  for (const char* gone : {"unreachable", "lost"}) {
    provider.liveness = gone;
    EXPECT_FALSE(facts_of(provider).reachable) << gone;
  }
}

}  // namespace
}  // namespace gridctl::control::health_table_test
