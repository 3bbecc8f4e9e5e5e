// SPDX-License-Identifier: Apache-2.0
// All of a fourth maker's support: this file, and its name where the vendors are listed.
#include "base/text.hpp"
#include "probe/tool_text.hpp"
#include "probe/vendor.hpp"

namespace gridctl::probe {
namespace {

std::vector<ToolCall> ask(std::span<const ToolAnswer> answers) {
  if (!answers.empty()) return {};
  return {{{"acme-smi", "list"}}};
}

// "0 acme-1234 16384 MiB 0000:41:00.0 Acme Roadrunner 9" a line.
VendorReading read(std::span<const ToolAnswer> answers) {
  VendorReading reading;
  if (answers.empty() || !answers[0].found) return reading;
  if (!answers[0].ok()) reading.notes.push_back("acme-smi: " + complaint(answers[0].out, answers[0].problem));
  for (const std::string& line : split_lines(answers[0].out)) {
    const std::vector<std::string> words = split(line, ' ');
    if (words.size() < 6 || reading.gpus.size() >= k_gpus_max) continue;
    Gpu gpu;
    gpu.vendor = Vendor::other;
    gpu.index = static_cast<int>(whole_number(words[0]).value_or(0));
    gpu.uuid = available(words[1]);
    gpu.memory_bytes = memory_size(words[2] + " " + words[3], "MiB").value_or(0);
    gpu.pci = pci_address(words[4]);
    gpu.name = available(line.substr(line.find(words[4]) + words[4].size()));
    reading.gpus.push_back(std::move(gpu));
  }
  return reading;
}

}  // namespace

extern const VendorPlugin k_acme;
const VendorPlugin k_acme{.vendor = Vendor::other,
                          .name = "acme",
                          .pci_vendor_id = "0xacce",
                          .driver_advice = "sudo apt-get install acme-smi",
                          .ask = ask,
                          .read = read};

}  // namespace gridctl::probe
