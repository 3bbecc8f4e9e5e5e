// SPDX-License-Identifier: Apache-2.0
#include "control/fleet/free_capacity.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gridctl::control::free_capacity_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

registry::Provider provider(const std::string& name, const std::string& machine) {
  registry::Provider p;
  p.name = {name};
  p.inventory.edit().cpus = 8;
  p.inventory.edit().memory_bytes = 64;
  p.inventory.edit().machine_id = machine;
  p.inventory.edit().boot_id = "boot-" + machine;
  Gpu gpu;
  gpu.uuid = "GPU-" + machine;
  p.inventory.edit().gpus.push_back(gpu);
  return p;
}

HostNow now(const registry::Provider& p, const std::vector<wire::HeldShare>* held = nullptr) {
  HostNow host;
  host.provider = &p;
  host.held = held;
  return host;
}

const job::Member k_member{0, {"a"}, EngineKind::process, {"GPU-m1"}, 2, 16, 0};

TEST(Room, IsWhatOurOwnAttemptsLeave) {
  const auto a = provider("a", "m1"), b = provider("b", "m2");
  const auto facts = facts_now({now(a), now(b)}, {{{"j"}, {1}, &k_member}});
  EXPECT_EQ(facts[0].cpus_free, 6);
  EXPECT_EQ(facts[0].memory_free, 48u);
  EXPECT_THAT(facts[0].busy_gpus, ElementsAre("GPU-m1"));
  EXPECT_FALSE(facts[1].cpus_free);
  EXPECT_THAT(facts[1].busy_gpus, IsEmpty());
}

TEST(Room, CountsWhatOthersHoldButNotOurOwnTwice) {
  const auto a = provider("a", "m1");
  const std::vector<wire::HeldShare> held{{{"j"}, {1}, {"GPU-m1"}, 2, 16},  // the attempt that is claimed below
                                          {{}, {}, {}, 1, 8},               // somebody else's
                                          {{"old"}, {3}, {}, 0.5, 0}};      // ours, from an attempt given up
  const auto facts = facts_now({now(a, &held)}, {{{"j"}, {1}, &k_member}});
  EXPECT_EQ(facts[0].cpus_free, 4.5);
  EXPECT_EQ(facts[0].memory_free, 40u);
}

TEST(Room, IsFreeAgainWhenTheAttemptHasEndedWhateverTheLedgerSaidBefore) {
  const auto a = provider("a", "m1");
  const std::vector<wire::HeldShare> held{{{"j"}, {1}, {"GPU-m1"}, 2, 16}};
  const auto facts = facts_now({now(a, &held)}, {{{"j"}, {1}, nullptr}});
  EXPECT_FALSE(facts[0].cpus_free);
  EXPECT_THAT(facts[0].busy_gpus, IsEmpty());
}

TEST(Room, IsKeptForAPromiseWithoutHidingALeaseOfTheSameJob) {
  const auto a = provider("a", "m1");
  const std::vector<wire::HeldShare> held{{{"j"}, {1}, {}, 1, 0}};
  const auto facts = facts_now({now(a, &held)}, {{{"j"}, {}, &k_member}});
  EXPECT_EQ(facts[0].cpus_free, 5);
}

TEST(Room, OfAMachineWithTwoNamesIsCountedOnce) {
  const auto a = provider("a", "m1"), twin = provider("twin", "m1");
  const auto facts = facts_now({now(a), now(twin)}, {{{"j"}, {1}, &k_member}});
  EXPECT_EQ(facts[1].cpus_free, 6);
  EXPECT_THAT(facts[1].busy_gpus, ElementsAre("GPU-m1"));
}

TEST(Room, DrainsAProviderUnderAllItsNamesAndNoContainerBesideIt) {
  auto a = provider("a", "m1"), beside = provider("beside", "m1");
  const auto twin = provider("twin", "m1"), other = provider("other", "m2");
  a.drained = true;
  beside.port = 2222;  // another SSH server on the same machine
  const auto facts = facts_now({now(a), now(twin), now(beside), now(other)}, {});
  EXPECT_TRUE(facts[1].drained);
  EXPECT_FALSE(facts[2].drained);
  EXPECT_FALSE(facts[3].drained);
}

TEST(Room, OfClonedImagesIsTheirOwn) {
  const auto a = provider("a", "m1"), clone = provider("clone", "m1");
  HostNow first = now(a), second = now(clone);
  first.boot_id = "this run";  // told by the agents: two kernels, whatever /etc/machine-id says
  second.boot_id = "another run";
  EXPECT_FALSE(is_same_machine(first, second));
  EXPECT_FALSE(facts_now({first, second}, {{{"j"}, {1}, &k_member}})[1].cpus_free);
}

TEST(Room, IsNoneAtAHostThatHasJustRefused) {
  const auto a = provider("a", "m1");
  HostNow full = now(a);
  full.full = true;
  const auto facts = facts_now({full}, {});
  EXPECT_EQ(facts[0].cpus_free, 0);
  EXPECT_THAT(facts[0].busy_gpus, ElementsAre("GPU-m1"));
}

}  // namespace
}  // namespace gridctl::control::free_capacity_test
