// SPDX-License-Identifier: Apache-2.0
#include "probe/inventory.hpp"

#include <algorithm>
#include <variant>

#include "probe/cgroup.hpp"
#include "probe/engines.hpp"
#include "probe/facts.hpp"
#include "probe/gather.hpp"
#include "probe/machine.hpp"

namespace gridctl::probe {
namespace {

constexpr int k_rounds_max = 2;          // a list of devices, then each device
constexpr std::size_t k_notes_max = 32;  // more lines nobody reads
constexpr std::size_t k_note_max = 300;  // bytes of one note

using Found = std::variant<std::monostate, VendorReading, ToolAnswer>;

// Leases are taken by uuid: two GPUs with one uuid (partitions of one chip on older drivers) must differ.
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
  inventory.notes.push_back(std::string(vendor_name(vendor.vendor)) + ": " + std::to_string(devices.size()) +
                            " GPU(s) on the bus (" + devices.front() +
                            "), but no tool of the vendor is installed: " + std::string(vendor.driver_advice));
}

void take_reading(const HostFiles& files, const VendorPlugin& vendor, VendorReading reading, Inventory& inventory) {
  add_missing_tools(files, vendor, reading, inventory);
  std::string& toolkit = inventory.*vendor.toolkit;
  toolkit = reading.toolkit;
  if (toolkit.empty() && vendor.installed_toolkit) toolkit = vendor.installed_toolkit(files);
  for (Gpu& gpu : reading.gpus) inventory.gpus.push_back(std::move(gpu));
  for (std::string& note : reading.notes) inventory.notes.push_back(std::move(note));
}

std::vector<std::function<Found()>> works_of(const Toolbox& toolbox) {
  std::vector<std::function<Found()>> works;
  works.push_back([toolbox]() -> Found { return ask_tool(toolbox, docker_call()); });
  works.push_back([toolbox]() -> Found { return ask_tool(toolbox, podman_call()); });
  for (const VendorPlugin& vendor : vendors())
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
  // Two rounds of tools, and what it takes to kill and reap them.
  const Duration limit = options.toolbox.deadline * k_rounds_max + std::chrono::seconds{2};
  auto found = gather<Found>(works_of(options.toolbox), limit);

  Inventory inventory;
  read_machine(files, home, inventory);
  inventory.facts = read_facts(files, options.toolbox, home, clock);
  inventory.engines = {read_docker(answer_of(found[0], "docker"), inventory.facts.user),
                       read_podman(answer_of(found[1], "podman"), inventory.facts.user),
                       process_engine(inventory.facts.uid == 0 && cgroup_limits(files).writable)};
  std::size_t slot = 2;
  for (const VendorPlugin& vendor : vendors()) {
    VendorReading reading;
    if (auto& result = found[slot++]; result && std::holds_alternative<VendorReading>(*result))
      reading = std::move(std::get<VendorReading>(*result));
    else reading.notes.push_back(std::string(vendor_name(vendor.vendor)) + ": its tools are stuck in the kernel");
    take_reading(files, vendor, std::move(reading), inventory);
  }
  make_unique(inventory.gpus);
  bound_notes(inventory.notes);
  return inventory;
}

}  // namespace gridctl::probe
