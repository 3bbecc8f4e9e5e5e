// SPDX-License-Identifier: Apache-2.0
// The values that blocking work needs to reach one host and to report its result. A value: copies go to the threads of
// the pool.
#pragma once

#include <memory>

#include "base/ids.hpp"
#include "control/reach/life_sign.hpp"
#include "control/reach/link_meter.hpp"
#include "control/reach/paths.hpp"
#include "os/clock.hpp"
#include "registry/records.hpp"

namespace gridctl::control {

struct HostAccess {
  registry::Provider provider;
  ControllerId controller;
  Paths paths;
  os::Clock* clock = nullptr;
  LinkMeter* meter = nullptr;           // hears of what is moved, where there is one
  std::shared_ptr<LifeSign> life = {};  // hears of every answer, where there is one
};

}  // namespace gridctl::control
