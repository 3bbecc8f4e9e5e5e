// SPDX-License-Identifier: Apache-2.0
// What each reader takes, and what it leaves: one fault away from each other.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "fixture.hpp"
#include "probe/bench_challenge.hpp"
#include "probe/cgroup.hpp"
#include "probe/cpu.hpp"
#include "probe/disks.hpp"
#include "probe/facts.hpp"
#include "probe/health.hpp"
#include "probe/health_machine.hpp"
#include "probe/health_nvidia.hpp"
#include "probe/health_packages.hpp"
#include "probe/intel_details.hpp"
#include "probe/machine.hpp"
#include "probe/netperf.hpp"
#include "probe/nics.hpp"
#include "probe/pci.hpp"
#include "probe/preflight.hpp"
#include "probe/software.hpp"
#include "probe/tool_text.hpp"

namespace gridctl::probe::edges_test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// --- what tools print -----------------------------------------------------------------------------------------------

TEST(ToolWords, ForNothingInAnyDress) {
  for (const char* word : {"na", "None", "not supported", "[UNKNOWN]", "null", "No Data", "not available", " [ N/A ] "})
    EXPECT_TRUE(is_unavailable(word)) << word;
  for (const char* word : {"[x]", "[", "]", "nothing", "n/a n/a n/a n/a n/a n/a"})
    EXPECT_FALSE(is_unavailable(word)) << word;
  EXPECT_EQ(available(" A100 "), "A100");
  EXPECT_EQ(available("[N/A]"), "");
  EXPECT_EQ(available(std::string(200, 'x')).size(), 128u);
}

TEST(ToolWords, SizesUpToWhatFits) {
  EXPECT_EQ(memory_size("7 bytes", "MiB"), 7u);
  EXPECT_EQ(memory_size("7 byte", "MiB"), 7u);
  EXPECT_EQ(memory_size("7b", "MiB"), 7u);
  EXPECT_EQ(memory_size("7 kB", "MiB"), 7u << 10);
  EXPECT_EQ(memory_size("7KiB", "MiB"), 7u << 10);
  EXPECT_EQ(memory_size("7 GB", "MiB"), 7ull << 30);
  EXPECT_EQ(memory_size("7 gib", "MiB"), 7ull << 30);
  EXPECT_EQ(memory_size("7.", "MiB"), 7u << 20);
  EXPECT_EQ(memory_size("7.9x", "MiB"), std::nullopt);
  EXPECT_EQ(memory_size("9223372036854775807", "B"), 9223372036854775807u);
  EXPECT_EQ(memory_size("9223372036854775808", "B"), std::nullopt);
  EXPECT_EQ(memory_size("7", "parsec"), std::nullopt);
  EXPECT_EQ(whole_number(""), std::nullopt);
  EXPECT_EQ(whole_number("7 "), std::nullopt);
  EXPECT_EQ(whole_number("18446744073709551615"), UINT64_MAX);
}

TEST(ToolWords, TheLineThatComplainsIsCut) {
  EXPECT_EQ(complaint("x\nPermission DENIED\n", "quiet\n"), "Permission DENIED");
  EXPECT_EQ(complaint("it failed\n", "first error\n"), "first error") << "errors are asked first";
  EXPECT_EQ(complaint("out\n", "err\n"), "out") << "the last line of all";
  EXPECT_EQ(complaint("error " + std::string(300, 'x'), "").size(), 200u);
  EXPECT_EQ(complaint(std::string(300, 'x'), "").size(), 200u);
}

TEST(ToolWords, AddressesOfPlausibleLength) {
  EXPECT_EQ(pci_address("83:00.0"), "83:00.0");
  EXPECT_EQ(pci_address("3:00.0"), "");
  EXPECT_EQ(pci_address("00000000:83:00.0"), "00000000:83:00.0");
  EXPECT_EQ(pci_address("000000000:83:00.0"), "");
  EXPECT_EQ(pci_address("12345678"), "") << "no colon";
}

TEST(ToolWords, JsonAmongOtherBrackets) {
  EXPECT_EQ(find_json(R"({"a":"\"}"})").at("a"), "\"}");
  EXPECT_TRUE(find_json("[]").is_discarded());
  EXPECT_TRUE(find_json("[1]").is_discarded());
  EXPECT_TRUE(find_json("{}").is_object());
  EXPECT_TRUE(find_json(std::string(63, '[') + " {\"a\":1}").is_object());
  EXPECT_TRUE(find_json(std::string(64, '[') + " {\"a\":1}").is_discarded()) << "nobody logs so many brackets";
  std::string deep = "1";
  for (int i = 0; i < 32; ++i) deep = "{\"a\":" + deep + "}";
  EXPECT_TRUE(find_json(deep).contains("a"));
  EXPECT_EQ(find_json("{\"b\":" + deep + "}").contains("b"), false) << "one too deep; what is in it is found";
  const nlohmann::json object = nlohmann::json::parse(R"({"Name":"x","name":"y","n":-3,"u":3,"f":1.5})");
  EXPECT_EQ(member(object, "name"), "y") << "the exact one first";
  EXPECT_EQ(member(object, "NAME"), "x");
  EXPECT_TRUE(member(object, "none").is_null());
  EXPECT_TRUE(member(nlohmann::json(3), "none").is_null());
  EXPECT_EQ(text_of(object["n"]), "-3");
  EXPECT_EQ(text_of(object["u"]), "3");
  EXPECT_EQ(text_of(object["f"]), "");
}

// --- a host's files -------------------------------------------------------------------------------------------------

class HostEdges : public ProbeTest {
 protected:
  [[nodiscard]] HostFiles files() const { return HostFiles(root()); }
};

TEST_F(HostEdges, FilesAreReadTrimmedAndListedSorted) {
  file("/a/two", " 2 \n");
  file("/a/one", "x");
  EXPECT_EQ(files().read("/a/two"), " 2 \n");
  EXPECT_EQ(files().read_line("/a/two"), "2");
  EXPECT_EQ(files().read_number("/a/two"), 2u);
  EXPECT_EQ(files().read_number("/a/one"), std::nullopt);
  EXPECT_EQ(files().read("/a/none"), std::nullopt);
  EXPECT_EQ(files().read_line("/a/none"), "");
  EXPECT_THAT(files().list("/a"), ElementsAre("one", "two"));
  EXPECT_THAT(files().list("/none"), IsEmpty());
  EXPECT_TRUE(files().exists("/a"));
  EXPECT_FALSE(files().exists("/b"));
  file("/big", std::string((1u << 20) + 1, 'x'));
  EXPECT_EQ(files().read("/big"), std::nullopt);
}

TEST_F(HostEdges, ToolsAreFoundWhereTheyMayBeRun) {
  EXPECT_FALSE(find_tool(toolbox(), "absent"));
  tool("present", "echo out; echo err >&2; exit 3");
  EXPECT_EQ(find_tool(toolbox(), "present"), bin() / "present");
  std::filesystem::permissions(bin() / "present", std::filesystem::perms{0600});
  EXPECT_FALSE(find_tool(toolbox(), "present"));
  std::filesystem::permissions(bin() / "present", std::filesystem::perms{0755});
  std::filesystem::create_directories(bin() / "folder");
  EXPECT_FALSE(find_tool(toolbox(), "folder"));
  EXPECT_TRUE(find_tool(Toolbox{}, "sh")) << "in PATH";
  const ToolAnswer answer = ask_tool(toolbox(), {{"present"}});
  EXPECT_TRUE(answer.found && answer.answered);
  EXPECT_FALSE(answer.ok());
  EXPECT_EQ(answer.exit_code, 3);
  EXPECT_EQ(answer.out + answer.err, "out\nerr\n");
  EXPECT_EQ(answer.problem, "");
  const ToolAnswer none = ask_tool(toolbox(), {{"absent"}});
  EXPECT_FALSE(none.found);
  EXPECT_EQ(none.problem, "absent: not installed");
  tool("killed", "kill -9 $$");
  const ToolAnswer killed = ask_tool(toolbox(), {{"killed"}});
  EXPECT_TRUE(killed.found);
  EXPECT_FALSE(killed.answered);
  EXPECT_EQ(killed.problem, "killed: killed by signal 9");
  tool("words", "echo $LC_ALL $NO_COLOR \"$@\"");
  const std::vector<ToolAnswer> both = ask_tools(toolbox(), {{{"words", "a b"}}, {{"absent"}}});
  ASSERT_EQ(both.size(), 2u);
  EXPECT_EQ(both[0].out, "C 1 a b\n");
  EXPECT_FALSE(both[1].found);
}

// --- control groups -------------------------------------------------------------------------------------------------

TEST_F(HostEdges, TheLowestLimitOfAllLevelsCounts) {
  file("/proc/self/cgroup", "0::/a/b\n");
  file("/proc/self/mountinfo", "30 24 0:26 / /cg ro,nosuid - cgroup2 cgroup2 rw\n");
  file("/cg/memory.max", "100\n");
  file("/cg/a/memory.max", "300\n");
  file("/cg/a/b/memory.max", "200\n");
  file("/cg/a/cpu.max", "100000 0\n");
  file("/cg/a/b/cpu.max", "300000 100000\n");
  file("/cg/cpu.max", "150000 100000\n");
  file("/cg/a/b/cgroup.controllers", "cpu pids\n");
  CgroupLimits limits = cgroup_limits(files());
  EXPECT_EQ(limits.memory_bytes, 100u);
  EXPECT_EQ(limits.cpus, 1.5);
  EXPECT_EQ(limits.version, 2);
  EXPECT_FALSE(limits.writable) << "mounted read-only";
  EXPECT_FALSE(limits.delegated) << "memory is missing";
  file("/proc/self/mountinfo", "30 24 0:26 / /cg rw,nosuid - cgroup2 cgroup2 rw\n");
  file("/cg/a/b/cgroup.controllers", "memory pids\n");
  limits = cgroup_limits(files());
  EXPECT_TRUE(limits.writable);
  EXPECT_FALSE(limits.delegated) << "cpu is missing";
  file("/proc/self/mountinfo", "short\n30 24 0:26 / /cg rw,nosuid - tmpfs x rw\n");
  limits = cgroup_limits(files());
  EXPECT_EQ(limits.version, 0);
  EXPECT_FALSE(limits.writable);
  EXPECT_FALSE(limits.memory_bytes);
}

TEST_F(HostEdges, AContainersMountIsItsGroup) {
  file("/proc/self/cgroup", "0::/docker/abc/deep\n");
  file("/proc/self/mountinfo", "30 24 0:26 /docker/abc /cg rw - cgroup2 cgroup2 rw\n");
  file("/cg/deep/memory.max", "7\n");
  EXPECT_EQ(cgroup_limits(files()).memory_bytes, 7u);
  file("/proc/self/cgroup", "0::/../evil\n");
  file("/evil/memory.max", "1\n");
  file("/cg/memory.max", "9\n");
  EXPECT_EQ(cgroup_limits(files()).memory_bytes, 9u) << "what leads out is its top";
}

TEST_F(HostEdges, VersionOneNeedsBothControllersWritable) {
  file("/proc/self/cgroup", "5:memory:/x\n4:cpu,cpuacct:/x\n");
  const std::string memory = " - cgroup cgroup rw,memory\n", cpu = " - cgroup cgroup rw,cpu,cpuacct\n";
  file("/proc/self/mountinfo", "31 30 0:27 / /m rw" + memory + "32 30 0:28 / /c ro" + cpu);
  EXPECT_FALSE(cgroup_limits(files()).writable);
  file("/proc/self/mountinfo", "31 30 0:27 / /m rw" + memory + "32 30 0:28 / /c rw" + cpu);
  EXPECT_TRUE(cgroup_limits(files()).writable);
  file("/m/x/memory.limit_in_bytes", std::to_string(1ull << 60));
  EXPECT_FALSE(cgroup_limits(files()).memory_bytes);
  file("/m/x/memory.limit_in_bytes", std::to_string((1ull << 60) - 1));
  EXPECT_EQ(cgroup_limits(files()).memory_bytes, (1ull << 60) - 1);
  file("/c/x/cpu.cfs_quota_us", "50000\n");
  EXPECT_FALSE(cgroup_limits(files()).cpus);
  file("/c/x/cpu.cfs_period_us", "0\n");
  EXPECT_FALSE(cgroup_limits(files()).cpus);
  file("/c/x/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cgroup_limits(files()).cpus, 0.5);
}

// --- processors, machine --------------------------------------------------------------------------------------------

TEST_F(HostEdges, ProcessorsAreCountedOnlyWhereAllTell) {
  file("/sys/devices/system/cpu/online", "0-1\n");
  for (const char* cpu : {"0", "1"})
    file(std::string("/sys/devices/system/cpu/cpu") + cpu + "/topology/physical_package_id", "0\n");
  file("/sys/devices/system/cpu/cpu0/topology/core_id", "0\n");
  EXPECT_EQ(read_cpu(files()).threads, 2);
  EXPECT_FALSE(read_cpu(files()).cores) << "one says nothing";
  file("/sys/devices/system/cpu/cpu1/topology/core_id", "1\n");
  EXPECT_EQ(read_cpu(files()).cores, 2);
  for (const auto& [khz, mhz] : {std::pair{"99999", std::optional<std::uint32_t>()},
                                 {"100000", 100},
                                 {"99999999", 99999},
                                 {"100000000", std::nullopt}}) {
    file("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq", khz);
    EXPECT_EQ(read_cpu(files()).max_mhz, mhz) << khz;
  }
  file("/sys/devices/system/node/node4096/cpulist", "0\n");
  file("/sys/devices/system/node/node4097/cpulist", "0\n");
  file("/sys/devices/system/node/nodex/cpulist", "0\n");
  file("/sys/devices/system/node/node2/cpulist", "0\n");
  const CpuLayout cpu = read_cpu(files());
  ASSERT_EQ(cpu.numa.size(), 2u);
  EXPECT_EQ(cpu.numa[0].id, 2) << "in the order of their numbers";
  EXPECT_EQ(cpu.numa[1].id, 4096);
  EXPECT_THAT(parse_cpu_features("x: avx\nFeatures : asimd sve avx\nflags : fma\n"),
              ElementsAre("avx", "asimd", "sve"));
}

TEST_F(HostEdges, FreeMemoryIsNoMoreThanThereIs) {
  file("/proc/meminfo", "MemTotal: 16 kB\nMemAvailable: 8 kB\n");
  Inventory inventory;
  add_cpu(files(), inventory);
  EXPECT_EQ(inventory.memory_free_bytes, 8192u);
  inventory.memory_bytes = 4096;
  add_cpu(files(), inventory);
  EXPECT_EQ(inventory.memory_free_bytes, 4096u);
  EXPECT_NE(find_gap(inventory.gaps, "cpu.numa"), nullptr);
}

TEST_F(HostEdges, UsableProcessorsAreTheFewerOnesAndTheQuota) {
  const auto usable = [&](const std::string& allowed, const std::string& online) {
    file("/proc/self/status", "Cpus_allowed_list:\t" + allowed + "\n");
    file("/sys/devices/system/cpu/online", online + "\n");
    Inventory inventory;
    read_machine(files(), home(), inventory);
    return inventory.cpus;
  };
  EXPECT_EQ(usable("0-7", "0-3"), 4);
  EXPECT_EQ(usable("0-1", "0-3"), 2);
  EXPECT_EQ(usable("", "0-3"), 4);
  EXPECT_EQ(usable("0-1", ""), 2);
  file("/proc/self/cgroup", "0::/\n");
  file("/proc/self/mountinfo", "30 24 0:26 / /cg rw - cgroup2 cgroup2 rw\n");
  file("/cg/cpu.max", "123456 100000\n");
  EXPECT_EQ(usable("0-7", "0-7"), 1.23);
  file("/cg/cpu.max", "900000 100000\n");
  EXPECT_EQ(usable("0-7", "0-7"), 8) << "a quota above is none";
  file("/cg/memory.max", "5000\n");
  file("/proc/meminfo", "MemTotal: 4 kB\n");
  Inventory inventory;
  read_machine(files(), home(), inventory);
  EXPECT_EQ(inventory.memory_bytes, 4096u);
  file("/proc/meminfo", "");
  read_machine(files(), home(), inventory = {});
  EXPECT_EQ(inventory.memory_bytes, 5000u) << "better than nothing";
}

TEST_F(HostEdges, NamesAreReadAsTheyStand) {
  EXPECT_EQ(count_cpu_list("65535"), 1u);
  EXPECT_EQ(count_cpu_list("65536"), 0u);
  EXPECT_EQ(count_cpu_list("0-65535"), 65536u);
  EXPECT_EQ(count_cpu_list("0-65535,1"), 0u);
  EXPECT_EQ(count_cpu_list("5-5"), 1u);
  EXPECT_EQ(parse_pretty_name("PRETTY_NAME='A b'\n"), "A b");
  EXPECT_EQ(parse_pretty_name("PRETTY_NAME=\"A b'\n"), "\"A b'");
  EXPECT_EQ(parse_pretty_name("PRETTY_NAME=\"\n"), "\"");
  EXPECT_EQ(parse_pretty_name("PRETTY_NAMES=x\n"), "");
  EXPECT_EQ(parse_cpu_model("Model\t\t: Raspberry Pi\nHardware : BCM\n"), "Raspberry Pi");
  EXPECT_EQ(parse_cpu_model("model name2 : x\nuarch : sifive,u74\n"), "sifive,u74");
}

TEST_F(HostEdges, OnlyGraphicsCardsAndAcceleratorsAreGpus) {
  const auto device = [&](const std::string& address, const std::string& kind) {
    file("/sys/bus/pci/devices/" + address + "/vendor", "0x10de\n");
    file("/sys/bus/pci/devices/" + address + "/class", kind + "\n");
  };
  device("0000:01:00.0", "0x030000");
  device("0000:02:00.0", "0x030200");
  device("0000:03:00.0", "0x038000");
  device("0000:04:00.0", "0x120000");
  device("0000:05:00.0", "0x030100");
  device("0000:00:02.0", "0x030000");
  device("0000:06:00.0", "0x068000");
  EXPECT_THAT(pci_gpus(files(), "0x10de"), ElementsAre("0000:01:00.0", "0000:02:00.0", "0000:03:00.0", "0000:04:00.0"));
  EXPECT_THAT(pci_gpus(files(), "0x1002"), IsEmpty());
  EXPECT_EQ(count_nvswitches(files()), 1);
}

// --- the bus --------------------------------------------------------------------------------------------------------

TEST_F(HostEdges, AddressesAreSpeltAsInSys) {
  for (const auto& [text, address] : {std::pair{"00000000:0A:00.0", "0000:0a:00.0"},
                                      {"1:0a:00.0", "0001:0a:00.0"},
                                      {"0a:00.0", "0000:0a:00.0"},
                                      {"10000:0a:00.0", "10000:0a:00.0"},
                                      {"00010000:0a:00.0", "10000:0a:00.0"},
                                      {"000000000:0a:00.0", ""},
                                      {":0a:00.0", ""},
                                      {"0a:00:0", ""},
                                      {"0a.00.0", ""},
                                      {"0000:0a:00.00", ""},
                                      {"0000:0g:00.0", ""},
                                      {"", ""}})
    EXPECT_EQ(sysfs_address(text), address) << text;
}

TEST_F(HostEdges, LinksOfTheBusAreBelievable) {
  const std::string at = "/sys/bus/pci/devices/0000:0a:00.0";
  file(at + "/current_link_width", "0\n");
  file(at + "/max_link_width", "64\n");
  file(at + "/current_link_speed", "8.0 GT/s PCIe\n");
  file(at + "/max_link_speed", "Unknown\n");
  PcieLink link = pcie_link(files(), "0a:00.0");
  EXPECT_FALSE(link.width);
  EXPECT_EQ(link.width_max, 64);
  EXPECT_EQ(link.generation, 3);
  EXPECT_FALSE(link.generation_max);
  file(at + "/max_link_width", "65\n");
  EXPECT_FALSE(pcie_link(files(), "0a:00.0").width_max);
  EXPECT_EQ(pcie_link(files(), ""), PcieLink{});
  file(at + "/numa_node", "4095\n");
  EXPECT_EQ(pci_numa_node(files(), "0a:00.0"), 4095);
  file(at + "/numa_node", "4096\n");
  EXPECT_FALSE(pci_numa_node(files(), "0a:00.0"));
  EXPECT_FALSE(pci_numa_node(files(), ""));
  for (const auto& [speed, generation] :
       {std::pair{"2.5", 1}, {"5", 2}, {"16.0 GT/s", 4}, {"32", 5}, {"64", 6}, {"128", 7}})
    EXPECT_EQ(pcie_generation(speed), generation);
  EXPECT_FALSE(pcie_generation("7"));
  EXPECT_FALSE(pcie_generation(""));
  EXPECT_TRUE(bus_lacks(files(), "0b:00.0"));
  file(at + "/vendor", "0x10de\n");
  EXPECT_FALSE(bus_lacks(files(), "0a:00.0"));
  EXPECT_FALSE(bus_lacks(files(), "N/A"));
  EXPECT_FALSE(bus_lacks(HostFiles(root() / "nothing"), "0a:00.0")) << "there is no bus to be seen";
}

// --- disks ----------------------------------------------------------------------------------------------------------

TEST(DiskEdges, MountsThatJobsCouldNotUseAreLeftOut) {
  const auto mounts = [](const std::string& point, const std::string& kind = "ext4",
                         const std::string& options = "rw") {
    return parse_mounts("22 1 259:2 / " + point + " " + options + ",relatime shared:1 - " + kind + " /dev/x rw\n");
  };
  EXPECT_EQ(mounts("/data").size(), 1u);
  EXPECT_FALSE(mounts("/data")[0].disk.read_only);
  EXPECT_TRUE(mounts("/data", "ext4", "ro")[0].disk.read_only);
  for (const char* point : {"/proc", "/proc/x", "/sys/x", "/run/user/1", "/snap/a", "/boot", "/boot/efi",
                            "/var/lib/docker/x", "/var/lib/containers", "/var/lib/kubelet/x"})
    EXPECT_THAT(mounts(point), IsEmpty()) << point;
  EXPECT_EQ(mounts("/running").size(), 1u) << "another folder";
  EXPECT_EQ(mounts("/dev/shm", "tmpfs").size(), 1u);
  EXPECT_THAT(mounts("/dev/x", "tmpfs"), IsEmpty());
  EXPECT_EQ(mounts("/x", "ramfs")[0].disk.kind, DiskKind::memory);
  EXPECT_EQ(mounts("/x", "fuse.s3fs")[0].disk.kind, DiskKind::network);
  EXPECT_THAT(mounts("/x", "squashfs"), IsEmpty());
  EXPECT_EQ(mounts("/" + std::string(1023, 'x')).size(), 1u);
  EXPECT_THAT(mounts("/" + std::string(1024, 'x')), IsEmpty());
}

TEST(DiskEdges, SizesUpToWhatThereMayBe) {
  Disk disk;
  take_space("1073741824 1 1", disk);
  EXPECT_EQ(disk.total_bytes, 1u << 30);
  take_space("1073741825 9 9", disk);
  EXPECT_EQ(disk.total_bytes, 1u << 30);
  take_space("1 8589934592 5", disk);
  EXPECT_EQ(disk.total_bytes, 1ull << 33);
  EXPECT_EQ(disk.free_bytes, 5u);
  take_space("1 8589934593 5", disk);
  EXPECT_EQ(disk.total_bytes, 1ull << 33);
}

TEST_F(HostEdges, DisksWithoutANumberAreFoundByTheirSource) {
  file("/sys/class/block/sdb/queue/rotational", "0\n");
  EXPECT_EQ(block_kind(files(), "0:44", "/dev/sdb"), DiskKind::ssd);
  EXPECT_EQ(block_kind(files(), "0:44", "tank/data"), DiskKind::unknown);
  file("/sys/class/block/sdc/queue/rotational", "?\n");
  EXPECT_EQ(block_kind(files(), "0:44", "/dev/sdc"), DiskKind::unknown);
}

TEST_F(HostEdges, SmallDisksOfMemoryAreLeftOut) {
  Inventory inventory;
  add_disks(files(), toolbox(), inventory);
  EXPECT_NE(find_gap(inventory.gaps, "disks"), nullptr);
  file("/proc/self/mountinfo", "28 22 0:44 / /dev/shm rw - tmpfs tmpfs rw\n29 22 0:45 / /far rw - nfs s:/x rw\n");
  tool("stat", "exit 1");
  inventory = {};
  add_disks(files(), toolbox(), inventory);
  ASSERT_EQ(inventory.disks.size(), 1u) << "a disk of memory whose size is not known";
  EXPECT_EQ(inventory.disks[0].mount, "/far");
  EXPECT_THAT(inventory.notes, ElementsAre(HasSubstr("/far does not answer")));
}

// --- a host's facts -------------------------------------------------------------------------------------------------

TEST(FactEdges, RangesOfIdsAreLargeEnough) {
  EXPECT_TRUE(has_id_range("ada:1:65536\n", "ada", 5));
  EXPECT_FALSE(has_id_range("ada:1:65535\n", "ada", 5));
  EXPECT_TRUE(has_id_range("ada:1:1\nada:1:65536\n", "ada", 5)) << "any of them";
  EXPECT_FALSE(has_id_range("ada:1:65536:x\n", "ada", 5));
  EXPECT_FALSE(has_id_range("ada:1:x\n", "ada", 5));
  EXPECT_EQ(user_name("a:x\nb:x:7\n", 7), "b");
  EXPECT_EQ(mount_options("21 1 8:1 / / rw - x\n22 1 8:1 / /a ro - x\n23 1 8:1 / /a noexec - x\n", "/a/b"), "noexec")
      << "the later one hides the earlier";
  EXPECT_EQ(mount_options("21 1 8:1 / /\n", "/a"), "");
  EXPECT_EQ(mount_options("21 1 8:1 / /a rw - x\n", "/a"), "rw");
}

// --- network cards --------------------------------------------------------------------------------------------------

TEST_F(HostEdges, NetworkCardsHaveBelievableRates) {
  const auto card = [&](const std::string& name, const std::string& speed) {
    file("/sys/class/net/" + name + "/device/vendor", "0x8086\n");
    file("/sys/class/net/" + name + "/device/device", "0x1572\n");
    file("/sys/class/net/" + name + "/speed", speed + "\n");
    file("/sys/class/net/" + name + "/operstate", name == "a" ? "up\n" : "down\n");
  };
  card("a", "10000");
  card("b", "0");
  card("c", "10000000");
  file("/sys/class/net/c/type", "32\n");
  file("/sys/class/net/lo/speed", "1\n");
  const std::vector<Nic> nics = read_nics(files());
  ASSERT_EQ(nics.size(), 3u) << "loopback has no device";
  EXPECT_EQ(nics[0].bits_per_second, 1e10);
  EXPECT_TRUE(nics[0].up);
  EXPECT_EQ(nics[0].model, "8086:1572");
  EXPECT_EQ(nics[0].kind, NicKind::ethernet);
  EXPECT_FALSE(nics[1].bits_per_second);
  EXPECT_FALSE(nics[1].up);
  EXPECT_FALSE(nics[2].bits_per_second);
  EXPECT_EQ(nics[2].kind, NicKind::infiniband);
  EXPECT_EQ(infiniband_rate("100 Gb/sec (4X EDR)"), 1e11);
  EXPECT_EQ(infiniband_rate("100000 Gb/sec"), 1e14);
  for (const char* odd : {"0 Gb/sec", "-1 Gb/sec", "100001 Gb/sec", "100 Mb/sec", "", "x"})
    EXPECT_FALSE(infiniband_rate(odd)) << odd;
}

TEST_F(HostEdges, WaysIntoGpuMemoryNeedBothEnds) {
  file("/sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n");
  const auto ways = [&](Vendor vendor) {
    Inventory inventory;
    inventory.gpus.emplace_back().vendor = vendor;
    add_nics(files(), inventory);
    return inventory.gpu_direct;
  };
  EXPECT_THAT(ways(Vendor::amd), IsEmpty());
  file("/sys/module/ib_core/x", "");
  EXPECT_THAT(ways(Vendor::amd), ElementsAre("dmabuf"));
  EXPECT_THAT(ways(Vendor::nvidia), IsEmpty());
  file("/proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX Open Kernel Module\n");
  EXPECT_THAT(ways(Vendor::nvidia), ElementsAre("dmabuf"));
  file("/sys/module/ib_peer_mem/x", "");
  EXPECT_THAT(ways(Vendor::nvidia), ElementsAre("peermem", "dmabuf"));
  Inventory none;
  add_nics(files(), none);
  EXPECT_EQ(find_gap(none.gaps, "gpu_direct")->detail, "no GPU");
}

// --- software -------------------------------------------------------------------------------------------------------

TEST(SoftwareEdges, VersionsAreFoundInWords) {
  EXPECT_EQ(parse_libc("", "musl libc\nDynamic"), "musl");
  EXPECT_EQ(parse_libc("", "ldd (x) none\n"), "");
  EXPECT_EQ(parse_libc("", "other ldd 2.3\n"), "");
  EXPECT_EQ(parse_container_toolkit("version 1.2.3-rc1"), "1.2.3");
  EXPECT_EQ(parse_cdi_kind("kind: 'a/b'"), "a/b");
  EXPECT_EQ(parse_cdi_kind("kind: ab"), "") << "no kind without a slash";
  EXPECT_EQ(parse_cdi_kind("xkind: a/b"), "");
}

TEST_F(HostEdges, MachinesAreToldByTheirMaker) {
  const auto kind = [&](const std::string& maker, const std::string& product, const std::string& cpuinfo = "") {
    file("/sys/class/dmi/id/sys_vendor", maker + "\n");
    file("/sys/class/dmi/id/product_name", product + "\n");
    file("/proc/cpuinfo", cpuinfo);
    Inventory inventory;
    add_platform(files(), inventory);
    return inventory.product + "|" + inventory.virtualization;
  };
  EXPECT_EQ(kind("Microsoft Corporation", "Virtual Machine"), "Microsoft Corporation Virtual Machine|hyperv");
  EXPECT_EQ(kind("Microsoft Corporation", "Surface"), "Microsoft Corporation Surface|");
  EXPECT_EQ(kind("Dell", "Dell R750", "flags : fpu\n"), "Dell R750|none");
  EXPECT_EQ(kind("", "Board"), "Board|");
  EXPECT_EQ(kind("VMware, Inc.", "VMware7,1"), "VMware, Inc. VMware7,1|vmware");
  file("/proc/device-tree/model", "Raspberry Pi\n");
  EXPECT_EQ(kind("", ""), "Raspberry Pi|");
  file("/run/systemd/container", "lxc\n");
  EXPECT_EQ(kind("QEMU", "x"), "QEMU x|lxc");
  file("/var/run/secrets/kubernetes.io/x", "");
  EXPECT_EQ(kind("QEMU", "x"), "QEMU x|kubernetes");
  file("/run/.containerenv", "");
  EXPECT_EQ(kind("QEMU", "x"), "QEMU x|podman");
}

TEST_F(HostEdges, WhyNothingHandsGpusToContainers) {
  const auto gap = [&](Vendor vendor, const std::vector<ToolAnswer>& answers, const std::string& attribute) {
    Inventory inventory;
    if (vendor != Vendor::other) inventory.gpus.emplace_back().vendor = vendor;
    add_software(files(), answers, "", inventory);
    const Gap* found = find_gap(inventory.gaps, "software.container_gpus." + attribute);
    return found == nullptr ? "" : std::string(gap_reason_name(found->reason)) + ": " + found->detail;
  };
  EXPECT_EQ(gap(Vendor::amd, {}, "docker"), "not_applicable: no NVIDIA GPU");
  EXPECT_EQ(gap(Vendor::nvidia, {}, "docker"), "no_tool: docker does not answer here");
  EXPECT_EQ(gap(Vendor::amd, {}, "toolkit"), "not_applicable: no NVIDIA GPU");
  EXPECT_EQ(gap(Vendor::nvidia, {}, "toolkit"), "no_tool: nvidia-container-toolkit is not installed");
  std::vector<ToolAnswer> hung(3);
  hung[2].found = true;
  hung[2].problem = "nvidia-ctk: no answer";
  EXPECT_EQ(gap(Vendor::nvidia, hung, "toolkit"), "timed_out: nvidia-ctk: no answer");
  EXPECT_EQ(gap(Vendor::other, {}, "devices"), "not_applicable: no GPU");
  EXPECT_THAT(gap(Vendor::amd, {}, "devices"), HasSubstr("not_reported: no CDI"));
}

}  // namespace
}  // namespace gridctl::probe::edges_test
