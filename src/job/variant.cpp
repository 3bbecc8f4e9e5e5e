// SPDX-License-Identifier: Apache-2.0
#include "job/variant.hpp"

#include "job/spec.hpp"

namespace gridctl::job {

std::optional<Vendor> vendor_of_variant(std::string_view kind) {
  if (kind == "cuda") return Vendor::nvidia;
  if (kind == "rocm") return Vendor::amd;
  if (kind == "xpu") return Vendor::intel;
  return std::nullopt;
}

const Variant* variant_for(const Spec& spec, std::optional<Vendor> vendor) {
  for (const Variant& variant : spec.variants)
    if (vendor_of_variant(variant.kind) == vendor) return &variant;
  return nullptr;
}

std::vector<GpuRequest> gpus_wanted(const Spec& spec, const Variant& variant) {
  const std::optional<Vendor> vendor = vendor_of_variant(variant.kind);
  std::vector<GpuRequest> out;
  if (!vendor) return out;
  for (GpuRequest request : spec.resources.gpus) {
    if (request.vendor.value_or(*vendor) != *vendor) continue;
    request.vendor = vendor;
    out.push_back(std::move(request));
  }
  if (spec.resources.gpus.empty()) out.emplace_back().vendor = vendor;
  return out;
}

}  // namespace gridctl::job
