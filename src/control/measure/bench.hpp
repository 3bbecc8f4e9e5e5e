// SPDX-License-Identifier: Apache-2.0
// Measures a host: challenges whose answers are checked and timed here, figures that the host measures itself, and the
// verdict. For worker threads and commands; the caller handles the registry.
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
#include "registry/host_records.hpp"
#include "sched/query/host_facts.hpp"
#include "sched/standing/verdict.hpp"
#include "wire/bench.hpp"
#include "wire/frame.hpp"

namespace gridctl::control {

// Records one challenge, with enough data for anyone to repeat the check.
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
  bool untested = false;  // no driver could be asked about it; not part of the report that is kept
};

// Holds the body of the host report "bench".
struct BenchReport {
  WallTime at;
  bool quick = false;
  double round_trip_ms = 0;
  std::map<std::string, double> host;  // cpu_gflops, memory_copy_gbs, disk_write_mbs…
  std::vector<GpuBench> gpus;
  std::vector<std::string> problems;                 // what could not be measured and why
  [[nodiscard]] sched::VerdictKind verdict() const;  // the gravest of the GPUs'
  // Returns why no job may use the host, in one line; empty if jobs may.
  [[nodiscard]] std::string mismatch() const;
  // Returns the UUIDs of GPUs of no known model.
  [[nodiscard]] std::set<std::string> unverified() const;
  // Returns one line for people: "ok, 2x A100 SXM4 80GB, 3h ago" without the time.
  [[nodiscard]] std::string summary() const;
};
[[nodiscard]] std::string to_json(const BenchReport& report);
[[nodiscard]] Result<BenchReport> parse_bench_report(std::string_view json);
// Returns measured numbers under the names that queries use: total_flops, gpu_mem_bw, pcie_bw, disk_bw, verified,
// bench_drift; and "verdict", a VerdictKind, for listings.
[[nodiscard]] std::map<std::string, double, std::less<>> figures_of(const BenchReport& report);

struct BenchOptions {
  bool quick = false;                              // no sustained run, shorter parts
  Duration under_load = std::chrono::seconds{60};  // the sustained run: up to 10 minutes
  bool challenges_only = false;      // between jobs: seconds instead of minutes, and only GPUs that nobody holds
  std::uint64_t fill_bytes_max = 0;  // 0 = all that is free: only then the size of the memory is judged
  std::vector<std::string> gpus;     // uuids; empty = all
  std::function<void(const std::string&)> progress;  // lines for people
};

// Represents the other end: requests go out, replies come in. A second conversation looks at the host while the first
// one works.
struct BenchTalk {
  wire::Link* link = nullptr;
  std::function<Result<Inventory>()> look;  // may be empty
  os::Clock* clock = nullptr;
  probe::Draw draw;  // fresh seeds
};

// Errors are the link's. The report says what a host cannot or will not do. `before`: the last report, for trends.
[[nodiscard]] Result<BenchReport> bench(const BenchTalk& talk, const Inventory& inventory, const BenchOptions& options,
                                        const std::optional<BenchReport>& before);
// Runs the benchmark over separate connections.
[[nodiscard]] Result<BenchReport> bench_host(const HostAccess& place, const BenchOptions& options,
                                             const std::optional<BenchReport>& before);

// Loads and saves the report in the registry. Saving adds the changes to the host's history. An unreadable report
// counts as none.
[[nodiscard]] Result<std::optional<BenchReport>> load_bench_report(registry::HostRecords& registry, const HostName& name);
[[nodiscard]] Result<void> save_bench_report(registry::HostRecords& registry, const HostName& name,
                                             const BenchReport& report, const std::optional<BenchReport>& before);
// Fills in attributes of a host's inventory, for display, that only a benchmark revealed: units and the width of the
// memory bus. By the GPU's uuid: the names of the filled attributes.
using Measured = std::map<std::string, std::vector<std::string>>;
[[nodiscard]] Measured fill_measured(Inventory& inventory, const BenchReport& report);
// Tells the scheduler which of these hosts differ from their declaration.
[[nodiscard]] Result<void> apply_bench(registry::HostRecords& registry, std::vector<sched::HostFacts>& hosts);

}  // namespace gridctl::control
