// SPDX-License-Identifier: Apache-2.0
// Reads Intel GPUs through xpu-smi: the list of devices, then each device's own facts (only these report memory and
// driver) and how they are joined; frequencies and power limits come from the kernel's i915 or xe.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "probe/intel_reports.hpp"
#include "probe/tool_text.hpp"
#include "probe/vendor.hpp"

namespace gridctl::probe {
namespace intel {
namespace {

using nlohmann::json;

constexpr std::size_t k_details_max = 16;  // devices asked for one by one; each question is a process

bool is_listed(const json& device) {
  const std::string type = lower(text_of(member(device, "device_type")));
  return device.is_object() && (type.empty() || type.find("gpu") != std::string::npos);
}

// Accepts {"device_list": […]}, {"devices": […]}, an array, or one device alone (the answer about one).
std::vector<json> devices_of(std::string_view text) {
  const json root = find_json(text);
  const json* list = &root;
  for (const char* name : {"device_list", "devices"})
    if (root.is_object() && root.contains(name)) list = &root.at(name);
  std::vector<json> devices;
  if (list->is_array())
    for (const json& device : *list) {
      if (is_listed(device) && devices.size() < k_gpus_max) devices.push_back(device);
    }
  else if (list->is_object() && list->contains("device_id") && is_listed(*list)) devices.push_back(*list);
  return devices;
}

// Virtual functions count only if there is nothing else (inside a virtual machine).
std::vector<json> usable(std::vector<json> devices) {
  const auto is_virtual = [](const json& device) {
    return lower(text_of(member(device, "device_function_type"))) == "virtual";
  };
  if (!std::ranges::all_of(devices, is_virtual)) std::erase_if(devices, is_virtual);
  return devices;
}

std::optional<std::uint64_t> id_of(const json& device) { return whole_number(text_of(member(device, "device_id"))); }

std::uint64_t memory_of(const json& device) {
  if (const auto bytes = memory_size(text_of(member(device, "memory_physical_size_byte")), "B"); bytes && *bytes != 0)
    return *bytes;
  return memory_size(text_of(member(device, "memory_physical_size")), "MiB").value_or(0);
}

std::vector<ToolCall> ask(std::span<const ToolAnswer> answers) {
  if (answers.empty()) return {{{"xpu-smi", "discovery", "-j"}}};
  if (answers.size() > 1) return {};
  std::vector<ToolCall> calls;
  const std::vector<json> devices = usable(devices_of(answers[0].out));
  for (const json& device : devices) {
    const auto id = id_of(device);
    if (!id || calls.size() >= k_details_max) continue;
    calls.push_back({{"xpu-smi", "discovery", "-d", std::to_string(*id), "-j"}});
  }
  if (devices.size() > 1) calls.push_back({{"xpu-smi", "topology", "-m"}});
  return calls;
}

void take_facts(Gpu& gpu, const json& device) {
  const auto take = [&](std::string& into, std::string_view name) {
    if (into.empty()) into = available(text_of(member(device, name)));
  };
  take(gpu.name, "device_name");
  take(gpu.uuid, "uuid");
  take(gpu.driver, "driver_version");
  if (gpu.pci.empty()) gpu.pci = pci_address(text_of(member(device, "pci_bdf_address")));
  if (gpu.memory_bytes == 0) gpu.memory_bytes = memory_of(device);
  read_xpu_facts(device, gpu);
}

VendorReading read(std::span<const ToolAnswer> answers) {
  VendorReading reading;
  if (answers.empty() || !answers[0].found) return reading;
  const auto note = [&](std::string line) {
    if (reading.notes.size() < 8) reading.notes.push_back(std::move(line));
  };
  for (const ToolAnswer& answer : answers)
    if (answer.found && !answer.answered) note(answer.problem);
  std::vector<json> details;
  for (const ToolAnswer& answer : answers.subspan(1))
    for (json& device : devices_of(answer.out)) details.push_back(std::move(device));
  for (const json& device : usable(devices_of(answers[0].out))) {
    Gpu gpu;
    gpu.vendor = Vendor::intel;
    const auto id = id_of(device);
    if (id && *id < k_gpus_max) gpu.index = static_cast<int>(*id);
    take_facts(gpu, device);
    for (const json& detail : details)
      if (id && id_of(detail) == id) take_facts(gpu, detail);
    if (gpu.uuid.empty()) gpu.uuid = gpu.pci;
    if (gpu.name.empty()) gpu.name = "Intel GPU";
    if (gpu.memory_bytes == 0)
      note("xpu-smi: device " + std::to_string(id.value_or(0)) + " does not report its memory");
    reading.gpus.push_back(std::move(gpu));
  }
  for (const ToolAnswer& answer : answers.subspan(1))
    if (reading.links.empty()) reading.links = read_xpu_topology(answer.out, reading.gpus);
  if (answers[0].answered && reading.gpus.empty()) {
    const std::string error = available(text_of(member(find_json(answers[0].out), "error")));
    note("xpu-smi: no device listed: " + (error.empty() ? complaint(answers[0].out, answers[0].err) : error));
  }
  return reading;
}

// Returns the newest compiler beneath /opt/intel/oneapi, by number.
std::string installed_oneapi(const HostFiles& files) {
  std::pair<std::vector<std::uint64_t>, std::string> best;
  for (const std::string& name : files.list("/opt/intel/oneapi/compiler")) {
    std::vector<std::uint64_t> parts;
    for (const std::string& part : split(name, '.')) parts.push_back(whole_number(part).value_or(0));
    if (parts.front() >= 2000 && parts > best.first) best = {parts, name};
  }
  return best.second;
}

}  // namespace
}  // namespace intel

const VendorPlugin k_intel{.vendor = Vendor::intel,
                           .name = "intel",
                           .pci_vendor_id = "0x8086",
                           .driver_advice = "sudo apt-get install xpu-smi",
                           .toolkit = &Inventory::oneapi,
                           .ask = intel::ask,
                           .read = intel::read,
                           .installed_toolkit = intel::installed_oneapi,
                           .complete = complete_intel};

}  // namespace gridctl::probe
