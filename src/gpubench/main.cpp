// SPDX-License-Identifier: Apache-2.0
// Runs gridctl-gpubench: one test of one GPU, in a process that a hung driver may take with it; gridctl-agent(7), The
// GPU helper. It is the only part of gridctl on hosts that is dynamically linked, because drivers' libraries can only
// be loaded that way.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string_view>

#include "gpubench/gemm.hpp"
#include "gpubench/work.hpp"
#include "os/process.hpp"

namespace gridctl::gpubench {
namespace {

struct Test {
  std::string_view name;
  Result<void> (*run)(Device&, const Parameters&);
};
constexpr std::array k_tests{Test{"gemm", test_gemm},   Test{"fma", test_fma},         Test{"fill", test_fill},
                             Test{"rates", test_rates}, Test{"memory", test_memory},   Test{"copies", test_copies},
                             Test{"peer", test_peer},   Test{"sustain", test_sustain}, Test{"way", test_way}};

// Lists the drivers. A fourth vendor's driver is a file with a Backend and its row here.
constexpr std::array k_backends{&k_cuda, &k_opencl};

Result<void> list_devices() {
  for (const Backend* backend : k_backends) {
    const auto devices = backend->list();
    if (!devices) {
      say_text(backend->name, devices.error().one_line());
      continue;
    }
    for (const DeviceFacts& facts : *devices) {
      say("device");
      say_facts(facts);
    }
  }
  return {};
}

constexpr Duration k_trial = std::chrono::seconds{30};  // the driver compiles the kernels meanwhile

// Finds the fastest way of multiplying matrices that is correct on this device. Each way is tried in its own process:
// one that hangs or crashes must harm neither the test nor the card's name. Up to compute capability 8, the portable
// kernels are near the chip's rate; Blackwell's tensor cores (10.0) have no kernel of ours, and only cuBLAS reaches
// theirs.
GemmWay best_way(const Backend& backend, const std::string& index) {
  const auto devices = backend.list();
  const std::size_t at = std::strtoul(index.c_str(), nullptr, 10);
  if (!devices || at >= devices->size()) return GemmWay::portable;
  const std::string& isa = (*devices)[at].isa;
  if (isa != "sm_90" && !isa.starts_with("sm_10")) return GemmWay::portable;
  os::RunOptions options;
  options.timeout = k_trial;
  GemmWay best = GemmWay::portable;
  double gflops = 0;
  for (const GemmWay way : {GemmWay::wide, GemmWay::library}) {
    const std::string word = "way=" + std::to_string(static_cast<int>(way));
    const auto outcome = os::run({"/proc/self/exe", "way", std::string(backend.name), index, word}, options);
    if (!outcome || !outcome->status.success()) continue;
    constexpr std::string_view k_rate = "number gflops ";
    const std::size_t at_rate = outcome->out.find(k_rate);
    if (at_rate == std::string::npos) continue;
    const double its = std::strtod(outcome->out.c_str() + at_rate + k_rate.size(), nullptr);
    if (its > gflops) best = way, gflops = its;
  }
  return best;
}

Result<void> run_test(std::span<char* const> words) {
  const std::string_view name(words[0]);
  const auto backend = std::ranges::find_if(k_backends, [&](const Backend* one) { return one->name == words[1]; });
  if (backend == k_backends.end()) return make_error(Code::usage, "there is no backend with that name");
  const auto index = static_cast<std::uint32_t>(std::strtoul(words[2], nullptr, 10));
  TRY_ASSIGN(Parameters parameters, Parameters::parse(words.subspan(3)));
  if ((name == "gemm" || name == "sustain") && *backend == &k_cuda && parameters.number("numbers", 0) == 0)
    parameters.set("way", static_cast<std::uint64_t>(best_way(**backend, words[2])));
  TRY_ASSIGN(const auto device, (*backend)->open(index));
  say_facts(device->facts());
  for (const Test& test : k_tests)
    if (test.name == name) return test.run(*device, parameters);
  return make_error(Code::usage, "there is no test with that name");
}

int serve(std::span<char* const> words) {
  const std::string_view first = words.empty() ? std::string_view() : std::string_view(words[0]);
  const bool list = words.size() == 1 && first == "list";
  const bool processes = words.size() > 1 && (first == "pause" || first == "resume" || first == "state");
  if (!list && !processes && words.size() < 3) {
    std::fputs("usage: gridctl-gpubench list | pause|resume|state PID... | TEST cuda|opencl INDEX [NAME=NUMBER...]\n",
               stderr);
    return 2;
  }
  const Result<void> outcome = list        ? list_devices()
                               : processes ? take_and_give_back(first, words.subspan(1))
                                           : run_test(words);
  if (!outcome) {
    say_error(outcome.error());
    return 1;
  }
  say("done");
  // Without persistence mode, a driver forgets GPUs that no program uses. So this process stays one until the pausing
  // process has resumed.
  if (first == "pause")
    while (std::fgetc(stdin) != EOF) continue;
  return 0;
}

}  // namespace
}  // namespace gridctl::gpubench

int main(int argc, char** argv) {
  const int status =
      gridctl::gpubench::serve(std::span<char* const>(argv, static_cast<std::size_t>(argc)).subspan(argc > 0 ? 1 : 0));
  std::fflush(stdout);
  std::_Exit(status);  // drivers' threads need not agree to an orderly end
}
