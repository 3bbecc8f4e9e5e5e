// SPDX-License-Identifier: Apache-2.0
// libFuzzer's entry: gridctl_fuzz --target=NAME [libFuzzer's options] CORPUS…
#include <cstdint>
#include <cstring>
#include <string_view>

#include "fuzz/target.hpp"

namespace {
void (*chosen)(std::string_view) = nullptr;
}

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  constexpr std::string_view k_option = "--target=";
  for (int i = 1; i < *argc; ++i) {
    const std::string_view word = (*argv)[i];
    if (!word.starts_with(k_option)) continue;
    for (const gridctl::fuzz::Target& target : gridctl::fuzz::targets())
      if (target.name == word.substr(k_option.size())) chosen = target.run;
  }
  if (chosen != nullptr) return 0;
  std::fprintf(stderr, "usage: gridctl_fuzz --target=NAME …; targets:");
  for (const gridctl::fuzz::Target& target : gridctl::fuzz::targets())
    std::fprintf(stderr, " %.*s", static_cast<int>(target.name.size()), target.name.data());
  std::fprintf(stderr, "\n");
  std::exit(2);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  chosen({reinterpret_cast<const char*>(data), size});
  return 0;
}
