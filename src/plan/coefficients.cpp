// SPDX-License-Identifier: Apache-2.0
// Holds the shipped coefficients: fitted (calibrate.hpp) on published runs of each class of GPU, then rounded. Order:
// enum Term.
#include "plan/eager.hpp"
#include "plan/timing.hpp"

namespace gridctl::plan {

namespace {
constexpr Terms k_ampere{1.42, 3.5, 3.4, 3.5, 0.8, 5, 2.3, 1.3, 1, 1.5, 30};
constexpr Terms k_ampere_megatron_deepspeed{1.42, 3.5, 3.4, 3.5, 2, 30, 2.3, 1.3, 1, 1.5, 30};
// Describes layers with one kernel per operator: matrices at 67 % of the peak, the rest at 75 % of the memory's rate.
constexpr Terms k_eager{1.49, 1.7, 1.33, 1.33, 0.8, 5, 1.49, 1.3, 1, 1.8, 20};
constexpr Terms k_hopper{1.6, 4.5, 2, 5, 0.8, 3, 3, 1.3, 1, 2, 20};
constexpr Terms k_hopper_megatron{1.6, 2.4, 2, 3, 0.8, 3, 2, 1.3, 1, 2, 20};  // Transformer Engine's attention
constexpr Terms k_hopper_fp8_megatron{1.6, 2.2, 2, 3, 0.4, 4, 1.5, 1.3, 1, 2, 20};
constexpr Terms k_hopper_fp8{1.6, 5.5, 2, 3, 0.6, 4, 1.5, 1.3, 1, 2, 20};
constexpr Terms k_blackwell{1.35, 2.6, 2, 3, 0.5, 10, 2, 1.3, 1, 3, 20};
constexpr Terms k_blackwell_fp8{1.1, 2.6, 2, 3, 0.5, 25, 2, 1.3, 1, 3, 20};
constexpr Terms k_blackwell_fp4{1, 2.4, 2, 2.5, 0.5, 35, 2, 1.3, 1, 3, 20};
// No runs were available: consumer cards reach less of their peak and are fed by slower memory.
constexpr Terms k_other{1.5, 4, 3, 3.5, 1.2, 3, 2.5, 1.5, 1.2, 1.5, 20};
// The peak of a processor is itself a measured rate of matrices; its memory is not a GPU's.
constexpr Terms k_cpu{1.2, 3, 2, 3, 1.2, 1, 1.5, 1.5, 1.2, 2, 1};

bool eight_bits_or_less(Precision precision) { return precision == Precision::fp8 || precision == Precision::fp4; }
}  // namespace

const Terms& shipped_coefficients(GpuClass gpu_class, const Training& training) {
  const Precision precision = training.precision;
  const bool engine = training.framework == Framework::megatron;
  if (gpu_class != GpuClass::cpu && eager(training) && !eight_bits_or_less(precision)) return k_eager;
  switch (gpu_class) {
    case GpuClass::ampere: return training.framework == Framework::megatron_deepspeed ? k_ampere_megatron_deepspeed : k_ampere;
    case GpuClass::hopper:
      if (eight_bits_or_less(precision)) return engine ? k_hopper_fp8_megatron : k_hopper_fp8;
      return engine ? k_hopper_megatron : k_hopper;
    case GpuClass::blackwell:
      return precision == Precision::fp4   ? k_blackwell_fp4
             : precision == Precision::fp8 ? k_blackwell_fp8
                                           : k_blackwell;
    case GpuClass::cpu: return k_cpu;
    case GpuClass::other: break;
  }
  return k_other;
}

}  // namespace gridctl::plan
