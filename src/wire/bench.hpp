// SPDX-License-Identifier: Apache-2.0
// Defines the messages for measuring a host; gridctl-agent(7), BENCHMARKS. All bodies are small except the words of a
// challenge's answer.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.hpp"
#include "wire/message.hpp"

namespace gridctl::wire {

inline constexpr std::size_t k_bench_values_max = 256;        // of one kind in one stage
inline constexpr std::size_t k_bench_text_max = 4096;         // bytes of one text
inline constexpr std::size_t k_bench_words_max = 768 * 1024;  // hexadecimal digits of all words of a stage
inline constexpr std::size_t k_bench_devices_max = 128;       // in a list
inline constexpr Duration k_bench_stage_max = std::chrono::minutes{15};

// Holds a report of a test: before it is ready, between its seeds, at its end. Foreign on the controller's side.
struct BenchStage {
  bool done = false;  // it has ended; else it waits for a seed
  std::map<std::string, double> numbers;
  std::map<std::string, std::string> texts;
  std::map<std::string, std::string> words;  // challenges' answers, hexadecimal
  // Returns 0 or "" if it was not reported.
  [[nodiscard]] double number(const std::string& name) const;
  [[nodiscard]] std::string text(const std::string& name) const;
};

inline constexpr std::string_view k_bench_list = "bench-list", k_bench_begin = "bench-begin",
                                  k_bench_seed = "bench-seed", k_bench_host = "bench-host";
// op "bench-list": what the drivers' libraries show. The texts "cuda" and "opencl" of `problems` say why one shows
// nothing.
struct BenchDevices {
  std::vector<BenchStage> devices;  // facts of each, in the driver's order per backend
  std::map<std::string, std::string> problems;
};
// op "bench-begin": starts a test in its own process; it replaces an earlier one of this connection. With `gpu`, the
// GPU is leased for the test (busy if it is in use) until the test has ended, `deadline` after this request, or with
// the connection.
struct BenchBegin {
  std::string test;     // a name of the helper's
  std::string backend;  // "cuda" or "opencl"
  std::uint32_t index = 0;
  std::string gpu;  // uuid as in the inventory, or empty
  std::map<std::string, std::uint64_t> parameters;
  Duration deadline{};
  std::string peer{};  // uuid of a second GPU that the test uses and that is leased with the first, or empty
};                     // -> BenchStage
// op "bench-seed": the running test continues with this seed. -> BenchStage
struct BenchSeed {
  std::uint64_t seed = 0;
};
// op "bench-host": processors, memory and disk, with time `part` for each. -> BenchStage
struct BenchHost {
  Duration part{};
};

GRIDCTL_MESSAGE(BenchStage, parse_bench_stage)
GRIDCTL_MESSAGE(BenchDevices, parse_bench_devices)
GRIDCTL_MESSAGE(BenchBegin, parse_bench_begin)
GRIDCTL_MESSAGE(BenchSeed, parse_bench_seed)
GRIDCTL_MESSAGE(BenchHost, parse_bench_host)

}  // namespace gridctl::wire
