// SPDX-License-Identifier: Apache-2.0
// Describes one GPU vendor: the tools that report its GPUs, and the way to read their answers. A new vendor is one file
// that fills a VendorPlugin, and its name in the list of CMakeLists.txt.
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
  // Returns the tools to ask now, given all answers so far in the order asked; empty = enough is known. Called at most
  // twice.
  std::vector<ToolCall> (*ask)(std::span<const ToolAnswer> answers) = nullptr;
  // Reads the answers. Pure. It never fails: unreadable parts become notes.
  VendorReading (*read)(std::span<const ToolAnswer> answers) = nullptr;
  // Returns the version of the toolkit from its files, for hosts whose tools do not report it; may be null.
  std::string (*installed_toolkit)(const HostFiles& files) = nullptr;
  // Completes a reading from the values of the vendor's driver in /sys, even without any tool; may be null.
  void (*complete)(const HostFiles& files, VendorReading& reading) = nullptr;
};

// Returns the vendors of the list in CMakeLists.txt, in its order.
[[nodiscard]] std::span<const VendorPlugin> vendors();

extern const VendorPlugin k_nvidia;
extern const VendorPlugin k_amd;
extern const VendorPlugin k_intel;

}  // namespace gridctl::probe
