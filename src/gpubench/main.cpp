// SPDX-License-Identifier: Apache-2.0
// gridctl-gpubench: one test of one GPU, in a process that a hung driver may take with it; gridctl-agent(7), The GPU
// helper. The only part of gridctl on hosts that is dynamically linked, for drivers' libraries can only be loaded so.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string_view>

#include "gpubench/work.hpp"

namespace gridctl::gpubench {
namespace {

struct Test {
  std::string_view name;
  Result<void> (*run)(Device&, const Parameters&);
};
constexpr std::array k_tests{Test{"gemm", test_gemm},   Test{"fma", test_fma},        Test{"fill", test_fill},
                             Test{"rates", test_rates}, Test{"memory", test_memory},  Test{"copies", test_copies},
                             Test{"peer", test_peer},   Test{"sustain", test_sustain}};

// Drivers. A fourth vendor's is a file with a Backend and its row here.
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

Result<void> run_test(std::span<char* const> words) {
  const std::string_view name(words[0]);
  const auto backend = std::ranges::find_if(k_backends, [&](const Backend* one) { return one->name == words[1]; });
  if (backend == k_backends.end()) return make_error(Code::usage, "there is no backend of that name");
  const auto index = static_cast<std::uint32_t>(std::strtoul(words[2], nullptr, 10));
  TRY_ASSIGN(const Parameters parameters, Parameters::parse(words.subspan(3)));
  TRY_ASSIGN(const auto device, (*backend)->open(index));
  say_facts(device->facts());
  for (const Test& test : k_tests)
    if (test.name == name) return test.run(*device, parameters);
  return make_error(Code::usage, "there is no test of that name");
}

int serve(std::span<char* const> words) {
  const bool list = words.size() == 1 && std::string_view(words[0]) == "list";
  if (!list && words.size() < 3) {
    std::fputs("usage: gridctl-gpubench list | TEST cuda|opencl INDEX [NAME=NUMBER...]\n", stderr);
    return 2;
  }
  const Result<void> outcome = list ? list_devices() : run_test(words);
  if (!outcome) {
    say_error(outcome.error());
    return 1;
  }
  say("done");
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
