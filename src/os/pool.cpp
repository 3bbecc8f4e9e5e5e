// SPDX-License-Identifier: Apache-2.0
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "os/loop.hpp"

namespace gridctl::os {

struct Pool::State {
  mutable std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> queue;
  bool closing = false;
  std::vector<std::thread> threads;

  void serve() {
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [this] { return closing || !queue.empty(); });
      if (closing) return;
      std::function<void()> work = std::move(queue.front());
      queue.pop_front();
      lock.unlock();
      work();
      work = nullptr;  // what it captured ends before the lock is taken: its destructor may submit
      lock.lock();
    }
  }
};

Pool::Pool(unsigned threads) : state_(std::make_unique<State>()) {
  GRIDCTL_CHECK(threads > 0);
  for (unsigned i = 0; i < threads; ++i) state_->threads.emplace_back([state = state_.get()] { state->serve(); });
}

Pool::~Pool() {
  std::deque<std::function<void()>> dropped;
  {
    const std::lock_guard lock(state_->mutex);
    state_->closing = true;
    dropped.swap(state_->queue);
  }
  state_->changed.notify_all();
  for (std::thread& thread : state_->threads) thread.join();
}

void Pool::submit(std::function<void()> work) {
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->closing) return;
    state_->queue.push_back(std::move(work));
  }
  state_->changed.notify_one();
}

std::size_t Pool::pending() const {
  const std::lock_guard lock(state_->mutex);
  return state_->queue.size();
}

}  // namespace gridctl::os
