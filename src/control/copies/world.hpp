// SPDX-License-Identifier: Apache-2.0
// Gives the controller its only access to the world: every effect and every observation goes through these. The
// simulator supplies its own.
#pragma once

#include "control/copies/freight.hpp"
#include "control/reach/agent_network.hpp"
#include "control/reach/image_registries.hpp"
#include "control/reach/job_folders.hpp"
#include "os/clock.hpp"
#include "os/executor.hpp"
#include "registry/all_records.hpp"

namespace gridctl::control {

struct World {
  os::Clock& clock;
  os::Executor& run;
  AgentNetwork& net;
  registry::AllRecords& records;
  Freight& freight;
  JobFolders& folders;
  ImageRegistries* images = nullptr;  // nullptr: no registry can be asked
};

}  // namespace gridctl::control
