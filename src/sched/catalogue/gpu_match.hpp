// SPDX-License-Identifier: Apache-2.0
// Matches GPUs with requests. Pure.
#pragma once

#include <string>
#include <string_view>

#include "job/spec.hpp"

namespace gridctl::sched {

// Compares a name as users type it with a product name as drivers report it. Case, spaces, '-', '_', vendor and brand
// words (NVIDIA, GeForce, Tesla, Instinct …), form factors (SXM4, PCIe, NVL) and memory sizes in the product name may
// be omitted; everything else must be named: "A100" is "NVIDIA A100-SXM4-80GB", but "RTX4090" is neither "RTX 4090
// Laptop GPU" nor "RTX 4090 D", and "A10" is neither "A100" nor "A10G".
[[nodiscard]] bool gpu_name_matches(std::string_view wanted, std::string_view product);

// States why a single GPU does not satisfy a request; `none` if it does.
enum class GpuMismatch { none, vendor, name, memory };
// Memory is compared with tolerance: a size in a request is the nominal one, drivers report up to 5 % less (ECC,
// reserved) or up to 8 % more (a nominal "80GB" is 80 GiB = 85.9 GB). A size within a name ("A100-80GB", SkyPilot's
// spelling) counts as a request for that size.
[[nodiscard]] GpuMismatch match_gpu(const job::GpuRequest& request, const Gpu& gpu);

// Returns the notation of the job file: "nvidia:A100,H100:40GB..:2".
[[nodiscard]] std::string describe(const job::GpuRequest& request);
// Returns "NVIDIA A100-SXM4-80GB (80 GiB)".
[[nodiscard]] std::string describe(const Gpu& gpu);

}  // namespace gridctl::sched
