// SPDX-License-Identifier: Apache-2.0
// Measures this host for one connection: at most one test at a time, in a separate process with a deadline; the GPU is
// leased while it runs.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "agent/ledger.hpp"
#include "base/ids.hpp"
#include "base/result.hpp"
#include "os/clock.hpp"
#include "os/files.hpp"
#include "wire/bench.hpp"

namespace gridctl::agent {

class HelperProcess;

class Bench {
 public:
  Bench(os::Path home, ControllerId controller, os::Clock& clock);
  ~Bench();  // ends the test and its lease

  [[nodiscard]] static bool serves(std::string_view operation);
  // Returns the reply to the request.
  [[nodiscard]] Result<std::string> handle(std::string_view operation, std::string_view payload);

 private:
  [[nodiscard]] Result<wire::BenchDevices> list();
  [[nodiscard]] Result<wire::BenchStage> begin(const wire::BenchBegin& request);
  [[nodiscard]] Result<wire::BenchStage> seed(const wire::BenchSeed& request);
  [[nodiscard]] Result<wire::BenchStage> next_stage();
  [[nodiscard]] Result<void> lease(const wire::BenchBegin& request);
  void end();

  os::Path home_;
  ControllerId controller_;
  os::Clock& clock_;
  Ledger ledger_;
  std::unique_ptr<HelperProcess> helper_;
  BootTime deadline_{};  // of the test under way
  JobId lease_;          // the name it has in the ledger, empty = none
};

}  // namespace gridctl::agent
