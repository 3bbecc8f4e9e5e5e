// SPDX-License-Identifier: Apache-2.0
// The ways to a host: which is tried first, and which one has led to an answer.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "os/clock.hpp"
#include "os/mutex.hpp"
#include "registry/records.hpp"

namespace gridctl::control {

// Whether its owner lends it: it dials a relay, and is called there. gridctl-lend(7).
[[nodiscard]] bool is_lent(const registry::Provider& provider);

// The way that is in use, as the body of the host report k_way_report.
inline constexpr const char* k_way_report = "way";
struct UsedWay {
  std::string address;
};
[[nodiscard]] std::string to_json(const UsedWay& way);
[[nodiscard]] std::optional<UsedWay> parse_used_way(std::string_view json);

// For several threads.
class WayMemory {
 public:
  // The ways of the registration, in its order; but one that has answered when those before it did not comes first for
  // ten minutes, unless it was removed meanwhile.
  [[nodiscard]] std::vector<registry::Way> in_order(const registry::Provider& provider, BootTime now);
  void answered(const HostName& host, const std::string& address, BootTime now);

 private:
  struct Last {
    std::string address;
    BootTime since{};
  };
  os::Mutex mutex_;
  std::map<HostName, Last> last_ GRIDCTL_GUARDED_BY(mutex_);
};

inline constexpr Duration k_login_quick = std::chrono::seconds{8};  // at one way, while others are left

// True when the way led to nobody, or to somebody else: the private address of a home is another machine's in a hotel.
[[nodiscard]] bool leads_elsewhere(const Error& error);

// Tries the ways to `provider` until `open(way, login_wait)` succeeds, or fails for a reason that no other way changes.
// A login gets k_login_quick; when no way has answered, the ways that this cut short get `login_wait`. The error is that
// of the first way, with those of the others as its context.
template <class Open>
std::invoke_result_t<Open, const registry::Way&, Duration> try_ways(const registry::Provider& provider, WayMemory& memory,
                                                                   const os::Clock& clock, Duration login_wait, Open open) {
  std::vector<registry::Way> ways = memory.in_order(provider, clock.boot());
  const bool several = ways.size() > 1;
  std::optional<Error> failed;
  for (const Duration wait : {several ? k_login_quick : login_wait, login_wait}) {
    std::vector<registry::Way> cut_short;
    for (const registry::Way& way : ways) {
      const BootTime began = clock.boot();
      auto opened = open(way, wait);
      if (opened) {
        memory.answered(provider.name, way.address, clock.boot());
        return opened;
      }
      const Error& error = opened.error();
      const bool others = leads_elsewhere(error);
      if (clock.boot() - began >= wait) cut_short.push_back(way);
      if (!failed) failed = error;
      else failed->context.push_back("by way of " + way.address + ": " + error.one_line());
      if (!others) return *std::move(failed);
    }
    if (!several) break;
    ways = std::move(cut_short);
  }
  return *std::move(failed);
}

}  // namespace gridctl::control
