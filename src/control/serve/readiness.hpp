// SPDX-License-Identifier: Apache-2.0
// Judges whether the server of a replica becomes ready in time, as its gateway sees it. Pure.
#pragma once

#include <string>

#include "base/ids.hpp"
#include "job/service.hpp"

namespace gridctl::control {

// Holds a verdict on a replica's attempt; the daemon acts on it.
struct ReplicaTold {
  Epoch epoch{};         // 0: it has none
  bool ready = false;    // its server was ready at some time
  bool late = false;     // it has not been ready for too long
  bool drained = false;  // it gets no new requests, and has none under way
  std::string unfit{};   // why the probe's command says no, for people; empty: it passes, or there is none
  bool operator==(const ReplicaTold&) const = default;
};

// Returns how long a server that was ready may fail its probe before it is restarted. A server that was never ready has
// `initial_delay`.
[[nodiscard]] Duration patience_with_server(const job::Service& service, bool was_ready);

class ReadyClock {
 public:
  // Time counts only while the replica's host answers: a broken network is not the server's fault.
  void see(Epoch epoch, bool reachable, bool up, Duration passed, const job::Service& service);
  void drained(bool is) { told_.drained = is; }
  void unfit(const std::string& why) { told_.unfit = why; }
  [[nodiscard]] const ReplicaTold& told() const { return told_; }

 private:
  ReplicaTold told_;
  Duration unready_{};
};

}  // namespace gridctl::control
