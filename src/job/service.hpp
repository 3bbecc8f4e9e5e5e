// SPDX-License-Identifier: Apache-2.0
// Describes a service as its user does: programs that listen on one port of their host, behind one address. Spec::twins
// has their number. A value.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.hpp"
#include "base/names.hpp"
#include "base/result.hpp"
#include "base/time.hpp"

namespace gridctl::job {

inline constexpr int k_service_failures = 10;  // short runs in a row before a replica counts as broken, by default

// States which requests go to the replica that had their predecessors; all others go to the one with the fewest under
// way.
enum class Affinity : std::uint8_t {
  none,
  session,  // of one client, as the header X-Session-Id or a cookie of the gateway tells
  prefix,   // that begin with the same prompt: the replica has computed its keys and values already
};
inline constexpr Names<Affinity, Affinity::prefix> affinity_name{"none", "session", "prefix"};
[[nodiscard]] Result<Affinity> parse_affinity(std::string_view name);

struct Service {
  std::uint16_t port = 0;  // on 127.0.0.1 of the replica's host
  std::string path;        // that the probe asks for; empty: any answer to "/" will do
  Duration initial_delay = std::chrono::minutes{20};  // a replica may need so long until it is ready
  Duration every = std::chrono::seconds{1};           // of the probe
  Duration timeout = std::chrono::seconds{2};         // for its answer
  Duration drain = std::chrono::seconds{60};          // that requests under way get to finish
  std::vector<std::string> retry_post{};              // beginnings of paths whose POST requests may run twice
  std::string keys_file{};       // absolute path here: a key on each line; empty: everybody may ask
  int version = 1;               // of the file; `service apply` makes a higher one
  int replicas_min = 0;          // Spec::twins is the most; 0: the number is fixed
  bool sleeps = false;           // its last replica ends after down_after without a request; the next request starts it
  double scale_concurrency = 0;  // requests under way per replica that are aimed at; 0: the number is fixed
  double scale_rate = 0;         // requests per second and replica that are aimed at instead; 0: not these
  Duration up_after = std::chrono::seconds{15}, down_after = std::chrono::minutes{10};  // of more, or less, than that
  std::map<std::string, std::string> probe_headers{};  // are sent with each probe
  std::string probe_body{};                            // makes each probe a POST that sends this; empty: a GET
  std::string probe_command{};  // shell text that runs in the replica and must succeed, too; empty: none
  Affinity affinity = Affinity::none;
  bool operator==(const Service&) const = default;
};

// Holds a replica's state: whether its server was ever ready.
struct Readiness {
  Epoch epoch{};        // of the newest attempt whose server was ready
  bool proven = false;  // some replica of the service was ready: the program can serve
  bool operator==(const Readiness&) const = default;
};
// The gateway saw the server ready in this epoch, or (epoch 0) the server of another replica of the service.
struct ServerReady {
  Epoch epoch;
};
// A new version replaces what the replica runs: the attempt is stopped, and the next one runs the new version. Or the
// service sleeps: the attempt is stopped, and the next one starts with the next request.
struct ServerReplaced {
  Epoch epoch;
  bool sleeps = false;
};
// Reasons to stop such an attempt.
inline constexpr std::string_view k_for_update = "updated", k_for_sleep = "asleep";

}  // namespace gridctl::job
