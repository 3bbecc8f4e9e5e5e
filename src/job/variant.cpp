// SPDX-License-Identifier: Apache-2.0
#include "job/variant.hpp"

#include "base/names.hpp"
#include "job/spec.hpp"

namespace gridctl::job {

namespace {
constexpr Names<Vendor, Vendor::intel> k_kind_names{"cuda", "rocm", "xpu"};
}  // namespace

std::optional<Vendor> vendor_of_variant(std::string_view kind) {
  return k_kind_names.find(kind);
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
