// SPDX-License-Identifier: Apache-2.0
// Followed jobs beside two hosts of eight cores, ada and bob, that answer.
#pragma once

#include "followed_jobs.hpp"
#include "new_polls.hpp"

namespace gridctl::control::testing {

class TwoHosts : public FollowedJobs {
 protected:
  TwoHosts() {
    for (const char* name : {"ada", "bob"}) {
      add(name);
      registry::Provider provider = row(name);
      provider.host = provider.address = std::string("me@") + name;
      provider.inventory.edit().cpus = 8;
      provider.inventory.edit().memory_bytes = 32ull << 30;
      provider.inventory.edit().engines = {{EngineKind::process, "", false, false, ""}};
      provider.inventory.edit().machine_id = name;
      provider.inventory.edit().boot_id = "boot";
      EXPECT_THAT(registry.update_provider(provider), gridctl::testing::IsOk());
    }
    EXPECT_TRUE(fleet().refresh());
    tick();
    tick();
    answer_polls();
  }
  void answer_polls() {
    for (const char* name : {"ada", "bob"})
      if (polls.came(line(name))) answer(name, std::vector<wire::HeldShare>{});
  }

  NewPolls polls;
};

}  // namespace gridctl::control::testing
