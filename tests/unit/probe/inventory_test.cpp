// SPDX-License-Identifier: Apache-2.0
#include "probe/inventory.hpp"

#include <algorithm>
#include <chrono>

#include "fixture.hpp"

namespace gridctl::probe {
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
  EXPECT_LT(seconds(took), 2.0) << "20 ms on an idle machine";
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
  EXPECT_LT(seconds(took), 3.0);
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

}  // namespace
}  // namespace gridctl::probe
