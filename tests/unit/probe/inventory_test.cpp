// SPDX-License-Identifier: Apache-2.0
#include "probe/inventory.hpp"

#include <algorithm>
#include <chrono>

#include "fixture.hpp"

namespace gridctl::probe {
extern const VendorPlugin k_acme;  // fourth_vendor.cpp
}

namespace gridctl::probe::inventory_test {
namespace {

using namespace std::chrono_literals;

bool any_note(const Inventory& inventory, std::string_view part) {
  return std::any_of(inventory.notes.begin(), inventory.notes.end(),
                     [&](const std::string& note) { return note.find(part) != std::string::npos; });
}

constexpr const char* k_gpu_row = "0, NVIDIA H100 80GB HBM3, GPU-0a, 81559, 590.48.01, 00000000:01:00.0";

class InventoryTest : public ProbeTest {
 protected:
  Duration timed(const ProbeOptions& how, Inventory& into) {
    const BootTime before = os::system_clock().boot();
    into = take_inventory(os::system_clock(), how);
    return os::system_clock().boot() - before;
  }
};

TEST_F(InventoryTest, OfThisMachineIsWholeAndQuick) {
  Inventory inventory;
  const Duration took = timed(options(), inventory);
  EXPECT_LT(seconds(took), 30.0) << "20 ms on an idle machine";
  EXPECT_FALSE(inventory.boot_id.empty());
  EXPECT_FALSE(inventory.kernel.empty());
  EXPECT_FALSE(inventory.arch.empty());
  EXPECT_GT(inventory.cpus, 0);
  EXPECT_GT(inventory.memory_bytes, 0u);
  EXPECT_GT(inventory.disk_free_bytes, 0u);
  ASSERT_EQ(inventory.engines.size(), 3u);
  EXPECT_EQ(inventory.engines[0].problem, "docker: not installed");
  EXPECT_EQ(inventory.engines[1].problem, "podman: not installed");
  EXPECT_EQ(inventory.engines[2].problem, "");
  EXPECT_TRUE(inventory.facts.home_writable);
}

TEST_F(InventoryTest, SurvivesItsJson) {
  tool("nvidia-smi", std::string("case \"$1\" in --query*) echo '") + k_gpu_row + "';; esac");
  const Inventory inventory = take_inventory(os::system_clock(), options());
  ASSERT_EQ(inventory.gpus.size(), 1u);
  const auto copy = parse_inventory(to_json(inventory));
  ASSERT_TRUE(copy);
  EXPECT_EQ(*copy, inventory);
}

TEST_F(InventoryTest, TurnsAToolThatHangsIntoANoteWithinItsDeadline) {
  tool("nvidia-smi", "trap '' TERM\nwhile :; do sleep 1000; done");
  tool("docker", "exec sleep 1000");
  tool("rocm-smi",
       "echo '{\"card0\": {\"Card Series\": \"X\", \"Unique ID\": \"0x1\", \"VRAM Total Memory (B)\": \"5\"}}'");
  Inventory inventory;
  const Duration took = timed(options(300ms), inventory);
  EXPECT_LT(seconds(took), 60.0);
  EXPECT_TRUE(any_note(inventory, "nvidia-smi: no answer within 300ms"));
  EXPECT_EQ(inventory.engines[0].problem, "docker: no answer within 300ms");
  EXPECT_EQ(inventory.gpus.size(), 1u) << "what the others say is not lost";
}

TEST_F(InventoryTest, KeepsWhatOneQuerySaysWhenAnotherHangs) {
  tool("nvidia-smi", std::string("case \"$1\" in --query*) echo '") + k_gpu_row + "';; *) exec sleep 1000;; esac");
  const Inventory inventory = take_inventory(os::system_clock(), options(300ms));
  EXPECT_EQ(inventory.gpus.size(), 1u);
  EXPECT_TRUE(any_note(inventory, "no answer within"));
}

TEST_F(InventoryTest, BearsAToolThatPrintsWithoutEnd) {
  tool("nvidia-smi", "head -c 100000000 /dev/zero | tr '\\0' 'x'");
  const Inventory inventory = take_inventory(os::system_clock(), options());
  EXPECT_TRUE(inventory.gpus.empty());
  for (const std::string& note : inventory.notes) EXPECT_LE(note.size(), 300u);
}

TEST_F(InventoryTest, BearsToolsThatPrintGarbage) {
  for (const char* name : {"nvidia-smi", "amd-smi", "rocm-smi", "xpu-smi", "docker", "podman"})
    tool(name, "head -c 20000 /dev/urandom; exit 3");
  const Inventory inventory = take_inventory(os::system_clock(), options());
  EXPECT_TRUE(inventory.gpus.empty());
  EXPECT_FALSE(inventory.engines[0].problem.empty());
  EXPECT_FALSE(inventory.engines[1].problem.empty());
  EXPECT_TRUE(parse_inventory(to_json(inventory)));
}

TEST_F(InventoryTest, BearsToolsThatCrashOrCannotBeRun) {
  tool("nvidia-smi", "kill -SEGV $$");
  std::ofstream(bin() / "xpu-smi") << "#!/no/such/interpreter\n";
  std::filesystem::permissions(bin() / "xpu-smi", std::filesystem::perms{0755});
  const Inventory inventory = take_inventory(os::system_clock(), options());
  EXPECT_TRUE(any_note(inventory, "nvidia-smi: killed by signal 11"));
  EXPECT_TRUE(any_note(inventory, "xpu-smi:"));
}

TEST_F(InventoryTest, AsksIntelInTwoRounds) {
  tool("xpu-smi",
       "case \"$*\" in\n"
       "'discovery -j') echo '{\"device_list\":[{\"device_id\":0,\"device_name\":\"Arc\",\"uuid\":\"u0\"}]}';;\n"
       "'discovery -d 0 -j') echo "
       "'{\"device_id\":0,\"memory_physical_size_byte\":\"1024\",\"driver_version\":\"7\"}';;\n"
       "esac");
  const Inventory inventory = take_inventory(os::system_clock(), options());
  ASSERT_EQ(inventory.gpus.size(), 1u);
  EXPECT_EQ(inventory.gpus[0].memory_bytes, 1024u);
  EXPECT_EQ(inventory.gpus[0].driver, "7");
}

TEST_F(InventoryTest, GivesEachGpuItsOwnUuid) {
  tool("rocm-smi", "echo '{\"card0\": {\"Unique ID\": \"0x1\"}, \"card1\": {\"Unique ID\": \"0x1\"}, \"card2\": {}}'");
  const Inventory inventory = take_inventory(os::system_clock(), options());
  ASSERT_EQ(inventory.gpus.size(), 3u);
  EXPECT_NE(inventory.gpus[0].uuid, inventory.gpus[1].uuid);
  EXPECT_FALSE(inventory.gpus[2].uuid.empty());
}

TEST_F(InventoryTest, NotesAGpuWhoseToolIsNotInstalled) {
  file("/sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de\n");
  file("/sys/bus/pci/devices/0000:01:00.0/class", "0x030000\n");
  ProbeOptions how = options();
  how.root = root();
  EXPECT_TRUE(any_note(take_inventory(os::system_clock(), how), "nvidia: 1 GPU(s) on the bus (0000:01:00.0)"));
}

TEST_F(InventoryTest, LeavesNothingUnexplainedOnThisMachine) {
  const Inventory inventory = take_inventory(os::system_clock(), options());
  EXPECT_TRUE(unexplained(inventory).empty());
  EXPECT_EQ(find_gap(inventory.gaps, "gpus")->reason, GapReason::not_applicable);
  EXPECT_FALSE(inventory.disks.empty());
  EXPECT_FALSE(inventory.virtualization.empty());
}

TEST_F(InventoryTest, SaysWhyEachAttributeOfAGpuIsUnknown) {
  tool("nvidia-smi", std::string("case \"$*\" in --query-gpu=index*) echo '") + k_gpu_row +
                         "';; *compute_cap*) echo 'GPU-0a, 9.0';; -q*) exec sleep 1000;; *nvlink*) exit 6;; esac");
  const Inventory inventory = take_inventory(os::system_clock(), options(400ms));
  ASSERT_EQ(inventory.gpus.size(), 1u);
  EXPECT_TRUE(unexplained(inventory).empty());
  const Gpu& gpu = inventory.gpus[0];
  EXPECT_EQ(gpu.arch, "sm_90");
  EXPECT_EQ(find_gap(gpu.gaps, "clocks.core_mhz")->reason, GapReason::timed_out);
  EXPECT_EQ(find_gap(gpu.gaps, "units")->reason, GapReason::needs_bench);
  EXPECT_EQ(find_gap(gpu.gaps, "fabric.active")->reason, GapReason::not_reported);
  EXPECT_EQ(find_gap(inventory.gaps, "links")->reason, GapReason::not_applicable);
}

TEST_F(InventoryTest, ReadsAFourthMakerFromOneFile) {
  tool("acme-smi", "echo '0 acme-1234 16384 MiB 0000:41:00.0 Acme Roadrunner 9'");
  ProbeOptions how = options();
  const VendorPlugin all[] = {k_nvidia, k_acme};
  how.plugins = all;
  const Inventory inventory = take_inventory(os::system_clock(), how);
  ASSERT_EQ(inventory.gpus.size(), 1u);
  EXPECT_EQ(inventory.gpus[0].vendor, Vendor::other);
  EXPECT_EQ(inventory.gpus[0].name, "Acme Roadrunner 9");
  EXPECT_EQ(inventory.gpus[0].memory_bytes, 16384ull << 20);
  EXPECT_TRUE(unexplained(inventory).empty());
}

TEST_F(InventoryTest, JoinsTheLinksOfSeveralMakers) {
  tool("nvidia-smi",
       "case \"$*\" in --query-gpu=index*) echo '0, A, GPU-0, 1000, 1, 00000000:01:00.0'; "
       "echo '1, A, GPU-1, 1000, 1, 00000000:02:00.0';; topo*) printf '\\tGPU0\\tGPU1\\nGPU0\\t "
       "X\\tNV4\\nGPU1\\tNV4\\t X\\n';; esac");
  tool("rocm-smi",
       "case \"$*\" in *topotype*) echo '{\"system\": {\"(Topology) Link type between DRM devices 0 and "
       "1\": \"XGMI\"}}';; *) echo '{\"card0\": {\"Unique ID\": \"0x1\"}, \"card1\": {\"Unique ID\": "
       "\"0x2\"}}';; esac");
  const Inventory inventory = take_inventory(os::system_clock(), options());
  ASSERT_EQ(inventory.gpus.size(), 4u);
  ASSERT_EQ(inventory.links.size(), 2u);
  EXPECT_EQ(inventory.links[0], (GpuLink{0, 1, LinkKind::nvlink, 4, {}}));
  EXPECT_EQ(inventory.links[1], (GpuLink{2, 3, LinkKind::xgmi, {}, {}}));
}

TEST_F(InventoryTest, OfTheLargestMachineFitsOneFrame) {
  tool("nvidia-smi",
       "case \"$*\" in --query-gpu=index*) i=0; while [ $i -lt 128 ]; do echo \"$i, NVIDIA A100-SXM4-40GB, "
       "GPU-0000$i, 40960, 550.54.15, 00000000:07:00.0\"; i=$((i+1)); done;; esac");
  const Inventory inventory = take_inventory(os::system_clock(), options());
  ASSERT_EQ(inventory.gpus.size(), 128u);
  EXPECT_LT(to_json(inventory).size(), 1u << 20);
}

TEST_F(InventoryTest, NotesAGpuThatTheBusDoesNotHave) {
  tool("nvidia-smi", std::string("case \"$*\" in --query-gpu=index*) echo '") + k_gpu_row + "';; *) exit 6;; esac");
  ProbeOptions how = options();
  how.root = root();
  EXPECT_FALSE(any_note(take_inventory(os::system_clock(), how), "where the bus has no device"))
      << "a bus that shows nothing proves nothing";
  file("/sys/bus/pci/devices/0000:77:00.0/vendor", "0x8086\n");
  const Inventory lacking = take_inventory(os::system_clock(), how);
  ASSERT_EQ(lacking.gpus.size(), 1u);
  EXPECT_TRUE(any_note(lacking, lacking.gpus[0].uuid + " is reported at " + lacking.gpus[0].pci));
  std::string address = lacking.gpus[0].pci;
  address = address.substr(address.size() - 12);
  std::transform(address.begin(), address.end(), address.begin(), [](unsigned char c) { return std::tolower(c); });
  file("/sys/bus/pci/devices/" + address + "/vendor", "0x10de\n");
  EXPECT_FALSE(any_note(take_inventory(os::system_clock(), how), "where the bus has no device"));
}

}  // namespace
}  // namespace gridctl::probe::inventory_test
