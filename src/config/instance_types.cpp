// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "base/text.hpp"
#include "config/job_parts.hpp"

namespace gridctl::config {

namespace {
// Holds EC2's families: the first size has one GPU; the others give the number.
struct Family {
  std::string_view name, gpu;
};
constexpr std::array<Family, 18> k_ec2{{{"p2", "K80"}, {"p3", "V100"}, {"p3dn", "V100-32GB"}, {"p4d", "A100"},
                                        {"p4de", "A100-80GB"}, {"p5", "H100"}, {"p5e", "H200"}, {"p5en", "H200"},
                                        {"p6-b200", "B200"}, {"g3", "M60"}, {"g3s", "M60"}, {"g4dn", "T4"}, {"g5", "A10G"},
                                        {"g5g", "T4G"}, {"g6", "L4"}, {"gr6", "L4"}, {"g6e", "L40S"}, {"g4ad", ""}}};
struct SizeCount {
  std::string_view family, size;
  int gpus;
};
constexpr std::array<SizeCount, 22> k_counts{{{"p2", "xlarge", 1}, {"p2", "8xlarge", 8}, {"p2", "16xlarge", 16}, {"p3", "2xlarge", 1},
                                              {"p3", "8xlarge", 4}, {"p3", "16xlarge", 8}, {"p3dn", "24xlarge", 8},
                                              {"p4d", "24xlarge", 8}, {"p4de", "24xlarge", 8}, {"p5", "4xlarge", 1},
                                              {"p5", "48xlarge", 8}, {"p5e", "48xlarge", 8}, {"p5en", "48xlarge", 8},
                                              {"g4dn", "12xlarge", 4}, {"g4dn", "metal", 8}, {"g5", "12xlarge", 4},
                                              {"g5", "24xlarge", 4}, {"g5", "48xlarge", 8}, {"g6", "12xlarge", 4},
                                              {"g6", "24xlarge", 4}, {"g6", "48xlarge", 8}, {"g6e", "48xlarge", 8}}};
constexpr std::array<std::string_view, 5> k_single{"xlarge", "2xlarge", "4xlarge", "8xlarge", "16xlarge"};
constexpr std::array<std::string_view, 4> k_single_families{"g4dn", "g5", "g6", "g6e"};
// GCP's: the last part is "8g", the number of GPUs.
constexpr std::array<Family, 7> k_gcp{{{"a2-highgpu", "A100"}, {"a2-megagpu", "A100"}, {"a2-ultragpu", "A100-80GB"},
                                       {"a3-highgpu", "H100"}, {"a3-megagpu", "H100"}, {"a3-ultragpu", "H200"},
                                       {"a4-highgpu", "B200"}}};
// Azure's, Lambda's and others': the name contains the model, or nothing.
constexpr std::array<std::string_view, 4> k_other{"standard_nc", "standard_nd", "standard_nv", "gpu_"};

std::string with_count(std::string_view gpu, int count) {
  return std::string(gpu) + (count > 0 && !gpu.empty() ? ":" + std::to_string(count) : "");
}

int count_of(std::string_view family, std::string_view size) {
  for (const SizeCount& one : k_counts)
    if (one.family == family && one.size == size) return one.gpus;
  for (const std::string_view name : k_single_families)
    for (const std::string_view single : k_single)
      if (name == family && single == size) return 1;
  return 0;
}
}  // namespace

std::optional<std::string> gpus_of_instance(std::string_view type) {
  const std::string name = lower(trim(type));
  if (const std::size_t dot = name.find('.'); dot != std::string::npos) {
    for (const Family& one : k_ec2)
      if (name.substr(0, dot) == one.name) return with_count(one.gpu, count_of(one.name, std::string_view(name).substr(dot + 1)));
    return std::nullopt;
  }
  for (const Family& one : k_gcp) {
    if (!name.starts_with(std::string(one.name) + "-")) continue;
    const std::string last = name.substr(one.name.size() + 1);
    const bool counted = last.size() >= 2 && last.size() <= 3 && last.back() == 'g' && last.find_first_not_of("0123456789") == last.size() - 1;
    return with_count(one.gpu, counted ? std::stoi(last) : 0);
  }
  if (name.starts_with("g2-standard-")) return "L4";
  for (const std::string_view one : k_other)
    if (name.starts_with(one)) return "";
  return std::nullopt;
}

}  // namespace gridctl::config
