// SPDX-License-Identifier: Apache-2.0
// Computes the time of a step. Pure.
//
// The model is additive: each term is the time of its work at the hardware's full rate; the coefficients, which are
// never
// negative, describe how far from that rate it runs. They are shipped for classes of GPUs, and refitted from runs of
// the user (calibrate.hpp). The model is linear in the coefficients, so that a fit has one optimum.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "plan/device.hpp"
#include "plan/parallelism.hpp"
#include "plan/memory.hpp"

namespace gridctl::plan {

enum class Term : std::uint8_t {
  gemm,         // linear layers
  attention,    // flash attention, by its operations
  scores,       // attention that writes its scores to memory, by their bytes
  elementwise,  // norms, activations, residuals, by their bytes
  tensor,       // tensor and context parallel traffic
  launches,     // a layer and micro-batch, at 100 us: kernel launches and waiting
  logits,       // the output matrix and its loss
  data,         // what is exposed of the traffic of data parallelism
  pipeline,     // between stages
  optimizer,    // reading and writing its states
  misaligned,   // attention whose head size is no multiple of 8
  count
};
inline constexpr std::size_t k_terms = static_cast<std::size_t>(Term::count);
using Terms = std::array<double, k_terms>;  // seconds at the full rate; or coefficients
[[nodiscard]] std::string_view text_of(Term term);

// Returns the shipped coefficients for a class of GPU and a precision.
[[nodiscard]] const Terms& shipped_coefficients(GpuClass gpu_class, const Training& training);

struct Flops {
  double model = 0;     // of a step: what the model needs, attention counted whole as the publications do
  double executed = 0;  // with what is recomputed
};
[[nodiscard]] Flops flops_of(const Training& training, const ParamCount& count, Recompute recompute);

// Holds everything about a training that its parallelisms share.
struct TimingFacts {
  MemoryFacts memory;
  Flops plain, selective, full;
  Terms coefficients{};
};
[[nodiscard]] TimingFacts timing_facts(const Training& training, const Cluster& cluster);

// Returns seconds at full rates. Data-parallel traffic counts only as far as computing cannot hide it, by the
// coefficients of `facts`.
[[nodiscard]] Terms terms_of(const Training& training, const TimingFacts& facts, const Cluster& cluster,
                             const Parallelism& parallelism);

// Holds the traffic of one GPU, in bytes, which a report shows beside the times.
struct Traffic {
  double tensor = 0;        // per layer and micro-batch
  double context = 0;       // the same, of context parallelism
  double experts = 0;       // the same, of expert parallelism
  double data = 0;          // per step
  double data_message = 0;  // size of one collective of it
  double pipeline = 0;      // per micro-batch and boundary
};
[[nodiscard]] Traffic traffic_of(const Training& training, const TimingFacts& facts, const Parallelism& parallelism);

struct StepTime {
  double seconds = 0;
  double bubble = 0;   // share of the step in which a stage waits for others
  double exposed = 0;  // seconds of communication that computing does not hide
  Terms parts{};       // seconds by term, with the coefficients
};
[[nodiscard]] StepTime step_time(const Terms& terms, const Terms& coefficients, const Training& training,
                                 const Parallelism& parallelism);

[[nodiscard]] double dot(const Terms& a, const Terms& b);

}  // namespace gridctl::plan
