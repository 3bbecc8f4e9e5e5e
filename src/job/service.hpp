// SPDX-License-Identifier: Apache-2.0
// A service as its user describes it: programs that listen on one port of their host, behind one address. How many
// there are stands in Spec::twins. A value.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/time.hpp"

namespace gridctl::job {

inline constexpr int k_service_failures = 10;  // short runs in a row before a replica counts as broken, by default

struct Service {
  std::uint16_t port = 0;  // on 127.0.0.1 of the replica's host
  std::string path;        // that the probe asks for with GET; empty: any answer to "/" will do
  Duration initial_delay = std::chrono::minutes{20};  // a replica may need so long until it is ready
  Duration every = std::chrono::seconds{1};           // of the probe
  Duration timeout = std::chrono::seconds{2};         // for its answer
  Duration drain = std::chrono::seconds{60};          // that requests under way get to finish
  std::vector<std::string> retry_post{};  // beginnings of paths whose POST requests may run twice
  std::string keys_file{};                // absolute path here: a key on each line; empty: everybody may ask
  bool operator==(const Service&) const = default;
};

}  // namespace gridctl::job
