// SPDX-License-Identifier: Apache-2.0
// Measuring a host: challenges whose answers are checked here and whose time is taken here, figures that the host
// measures itself, and the verdict. For worker threads and commands; the registry is the caller's business.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/inventory.hpp"
#include "base/result.hpp"
#include "control/reach/host_access.hpp"
#include "os/clock.hpp"
#include "probe/bench_challenge.hpp"
#include "registry/registry.hpp"
#include "sched/query/host_facts.hpp"
#include "sched/standing/verdict.hpp"
#include "wire/bench.hpp"
#include "wire/frame.hpp"

namespace gridctl::control {

// One challenge as it was held: enough to repeat the check, whoever doubts it.
struct BenchTranscript {
  std::string test;  // "gemm", "fma", "fill"
  WallTime at;
  std::uint64_t seed = 0, after = 0;
  std::map<std::string, double> sizes;      // groups, steps…
  std::string answer_sha256;                // of all words, as hexadecimal digits
  std::vector<std::uint32_t> parts, words;  // parts that were recomputed, and what the host had said of them
  double seconds_here = 0, seconds_there = 0;
  std::string outcome;  // "right", or why not
};

struct GpuBench {
  Gpu gpu;                                // as the inventory declares it; vendor `other` for a device it does not list
  std::string backend;                    // "cuda", "opencl", "" = no driver shows it
  std::map<std::string, double> figures;  // gemm16_tflops, fp32_tflops, memory_read_gbs…
  sched::GpuVerdict verdict;
  std::map<std::string, sched::Trend> trends;  // of the figures, over the runs
  std::vector<BenchTranscript> transcripts;    // of the last run
};

// The body of the host report "bench".
struct BenchReport {
  WallTime at;
  bool quick = false;
  double round_trip_ms = 0;
  std::map<std::string, double> host;  // cpu_gflops, memory_copy_gbs, disk_write_mbs…
  std::vector<GpuBench> gpus;
  std::vector<std::string> problems;                 // what could not be measured and why
  [[nodiscard]] sched::VerdictKind verdict() const;  // the gravest of the GPUs'
  // Why no job may use it, one line; empty when jobs may.
  [[nodiscard]] std::string mismatch() const;
  // UUIDs of the GPUs of no known model.
  [[nodiscard]] std::set<std::string> unverified() const;
  // One line for people: "ok, 2x A100 SXM4 80GB, 3h ago" without the time.
  [[nodiscard]] std::string summary() const;
};
[[nodiscard]] std::string to_json(const BenchReport& report);
[[nodiscard]] Result<BenchReport> parse_bench_report(std::string_view json);
// Measured numbers under the names that queries know: total_flops, gpu_mem_bw, pcie_bw, disk_bw, verified, bench_drift;
// and "verdict", a VerdictKind, for listings.
[[nodiscard]] std::map<std::string, double, std::less<>> figures_of(const BenchReport& report);

struct BenchOptions {
  bool quick = false;                              // no sustained run, shorter parts
  Duration under_load = std::chrono::seconds{60};  // the sustained run: up to 10 minutes
  bool challenges_only = false;      // between jobs: seconds instead of minutes, and only GPUs that nobody holds
  std::uint64_t fill_bytes_max = 0;  // 0 = all that is free: only then the size of the memory is judged
  std::vector<std::string> gpus;     // uuids; empty = all
  std::function<void(const std::string&)> progress;  // lines for people
};

// The other end: requests go out, replies come in. A second conversation looks at the host while the first one works.
struct BenchTalk {
  wire::Link* link = nullptr;
  std::function<Result<Inventory>()> look;  // may be empty
  os::Clock* clock = nullptr;
  probe::Draw draw;  // fresh seeds
};

// Errors are the link's. What a host cannot or will not do is in the report. `before`: the last report, for trends.
[[nodiscard]] Result<BenchReport> bench(const BenchTalk& talk, const Inventory& inventory, const BenchOptions& options,
                                        const std::optional<BenchReport>& before);
// Runs the benchmark over connections of its own.
[[nodiscard]] Result<BenchReport> bench_host(const HostAccess& place, const BenchOptions& options,
                                             const std::optional<BenchReport>& before);

// The report in the registry. Saving it writes what has changed into the host's history. A report that cannot be read
// counts as none.
[[nodiscard]] Result<std::optional<BenchReport>> load_bench_report(registry::Registry& registry, const HostName& name);
[[nodiscard]] Result<void> save_bench_report(registry::Registry& registry, const HostName& name,
                                             const BenchReport& report, const std::optional<BenchReport>& before);
// Fills what no tool of the vendor told and a benchmark did, units and the width of the memory's bus, in a host's
// inventory as it is shown. By the GPU's uuid: the names of the attributes that were filled.
using Measured = std::map<std::string, std::vector<std::string>>;
[[nodiscard]] Measured fill_measured(Inventory& inventory, const BenchReport& report);
// Tells the scheduler which of these hosts are not what they are declared to be.
[[nodiscard]] Result<void> apply_bench(registry::JobRecords& registry, std::vector<sched::HostFacts>& hosts);

}  // namespace gridctl::control
