// SPDX-License-Identifier: Apache-2.0
// Fuzz targets: each takes any bytes and aborts when a promise about them is broken. One program of libFuzzer runs the
// target named by --target; the unit test `fuzz_replay` gives every target its corpus and the files of tests/data.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

namespace gridctl::fuzz {

struct Target {
  std::string_view name;
  void (*run)(std::string_view input);
};

inline std::vector<Target>& targets() {
  static std::vector<Target> all;
  return all;
}

struct Registration {
  Registration(std::string_view name, void (*run)(std::string_view)) { targets().push_back({name, run}); }
};

}  // namespace gridctl::fuzz

// FUZZ_TARGET(frames) { … uses `input`, a std::string_view … }
#define FUZZ_TARGET(name)                                                           \
  static void fuzz_##name(std::string_view input);                                  \
  static const gridctl::fuzz::Registration registration_##name{#name, fuzz_##name}; \
  static void fuzz_##name([[maybe_unused]] std::string_view input)

// A promise that must hold for every input, in all builds.
#define PROMISE(condition)                                                                 \
  do {                                                                                     \
    if (!(condition)) {                                                                    \
      std::fprintf(stderr, "%s:%d: broken promise: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                        \
    }                                                                                      \
  } while (false)
