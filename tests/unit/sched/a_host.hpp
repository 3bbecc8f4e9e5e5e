// SPDX-License-Identifier: Apache-2.0
// Hosts in words: AHost("ada").with_gpus(2, "NVIDIA A100-SXM4-80GB", 81920).at(1.5).
#pragma once

#include <string>
#include <utility>

#include "sched/query/host_facts.hpp"

namespace gridctl::sched {

class AHost {
 public:
  explicit AHost(std::string name) {
    facts_.name = {std::move(name)};
    facts_.host_class = "home";
    facts_.inventory.edit().cpus = 8;
    facts_.inventory.edit().memory_bytes = 32ull << 30;
    facts_.inventory.edit().disk_free_bytes = 100ull << 30;
    facts_.inventory.edit().engines = {{EngineKind::docker, "24", false, true, ""},
                                {EngineKind::podman, "4.3", true, true, ""},
                                {EngineKind::process, "", false, false, ""}};
  }
  AHost with_gpus(int count, std::string name, std::uint64_t mib, Vendor vendor = Vendor::nvidia) && {
    for (int i = 0; i < count; ++i)
      facts_.inventory.edit().gpus.push_back({vendor,
                                       name,
                                       facts_.name.value + "-gpu" + std::to_string(facts_.inventory->gpus.size()),
                                       mib << 20,
                                       "",
                                       "",
                                       {}});
    return std::move(*this);
  }
  AHost at(double price) && {
    facts_.price_per_hour = price;
    return std::move(*this);
  }
  AHost in(std::string region) && {
    facts_.region = std::move(region);
    return std::move(*this);
  }
  AHost set(auto change) && {
    change(facts_);
    return std::move(*this);
  }
  operator HostFacts() && { return std::move(facts_); }  // NOLINT: reads as a value

 private:
  HostFacts facts_;
};

}  // namespace gridctl::sched
