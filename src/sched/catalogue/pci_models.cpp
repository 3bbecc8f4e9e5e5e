// SPDX-License-Identifier: Apache-2.0
// Holds facts about models other than figures: their PCI devices, and the other sizes of boards with their name.
#include <array>

#include "sched/catalogue/catalogue.hpp"

namespace gridctl::sched {
namespace {

struct PciDevice {
  std::string_view id;
  std::array<std::string_view, 3> models;  // an id that several models share names each of them
};

// An id that is not listed proves nothing, so shared or doubtful ones are left out. Source: pci-ids.ucw.cz.
constexpr PciDevice k_devices[] = {
    {"10de:2335", {"H200 SXM"}},
    {"10de:233b", {"H200 NVL"}},
    {"10de:2330", {"H100 SXM5 80GB"}},
    {"10de:2331", {"H100 PCIe 80GB"}},
    {"10de:2324", {"H800 SXM"}},
    {"10de:2342", {"GH200 96GB", "GH200 141GB"}},
    {"10de:2329", {"H20"}},
    {"10de:2901", {"B200 SXM"}},
    {"10de:20b0", {"A100 SXM4 40GB"}},
    {"10de:20b1", {"A100 PCIe 40GB"}},
    {"10de:20b2", {"A100 SXM4 80GB"}},
    {"10de:20b5", {"A100 PCIe 80GB"}},
    {"10de:20f1", {"A100 PCIe 40GB"}},
    {"10de:20f3", {"A800 SXM4 80GB"}},
    {"10de:20b7", {"A30"}},
    {"10de:2235", {"A40"}},
    {"10de:2236", {"A10"}},
    {"10de:2237", {"A10G"}},
    {"10de:25b6", {"A2", "A16 (per GPU of 4)"}},
    {"10de:27b8", {"L4"}},
    {"10de:26b5", {"L40"}},
    {"10de:26b9", {"L40S"}},
    {"10de:1db1", {"V100 SXM2 16GB"}},
    {"10de:1db4", {"V100 PCIe 16GB"}},
    {"10de:1db5", {"V100 SXM2 32GB"}},
    {"10de:1db6", {"V100 PCIe 32GB"}},
    {"10de:1df6", {"V100S PCIe 32GB"}},
    {"10de:1eb8", {"T4"}},
    {"10de:15f8", {"P100 PCIe 16GB"}},
    {"10de:15f9", {"P100 SXM2 16GB"}},
    {"10de:1b38", {"P40"}},
    {"10de:1bb3", {"P4"}},
    {"10de:17fd", {"M40"}},
    {"10de:102d", {"K80 (per GPU of 2)"}},
    {"10de:2230", {"RTX A6000"}},
    {"10de:2231", {"RTX A5000"}},
    {"10de:24b0", {"RTX A4000"}},
    {"10de:26b1", {"RTX 6000 Ada"}},
    {"10de:2684", {"RTX 4090"}},
    {"10de:2685", {"RTX 4090 D"}},
    {"10de:2704", {"RTX 4080"}},
    {"10de:2782", {"RTX 4070 Ti"}},
    {"10de:2786", {"RTX 4070"}},
    {"10de:2203", {"RTX 3090 Ti"}},
    {"10de:2204", {"RTX 3090"}},
    {"10de:2206", {"RTX 3080"}},
    {"10de:2208", {"RTX 3080 Ti"}},
    {"10de:2484", {"RTX 3070"}},
    {"10de:1e04", {"RTX 2080 Ti"}},
    {"10de:1e07", {"RTX 2080 Ti"}},
    {"10de:1e81", {"RTX 2080 SUPER"}},
    {"10de:1e84", {"RTX 2070 SUPER"}},
    {"10de:1e02", {"TITAN RTX"}},
    {"10de:1d81", {"TITAN V"}},
    {"10de:1b06", {"GTX 1080 Ti"}},
    {"10de:1b80", {"GTX 1080"}},
    {"10de:2b85", {"RTX 5090"}},
    {"1002:74a1", {"Instinct MI300X"}},
    {"1002:740f", {"Instinct MI210"}},
    {"1002:740c", {"Instinct MI250X", "Instinct MI250"}},
    {"1002:738c", {"Instinct MI100"}},
    {"1002:73a3", {"Radeon PRO W6800"}},
};

struct Board {
  std::string_view model;
  OtherSize size;
};
constexpr Board k_boards[] = {
    {"H100 SXM5 80GB", {96, 132}},
    {"H100 SXM5 80GB", {64, 132}},
    {"A100 SXM4 80GB", {64, 124}},
    {"H20", {141, 78}},
    {"M40", {24, 24}},
    {"RTX 5060 Ti 16GB", {8, 36}},
    {"RTX 4090", {48, 128}},
    {"RTX 4060 Ti 16GB", {8, 34}},
    {"RTX 3080", {12, 70}},
    {"RTX 3080", {20, 68}},
    {"RTX 3060 12GB", {8, 28}},
    {"RTX 2080 Ti", {22, 68}},
    {"Instinct MI50", {32, 60}},
    {"Arc A770", {8, 32}},
};

}  // namespace

std::vector<std::string_view> models_of_pci_device(std::string_view id) {
  std::vector<std::string_view> models;
  for (const PciDevice& device : k_devices)
    if (device.id == id)
      for (const std::string_view model : device.models)
        if (!model.empty()) models.push_back(model);
  return models;
}

std::vector<OtherSize> other_sizes_of(std::string_view key) {
  std::vector<OtherSize> sizes;
  for (const Board& one : k_boards)
    if (one.model == key) sizes.push_back(one.size);
  return sizes;
}

}  // namespace gridctl::sched
