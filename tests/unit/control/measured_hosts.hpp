// SPDX-License-Identifier: Apache-2.0
// Two hosts whose measurements are kept.
#pragma once

#include <gmock/gmock.h>

#include "control/measure/network_record.hpp"
#include "registry/registry.hpp"
#include "support/results.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::control {

constexpr WallTime k_now{1'795'000'000'000};
inline WallTime later(Duration by) { return {k_now.ms + by / std::chrono::milliseconds{1}}; }

class Kept : public ::testing::Test {
 protected:
  Kept() {
    for (const char* name : {"ada", "bob"}) {
      registry::Provider provider;
      provider.name = {name};
      provider.address = std::string("me@") + name;
      EXPECT_THAT(registry.add_provider(provider), gridctl::testing::IsOk());
    }
  }
  std::size_t events(const std::string& name) { return registry.host_events({name}, 0)->size(); }

  gridctl::testing::TempDir dir;
  Paths paths{dir.path()};
  registry::Registry registry = *registry::Registry::open(dir.path());
  NetworkRecorder recorder{registry, paths};
};

}  // namespace gridctl::control
