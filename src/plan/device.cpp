// SPDX-License-Identifier: Apache-2.0
#include "plan/device.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/numbers.hpp"
#include "base/text.hpp"

namespace gridctl::plan {

namespace {
constexpr double k_tera = 1e12;
// Gives the assumed share of a network for each GPU: one card per GPU in data centres, a shared card elsewhere.
constexpr double k_inter_ampere = 25e9, k_inter_hopper = 50e9, k_inter_blackwell = 50e9, k_inter_other = 1.25e9;
constexpr double k_pcie = 25e9;
constexpr double k_host_share = 3;  // memory of a machine as such are sold, to that of its GPUs

// Cards of the same architecture for desktops and workstations reach less: slower memory, half the rate at fp32 sums.
GpuClass class_of(const sched::GpuModel& model) {
  if (!data_centre(model)) return GpuClass::other;
  const std::string arch = lower(model.arch);
  if (arch.find("blackwell") != std::string::npos) return GpuClass::blackwell;
  if (arch.find("hopper") != std::string::npos) return GpuClass::hopper;
  if (arch.find("ampere") != std::string::npos) return GpuClass::ampere;
  return GpuClass::other;
}

double default_inter(GpuClass gpu_class, bool central) {
  if (!central) return k_inter_other;
  switch (gpu_class) {
    case GpuClass::ampere: return k_inter_ampere;
    case GpuClass::hopper: return k_inter_hopper;
    case GpuClass::blackwell: return k_inter_blackwell;
    default: return k_inter_ampere / 2;
  }
}
}  // namespace

bool data_centre(const sched::GpuModel& model) { return model.family.ends_with("_dc") || model.family == "gaudi"; }

std::string_view text_of(GpuClass value) {
  switch (value) {
    case GpuClass::ampere: return "ampere";
    case GpuClass::hopper: return "hopper";
    case GpuClass::blackwell: return "blackwell";
    case GpuClass::cpu: return "cpu";
    case GpuClass::other: break;
  }
  return "other";
}

double Device::peak(Precision precision) const {
  switch (precision) {
    case Precision::fp32: return flops_fp32 > 0 ? flops_fp32 : flops_bf16 / 2;
    case Precision::fp8: return flops_fp8 > 0 ? flops_fp8 : flops_bf16;
    case Precision::fp4: return flops_fp4 > 0 ? flops_fp4 : peak(Precision::fp8);
    default: return flops_bf16;
  }
}

Device device_of(const sched::GpuModel& model) {
  Device out;
  out.name = model.key;
  out.gpu_class = class_of(model);
  // GPUs are sold in units between 1e9 and 2^30: drivers show about 1.06 of the nominal size, in bytes of 1e9.
  out.memory = model.memory_gb * k_giga * 1.06;
  const double fp32 = model.fp32.value_or(1);
  // Trainings in "fp32" run their matrices in tf32 if the hardware has it.
  out.flops_fp32 = model.tf32.value_or(fp32) * k_tera;
  out.flops_bf16 = model.bf16.value_or(model.fp16.value_or(fp32)) * k_tera;
  out.flops_fp8 = model.fp8.value_or(0) * k_tera;
  if (lower(model.arch).find("blackwell") != std::string::npos) out.flops_fp4 = out.flops_fp8 * 2;
  out.memory_rate = model.memory_gbs.value_or(500) * k_giga;
  return out;
}

Device device_of_figures(double memory_gb, double tflops) {
  Device out;
  out.name = "a GPU of " + std::to_string(static_cast<int>(tflops)) + " TFLOPS";
  out.memory = memory_gb * k_giga;
  out.flops_bf16 = tflops * k_tera;
  out.gpu_class = tflops < 5      ? GpuClass::cpu
                  : tflops < 200  ? GpuClass::other
                  : tflops < 500  ? GpuClass::ampere
                  : tflops < 1500 ? GpuClass::hopper
                                  : GpuClass::blackwell;
  out.flops_fp32 = out.gpu_class == GpuClass::cpu ? out.flops_bf16 : out.flops_bf16 / 2;
  out.flops_fp8 = out.gpu_class == GpuClass::hopper || out.gpu_class == GpuClass::blackwell ? 2 * out.flops_bf16 : 0;
  if (out.gpu_class == GpuClass::blackwell) out.flops_fp4 = 2 * out.flops_fp8;
  // Memory speed follows about the square root of arithmetic, from the A100's 2 TB/s at 312 TFLOPS.
  out.memory_rate = 2.04e12 * std::sqrt(tflops / 312);
  return out;
}

Cluster cluster_of(const Device& device, const sched::GpuModel* model, int gpus_per_node) {
  Cluster out;
  out.device = device;
  out.gpus_per_node = std::max(gpus_per_node, 1);
  out.fast_domain = out.gpus_per_node;
  const bool central = model != nullptr ? data_centre(*model)
                                        : device.gpu_class != GpuClass::other && device.gpu_class != GpuClass::cpu;
  // A bridge joins two cards. Most desktop machines have none.
  const bool bridged = model != nullptr && model->link.ends_with("bridge");
  const bool linked = model == nullptr ? central
                      : bridged        ? central && out.gpus_per_node == 2
                                       : model->link != "none" && model->link_gbs.has_value();
  out.node_link = linked ? (model != nullptr ? *model->link_gbs / 2 * k_giga : 300e9) : k_pcie;
  // GB200 and GB300 come as racks in which all 72 GPUs share one NVLink.
  if (model != nullptr && (model->key == "GB200" || model->key == "GB300")) out.fast_domain = 72;
  out.inter_link = default_inter(device.gpu_class, central);
  out.host_memory = k_host_share * device.memory * out.gpus_per_node;
  return out;
}

std::optional<double> bytes_per_second_of(std::string_view text) {
  std::string words = lower(text);
  std::erase(words, ' ');
  double scale = 1 / 8.0;
  for (const std::string_view unit : {"bit/s", "bps", "b/s"})
    if (words.ends_with(unit)) {
      words.erase(words.size() - unit.size());
      const std::size_t power = words.empty() ? std::string::npos : std::string_view("kmgt").find(words.back());
      if (power != std::string::npos) words.pop_back();
      for (std::size_t i = 0; power != std::string::npos && i <= power; ++i) scale *= 1000;
      double rate = 0;
      return parse_into(words, rate) && rate > 0 && rate < 1e9 ? std::optional(rate * scale) : std::nullopt;
    }
  return std::nullopt;
}

std::optional<double> inter_link_of(std::string_view text, int gpus_per_node) {
  const std::string words = lower(text);
  const std::size_t unit = words.find("gb/s");
  if (unit == std::string::npos) return std::nullopt;
  std::size_t begin = unit;
  while (begin > 0 && words[begin - 1] == ' ') --begin;
  std::size_t digits = begin;
  while (digits > 0 && (is_digit(words[digits - 1]) || words[digits - 1] == '.'))
    --digits;
  double rate = std::strtod(words.substr(digits, begin - digits).c_str(), nullptr);
  if (rate <= 0) return std::nullopt;
  double cards = 1;
  if (digits > 1 && words[digits - 1] == 'x') {
    std::size_t first = digits - 1;
    while (first > 0 && is_digit(words[first - 1])) --first;
    cards = std::max(1.0, std::strtod(words.substr(first, digits - 1 - first).c_str(), nullptr));
  }
  const bool per_gpu = words.find("per gpu", unit) != std::string::npos;
  return rate * cards * k_giga / 8 / (per_gpu ? 1 : std::max(gpus_per_node, 1));
}

Result<const sched::GpuModel*> gpu_named(std::string_view name) {
  std::string words(trim(name.substr(0, name.find('('))));
  std::ranges::replace_if(
      words, [](char c) { return c == '-' || c == '_' || c == '/'; }, ' ');
  // Tries "H200 SXM5 141GB", "H200 SXM", "H200": the form without its number, then without the memory size.
  std::string formless = words;
  if (const std::size_t form = lower(words).find("sxm");
      form != std::string::npos && form + 3 < words.size() && words[form + 3] != ' ')
    formless.erase(form + 3, 1);
  std::vector<std::string> tries{words, formless};
  for (const std::string& one : {words, formless})
    if (const std::size_t blank = one.rfind(' '); blank != std::string::npos && lower(one).ends_with("gb"))
      tries.push_back(one.substr(0, blank));
  for (const std::string& one : tries) {
    if (const sched::GpuModel* exact = sched::model_by_key(one)) return exact;
    const std::vector<const sched::GpuModel*> rows = sched::models_named(one);
    // If the name leaves the form open, trainings are planned for the one that computes most.
    if (!rows.empty())
      return *std::ranges::max_element(rows, [](const auto* a, const auto* b) {
        return std::pair(a->bf16.value_or(0), a->memory_gb) < std::pair(b->bf16.value_or(0), b->memory_gb);
      });
  }
  std::vector<std::string> known;
  for (const sched::GpuModel& model : sched::catalogue()) {
    known.push_back(model.key);
    known.push_back(model.key.substr(0, model.key.find(' ')));  // as people shorten them
  }
  const std::string near = nearest(name, known);
  return make_error(Code::usage,
                    "unknown GPU '" + std::string(name) + "'" + (near.empty() ? "" : "; did you mean '" + near + "'?"));
}

}  // namespace gridctl::plan
