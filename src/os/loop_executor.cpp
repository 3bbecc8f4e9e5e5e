// SPDX-License-Identifier: Apache-2.0
#include "os/loop_executor.hpp"

#include <utility>

#include "os/clock.hpp"

namespace gridctl::os {

namespace {
constexpr unsigned k_login_threads = 16;   // a login to a dead host blocks one for up to 20 s
constexpr unsigned k_urgent_threads = 32;  // a host that never ends holds two of them
constexpr unsigned k_bulk_threads = 16;    // each may hash and compress with threads of its own
constexpr unsigned k_per_host = 2;         // of each lane: one host that drips must leave threads for the others
}  // namespace

LoopExecutor::LoopExecutor(Loop& loop)
    : loop_(loop),
      login_(k_login_threads, k_per_host),
      urgent_(k_urgent_threads, k_per_host),
      bulk_(k_bulk_threads, k_per_host) {}

Executor::Timer LoopExecutor::after(Duration delay, std::function<void()> due) {
  return loop_.after(delay, std::move(due));
}

Executor::Timer LoopExecutor::every(Duration period, std::function<void()> due) {
  return loop_.every(period, std::move(due));
}

void LoopExecutor::pause(Duration time) { pause_for(time); }

void LoopExecutor::run(const Lane& lane, std::function<void()> work) {
  HostPool& pool = lane.kind == Lane::Kind::login ? login_ : lane.kind == Lane::Kind::urgent ? urgent_ : bulk_;
  pool.submit(lane.host, std::move(work));
}

}  // namespace gridctl::os
