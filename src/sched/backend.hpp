// SPDX-License-Identifier: Apache-2.0
// Chooses the library through which the members of a job communicate, and its settings. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/inventory.hpp"
#include "base/time.hpp"
#include "job/workload.hpp"

namespace gridctl::sched {

// Describes how far apart two members are at most.
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
// Follows a wish or refuses it with no_provider_fits, the reason, and in the context what would work. One wish is
// adapted: on AMD's GPUs, "nccl" means RCCL, which has its interface. Without a wish:
//   loose jobs and services use none; mixed vendors, CPUs alone and the WAN use Gloo; others the vendor's own.
[[nodiscard]] Result<BackendChoice> choose_backend(const BackendQuestion& question);

// Returns torch.distributed's name: "nccl" for NCCL and RCCL, "ccl", "gloo", "mpi"; empty for none.
[[nodiscard]] std::string_view torch_name(job::Backend backend);

// Holds the addresses and devices of the members as far as known, rank 0 first.
struct Rendezvous {
  job::Backend backend = job::Backend::gloo;
  Reach reach = Reach::host;
  std::vector<const Inventory*> members;  // borrowed; never empty
  // For each member, the interface with the address at which the others reached it (reach_proof.hpp); empty: unknown.
  std::vector<std::string> interfaces{};
  std::optional<Duration> round_trip;  // the longest between two members, as measured
  std::optional<double> exchange_s;    // the longest that one exchange is expected to take
};
// Returns the variables of one member: its own interface and RDMA devices that are up, RDMA only if every member has
// the same kind; limits of its GPUs; timeouts that allow a hundred times the measured latency of a collective. Names an
// interface only if there is no doubt: the proven one, otherwise within a site the fastest one that is up, over the WAN
// the only one. The job's own variables win over these. For the launcher's, see job/launcher.
[[nodiscard]] std::map<std::string, std::string> backend_environment(const Rendezvous& rendezvous, std::size_t member);

// Time after which a collective counts as stuck.
inline constexpr Duration k_collective_timeout = std::chrono::minutes{10};  // torch's own for NCCL
[[nodiscard]] Duration collective_timeout(const Rendezvous& rendezvous);

}  // namespace gridctl::sched
