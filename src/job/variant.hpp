// SPDX-License-Identifier: Apache-2.0
// Describes one job for GPUs of any vendor: what differs on each kind of hardware, mainly image and commands. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/inventory.hpp"

namespace gridctl::job {

struct Spec;
struct GpuRequest;

// Describes a complete variant: values that the job file omits for a variant come from the job itself.
struct Variant {
  std::string kind;  // "cuda", "rocm", "xpu" or "cpu"
  std::string image;
  bool image_is_archive = false;  // as in Spec
  std::string setup, run, resume_run;
  bool operator==(const Variant&) const = default;
};

inline constexpr std::string_view k_variant_kinds[] = {"cuda", "rocm", "xpu", "cpu"};
// Returns the vendor of the GPUs that a variant is for; none for "cpu".
[[nodiscard]] std::optional<Vendor> vendor_of_variant(std::string_view kind);

// Returns the variant for leased GPUs of this vendor, or for none; nullptr if the job has no such variant.
[[nodiscard]] const Variant* variant_for(const Spec& spec, std::optional<Vendor> vendor);
// Returns the GPUs that the variant requests from a host: the job's alternatives that its vendor can satisfy, any one
// GPU if the job names none, nothing for "cpu".
[[nodiscard]] std::vector<GpuRequest> gpus_wanted(const Spec& spec, const Variant& variant);

}  // namespace gridctl::job
