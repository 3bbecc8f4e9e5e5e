// SPDX-License-Identifier: Apache-2.0
#include "sched/backend.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.hpp"
#include "base/names.hpp"
#include "base/text.hpp"
#include "sched/fabric.hpp"

namespace gridctl::sched {

namespace {
using job::Backend;
using job::JobClass;

// Describes a communication library, and the devices that it runs on.
struct Library {
  Backend backend;
  std::string_view title, torch;
  std::optional<Vendor> vendor;  // the only one it knows; nullopt = all, and CPUs
};
constexpr std::array<Library, 6> k_libraries{{{Backend::nccl, "NCCL", "nccl", Vendor::nvidia},
                                              {Backend::rccl, "RCCL", "nccl", Vendor::amd},
                                              {Backend::oneccl, "oneCCL", "ccl", Vendor::intel},
                                              {Backend::gloo, "Gloo", "gloo", {}},
                                              {Backend::mpi, "MPI", "mpi", {}},
                                              {Backend::none, "none", "", {}}}};

const Library& library(Backend backend) {
  const auto found = std::ranges::find(k_libraries, backend, &Library::backend);
  GRIDCTL_CHECK(found != k_libraries.end());
  return *found;
}

std::string title_of(Vendor vendor) {
  static constexpr Names<Vendor, Vendor::other> k_titles{"NVIDIA", "AMD", "Intel", "another vendor"};
  return std::string(k_titles(vendor));
}

std::vector<Vendor> each_once(std::vector<Vendor> vendors) {
  std::ranges::sort(vendors);
  vendors.erase(std::unique(vendors.begin(), vendors.end()), vendors.end());
  return vendors;
}

std::string vendors_text(const std::vector<Vendor>& vendors) {
  std::vector<std::string> names;
  for (Vendor vendor : vendors) names.push_back(title_of(vendor));
  return join(names, " and ");
}

BackendChoice of_one_vendor(Vendor vendor) {
  for (const Library& candidate : k_libraries)
    if (candidate.vendor == vendor) return {candidate.backend, "GPUs of " + title_of(vendor) + " alone"};
  return {Backend::gloo, "no library is known for the vendor of these GPUs"};
}

Error impossible_wish(const Library& wish, const std::string& why, std::vector<std::string> instead) {
  Error error =
      make_error(Code::no_provider_fits, "backend " + std::string(job::backend_name(wish.backend)) + ": " + why);
  error.context = std::move(instead);
  return error;
}

Result<BackendChoice> follow(const BackendQuestion& question, const std::vector<Vendor>& vendors) {
  Library wish = library(question.wish);
  const std::string title(wish.title);
  if (wish.backend == Backend::nccl && vendors == std::vector{Vendor::amd}) wish = library(Backend::rccl);
  if (!wish.vendor) return BackendChoice{wish.backend, "asked for"};
  const std::string runs = title + " runs on GPUs of " + title_of(*wish.vendor) + " alone, ";
  if (vendors.empty()) return impossible_wish(wish, runs + "and the job has no GPU", {"backend: gloo", "backend: mpi"});
  if (vendors.size() > 1)
    return impossible_wish(wish, runs + "and these are of " + vendors_text(vendors),
                           {"backend: gloo", "GPUs of " + title_of(*wish.vendor) + " alone"});
  if (vendors[0] != *wish.vendor)
    return impossible_wish(
        wish, runs + "and these are of " + title_of(vendors[0]),
        {"backend: auto (" + std::string(job::backend_name(of_one_vendor(vendors[0]).backend)) + ")", "backend: gloo"});
  if (question.reach == Reach::wan)
    return impossible_wish(wish, title + " can neither cross NAT nor encrypt, and a broken link ends it",
                           {"backend: gloo", "hosts at one site"});
  const bool renamed = wish.backend != question.wish;
  return BackendChoice{wish.backend, renamed ? "nccl was requested; on AMD, RCCL has its interface" : "asked for"};
}

// Timeouts allow this many times the latency of one collective: a slow start, an overloaded host, a resent packet.
constexpr double k_patience = 100;
// Timeouts also allow this many times the expected duration of one exchange.
constexpr double k_exchange_patience = 3;

// Machines with a card for each GPU often have slower ones for storage and management, which no collective should use.
std::string rdma_devices(const Inventory& member, NicKind kind) {
  double fastest = 0;
  for (const Nic& nic : member.nics)
    if (is_rdma(nic, kind)) fastest = std::max(fastest, nic.bits_per_second.value_or(0));
  std::vector<std::string> devices;
  for (const Nic& nic : member.nics)
    if (is_rdma(nic, kind) && nic.bits_per_second.value_or(0) >= fastest)
      devices.push_back(nic.device + ":" + std::to_string(nic.port));
  std::ranges::sort(devices);
  return join(devices, ",");
}

std::string interface_of(const Inventory& member, Reach reach) {
  std::vector<const Nic*> up;
  for (const Nic& nic : member.nics)
    if (nic.up && !nic.interface.empty()) up.push_back(&nic);
  if (up.empty() || (reach == Reach::wan && up.size() > 1)) return "";
  const auto rate = [](const Nic* nic) { return nic->bits_per_second.value_or(0); };
  std::ranges::sort(up, [&](const Nic* a, const Nic* b) {
    return rate(a) != rate(b) ? rate(a) > rate(b) : a->interface < b->interface;
  });
  return up.front()->interface;
}

using Variables = std::map<std::string, std::string>;

void add_nccl(Variables& into, const std::string& interface, const std::string& devices, const Inventory& member) {
  if (!interface.empty()) into["NCCL_SOCKET_IFNAME"] = "=" + interface;  // '=': this one, not all that begin so
  if (devices.empty()) {
    into["NCCL_IB_DISABLE"] = "1";
    return;
  }
  into["NCCL_IB_HCA"] = "=" + devices;
  // The module was looked for and is missing: then the card must not be told to read the memory of GPUs.
  const bool looked = find_gap(member.gaps, "gpu_direct") == nullptr;
  if (member.gpu_direct.empty() && looked) into["NCCL_NET_GDR_LEVEL"] = "LOC";
}

bool is_joined_by_fabric(const Inventory& member) {
  return has_nvswitch(member) ||
         std::ranges::any_of(member.links, [](const GpuLink& link) { return is_fabric(link.kind); });
}

// Consumer GPUs from the Ada generation on cannot reach each other's memory, but drivers have claimed that they can:
// NCCL then hangs in its first collective.
bool lacks_peer_access(const Gpu& gpu) {
  const std::string name = lower(gpu.name);
  return gpu.vendor == Vendor::nvidia &&
         (name.find("geforce rtx 40") != std::string::npos || name.find("geforce rtx 50") != std::string::npos);
}

void add_gpus(Variables& into, Backend backend, const Inventory& member) {
  if (member.gpus.size() < 2 || is_joined_by_fabric(member)) return;
  if (backend == Backend::nccl && std::ranges::any_of(member.gpus, &lacks_peer_access)) into["NCCL_P2P_DISABLE"] = "1";
  if (backend == Backend::rccl) into["HSA_FORCE_FINE_GRAIN_PCIE"] = "1";  // without it peers over PCIe are not used
}

void add_oneccl(Variables& into, const std::string& interface, const std::string& devices) {
  into["CCL_ATL_TRANSPORT"] = "ofi";
  into["FI_PROVIDER"] = devices.empty() ? "tcp" : "verbs;ofi_rxm";
  if (interface.empty()) return;
  into["CCL_KVS_IFACE"] = interface;  // of the rendezvous; also where the data takes another way
  if (devices.empty()) into["FI_TCP_IFACE"] = interface;
}

void add_mpi(Variables& into, const std::string& interface, const std::string& devices) {
  if (!interface.empty())
    for (const char* name : {"OMPI_MCA_btl_tcp_if_include", "OMPI_MCA_oob_tcp_if_include"}) into[name] = interface;
  if (!devices.empty()) into["UCX_NET_DEVICES"] = devices;
  else if (!interface.empty()) into["UCX_NET_DEVICES"] = interface;
}

void add_network(Variables& into, const Rendezvous& rendezvous, std::size_t position) {
  const Inventory& member = *rendezvous.members[position];
  std::string interface = position < rendezvous.interfaces.size() ? rendezvous.interfaces[position] : "";
  if (interface.empty()) interface = interface_of(member, rendezvous.reach);
  const std::optional<NicKind> rdma = rendezvous.reach == Reach::wan ? std::nullopt : common_rdma(rendezvous.members);
  const std::string devices = rdma ? rdma_devices(member, *rdma) : "";
  if (!interface.empty()) into["GLOO_SOCKET_IFNAME"] = interface;  // torchrun's own rendezvous may use it as well
  switch (rendezvous.backend) {
    case Backend::nccl:
    case Backend::rccl: return add_nccl(into, interface, devices, member);
    case Backend::oneccl: return add_oneccl(into, interface, devices);
    case Backend::mpi: return add_mpi(into, interface, devices);
    case Backend::automatic:
    case Backend::gloo:
    case Backend::none: return;
  }
}
}  // namespace

std::string_view torch_name(Backend backend) { return backend == Backend::automatic ? "" : library(backend).torch; }

Result<BackendChoice> choose_backend(const BackendQuestion& question) {
  const std::vector<Vendor> vendors = each_once(question.vendors);
  if (question.wish != Backend::automatic) return follow(question, vendors);
  if (question.job_class == JobClass::loose || question.job_class == JobClass::service)
    return BackendChoice{Backend::none, "its parts do not communicate"};
  if (question.reach == Reach::wan) return BackendChoice{Backend::gloo, "its members communicate over the WAN"};
  if (vendors.size() > 1) return BackendChoice{Backend::gloo, "GPUs of " + vendors_text(vendors) + " together"};
  if (vendors.empty()) return BackendChoice{Backend::gloo, "CPUs alone"};
  return of_one_vendor(vendors[0]);
}

Duration collective_timeout(const Rendezvous& rendezvous) {
  const auto hops = static_cast<double>(2 * (rendezvous.members.size() - 1));
  const double latency = rendezvous.round_trip ? seconds(*rendezvous.round_trip) * hops * k_patience : 0;
  const double exchange = rendezvous.exchange_s.value_or(0) * k_exchange_patience;
  return k_collective_timeout + std::chrono::seconds{static_cast<std::int64_t>(std::ceil(latency + exchange))};
}

Variables backend_environment(const Rendezvous& rendezvous, std::size_t member) {
  GRIDCTL_CHECK(member < rendezvous.members.size());
  Variables variables;
  if (rendezvous.backend == Backend::none) return variables;
  const std::string timeout =
      std::to_string(std::chrono::ceil<std::chrono::seconds>(collective_timeout(rendezvous)).count());
  variables["GRIDCTL_COLLECTIVE_TIMEOUT"] = timeout;  // for init_process_group(timeout=…), which reads no variable
  add_gpus(variables, rendezvous.backend, *rendezvous.members[member]);
  if (rendezvous.members.size() == 1) return variables;
  variables["PET_RDZV_CONF"] = "join_timeout=" + timeout + ",timeout=" + timeout;  // torchrun's --rdzv-conf
  if (rendezvous.backend == Backend::nccl || rendezvous.backend == Backend::rccl)
    variables["TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC"] = timeout;
  add_network(variables, rendezvous, member);
  return variables;
}

}  // namespace gridctl::sched
