// SPDX-License-Identifier: Apache-2.0
#include "probe/inventory.hpp"

#include <algorithm>
#include <variant>

#include "probe/cgroup.hpp"
#include "probe/cpu.hpp"
#include "probe/disks.hpp"
#include "probe/engines.hpp"
#include "probe/facts.hpp"
#include "probe/gather.hpp"
#include "probe/machine.hpp"
#include "probe/nics.hpp"
#include "probe/pci.hpp"
#include "probe/software.hpp"

namespace gridctl::probe {
namespace {

constexpr int k_rounds_max = 2;          // a list of devices, then each device
constexpr std::size_t k_notes_max = 32;  // more lines nobody reads
constexpr std::size_t k_note_max = 300;  // bytes of one note

using Found = std::variant<std::monostate, VendorReading, ToolAnswer, std::vector<ToolAnswer>>;
enum Work : std::size_t { docker, podman, software, first_vendor };

// Leases use the uuid, so two GPUs with one uuid (partitions of one chip on older drivers) must differ.
void make_unique(std::vector<Gpu>& gpus) {
  const auto taken_before = [&](std::size_t count, const std::string& uuid) {
    return std::any_of(gpus.begin(), gpus.begin() + static_cast<std::ptrdiff_t>(count),
                       [&](const Gpu& other) { return other.uuid == uuid; });
  };
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    if (gpus[i].uuid.empty() || taken_before(i, gpus[i].uuid)) gpus[i].uuid = gpus[i].pci;
    if (gpus[i].uuid.empty() || taken_before(i, gpus[i].uuid))
      gpus[i].uuid = std::string(vendor_name(gpus[i].vendor)) + "-" + gpus[i].pci + "#" + std::to_string(i);
  }
}

void add_missing_tools(const HostFiles& files, const VendorPlugin& vendor, const VendorReading& reading,
                       Inventory& inventory) {
  if (!reading.gpus.empty() || !reading.notes.empty()) return;
  const std::vector<std::string> devices = pci_gpus(files, vendor.pci_vendor_id);
  if (devices.empty()) return;
  inventory.notes.push_back(std::string(vendor.name) + ": " + std::to_string(devices.size()) + " GPU(s) on the bus (" +
                            devices.front() +
                            "), but no tool of the vendor is installed: " + std::string(vendor.driver_advice));
  add_gap(inventory.gaps, "gpus", GapReason::no_driver, inventory.notes.back());
}

// Reads the version of the vendor's toolkit, or the reason why there is none.
void take_toolkit(const HostFiles& files, const VendorPlugin& vendor, const VendorReading& reading,
                  Inventory& inventory) {
  if (vendor.toolkit == nullptr) return;
  std::string& toolkit = inventory.*vendor.toolkit;
  toolkit = reading.toolkit;
  if (toolkit.empty() && vendor.installed_toolkit) toolkit = vendor.installed_toolkit(files);
}

// Either a tool invents GPUs, or a machine such as WSL hides its bus: the benchmark shows which.
void note_unseen(const HostFiles& files, VendorReading& reading) {
  for (const Gpu& gpu : reading.gpus)
    if (gpu.partition.parent.empty() && bus_lacks(files, gpu.pci))
      reading.notes.push_back(gpu.uuid + " is reported at " + gpu.pci + ", where the bus has no device");
}

void take_reading(const HostFiles& files, const VendorPlugin& vendor, VendorReading reading, Inventory& inventory) {
  if (vendor.complete) vendor.complete(files, reading);
  complete_from_bus(files, reading.gpus);
  note_unseen(files, reading);
  add_missing_tools(files, vendor, reading, inventory);
  take_toolkit(files, vendor, reading, inventory);
  const auto first = static_cast<std::uint32_t>(inventory.gpus.size());
  for (GpuLink link : reading.links) {
    link.a += first;
    link.b += first;
    inventory.links.push_back(link);
  }
  for (Gpu& gpu : reading.gpus) inventory.gpus.push_back(std::move(gpu));
  for (std::string& note : reading.notes) inventory.notes.push_back(std::move(note));
}

// Explains gaps that matter only with GPUs, or with GPUs of one maker.
void explain_gpus(const HostFiles& files, std::span<const VendorPlugin> plugins, Inventory& inventory) {
  auto& gaps = inventory.gaps;
  if (inventory.gpus.empty()) add_gap(gaps, "gpus", GapReason::not_applicable, "no GPU on the bus");
  if (inventory.gpus.size() < 2)
    add_gap(gaps, "links", GapReason::not_applicable, inventory.gpus.empty() ? "no GPU" : "one GPU");
  if (inventory.links.empty())
    add_gap(gaps, "links", GapReason::not_reported, "neither the tools nor /sys show how the GPUs are joined");
  if (files.exists("/sys/bus/pci/devices")) inventory.nvswitch = count_nvswitches(files);
  else add_gap(gaps, "nvswitch", GapReason::not_reported, "/sys/bus/pci does not exist");
  constexpr std::pair<Vendor, const char*> toolkits[] = {
      {Vendor::nvidia, "cuda"}, {Vendor::amd, "rocm"}, {Vendor::intel, "oneapi"}};
  for (const auto& toolkit : toolkits) {
    const Vendor vendor = toolkit.first;  // clang 14 lets no lambda capture a structured binding
    const bool present = std::ranges::any_of(inventory.gpus, [&](const Gpu& gpu) { return gpu.vendor == vendor; });
    const auto plugin = std::ranges::find(plugins, vendor, &VendorPlugin::vendor);
    const bool on_bus = plugin != plugins.end() && !pci_gpus(files, plugin->pci_vendor_id).empty();
    if (present)
      add_gap(gaps, toolkit.second, GapReason::not_reported,
              "no tool reports it, and it is in none of its usual places");
    else if (on_bus) add_gap(gaps, toolkit.second, GapReason::no_driver, "a GPU is present, but no tool reports it");
    else add_gap(gaps, toolkit.second, GapReason::not_applicable, "no GPU from " + std::string(vendor_name(vendor)));
  }
  // The installed version is unknown for the same reason as the version that the driver supports.
  for (const auto& [supported, installed] :
       {std::pair{"cuda", "software.cuda_toolkit"}, std::pair{"rocm", "software.hip"},
        std::pair{"oneapi", "software.level_zero"}}) {
    const Gap why = *find_gap(gaps, supported);
    add_gap(gaps, installed, why.reason, why.detail);
  }
}

std::vector<std::function<Found()>> works_of(const Toolbox& toolbox, std::span<const VendorPlugin> plugins) {
  std::vector<std::function<Found()>> works;
  works.push_back([toolbox]() -> Found { return ask_tool(toolbox, docker_call()); });
  works.push_back([toolbox]() -> Found { return ask_tool(toolbox, podman_call()); });
  works.push_back([toolbox]() -> Found { return ask_tools(toolbox, software_calls()); });
  for (const VendorPlugin& vendor : plugins)
    works.push_back([toolbox, &vendor]() -> Found { return read_vendor(vendor, toolbox); });
  return works;
}

ToolAnswer answer_of(std::optional<Found>& found, const char* tool) {
  if (found)
    if (auto* answer = std::get_if<ToolAnswer>(&*found)) return std::move(*answer);
  ToolAnswer stuck;
  stuck.tool = tool;
  stuck.problem = std::string(tool) + ": stuck in the kernel, could not be killed";
  return stuck;
}

void bound_notes(std::vector<std::string>& notes) {
  if (notes.size() > k_notes_max) notes.resize(k_notes_max);
  for (std::string& note : notes)
    if (note.size() > k_note_max) note.resize(k_note_max);
}

}  // namespace

VendorReading read_vendor(const VendorPlugin& vendor, const Toolbox& toolbox) {
  std::vector<ToolAnswer> answers;
  for (int round = 0; round < k_rounds_max; ++round) {
    const std::vector<ToolCall> calls = vendor.ask(answers);
    if (calls.empty()) break;
    for (ToolAnswer& answer : ask_tools(toolbox, calls)) answers.push_back(std::move(answer));
  }
  return vendor.read(answers);
}

Inventory take_inventory(os::Clock& clock, const ProbeOptions& options) {
  const HostFiles files(options.root);
  const os::Path home = options.home.empty() ? os::home_directory() / ".gridctl" : options.home;
  const std::span<const VendorPlugin> plugins = options.plugins.empty() ? vendors() : options.plugins;
  // Allows for two rounds of tools, and the time to kill and reap them.
  const Duration limit = options.toolbox.deadline * k_rounds_max + std::chrono::seconds{2};
  auto found = gather<Found>(works_of(options.toolbox, plugins), limit);

  Inventory inventory;
  read_machine(files, home, inventory);
  add_platform(files, inventory);
  add_cpu(files, inventory);
  inventory.facts = read_facts(files, options.toolbox, home, clock);
  const ToolAnswer docker_answer = answer_of(found[docker], "docker");
  inventory.engines = {read_docker(docker_answer, inventory.facts.user),
                       read_podman(answer_of(found[podman], "podman"), inventory.facts.user),
                       process_engine(inventory.facts.uid == 0 && cgroup_limits(files).writable)};
  std::size_t slot = first_vendor;
  for (const VendorPlugin& vendor : plugins) {
    VendorReading reading;
    if (auto& result = found[slot++]; result && std::holds_alternative<VendorReading>(*result))
      reading = std::move(std::get<VendorReading>(*result));
    else reading.notes.push_back(std::string(vendor.name) + ": its tools are stuck in the kernel");
    take_reading(files, vendor, std::move(reading), inventory);
  }
  make_unique(inventory.gpus);
  add_bus_links(files, inventory);
  explain_gpus(files, plugins, inventory);
  std::vector<ToolAnswer> said;
  if (found[software])
    if (auto* answers = std::get_if<std::vector<ToolAnswer>>(&*found[software])) said = std::move(*answers);
  add_software(files, said, docker_answer.out, inventory);
  add_nics(files, inventory);
  add_disks(files, options.toolbox, inventory);
  explain_rest(inventory, GapReason::not_reported, "no tool reports it");
  bound_notes(inventory.notes);
  return inventory;
}

}  // namespace gridctl::probe
