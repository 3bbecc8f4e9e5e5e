// SPDX-License-Identifier: Apache-2.0
// The registry under the simulated daemon: the real one (SQLite on a file system that loses what was not synced) or one
// of values that is fast. Both outlive the daemon.
#pragma once

#include <memory>
#include <vector>

#include "random.hpp"
#include "registry/all_records.hpp"

namespace gridctl::sim {

class Backend {
 public:
  virtual ~Backend() = default;
  [[nodiscard]] virtual registry::AllRecords* records() = 0;  // nullptr when it is not open
  [[nodiscard]] virtual Result<void> open() = 0;
  virtual void close(bool power_lost) = 0;  // the process is gone; with the power, also what was not synced
  virtual void set_trouble(bool disk_full, bool errors) = 0;
  virtual void kill_soon() {}  // somewhere inside the next operations
  [[nodiscard]] virtual bool was_killed() const { return false; }
  virtual void revive() {}

  // What commands of the user write, and the daemon never does.
  [[nodiscard]] virtual Result<void> add_provider(const registry::Provider& provider) = 0;
  [[nodiscard]] virtual Result<void> save_budget(const registry::Budget& budget) = 0;
};

[[nodiscard]] std::unique_ptr<Backend> make_memory_records(Random& random);
[[nodiscard]] std::unique_ptr<Backend> make_sqlite_records(Random& random);

}  // namespace gridctl::sim
