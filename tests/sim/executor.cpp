// SPDX-License-Identifier: Apache-2.0
#include "executor.hpp"

#include <algorithm>
#include <utility>

namespace gridctl::sim {

namespace {
constexpr int k_bulk_max = 2;  // pieces of work at once for one host, as in the daemon
}

void SimExecutor::guard(const std::function<void()>& work) {
  try {
    work();
  } catch (const Killed&) {
    killed_();
  }
}

void SimExecutor::event(Duration delay, std::function<void()> work) {
  world_.after(delay.count(), laptop_, [this, work = std::move(work)] { guard(work); });
}

os::Executor::Timer SimExecutor::after(Duration delay, std::function<void()> due) {
  auto timer = std::make_shared<char>();
  event(delay, [weak = std::weak_ptr<char>(timer), due = std::move(due)] {
    if (!weak.expired()) due();
  });
  return timer;
}

void SimExecutor::tick(const std::weak_ptr<void>& timer, Duration period,
                       const std::shared_ptr<std::function<void()>>& due) {
  event(period, [this, timer, period, due] {
    if (timer.expired()) return;
    tick(timer, period, due);
    (*due)();
  });
}

os::Executor::Timer SimExecutor::every(Duration period, std::function<void()> due) {
  Timer timer = std::make_shared<char>();
  tick(timer, period, std::make_shared<std::function<void()>>(std::move(due)));
  return timer;
}

void SimExecutor::run(const os::Lane& lane, std::function<void()> work) {
  if (lane.kind != os::Lane::Kind::bulk) return start(lane, std::move(work));
  Bulk& bulk = bulk_[lane.host];
  if (bulk.running >= k_bulk_max) return bulk.waiting.push_back(std::move(work));
  ++bulk.running;
  start(lane, std::move(work));
}

void SimExecutor::start(const os::Lane& lane, std::function<void()> work) {
  auto fiber = std::make_shared<Fiber>(fibers_, [this, lane, work = std::move(work)] {
    work();
    std::erase(alive_, fibers_.running());
    if (lane.kind != os::Lane::Kind::bulk) return;
    Bulk& bulk = bulk_[lane.host];
    --bulk.running;
    if (bulk.waiting.empty()) return;
    std::function<void()> next = std::move(bulk.waiting.front());
    bulk.waiting.pop_front();
    run(lane, std::move(next));
  });
  alive_.push_back(fiber);
  event(Duration::zero(), [fiber] { fiber->resume(); });
}

bool SimExecutor::wait_until(BootTime deadline) {
  const std::shared_ptr<Fiber> self = fiber();
  const Duration left = deadline - clock().boot();
  if (left <= Duration::zero()) return false;
  event(left, [weak = std::weak_ptr<Fiber>(self), wait = self->next_wait()] {
    if (const auto fiber = weak.lock()) fiber->wake(wait);
  });
  self->wait();
  return clock().boot() < deadline;
}

void SimExecutor::pause(Duration time) {
  const BootTime end = clock().boot() + time;
  while (wait_until(end)) {
  }
}

void SimExecutor::kill() {
  for (const auto& fiber : std::exchange(alive_, {})) fiber->kill();
  bulk_.clear();
}

}  // namespace gridctl::sim
