// SPDX-License-Identifier: Apache-2.0
// All that a state directory holds, as an interface: SQLite in the daemon and in commands (Registry), values in the
// simulator. What needs one part of it takes that part.
#pragma once

#include "registry/copy_records.hpp"
#include "registry/host_records.hpp"
#include "registry/job_records.hpp"

namespace gridctl::registry {

class AllRecords : public HostRecords, public JobRecords, public CopyRecords {
 public:
  using JobRecords::together;  // the same transaction, whichever part it is asked of
};

}  // namespace gridctl::registry
