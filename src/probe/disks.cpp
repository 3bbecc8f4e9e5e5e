// SPDX-License-Identifier: Apache-2.0
#include "probe/disks.hpp"

#include <algorithm>
#include <array>

#include "base/text.hpp"
#include "probe/facts.hpp"
#include "probe/tool_text.hpp"

namespace gridctl::probe {
namespace {

constexpr std::size_t k_disks_max = 32;
constexpr std::uint64_t k_memory_disk_min = 1ull << 30;  // smaller ones hold sockets and locks
constexpr int k_layers_max = 4;                          // partition on LVM on RAID on disks

constexpr std::array k_local{"ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "bcachefs", "jfs", "overlay"};
constexpr std::array k_network{"nfs",  "nfs4", "cifs",     "smb3", "lustre", "ceph",     "beegfs",
                               "gpfs", "9p",   "virtiofs", "afs",  "wekafs", "orangefs", "glusterfs"};
constexpr std::array k_not_for_jobs{
    "/proc", "/sys", "/run", "/snap", "/boot", "/var/lib/docker", "/var/lib/containers", "/var/lib/kubelet"};

bool is_among(const auto& list, std::string_view word) {
  return std::find(std::begin(list), std::end(list), word) != std::end(list);
}

bool beneath(std::string_view mount, std::string_view parent) {
  return mount == parent || (mount.starts_with(parent) && mount.substr(parent.size()).starts_with('/'));
}

bool is_network(std::string_view kind) { return is_among(k_network, kind) || kind.starts_with("fuse."); }

std::optional<Mount> mount_of(std::string_view line) {
  const std::vector<std::string> fields = split(std::string(line), ' ');
  const auto dash = std::ranges::find(fields, "-");
  if (fields.size() < 10 || fields.end() - dash < 3) return std::nullopt;
  Mount mount;
  mount.device = fields[2];
  mount.disk.mount = unescaped_mount(fields[4]);
  mount.disk.file_system = *(dash + 1);
  mount.disk.source = unescaped_mount(*(dash + 2));
  const std::vector<std::string> options = split(fields[5], ',');
  mount.disk.read_only = is_among(options, "ro");
  const std::string& kind = mount.disk.file_system;
  if (is_network(kind)) mount.disk.kind = DiskKind::network;
  else if (kind == "tmpfs" || kind == "ramfs") mount.disk.kind = DiskKind::memory;
  else if (!is_among(k_local, kind)) return std::nullopt;
  for (const char* parent : k_not_for_jobs)
    if (beneath(mount.disk.mount, parent)) return std::nullopt;
  if (mount.disk.kind == DiskKind::memory && mount.disk.mount != "/dev/shm" && beneath(mount.disk.mount, "/dev"))
    return std::nullopt;
  if (mount.disk.mount.size() > 1024 || mount.disk.source.size() > 1024) return std::nullopt;
  return mount;
}

// Returns the directory of /sys that describes the complete disk to which this block device belongs.
std::string disk_directory(const HostFiles& files, const std::string& block) {
  if (files.exists(block + "/queue/rotational")) return block;
  std::error_code error;
  const os::Path real = std::filesystem::weakly_canonical(files.at(block), error);
  if (error) return {};
  const os::Path root = std::filesystem::weakly_canonical(files.at("/"), error);
  return "/" + real.parent_path().lexically_relative(root).string();
}

// Returns whether a hypervisor provides the disk: it calls any disk rotational unless it is told otherwise.
bool is_of_a_hypervisor(const HostFiles& files, const std::string& disk, const std::string& name) {
  constexpr std::array k_names{"vd", "xvd", "nbd", "rbd", "ublk", "pmem"};
  constexpr std::array k_makers{"QEMU", "VMware", "Msft", "VBOX", "Virtual", "Google", "Nutanix", "XENSRC"};
  const std::string maker = files.read_line(disk + "/device/vendor") + " " + files.read_line(disk + "/device/model");
  return std::ranges::any_of(k_names, [&](const char* one) { return name.starts_with(one); }) ||
         std::ranges::any_of(k_makers, [&](const char* one) { return maker.find(one) != std::string::npos; });
}

DiskKind kind_beneath(const HostFiles& files, const std::string& block, int layers) {
  const std::string disk = disk_directory(files, block);
  if (disk.empty() || layers > k_layers_max) return DiskKind::unknown;
  const std::vector<std::string> parts = files.list(disk + "/slaves");
  if (!parts.empty()) return kind_beneath(files, disk + "/slaves/" + parts.front(), layers + 1);
  std::error_code error;
  const std::string name = std::filesystem::weakly_canonical(files.at(disk), error).filename().string();
  if (name.starts_with("nvme")) return DiskKind::nvme;
  const std::string rotational = files.read_line(disk + "/queue/rotational");
  if (rotational == "0") return DiskKind::ssd;
  return rotational == "1" && !is_of_a_hypervisor(files, disk, name) ? DiskKind::hdd : DiskKind::unknown;
}

ToolCall space_of(const Disk& disk) { return {{"stat", "-f", "-c", "%S %b %a", disk.mount}}; }

void measure(const HostFiles& files, Disk& disk) {
  std::error_code error;
  const auto space = std::filesystem::space(files.at(disk.mount), error);
  if (error) return;
  disk.total_bytes = space.capacity;
  disk.free_bytes = space.available;
}

}  // namespace

std::vector<Mount> parse_mounts(std::string_view mountinfo) {
  std::vector<Mount> mounts;
  for (const std::string& line : split_lines(mountinfo)) {
    auto mount = mount_of(line);
    if (!mount) continue;
    // A mount hides the earlier mount at its mount point.
    std::erase_if(mounts, [&](const Mount& other) { return other.disk.mount == mount->disk.mount; });
    const auto same = std::ranges::find_if(mounts, [&](const Mount& other) {
      return other.device == mount->device && other.disk.file_system == mount->disk.file_system;
    });
    if (same == mounts.end()) mounts.push_back(std::move(*mount));
    else if (mount->disk.mount.size() < same->disk.mount.size()) *same = std::move(*mount);
  }
  return mounts;
}

DiskKind block_kind(const HostFiles& files, std::string_view device, std::string_view source) {
  std::string block = "/sys/dev/block/" + std::string(device);
  if (device.starts_with("0:")) {  // btrfs and zfs have no device number of their own
    if (!source.starts_with("/dev/")) return DiskKind::unknown;
    block = "/sys/class/block/" + std::string(source.substr(5));
  }
  return files.exists(block) ? kind_beneath(files, block, 0) : DiskKind::unknown;
}

void take_space(std::string_view answer, Disk& disk) {
  const std::vector<std::string> words = split(std::string(trim(answer)), ' ');
  if (words.size() != 3) return;
  const auto block = whole_number(words[0]), total = whole_number(words[1]), free = whole_number(words[2]);
  if (!block || !total || !free || *block > (1u << 30) || *total > (1ull << 33)) return;
  disk.total_bytes = *block * *total;
  disk.free_bytes = *block * std::min(*free, *total);
}

void add_disks(const HostFiles& files, const Toolbox& toolbox, Inventory& inventory) {
  std::vector<Disk> disks;
  std::vector<ToolCall> calls;
  for (Mount& mount : parse_mounts(files.read("/proc/self/mountinfo").value_or(""))) {
    if (disks.size() >= k_disks_max) break;
    if (mount.disk.kind == DiskKind::unknown) mount.disk.kind = block_kind(files, mount.device, mount.disk.source);
    if (mount.disk.kind == DiskKind::network) calls.push_back(space_of(mount.disk));
    else measure(files, mount.disk);
    if (mount.disk.kind == DiskKind::memory && mount.disk.total_bytes < k_memory_disk_min) continue;
    disks.push_back(std::move(mount.disk));
  }
  std::vector<ToolAnswer> answers = ask_tools(toolbox, calls);
  std::size_t next = 0;
  for (Disk& disk : disks) {
    if (disk.kind != DiskKind::network || next >= answers.size()) continue;
    const ToolAnswer& answer = answers[next++];
    take_space(answer.out, disk);
    if (!answer.ok() && inventory.notes.size() < 32)
      inventory.notes.push_back("the network file system on " + disk.mount + " does not answer");
  }
  inventory.disks = std::move(disks);
  if (inventory.disks.empty())
    add_gap(inventory.gaps, "disks", GapReason::unreadable, "/proc/self/mountinfo shows no known file system");
}

}  // namespace gridctl::probe
