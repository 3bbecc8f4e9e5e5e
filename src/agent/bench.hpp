// SPDX-License-Identifier: Apache-2.0
// Measures this host for one connection: at most one test at a time, in a separate process with a deadline; the GPU is
// leased while it runs.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "agent/ledger.hpp"
#include "base/ids.hpp"
#include "base/result.hpp"
#include "os/clock.hpp"
#include "os/files.hpp"
#include "agent/bench_host.hpp"
#include "wire/bench.hpp"

namespace gridctl::agent {

class HelperProcess;
class BenchWatch;

// Names benchmarks in the ledger of leases.
inline constexpr std::string_view k_bench_lease = "bench-";

class Bench {
 public:
  // `allowed` is asked on a thread of its own while a test is under way, also one that waits for a seed. An error ends
  // the test, and is its answer.
  Bench(os::Path home, ControllerId controller, os::Clock& clock, std::function<Result<void>()> allowed = {});
  ~Bench();  // ends the test and its lease

  [[nodiscard]] static bool serves(std::string_view operation);
  // Returns the reply to the request.
  [[nodiscard]] Result<std::string> handle(std::string_view operation, std::string_view payload);

 private:
  [[nodiscard]] Result<wire::BenchDevices> list();
  [[nodiscard]] Result<wire::BenchStage> begin(const wire::BenchBegin& request);
  [[nodiscard]] Result<wire::BenchStage> seed(const wire::BenchSeed& request);
  [[nodiscard]] Result<wire::BenchStage> next_stage();
  [[nodiscard]] Error ended_by_watch();  // REQUIRES: the watch has ended it
  [[nodiscard]] Result<wire::BenchStage> host(const wire::BenchHost& request);
  [[nodiscard]] Result<wire::BenchStage> measure_host(const wire::BenchHost& request, HostShare share);
  [[nodiscard]] Result<void> check(const wire::BenchBegin& request) const;
  [[nodiscard]] Result<void> lease(const wire::BenchBegin& request);
  [[nodiscard]] Result<void> lease_processors(double cpus, Duration part);
  void end();

  os::Path home_;
  ControllerId controller_;
  os::Clock& clock_;
  Ledger ledger_;
  std::unique_ptr<HelperProcess> helper_;
  BootTime deadline_{};  // of the test under way
  JobId lease_;          // the name it has in the ledger, empty = none
  std::function<Result<void>()> allowed_;
  std::unique_ptr<BenchWatch> watch_;  // of the test under way; ends before what it ends
};

}  // namespace gridctl::agent
