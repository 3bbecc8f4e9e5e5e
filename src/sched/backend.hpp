// SPDX-License-Identifier: Apache-2.0
// By which library the members of a job talk, and what it must be told. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/inventory.hpp"
#include "base/time.hpp"
#include "job/workload.hpp"

namespace gridctl::sched {

// The longest way between two members.
enum class Reach : std::uint8_t { host, island, site, wan };

struct BackendQuestion {
  job::JobClass job_class = job::JobClass::tight;
  std::vector<Vendor> vendors;  // of the GPUs; in any order, each as often as one likes; empty = CPUs alone
  Reach reach = Reach::host;
  job::Backend wish = job::Backend::automatic;
};
struct BackendChoice {
  job::Backend backend = job::Backend::none;  // never automatic
  std::string why;
  bool operator==(const BackendChoice&) const = default;
};
// A wish is followed or refused with no_provider_fits, the reason, and in the context what would work; never bent, but
// for one: AMD's GPUs take "nccl" for RCCL, which has its interface. Without a wish:
//   loose jobs and services talk by none; mixed vendors, CPUs alone and the WAN by Gloo; else each vendor's own.
[[nodiscard]] Result<BackendChoice> choose_backend(const BackendQuestion& question);

// As torch.distributed calls it: "nccl" for NCCL and RCCL, "ccl", "gloo", "mpi"; empty for none.
[[nodiscard]] std::string_view torch_name(job::Backend backend);

// The addresses and devices of the members as far as they are known, rank 0 first.
struct Rendezvous {
  job::Backend backend = job::Backend::gloo;
  Reach reach = Reach::host;
  std::vector<const Inventory*> members;  // borrowed; never empty
  // For each member, the interface with the address by which the others have reached it (reach_proof.hpp); empty:
  // unknown.
  std::vector<std::string> interfaces{};
  std::optional<Duration> round_trip;  // the longest between two members, as measured
  std::optional<double> exchange_s;    // the longest that one exchange is expected to take
};
// The variables of one member: interface and RDMA devices of its own that are up, RDMA only if every member has the same
// kind; what its GPUs cannot do; timeouts that a hundred times the measured latency of a collective fits in. An
// interface is named where there is no doubt: the one that was proven, else within a site the fastest one that is up,
// over the WAN the only one. The job's own variables win over these. No launcher's: job/launcher.
[[nodiscard]] std::map<std::string, std::string> backend_environment(const Rendezvous& rendezvous, std::size_t member);

// How long a collective may take before it counts as stuck.
inline constexpr Duration k_collective_timeout = std::chrono::minutes{10};  // torch's own for NCCL
[[nodiscard]] Duration collective_timeout(const Rendezvous& rendezvous);

}  // namespace gridctl::sched
