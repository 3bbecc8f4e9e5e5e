// SPDX-License-Identifier: Apache-2.0
// Outputs of real machines' tools (tests/data/probe; each folder's SOURCE says where they come from) against what is
// read from them. GRIDCTL_WRITE_EXPECTED=1 rewrites the expectations.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "base/text.hpp"
#include "probe/pci.hpp"
#include "probe/vendor.hpp"
#include "sched/catalogue/catalogue.hpp"

namespace gridctl::probe::vendor_test {
namespace {

namespace fs = std::filesystem;

fs::path data() { return fs::path(GRIDCTL_SOURCE_DIR) / "tests/data/probe"; }

std::string slurp(const fs::path& path) {
  std::ostringstream out;
  out << std::ifstream(path, std::ios::binary).rdbuf();
  return out.str();
}

std::vector<fs::path> machines() {
  std::vector<fs::path> out;
  for (const auto& entry : fs::directory_iterator(data()))
    if (entry.is_directory()) out.push_back(entry.path());
  std::sort(out.begin(), out.end());
  return out;
}

// The file that holds a tool's answer.
std::string file_of(const ToolCall& call) {
  const auto has = [&](std::string_view word) {
    return std::find(call.argv.begin(), call.argv.end(), word) != call.argv.end();
  };
  const std::string& tool = call.argv[0];
  if (tool == "nvidia-smi") {
    if (has("--query-gpu=uuid,compute_cap")) return "nvidia-smi-capability.txt";
    return has("-L")              ? "nvidia-smi-list.txt"
           : has("-x")            ? "nvidia-smi.xml"
           : has("topo")          ? "nvidia-smi-topo.txt"
           : has("nvlink")        ? "nvidia-smi-nvlink.txt"
           : call.argv.size() > 1 ? "nvidia-smi-query.txt"
                                  : "nvidia-smi.txt";
  }
  if (tool == "amd-smi")
    return has("version")    ? "amd-smi-version.json"
           : has("metric")   ? "amd-smi-metric.json"
           : has("topology") ? "amd-smi-topology.json"
                             : "amd-smi-static.json";
  if (tool == "rocm-smi") return has("--showtopotype") ? "rocm-smi-topo.json" : "rocm-smi.json";
  if (has("topology")) return "xpu-smi-topology.txt";
  return has("-d") ? "xpu-smi-" + call.argv[3] + ".json" : "xpu-smi.json";
}

// Answers as the machine would give them; `change` may alter each text.
template <class Change>
VendorReading replay(const VendorPlugin& vendor, const fs::path& machine, Change change) {
  std::vector<ToolAnswer> answers;
  for (int round = 0; round < 2; ++round) {
    const auto calls = vendor.ask(answers);
    if (calls.empty()) break;
    for (const ToolCall& call : calls) {
      ToolAnswer answer;
      answer.tool = call.argv[0];
      const fs::path file = machine / file_of(call);
      answer.found = answer.answered = fs::exists(file);
      if (answer.found) answer.out = change(file.filename().string(), slurp(file));
      if (!answer.found) answer.problem = answer.tool + ": not installed";
      answer.exit_code = 0;
      answers.push_back(std::move(answer));
    }
  }
  VendorReading reading = vendor.read(answers);
  const HostFiles files(machine / "root");  // its /sys, where the folder has one
  if (vendor.complete) vendor.complete(files, reading);
  if (fs::exists(machine / "root")) complete_from_bus(files, reading.gpus);
  return reading;
}

template <class T>
void say(std::ostringstream& out, std::string_view what, const std::optional<T>& value) {
  if (value) out << " " << what << "=" << *value;
}

// What is known of it beyond the first line, and why the rest is not.
std::string details(const Gpu& gpu) {
  std::ostringstream out;
  if (!gpu.arch.empty()) out << " arch=" << gpu.arch;
  say(out, "units", gpu.units);
  say(out, "bus_bits", gpu.memory_bus_bits);
  say(out, "ecc", gpu.ecc);
  say(out, "numa", gpu.numa_node);
  say(out, "core", gpu.clocks.core_mhz);
  say(out, "core_max", gpu.clocks.core_max_mhz);
  say(out, "memory", gpu.clocks.memory_mhz);
  say(out, "memory_max", gpu.clocks.memory_max_mhz);
  say(out, "cap", gpu.power.cap_watts);
  say(out, "default", gpu.power.default_watts);
  say(out, "most", gpu.power.max_watts);
  say(out, "slowdown", gpu.heat.slowdown_c);
  say(out, "gen", gpu.pcie.generation);
  say(out, "gen_max", gpu.pcie.generation_max);
  say(out, "width", gpu.pcie.width);
  say(out, "width_max", gpu.pcie.width_max);
  say(out, "parts", gpu.partition.enabled);
  if (!gpu.partition.profile.empty()) out << " profile=" << gpu.partition.profile;
  if (!gpu.partition.parent.empty()) out << " parent=" << gpu.partition.parent;
  say(out, "ports", gpu.fabric.active);
  if (gpu.fabric.bits_per_second) out << " port_gbit=" << *gpu.fabric.bits_per_second / 1e9;
  if (gpu.throttle) {
    out << " throttle=";
    for (const std::string& reason : *gpu.throttle) out << reason << ",";
  }
  return out.str();
}

// "not_supported: ecc numa_node", after the last resort has explained the rest as the inventory does.
std::string explained(const Gpu& gpu) {
  Inventory alone;
  alone.gpus = {gpu};
  explain_rest(alone, GapReason::not_reported, "");
  EXPECT_TRUE(unexplained(alone).empty());
  std::map<std::string, std::set<std::string>> by_reason;
  for (const Gap& gap : alone.gpus[0].gaps) by_reason[std::string(gap_reason_name(gap.reason))].insert(gap.attribute);
  std::string out;
  for (const auto& [reason, attributes] : by_reason) {
    out += "  " + reason + ":";
    for (const std::string& attribute : attributes) out += " " + attribute;
    out += "\n";
  }
  return out;
}

std::string rendered(const VendorReading& reading) {
  std::ostringstream out;
  std::string told;  // once for GPUs that are alike
  for (const Gpu& gpu : reading.gpus) {
    out << vendor_name(gpu.vendor) << " | " << (gpu.index ? std::to_string(*gpu.index) : "-") << " | " << gpu.name
        << " | " << gpu.uuid << " | " << gpu.memory_bytes << " | " << gpu.driver << " | " << gpu.pci << "\n";
    const sched::ModelMatch match = sched::find_model(gpu);
    out << "  " << (match.model != nullptr ? "model " + match.model->key : "no model: " + match.why) << "\n";
    const std::string known = details(gpu);
    if (!known.empty()) out << " " << known << "\n";
    if (std::string gaps = explained(gpu); gaps != told) out << (told = std::move(gaps));
  }
  for (const GpuLink& link : reading.links) {
    out << "link " << link.a << "-" << link.b << " " << link_kind_name(link.kind);
    say(out, "lanes", link.lanes);
    if (link.bits_per_second) out << " gbit=" << *link.bits_per_second / 1e9;
    out << "\n";
  }
  if (!reading.toolkit.empty()) out << "toolkit " << reading.toolkit << "\n";
  for (const std::string& note : reading.notes) out << "note " << note << "\n";
  return out.str();
}

std::string as_is(const std::string&, std::string text) { return text; }

// A place that anybody can look up, or the word that it is ours.
bool says_where_it_is_from(const std::string& source) {
  return std::regex_search(source, std::regex("github\\.com/|https?://|public |[Cc]omposed"));
}

TEST(VendorGoldens, AreReadAsExpected) {
  ASSERT_GE(machines().size(), 30u);
  for (const fs::path& machine : machines()) {
    SCOPED_TRACE(machine.filename().string());
    EXPECT_TRUE(says_where_it_is_from(slurp(machine / "SOURCE")));
    std::string got;
    for (const VendorPlugin& vendor : vendors()) got += rendered(replay(vendor, machine, as_is));
    if (std::getenv("GRIDCTL_WRITE_EXPECTED")) std::ofstream(machine / "expected") << got;
    EXPECT_EQ(got, slurp(machine / "expected"));
  }
}

TEST(VendorGoldens, AreReadTheSameWithWindowsLineEndsAndNoiseAround) {
  for (const fs::path& machine : machines()) {
    SCOPED_TRACE(machine.filename().string());
    const auto noisy = [](const std::string& file, const std::string& text) {
      std::string out = file.ends_with(".json") ? "WARNING: [driver] is {old}\n" : "";
      for (const char c : text) out += c == '\n' ? "\r\n" : std::string(1, c);
      return file.ends_with(".json") ? out + "\n[end of log]\n" : out;
    };
    for (const VendorPlugin& vendor : vendors())
      EXPECT_EQ(replay(vendor, machine, noisy).gpus, replay(vendor, machine, as_is).gpus);
  }
}

TEST(VendorGoldens, CutAnywhereNeverCrashAndNeverInventGpus) {
#ifdef __SANITIZE_ADDRESS__
  constexpr std::size_t k_cuts = 15;  // they take ten times as long
#else
  constexpr std::size_t k_cuts = 100;  // of each file; long files are cut at even distances
#endif
  for (const fs::path& machine : machines())
    for (const VendorPlugin& vendor : vendors()) {
      const std::size_t whole = replay(vendor, machine, as_is).gpus.size();
      for (const auto& entry : fs::directory_iterator(machine)) {
        const std::string name = entry.path().filename().string();
        if (name == "SOURCE" || name == "expected" || entry.is_directory()) continue;
        const std::size_t size = fs::file_size(entry.path());
        for (std::size_t cut = 0; cut < size; cut += std::max<std::size_t>(1, size / k_cuts)) {
          const auto reading = replay(vendor, machine, [&](const std::string& file, std::string text) {
            if (file == name) text.resize(std::min(cut, text.size()));
            return text;
          });
          // A cut list of MIG devices shows the GPU itself, never more parts than there are.
          EXPECT_LE(reading.gpus.size(), std::max<std::size_t>(whole, 1)) << machine << " " << name << " at " << cut;
        }
      }
    }
}

TEST(VendorGoldens, WithFlippedBytesNeverCrash) {
  std::uint32_t state = 12345;  // a fixed seed: the test must not differ from run to run
  const auto next = [&] { return state = state * 1664525u + 1013904223u; };
  for (const fs::path& machine : machines())
    for (const VendorPlugin& vendor : vendors())
      for (int round = 0; round < 12; ++round) {
        const auto reading = replay(vendor, machine, [&](const std::string&, std::string text) {
          for (int i = 0; i < 8 && !text.empty(); ++i)
            text[(next() >> 8) % text.size()] = static_cast<char>(next() >> 24);
          return text;
        });
        EXPECT_LE(reading.gpus.size(), 256u);
      }
}

TEST(Vendors, TellWhatMendsAMismatchedDriver) {
  const auto reading = replay(k_nvidia, data() / "driver-mismatch", as_is);
  EXPECT_TRUE(reading.gpus.empty());
  ASSERT_EQ(reading.notes.size(), 1u);
  EXPECT_NE(reading.notes[0].find("reboot needed"), std::string::npos);
}

TEST(Vendors, ListMigDevicesInPlaceOfTheirGpu) {
  const auto reading = replay(k_nvidia, data() / "h100-mig", as_is);
  ASSERT_EQ(reading.gpus.size(), 4u);
  EXPECT_EQ(reading.gpus[0].name, "NVIDIA H100 80GB HBM3 MIG 3g.40gb");
  EXPECT_EQ(reading.gpus[0].memory_bytes, 40448ull << 20);
}

TEST(Vendors, ShareTheMemoryOfAGpuInstanceAmongItsComputeInstances) {
  const auto reading = replay(k_nvidia, data() / "h200-mig-compute-slices", as_is);
  ASSERT_EQ(reading.gpus.size(), 5u);
  EXPECT_EQ(reading.gpus[0].memory_bytes + reading.gpus[1].memory_bytes, 71424ull << 20);
}

TEST(Vendors, ReadANameWithCommas) {
  std::vector<ToolAnswer> answers(4);
  for (ToolAnswer& answer : answers) answer.found = answer.answered = true;
  answers[0].out = "0, Tesla V100, SXM2, 32GB, GPU-1, 32510, 535.1, 00000000:1A:00.0\n";
  const auto reading = k_nvidia.read(answers);
  ASSERT_EQ(reading.gpus.size(), 1u);
  EXPECT_EQ(reading.gpus[0].name, "Tesla V100, SXM2, 32GB");
}

TEST(Vendors, StopAt256Gpus) {
  std::vector<ToolAnswer> answers(4);
  for (ToolAnswer& answer : answers) answer.found = answer.answered = true;
  for (int i = 0; i < 100000; ++i) answers[0].out += "7, X, GPU-" + std::to_string(i) + ", 1, 1, 00000000:1A:00.0\n";
  EXPECT_EQ(k_nvidia.read(answers).gpus.size(), 256u);
}

TEST(Vendors, AnswerToNoAnswersWithNothing) {
  for (const VendorPlugin& vendor : vendors()) {
    const std::vector<ToolAnswer> absent(vendor.ask({}).size());
    EXPECT_EQ(vendor.read({}), VendorReading{});
    EXPECT_TRUE(vendor.read(absent).gpus.empty());
    EXPECT_TRUE(vendor.read(absent).notes.empty());
  }
}

}  // namespace
}  // namespace gridctl::probe::vendor_test
