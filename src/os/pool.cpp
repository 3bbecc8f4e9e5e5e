// SPDX-License-Identifier: Apache-2.0
#include <deque>
#include <thread>
#include <vector>

#include "os/loop.hpp"
#include "os/mutex.hpp"

namespace gridctl::os {

struct Pool::State {
  mutable Mutex mutex;
  Condition changed;
  std::deque<std::function<void()>> queue GRIDCTL_GUARDED_BY(mutex);
  bool closing GRIDCTL_GUARDED_BY(mutex) = false;
  std::vector<std::thread> threads;

  void serve() {
    const MutexLock lock(mutex);
    for (;;) {
      while (!closing && queue.empty()) changed.wait(mutex);
      if (closing) return;
      std::function<void()> work = std::move(queue.front());
      queue.pop_front();
      const MutexUnlock meanwhile(mutex);
      work();
      work = nullptr;  // what it captured ends before the lock is taken: its destructor may submit
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
    const MutexLock lock(state_->mutex);
    state_->closing = true;
    dropped.swap(state_->queue);
  }
  state_->changed.notify_all();
  for (std::thread& thread : state_->threads) thread.join();
}

void Pool::submit(std::function<void()> work) {
  {
    const MutexLock lock(state_->mutex);
    if (state_->closing) return;
    state_->queue.push_back(std::move(work));
  }
  state_->changed.notify_one();
}

std::size_t Pool::pending() const {
  const MutexLock lock(state_->mutex);
  return state_->queue.size();
}

}  // namespace gridctl::os
