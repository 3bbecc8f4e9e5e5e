// SPDX-License-Identifier: Apache-2.0
// One GPU vendor: which tools tell about its GPUs, and how their answers are read. A new vendor is one file that fills
// a VendorPlugin, and its name in the list of CMakeLists.txt.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/inventory.hpp"
#include "probe/host_files.hpp"
#include "probe/tools.hpp"

namespace gridctl::probe {

struct VendorReading {
  std::vector<Gpu> gpus;
  std::vector<GpuLink> links;      // positions in gpus
  std::string toolkit;             // highest CUDA, ROCm… version the driver supports, when the answers tell
  std::vector<std::string> notes;  // one line each, beginning with the tool's name
  bool operator==(const VendorReading&) const = default;
};

struct VendorPlugin {
  Vendor vendor = Vendor::nvidia;        // `other` until the scheduler and the engines know the maker
  std::string_view name;                 // "nvidia"
  std::string_view pci_vendor_id;        // "0x10de", as sysfs spells it
  std::string_view driver_advice;        // what to install when the device is there and no tool is
  std::string Inventory::*toolkit = {};  // where the toolkit's version goes; may be null
  // Tools to ask now, given all answers so far in the order asked; empty = enough is known. Called at most twice.
  std::vector<ToolCall> (*ask)(std::span<const ToolAnswer> answers) = nullptr;
  // Pure. Never fails: what cannot be read becomes a note.
  VendorReading (*read)(std::span<const ToolAnswer> answers) = nullptr;
  // Version of the toolkit as its files tell, for hosts whose tools do not; may be null.
  std::string (*installed_toolkit)(const HostFiles& files) = nullptr;
  // Completes a reading from what the vendor's driver shows in /sys, also when no tool is there; may be null.
  void (*complete)(const HostFiles& files, VendorReading& reading) = nullptr;
};

// Returns the vendors of the list in CMakeLists.txt, in its order.
[[nodiscard]] std::span<const VendorPlugin> vendors();

extern const VendorPlugin k_nvidia;
extern const VendorPlugin k_amd;
extern const VendorPlugin k_intel;

}  // namespace gridctl::probe
