// SPDX-License-Identifier: Apache-2.0
#include "sched/catalogue/gpu_match.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include "base/bytes.hpp"
#include "base/text.hpp"
#include "sched/catalogue/gpu_words.hpp"

namespace gridctl::sched {

namespace {
constexpr double k_memory_low = 0.95;     // drivers report less than the nominal size: ECC, firmware
constexpr double k_memory_high = 1.08;    // nominal GB are GiB on most boards (1.074), HBM boards up to 1.07
constexpr std::size_t k_name_max = 128;   // characters looked at: product names come from hosts
constexpr std::size_t k_wanted_max = 64;  // characters of a name in a request

// Lists words for the maker or seller, which users and drivers may omit.
constexpr std::string_view k_brands[] = {"nvidia", "geforce", "tesla", "quadro", "amd", "radeon", "instinct", "intel"};
// Lists words of a product name that do not distinguish models.
constexpr std::string_view k_optional[] = {"rtx",  "gtx",    "rx",          "arc",   "gpu",   "graphics", "generation",
                                           "sxm",  "sxm2",   "sxm3",        "sxm4",  "sxm5",  "sxm6",     "pcie",
                                           "pci",  "nvl",    "oam",         "hbm2",  "hbm2e", "hbm3",     "hbm3e",
                                           "data", "center", "accelerator", "series"};

struct Wanted {
  std::string model;                // significant characters only: "rtx4090laptop"
  std::optional<double> memory_gb;  // from "A100-80GB"
};

Wanted wanted_of(std::string_view name) {
  Wanted wanted;
  for (const std::string& word : words_of(name, k_wanted_max)) {
    if (!wanted.model.empty() && gigabytes(word)) wanted.memory_gb = gigabytes(word);
    else if (!contains(k_brands, word)) wanted.model += word;
  }
  for (std::string_view brand : k_brands)
    if (wanted.model.size() > brand.size() && wanted.model.starts_with(brand)) wanted.model.erase(0, brand.size());
  return wanted;
}

bool model_matches(const std::string& model, std::string_view product) {
  if (model.empty()) return false;
  // reached[p]: the words so far can be written as the first p characters of the model.
  std::vector<bool> reached(model.size() + 1, false);
  reached[0] = true;
  for (const std::string& word : words_of(product, k_name_max)) {
    const bool optional = contains(k_brands, word) || contains(k_optional, word) || gigabytes(word).has_value();
    std::vector<bool> next = optional ? reached : std::vector<bool>(reached.size(), false);
    for (std::size_t p = 0; p + word.size() <= model.size(); ++p)
      if (reached[p] && model.compare(p, word.size(), word) == 0) next[p + word.size()] = true;
    reached = std::move(next);
  }
  return reached[model.size()];
}

bool memory_fits(double have, std::optional<double> min, std::optional<double> max) {
  return (!min || have >= *min * k_memory_low) && (!max || have <= *max * k_memory_high);
}

std::optional<double> real(const std::optional<std::uint64_t>& value) {
  return value ? std::optional<double>(static_cast<double>(*value)) : std::nullopt;
}

// Writes a size like the job file: "40GB", "24GiB", or bytes if neither is a whole number.
std::string size_text(std::uint64_t bytes) {
  if (bytes % 1'000'000'000 == 0) return std::to_string(bytes / 1'000'000'000) + "GB";
  if (bytes % (1ull << 30) == 0) return std::to_string(bytes >> 30) + "GiB";
  if (bytes % 1'000'000 == 0) return std::to_string(bytes / 1'000'000) + "MB";
  return std::to_string(bytes) + "B";
}
}  // namespace

bool gpu_name_matches(std::string_view wanted, std::string_view product) {
  return model_matches(wanted_of(wanted).model, product);
}

GpuMismatch match_gpu(const job::GpuRequest& request, const Gpu& gpu) {
  if (request.vendor && *request.vendor != gpu.vendor) return GpuMismatch::vendor;
  const double have = static_cast<double>(gpu.memory_bytes);
  bool named = request.names.empty();
  bool sized = request.names.empty();
  for (const std::string& name : request.names) {
    const Wanted wanted = wanted_of(name);
    // The driver's name of a device need not contain all words of its model: "NVIDIA H100 80GB HBM3" is an H100 SXM5.
    if (!model_matches(wanted.model, gpu.name) && !model_matches(wanted.model, gpu.model)) continue;
    named = true;
    const auto nominal = wanted.memory_gb ? std::optional<double>(*wanted.memory_gb * 1e9) : std::nullopt;
    sized = sized || memory_fits(have, nominal, nominal);
  }
  if (!named) return GpuMismatch::name;
  if (!sized || !memory_fits(have, real(request.memory_min), real(request.memory_max))) return GpuMismatch::memory;
  return GpuMismatch::none;
}

std::string describe(const job::GpuRequest& request) {
  std::vector<std::string> parts;
  if (request.vendor) parts.emplace_back(vendor_name(*request.vendor));
  if (!request.names.empty()) parts.push_back(join(request.names, ","));
  if (request.memory_min || request.memory_max) {
    const std::string low = request.memory_min ? size_text(*request.memory_min) : "";
    const std::string high = request.memory_max ? size_text(*request.memory_max) : "";
    parts.push_back(low == high ? low : low + ".." + high);
  }
  std::string count = std::to_string(request.count_min);
  if (request.count_max != request.count_min) count += ".." + std::to_string(request.count_max);
  if (parts.empty()) return count + " GPU" + (count == "1" ? "" : "s");
  if (count != "1") parts.push_back(count);
  return join(parts, ":");
}

std::string describe(const Gpu& gpu) { return gpu.name + " (" + format_size(gpu.memory_bytes) + ")"; }

}  // namespace gridctl::sched
