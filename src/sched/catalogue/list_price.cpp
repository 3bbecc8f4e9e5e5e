// SPDX-License-Identifier: Apache-2.0
#include "sched/catalogue/list_price.hpp"

namespace gridctl::sched {

namespace {
// Lists prices on demand, Linux, per GPU: the price of the instance divided by its GPUs, the cheapest instance of each.
// AWS as read from instances.vantage.sh on 2026-01-21, p4d to p5 and Azure (eastus) again on 2026-11-09.
constexpr ListPrice k_prices[] = {
    {"B300 SXM", 17.802, "AWS p6-b300.48xlarge (us-west-2)"},
    {"B200 SXM", 14.2416, "AWS p6-b200.48xlarge (us-east-1)"},
    {"H200 SXM", 7.912, "AWS p5en.48xlarge (us-east-1)"},
    {"H100 SXM5 80GB", 6.88, "AWS p5.48xlarge (us-east-1)"},
    {"H100 NVL 94GB", 6.98, "Azure NC40ads H100 v5 (eastus)"},
    {"A100 SXM4 80GB", 3.4309, "AWS p4de.24xlarge (us-east-1)"},
    {"A100 SXM4 40GB", 2.7447, "AWS p4d.24xlarge (us-east-1)"},
    {"A100 PCIe 80GB", 3.673, "Azure NC24ads A100 v4 (eastus)"},
    {"A10G", 1.006, "AWS g5.xlarge (us-east-1)"},
    {"L40S", 1.861, "AWS g6e.xlarge (us-east-1)"},
    {"L4", 0.8048, "AWS g6.xlarge (us-east-1)"},
    {"RTX PRO 6000 Blackwell", 3.3631, "AWS g7e.2xlarge (us-east-1)"},
    {"V100 SXM2 16GB", 3.06, "AWS p3.16xlarge (us-east-1)"},
    {"V100 SXM2 32GB", 3.9015, "AWS p3dn.24xlarge (us-east-1)"},
    {"T4", 0.526, "AWS g4dn.xlarge (us-east-1)"},
    {"K80 (per GPU of 2)", 0.9, "AWS p2.xlarge (us-east-1)"},
};
constexpr double k_as_fast = 0.8;  // of the 16-bit rate: as good for the comparison

double rate_of(const GpuModel& model) { return model.bf16.value_or(model.fp16.value_or(model.fp32.value_or(0))); }

}  // namespace

std::optional<ListPrice> list_price(const GpuModel& wanted) {
  std::optional<ListPrice> best;
  for (const ListPrice& price : k_prices) {
    if (price.model == wanted.key) return price;
    const GpuModel* model = model_by_key(price.model);
    if (model == nullptr || model->memory_gb < wanted.memory_gb || rate_of(*model) < k_as_fast * rate_of(wanted))
      continue;
    if (!best || price.usd_per_gpu_hour < best->usd_per_gpu_hour) best = price;
  }
  return best;
}

}  // namespace gridctl::sched
