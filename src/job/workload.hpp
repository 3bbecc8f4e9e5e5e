// SPDX-License-Identifier: Apache-2.0
// Describes a job as work for machines: how its parts depend on each other, their exchanges, and how much work there
// is. Only the user's declarations; sched/coupling draws conclusions from the words of a job. A value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/names.hpp"
#include "base/result.hpp"
#include "base/time.hpp"

namespace gridctl::job {

// Describes how tightly the parts of a job are coupled, and so where they may run.
enum class JobClass : std::uint8_t { automatic, tight, medium, loose, service, federated };
inline constexpr Names<JobClass, JobClass::federated> class_name{"auto",  "tight",   "medium",
                                                                 "loose", "service", "federated"};
[[nodiscard]] Result<JobClass> parse_class(std::string_view name);

// Names the library through which the parts communicate.
enum class Backend : std::uint8_t { automatic, nccl, rccl, oneccl, gloo, mpi, none };
inline constexpr Names<Backend, Backend::none> backend_name{"auto", "nccl", "rccl", "oneccl", "gloo", "mpi", "none"};
[[nodiscard]] Result<Backend> parse_backend(std::string_view name);

inline constexpr int k_tasks_max = 10'000'000;
inline constexpr int k_sync_every_max = 1'000'000;
inline constexpr double k_bytes_per_gradient = 2;  // 16 bits each, as mixed precision exchanges them

// Describes the trained model, for the planner: as declared; empty and 0 where not declared.
struct Trained {
  std::string model;  // a family that the planner knows; empty: the job does not say
  std::string method, framework, layout;
  std::int64_t sequence = 0, batch = 0;  // tokens; sequences of a step, of all GPUs together
  bool memory_said = false;              // model_memory is the user's, not the planner's
  bool operator==(const Trained&) const = default;
};

// Holds the planner's expectation when the job was submitted.
struct Predicted {
  std::string layout;  // "dp=8 zero=3 mb=1"
  std::string gpu;     // key of the catalogue, or a name
  int gpus = 1;
  double step_s = 0, tokens_per_s = 0;
  double peak_bytes = 0;  // of a GPU's memory
  std::string row;        // the run as a line for `gridctl plan estimate`
  bool operator==(const Predicted&) const = default;
};

struct Workload {
  JobClass job_class = JobClass::automatic;
  Backend backend = Backend::automatic;
  int tasks = 0;                                    // independent pieces, 1..k_tasks_max; 0 = not a bag
  std::optional<double> params;                     // that are trained
  std::optional<std::uint64_t> exchange_bytes;      // of gradients that each GPU exchanges in a synchronous step
  std::optional<Duration> step;                     // computing time of one step on the hosts wanted
  int sync_every = 1;                               // steps between two exchanges, 1..k_sync_every_max
  std::optional<Duration> work;                     // useful time that the job needs on its first choice of hardware
  std::optional<std::uint64_t> model_memory_bytes;  // of GPUs, that one replica needs
  Trained trained{};
  std::optional<Predicted> predicted{};
  bool operator==(const Workload&) const = default;
};

// Returns the bytes of each exchange: as declared, otherwise k_bytes_per_gradient for each parameter; nullopt if
// neither is known.
[[nodiscard]] std::optional<double> exchange_bytes(const Workload& workload);

}  // namespace gridctl::job
