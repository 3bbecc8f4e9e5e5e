// SPDX-License-Identifier: Apache-2.0
#include "os/loop_executor.hpp"

#include <utility>

#include "os/clock.hpp"

namespace gridctl::os {

namespace {
constexpr unsigned k_login_threads = 16;  // a login to a dead host blocks one for up to 20 s
constexpr unsigned k_urgent_threads = 16;
constexpr unsigned k_bulk_threads = 8;
constexpr int k_bulk_per_host = 2;  // one host that drips must leave threads for the others
}  // namespace

LoopExecutor::LoopExecutor(Loop& loop)
    : loop_(loop), login_(k_login_threads), urgent_(k_urgent_threads), bulk_(k_bulk_threads) {}

Executor::Timer LoopExecutor::after(Duration delay, std::function<void()> due) {
  return loop_.after(delay, std::move(due));
}

Executor::Timer LoopExecutor::every(Duration period, std::function<void()> due) {
  return loop_.every(period, std::move(due));
}

void LoopExecutor::pause(Duration time) { pause_for(time); }

void LoopExecutor::run(const Lane& lane, std::function<void()> work) {
  switch (lane.kind) {
    case Lane::Kind::login: return login_.submit(std::move(work));
    case Lane::Kind::urgent: return urgent_.submit(std::move(work));
    case Lane::Kind::bulk: break;
  }
  Share& share = bulk_of_[lane.host];
  if (share.under_way >= k_bulk_per_host) share.waiting.push_back(std::move(work));
  else begin_bulk(lane.host, std::move(work));
}

void LoopExecutor::begin_bulk(const std::string& host, std::function<void()> work) {
  ++bulk_of_[host].under_way;
  bulk_.submit([this, host, work = std::move(work)] {
    work();
    loop_.post([this, host] {
      Share& share = bulk_of_[host];
      --share.under_way;
      if (share.waiting.empty()) {
        if (share.under_way == 0) bulk_of_.erase(host);
        return;
      }
      std::function<void()> next = std::move(share.waiting.front());
      share.waiting.pop_front();
      begin_bulk(host, std::move(next));
    });
  });
}

}  // namespace gridctl::os
