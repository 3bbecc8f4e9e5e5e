// SPDX-License-Identifier: Apache-2.0
#include "sched/backend.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.hpp"

namespace gridctl::sched::backend_test {
namespace {
using namespace std::chrono_literals;
using job::Backend;
using job::JobClass;
using ::testing::ElementsAre;
using ::testing::Pair;

std::string answer(const BackendQuestion& question) {
  const auto choice = choose_backend(question);
  if (!choice) {
    EXPECT_EQ(choice.error().code, Code::no_provider_fits);
    return choice.error().message + "; " + join(choice.error().context, ", or ");
  }
  return std::string(job::backend_name(choice->backend)) + ": " + choice->why;
}
std::string chosen(std::vector<Vendor> vendors, Reach reach = Reach::island, Backend wish = Backend::automatic,
                   JobClass job_class = JobClass::tight) {
  return answer({job_class, std::move(vendors), reach, wish});
}
constexpr Vendor nv = Vendor::nvidia, amd = Vendor::amd, intel = Vendor::intel;

TEST(ChooseBackend, TakesEachVendorsOwn) {
  EXPECT_EQ(chosen({nv, nv}), "nccl: GPUs of NVIDIA alone");
  EXPECT_EQ(chosen({amd}), "rccl: GPUs of AMD alone");
  EXPECT_EQ(chosen({intel}), "oneccl: GPUs of Intel alone");
  EXPECT_EQ(chosen({Vendor::other}), "gloo: no library is known for the vendor of these GPUs");
}

TEST(ChooseBackend, TakesGlooForMixedVendorsCpusAndTheWan) {
  EXPECT_EQ(chosen({nv, amd, nv}), "gloo: GPUs of NVIDIA and AMD together");
  EXPECT_EQ(chosen({}), "gloo: CPUs alone");
  EXPECT_EQ(chosen({nv}, Reach::wan), "gloo: its members communicate over the WAN");
}

TEST(ChooseBackend, NeedsNoneWherePartsDoNotTalk) {
  EXPECT_EQ(chosen({nv, amd}, Reach::wan, Backend::automatic, JobClass::loose),
            "none: its parts do not communicate");
  EXPECT_EQ(chosen({nv}, Reach::wan, Backend::automatic, JobClass::service),
            "none: its parts do not communicate");
}

TEST(ChooseBackend, FollowsWishes) {
  EXPECT_EQ(chosen({nv}, Reach::island, Backend::mpi), "mpi: asked for");
  EXPECT_EQ(chosen({nv, amd}, Reach::wan, Backend::gloo), "gloo: asked for");
  EXPECT_EQ(chosen({nv}, Reach::host, Backend::none), "none: asked for");
  EXPECT_EQ(chosen({nv}, Reach::site, Backend::nccl), "nccl: asked for");
  EXPECT_EQ(chosen({amd}, Reach::site, Backend::nccl), "rccl: nccl was requested; on AMD, RCCL has its interface");
}

TEST(ChooseBackend, RefusesWhatCannotBe) {
  EXPECT_EQ(chosen({nv, amd}, Reach::island, Backend::nccl),
            "backend nccl: NCCL runs on GPUs of NVIDIA alone, and these are of NVIDIA and AMD; backend: gloo, or GPUs "
            "of NVIDIA alone");
  EXPECT_EQ(chosen({intel}, Reach::island, Backend::nccl),
            "backend nccl: NCCL runs on GPUs of NVIDIA alone, and these are of Intel; backend: auto (oneccl), or "
            "backend: gloo");
  EXPECT_EQ(chosen({}, Reach::island, Backend::oneccl),
            "backend oneccl: oneCCL runs on GPUs of Intel alone, and the job has no GPU; backend: gloo, or backend: "
            "mpi");
  EXPECT_EQ(chosen({nv}, Reach::wan, Backend::nccl),
            "backend nccl: NCCL can neither cross NAT nor encrypt, and a broken link ends it; backend: gloo, or "
            "hosts at one "
            "site");
}

TEST(TorchName, IsWhatInitProcessGroupTakes) {
  EXPECT_EQ(torch_name(Backend::nccl), "nccl");
  EXPECT_EQ(torch_name(Backend::rccl), "nccl");
  EXPECT_EQ(torch_name(Backend::oneccl), "ccl");
  EXPECT_EQ(torch_name(Backend::gloo), "gloo");
  EXPECT_EQ(torch_name(Backend::none), "");
  EXPECT_EQ(torch_name(Backend::automatic), "");
}

Inventory a_host(std::vector<Nic> nics) {
  Inventory host;
  host.nics = std::move(nics);
  return host;
}
const Inventory k_fabric = a_host({{"mlx5_1", "ib1", 1, NicKind::infiniband, true, 400e9},
                                   {"mlx5_0", "ib0", 1, NicKind::infiniband, true, 400e9},
                                   {"mlx5_2", "ib2", 1, NicKind::infiniband, false, 400e9},
                                   {"", "eth0", 1, NicKind::ethernet, true, 10e9}});
const Inventory k_plain = a_host({{"", "eno1", 1, NicKind::ethernet, true, 1e9},
                                  {"", "eno2", 1, NicKind::ethernet, true, 10e9},
                                  {"", "eno3", 1, NicKind::ethernet, false, 100e9}});
const Inventory k_home = a_host({{"", "enp3s0", 1, NicKind::ethernet, true, 1e9}});

Rendezvous between(std::vector<const Inventory*> members, Backend backend, Reach reach = Reach::island) {
  Rendezvous rendezvous;
  rendezvous.backend = backend;
  rendezvous.reach = reach;
  rendezvous.members = std::move(members);
  return rendezvous;
}

TEST(BackendEnvironment, NamesInfinibandPortsThatAreUp) {
  EXPECT_THAT(backend_environment(between({&k_fabric, &k_fabric}, Backend::nccl), 0),
              ElementsAre(Pair("GLOO_SOCKET_IFNAME", "ib0"), Pair("GRIDCTL_COLLECTIVE_TIMEOUT", "600"),
                          Pair("NCCL_IB_HCA", "=mlx5_0:1,mlx5_1:1"), Pair("NCCL_NET_GDR_LEVEL", "LOC"), Pair("NCCL_SOCKET_IFNAME", "=ib0"),
                          Pair("PET_RDZV_CONF", "join_timeout=600,timeout=600"),
                          Pair("TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC", "600")));
}

TEST(BackendEnvironment, TurnsRdmaOffUnlessEveryMemberHasIt) {
  const auto variables = backend_environment(between({&k_fabric, &k_plain}, Backend::rccl), 1);
  EXPECT_EQ(variables.at("NCCL_IB_DISABLE"), "1");
  EXPECT_FALSE(variables.contains("NCCL_IB_HCA"));
  EXPECT_EQ(variables.at("NCCL_SOCKET_IFNAME"), "=eno2") << "the fastest that is up";
}

TEST(BackendEnvironment, NamesNoInterfaceOverTheWanWhereThereAreSeveral) {
  const Rendezvous wan = between({&k_plain, &k_home}, Backend::gloo, Reach::wan);
  EXPECT_FALSE(backend_environment(wan, 0).contains("GLOO_SOCKET_IFNAME"));
  EXPECT_EQ(backend_environment(wan, 1).at("GLOO_SOCKET_IFNAME"), "enp3s0");
  EXPECT_FALSE(backend_environment(wan, 1).contains("NCCL_IB_DISABLE"));
}

TEST(BackendEnvironment, TellsOneCclAndMpiInTheirOwnWords) {
  const auto ccl = backend_environment(between({&k_fabric, &k_fabric}, Backend::oneccl), 0);
  EXPECT_EQ(ccl.at("FI_PROVIDER"), "verbs;ofi_rxm");
  EXPECT_EQ(backend_environment(between({&k_home, &k_home}, Backend::oneccl), 0).at("FI_TCP_IFACE"), "enp3s0");
  EXPECT_EQ(backend_environment(between({&k_fabric, &k_fabric}, Backend::mpi), 0).at("UCX_NET_DEVICES"),
            "mlx5_0:1,mlx5_1:1");
  EXPECT_EQ(backend_environment(between({&k_home, &k_home}, Backend::mpi), 0).at("OMPI_MCA_btl_tcp_if_include"),
            "enp3s0");
}

TEST(BackendEnvironment, OfOneHostNeedsNoNetwork) {
  EXPECT_THAT(backend_environment(between({&k_fabric}, Backend::nccl, Reach::host), 0),
              ElementsAre(Pair("GRIDCTL_COLLECTIVE_TIMEOUT", "600")));
  EXPECT_TRUE(backend_environment(between({&k_fabric}, Backend::none, Reach::host), 0).empty());
}

// Machines as they are: a DGX H100 as its tools list it, a gaming machine with two cards, an AMD server.
Inventory dgx() {
  Inventory host = a_host({});
  for (int i = 0; i < 8; ++i) {
    host.gpus.push_back({nv, "NVIDIA H100 80GB HBM3", "GPU-" + std::to_string(i), 80ull << 30});
    host.nics.push_back({"mlx5_" + std::to_string(i), "ibp" + std::to_string(24 + i) + "s0", 1, NicKind::infiniband, true,
                         400e9});
  }
  host.nics.push_back({"mlx5_8", "ibp170s0f0", 1, NicKind::infiniband, true, 200e9});  // storage
  host.nics.push_back({"", "eno3", 1, NicKind::ethernet, true, 1e9});                  // management
  host.gpu_direct = {"peermem", "dmabuf"};
  host.nvswitch = 4;
  return host;
}
Inventory gaming() {
  Inventory host = a_host({{"", "enp6s0", 1, NicKind::ethernet, true, 2.5e9}});
  for (int i = 0; i < 2; ++i)
    host.gpus.push_back({nv, "NVIDIA GeForce RTX 4090", "GPU-" + std::to_string(i), 24ull << 30});
  host.links = {{0, 1, LinkKind::phb}};
  return host;
}

TEST(BackendEnvironment, OfADgxTakesTheCardsOfTheGpusAndGpudirect) {
  const Inventory host = dgx();
  Rendezvous rendezvous = between({&host, &host}, Backend::nccl);
  rendezvous.interfaces = {"eno3", "eno3"};  // by which they have reached each other
  const auto variables = backend_environment(rendezvous, 0);
  EXPECT_EQ(variables.at("NCCL_IB_HCA"),
            "=mlx5_0:1,mlx5_1:1,mlx5_2:1,mlx5_3:1,mlx5_4:1,mlx5_5:1,mlx5_6:1,mlx5_7:1");
  EXPECT_EQ(variables.at("NCCL_SOCKET_IFNAME"), "=eno3");
  EXPECT_EQ(variables.at("GLOO_SOCKET_IFNAME"), "eno3");
  for (const char* name : {"NCCL_IB_DISABLE", "NCCL_P2P_DISABLE", "NCCL_NET_GDR_LEVEL"})
    EXPECT_FALSE(variables.contains(name)) << name;
}

TEST(BackendEnvironment, OfGamingMachinesTurnsOffWhatTheirGpusCannotDo) {
  const Inventory host = gaming();
  const auto variables = backend_environment(between({&host, &host}, Backend::nccl), 1);
  EXPECT_EQ(variables.at("NCCL_P2P_DISABLE"), "1");
  EXPECT_EQ(variables.at("NCCL_IB_DISABLE"), "1");
  EXPECT_EQ(variables.at("NCCL_SOCKET_IFNAME"), "=enp6s0");
  EXPECT_EQ(backend_environment(between({&host}, Backend::nccl, Reach::host), 0).at("NCCL_P2P_DISABLE"), "1");
}

TEST(BackendEnvironment, OfMixedMachinesTakesWhatAllHave) {
  const Inventory fast = dgx(), slow = gaming();
  const auto variables = backend_environment(between({&fast, &slow}, Backend::nccl, Reach::site), 0);
  EXPECT_EQ(variables.at("NCCL_IB_DISABLE"), "1");
  EXPECT_FALSE(variables.contains("NCCL_IB_HCA"));
  EXPECT_FALSE(variables.contains("NCCL_P2P_DISABLE")) << "that is the other's trouble";
  const auto gloo = backend_environment(between({&fast, &slow}, Backend::gloo, Reach::site), 1);
  EXPECT_EQ(gloo.at("GLOO_SOCKET_IFNAME"), "enp6s0");
  EXPECT_FALSE(gloo.contains("NCCL_IB_DISABLE"));
}

TEST(BackendEnvironment, OfAmdsOverPcieLetsThemReachEachOther) {
  Inventory host = a_host({});
  for (int i = 0; i < 2; ++i) host.gpus.push_back({amd, "AMD Radeon RX 7900 XT", "GPU-" + std::to_string(i), 20ull << 30});
  host.links = {{0, 1, LinkKind::pxb}};
  EXPECT_EQ(backend_environment(between({&host}, Backend::rccl, Reach::host), 0).at("HSA_FORCE_FINE_GRAIN_PCIE"), "1");
  host.links = {{0, 1, LinkKind::xgmi}};
  EXPECT_TRUE(backend_environment(between({&host}, Backend::rccl, Reach::host), 0).size() == 1);
}

TEST(CollectiveTimeout, GrowsWithLatencyMembersAndTheExchange) {
  const std::vector<const Inventory*> many(64, &k_home);
  Rendezvous wan = between(many, Backend::gloo, Reach::wan);
  EXPECT_EQ(collective_timeout(wan), 600s);
  wan.round_trip = 40ms;
  EXPECT_EQ(collective_timeout(wan), 600s + 504s);  // 100 times 126 hops of 40 ms
  wan.exchange_s = 100;
  EXPECT_EQ(collective_timeout(wan), 600s + 804s);
}
}  // namespace
}  // namespace gridctl::sched::backend_test
