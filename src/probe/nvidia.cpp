// SPDX-License-Identifier: Apache-2.0
// Reads NVIDIA GPUs through nvidia-smi: the CSV query for the GPUs, the summary table for the CUDA version and the
// memory of MIG devices, -L for the MIG devices themselves, XML for everything else about each GPU; if there are GPUs,
// a second round for the links between them. The CSV and the table are separate because a sick GPU cuts short the XML
// of old drivers.
#include <array>
#include <utility>

#include "base/numbers.hpp"
#include "base/text.hpp"
#include "probe/nvidia_reports.hpp"
#include "probe/tool_text.hpp"
#include "probe/vendor.hpp"

namespace gridctl::probe {
namespace nvidia {
namespace {

enum Query : std::size_t { csv, table, list, xml, k_queries, capability = k_queries, nvlink, topology };

std::vector<ToolCall> ask_first() {
  return {{{"nvidia-smi", "--query-gpu=index,name,uuid,memory.total,driver_version,pci.bus_id",
            "--format=csv,noheader,nounits"}},
          {{"nvidia-smi"}},
          {{"nvidia-smi", "-L"}},
          {{"nvidia-smi", "-q", "-x"}}};
}

std::optional<int> small_number(std::string_view text) {
  const auto value = whole_number(trim(text));
  if (!value || *value >= k_gpus_max) return std::nullopt;
  return static_cast<int>(*value);
}

// Maps the driver's usual error texts to their meaning and remedy. The key is a part of the line, in lower case.
constexpr std::array<std::pair<std::string_view, std::string_view>, 6> k_meanings{{
    {"driver/library version mismatch", "the driver was updated under a running kernel module: reboot needed"},
    {"couldn't communicate with the nvidia driver", "the kernel module is not loaded: sudo modprobe nvidia"},
    {"gpu is lost", "a GPU fell off the bus: reboot needed"},
    {"unable to determine the device handle", "a GPU does not answer: reboot needed"},
    {"no devices were found", "no devices were found"},
    {"insufficient permissions", "the user cannot open /dev/nvidia*: add the user to the group that owns them"},
}};

std::string complaint_note(std::string_view line) {
  const std::string text = lower(line);
  for (const auto& [part, meaning] : k_meanings)
    if (text.find(part) != std::string::npos) return "nvidia-smi: " + std::string(meaning);
  return {};
}

void add_note(VendorReading& reading, std::string note) {
  if (note.empty()) return;
  for (const std::string& known : reading.notes)
    if (known == note) return;
  if (reading.notes.size() < 8) reading.notes.push_back(std::move(note));
}

// Parses "0, NAME, GPU-…, 81559, 590.48.01, 00000000:00:09.0"; a name may contain commas, so the row is read from both
// ends.
std::optional<Gpu> gpu_of_row(std::string_view line, VendorReading& reading) {
  std::vector<std::string> cells = split(line, ',');
  if (cells.size() < 6) return std::nullopt;
  const auto index = small_number(cells.front());
  if (!index) return std::nullopt;
  const std::size_t n = cells.size();
  Gpu gpu;
  gpu.vendor = Vendor::nvidia;
  gpu.index = index;
  std::vector<std::string> name(cells.begin() + 1, cells.end() - 4);
  gpu.name = available(join(name, ","));
  gpu.uuid = available(cells[n - 4]);
  gpu.driver = available(cells[n - 2]);
  gpu.pci = pci_address(cells[n - 1]);
  if (!gpu.uuid.starts_with("GPU-") && !gpu.uuid.starts_with("MIG-")) gpu.uuid = gpu.pci;
  if (gpu.uuid.empty()) return std::nullopt;
  if (const auto memory = memory_size(cells[n - 3], "MiB")) gpu.memory_bytes = *memory;
  else add_note(reading, "nvidia-smi: GPU " + std::to_string(*index) + " does not report its memory");
  return gpu;
}

void read_rows(std::string_view text, VendorReading& reading) {
  for (const std::string& line : split_lines(text)) {
    if (reading.gpus.size() >= k_gpus_max) break;
    if (auto gpu = gpu_of_row(line, reading)) reading.gpus.push_back(std::move(*gpu));
    else add_note(reading, complaint_note(line));
  }
}

std::vector<ToolCall> ask(std::span<const ToolAnswer> answers) {
  if (answers.empty()) return ask_first();
  if (answers.size() != k_queries) return {};
  VendorReading reading;
  read_rows(answers[csv].out, reading);
  if (reading.gpus.empty()) return {};
  std::vector<ToolCall> calls{{{"nvidia-smi", "--query-gpu=uuid,compute_cap", "--format=csv,noheader"}},
                              {{"nvidia-smi", "nvlink", "-s"}}};
  if (reading.gpus.size() > 1) calls.push_back({{"nvidia-smi", "topo", "-m"}});
  return calls;
}

// Parses "CUDA Version: 12.4" or, since driver 610, "CUDA UMD Version: 13.3"; "N/A" if there is none.
std::string cuda_version(std::string_view text) {
  for (const std::string_view key : {"CUDA Version:", "CUDA UMD Version:"}) {
    const std::size_t at = text.find(key);
    if (at == std::string_view::npos) continue;
    const std::string_view rest = trim(text.substr(at + key.size(), 24));
    const std::string_view version = rest.substr(0, rest.find_first_not_of("0123456789."));
    if (!version.empty()) return std::string(version);
  }
  return {};
}

// Holds a row of the table's MIG part: "|  0    2   0   1  |   26MiB / 40448MiB    | 60 …".
struct MigRow {
  int gpu = 0, instance = 0, device = 0;
  std::uint64_t memory_bytes = 0;
};

std::optional<MigRow> mig_row(std::string_view line) {
  const std::vector<std::string> cells = split(line, '|');
  if (cells.size() < 4) return std::nullopt;
  std::vector<int> numbers;
  for (const std::string& word : split(cells[1], ' ')) {
    if (word.empty()) continue;
    const auto value = small_number(word);
    if (!value) return std::nullopt;
    numbers.push_back(*value);
  }
  const std::size_t slash = cells[2].find('/');
  if (numbers.size() != 4 || slash == std::string::npos) return std::nullopt;
  const auto memory = memory_size(std::string_view(cells[2]).substr(slash + 1), "MiB");
  if (!memory) return std::nullopt;
  return MigRow{numbers[0], numbers[1], numbers[3], *memory};
}

// Holds the GPUs whose rows of the table end in "Enabled" (MIG mode), and the MIG rows.
struct Table {
  std::vector<int> mig_mode;
  std::vector<MigRow> mig;
};

Table read_table(std::string_view text) {
  Table out;
  std::optional<int> current;
  for (const std::string& line : split_lines(text)) {
    if (auto row = mig_row(line)) {
      if (out.mig.size() < k_gpus_max) out.mig.push_back(*row);
      continue;
    }
    const std::vector<std::string> cells = split(line, '|');
    if (cells.size() < 4) continue;
    const std::string first(trim(cells[1]));
    if (const std::size_t space = first.find(' '); space != std::string::npos && first.find("  ") == space)
      if (const auto index = small_number(std::string_view(first).substr(0, space))) current = index;
    if (current && trim(cells[cells.size() - 2]) == "Enabled" && trim(cells[1]).empty()) {
      out.mig_mode.push_back(*current);
      current.reset();
    }
  }
  return out;
}

struct MigDevice {
  int gpu = 0, device = 0;
  std::string profile;  // "1g.5gb", "1c.3g.71gb"
  std::string uuid;
};

// Reads "GPU 0: NVIDIA A100 (UUID: GPU-…)" and beneath it "  MIG 1g.5gb      Device  0: (UUID: MIG-…)".
std::vector<MigDevice> read_list(std::string_view text) {
  std::vector<MigDevice> out;
  std::optional<int> gpu;
  for (const std::string& raw : split_lines(text)) {
    const std::string_view line = trim(raw);
    if (line.starts_with("GPU ")) {
      gpu = small_number(line.substr(4, line.find(':') - std::min<std::size_t>(4, line.find(':'))));
      continue;
    }
    const std::size_t device = line.find("Device");
    const std::size_t colon = line.find(':', device == std::string_view::npos ? line.size() : device);
    const std::size_t uuid = line.find("(UUID: ");
    if (!gpu || !line.starts_with("MIG ") || colon == std::string_view::npos || uuid == std::string_view::npos)
      continue;
    const auto number = small_number(line.substr(device + 6, colon - device - 6));
    const std::string_view id = line.substr(uuid + 7, line.find(')', uuid) - uuid - 7);
    if (!number || !id.starts_with("MIG-") || id.size() > 100 || out.size() >= k_gpus_max) continue;
    out.push_back({*gpu, *number, std::string(trim(line.substr(4, device - 4)).substr(0, 32)), std::string(id)});
  }
  return out;
}

// Returns the nominal memory of a profile: "1g.5gb" -> 5 GB; a compute slice ("1c.3g.71gb") has its share.
std::uint64_t profile_memory(std::string_view profile) {
  std::uint64_t compute = 0, slices = 0, gigabytes = 0;
  for (const std::string& part : split(profile.substr(0, profile.find('+')), '.')) {
    std::string_view unit = part;
    const auto value = take_number<std::uint64_t>(unit);
    if (!value || *value > 4096) continue;
    if (unit == "c") compute = *value;
    if (unit == "g") slices = *value;
    if (unit == "gb") gigabytes = *value;
  }
  std::uint64_t bytes = gigabytes * 1'000'000'000;
  if (compute != 0 && slices > compute) bytes = bytes / slices * compute;
  return bytes;
}

std::uint64_t mig_memory(const MigDevice& device, const Table& table, const std::vector<MigDetails>& details) {
  for (const MigRow& row : table.mig) {
    if (row.gpu != device.gpu || row.device != device.device) continue;
    std::uint64_t sharing = 0;  // compute instances of one GPU instance share its memory
    for (const MigRow& other : table.mig) sharing += other.gpu == row.gpu && other.instance == row.instance ? 1 : 0;
    return row.memory_bytes / sharing;
  }
  for (const MigDetails& one : details)
    if (one.gpu == device.gpu && one.device == device.device && one.memory_bytes != 0) return one.memory_bytes;
  return profile_memory(device.profile);
}

Gpu part_of(const Gpu& gpu, const MigDevice& device, const Table& table, const std::vector<MigDetails>& details) {
  Gpu part = gpu;
  part.name += " MIG " + device.profile;
  part.uuid = device.uuid;
  part.memory_bytes = mig_memory(device, table, details);
  part.partition = {true, device.profile, gpu.uuid};
  for (const MigDetails& one : details)
    if (one.gpu == device.gpu && one.device == device.device && one.units != 0) part.units = one.units;
  part.fabric = {};
  for (const char* attribute : {"fabric.active", "fabric.bits_per_second"})
    add_gap(part.gaps, attribute, GapReason::not_applicable, "MIG devices have no NVLink");
  return part;
}

// Replaces a GPU by its MIG devices, because programs see those and not the divided GPU.
void replace_by_mig_devices(VendorReading& reading, const std::vector<MigDevice>& devices, const Table& table,
                            const std::vector<MigDetails>& details) {
  std::vector<Gpu> out;
  std::vector<std::optional<std::uint32_t>> moved(reading.gpus.size());  // whole GPUs' new positions
  for (std::size_t i = 0; i < reading.gpus.size(); ++i) {
    Gpu& gpu = reading.gpus[i];
    bool cut = false;
    for (const MigDevice& device : devices) {
      if (device.gpu != gpu.index) continue;
      cut = true;
      if (out.size() < k_gpus_max) out.push_back(part_of(gpu, device, table, details));
    }
    if (cut) continue;
    bool mig_mode = false;
    for (const int index : table.mig_mode) mig_mode = mig_mode || index == gpu.index;
    if (mig_mode && gpu.uuid.starts_with("GPU-")) {
      const std::string index = std::to_string(*gpu.index);
      add_note(reading, "nvidia-smi: GPU " + index + " is in MIG mode without a MIG device: sudo nvidia-smi -i " +
                            index + " -mig 0");
      continue;
    }
    moved[i] = static_cast<std::uint32_t>(out.size());
    out.push_back(std::move(gpu));
  }
  reading.gpus = std::move(out);
  std::vector<GpuLink> links;
  for (GpuLink link : reading.links) {
    if (!moved[link.a] || !moved[link.b]) continue;
    link.a = *moved[link.a];
    link.b = *moved[link.b];
    links.push_back(link);
  }
  reading.links = std::move(links);
}

// Explains why a fact of an answer is unknown; adds nothing if the tool answered well.
void explain(const ToolAnswer& answer, std::initializer_list<const char*> attributes, std::vector<Gpu>& gpus) {
  if (answer.ok()) return;
  const GapReason reason = !answer.found     ? GapReason::no_tool
                           : answer.answered ? GapReason::not_reported
                                             : GapReason::timed_out;
  const std::string detail = answer.answered ? "nvidia-smi: " + complaint(answer.out, answer.err) : answer.problem;
  for (Gpu& gpu : gpus)
    for (const char* attribute : attributes) add_gap(gpu.gaps, attribute, reason, detail);
}

void read_second_round(std::span<const ToolAnswer> answers, VendorReading& reading) {
  if (answers.size() > capability) {
    read_compute_capability(answers[capability], reading.gpus);
    explain(answers[capability], {"arch"}, reading.gpus);
  }
  if (answers.size() > nvlink) {
    read_nvlinks(answers[nvlink], reading.gpus);
    explain(answers[nvlink], {"fabric.active", "fabric.bits_per_second"}, reading.gpus);
    for (Gpu& gpu : reading.gpus)
      if (answers[nvlink].ok() && !gpu.fabric.active)
        for (const char* attribute : {"fabric.active", "fabric.bits_per_second"})
          add_gap(gpu.gaps, attribute, GapReason::not_supported, "nvidia-smi nvlink -s lists no link");
  }
  if (answers.size() > topology) {
    reading.links = read_nvidia_topology(answers[topology].out, reading.gpus);
    if (!answers[topology].answered) add_note(reading, answers[topology].problem);
  }
}

VendorReading read(std::span<const ToolAnswer> answers) {
  VendorReading reading;
  if (answers.size() < k_queries || !answers[csv].found) return reading;
  for (const ToolAnswer& answer : answers.first(k_queries))
    if (answer.found && !answer.answered) add_note(reading, answer.problem);
  read_rows(answers[csv].out, reading);
  if (answers[csv].answered && reading.gpus.empty()) {
    read_rows(answers[csv].err, reading);  // some versions complain there
    if (reading.notes.empty())
      add_note(reading, "nvidia-smi: " + (complaint(answers[csv].out, answers[csv].err).empty()
                                              ? std::string("said nothing")
                                              : complaint(answers[csv].out, answers[csv].err)));
  }
  reading.toolkit = cuda_version(answers[table].out);
  if (reading.toolkit.empty()) reading.toolkit = cuda_of_xml(answers[xml].out);
  const std::vector<MigDetails> details = read_nvidia_xml(answers[xml], reading.gpus);
  explain(answers[xml],
          {"clocks.core_mhz", "clocks.core_max_mhz", "clocks.memory_mhz", "clocks.memory_max_mhz", "power.draw_watts",
           "power.cap_watts", "power.default_watts", "power.max_watts", "heat.now_c", "heat.slowdown_c",
           "heat.shutdown_c", "ecc", "partition.enabled", "throttle"},
          reading.gpus);
  for (Gpu& gpu : reading.gpus)
    for (const char* attribute : {"units", "memory_bus_bits"})
      add_gap(gpu.gaps, attribute, GapReason::needs_bench, "nvidia-smi does not report it");
  read_second_round(answers, reading);
  replace_by_mig_devices(reading, read_list(answers[list].out), read_table(answers[table].out), details);
  return reading;
}

}  // namespace
}  // namespace nvidia

const VendorPlugin k_nvidia{.vendor = Vendor::nvidia,
                            .name = "nvidia",
                            .pci_vendor_id = "0x10de",
                            .driver_advice = "sudo ubuntu-drivers install",
                            .toolkit = &Inventory::cuda,
                            .ask = nvidia::ask,
                            .read = nvidia::read};

}  // namespace gridctl::probe
