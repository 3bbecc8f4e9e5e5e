// SPDX-License-Identifier: Apache-2.0
// One job for GPUs of any vendor: what is different on each kind of hardware, image and commands above all. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/inventory.hpp"

namespace gridctl::job {

struct Spec;
struct GpuRequest;

// Complete: what the job file does not say of a variant has been taken from the job itself.
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

// The variant for leased GPUs of this vendor, or for none; nullptr when the job has no such variant.
[[nodiscard]] const Variant* variant_for(const Spec& spec, std::optional<Vendor> vendor);
// Returns the GPUs that the variant asks of a host: the job's alternatives that its vendor can answer, any one GPU
// where the job names none, nothing for "cpu".
[[nodiscard]] std::vector<GpuRequest> gpus_wanted(const Spec& spec, const Variant& variant);

}  // namespace gridctl::job
