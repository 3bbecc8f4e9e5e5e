// SPDX-License-Identifier: Apache-2.0
#include "os/host_pool.hpp"

#include <cstdint>
#include <deque>
#include <map>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "os/mutex.hpp"

namespace gridctl::os {

struct HostPool::State {
  struct Host {
    std::deque<std::function<void()>> waiting;
    unsigned running = 0;
    std::uint64_t served = 0;  // when it was last served: the order of turns
  };
  using Turn = std::map<std::string, Host>::iterator;

  mutable Mutex mutex;
  Condition changed;
  std::map<std::string, Host> hosts GRIDCTL_GUARDED_BY(mutex);  // that have work
  std::vector<std::thread> threads GRIDCTL_GUARDED_BY(mutex);
  unsigned threads_max = 0, per_host_max = 0;
  std::size_t idle GRIDCTL_GUARDED_BY(mutex) = 0, pending GRIDCTL_GUARDED_BY(mutex) = 0;
  std::uint64_t turns GRIDCTL_GUARDED_BY(mutex) = 0;
  bool closing GRIDCTL_GUARDED_BY(mutex) = false;

  // Returns the host with the fewest threads, and among several the one that was served longest ago.
  Turn next() GRIDCTL_REQUIRES(mutex) {
    Turn best = hosts.end();
    for (auto host = hosts.begin(); host != hosts.end(); ++host) {
      const Host& one = host->second;
      if (one.waiting.empty() || one.running >= per_host_max) continue;
      if (best == hosts.end() ||
          std::pair(one.running, one.served) < std::pair(best->second.running, best->second.served))
        best = host;
    }
    return best;
  }

  void start_thread() GRIDCTL_REQUIRES(mutex) {
    try {
      threads.emplace_back([this] { serve(); });
    } catch (const std::system_error&) {
      if (threads.empty()) throw;  // else the work waits for those that there are
    }
  }

  void serve() {
    const MutexLock lock(mutex);
    for (;;) {
      Turn turn = hosts.end();
      ++idle;
      while (!closing && (turn = next()) == hosts.end()) changed.wait(mutex);
      --idle;
      if (closing) return;
      std::function<void()> work = std::move(turn->second.waiting.front());
      turn->second.waiting.pop_front();
      --pending;
      ++turn->second.running;
      turn->second.served = ++turns;
      {
        const MutexUnlock meanwhile(mutex);
        work();
        work = nullptr;  // what it captured ends before the lock is taken: its destructor may submit
      }
      if (--turn->second.running == 0 && turn->second.waiting.empty()) hosts.erase(turn);
      changed.notify_one();  // the host may have more that waited for this thread
    }
  }
};

HostPool::HostPool(unsigned threads_max, unsigned per_host_max) : state_(std::make_unique<State>()) {
  state_->threads_max = threads_max;
  state_->per_host_max = per_host_max;
}

HostPool::~HostPool() {
  std::vector<std::deque<std::function<void()>>> dropped;
  std::vector<std::thread> threads;
  {
    const MutexLock lock(state_->mutex);
    state_->closing = true;
    for (auto& [name, host] : state_->hosts) dropped.push_back(std::exchange(host.waiting, {}));
    threads.swap(state_->threads);
  }
  state_->changed.notify_all();
  for (std::thread& thread : threads) thread.join();
}

void HostPool::submit(const std::string& host, std::function<void()> work) {
  {
    const MutexLock lock(state_->mutex);
    if (state_->closing) return;
    state_->hosts[host].waiting.push_back(std::move(work));
    ++state_->pending;
    if (state_->idle < state_->pending && state_->threads.size() < state_->threads_max) state_->start_thread();
  }
  state_->changed.notify_one();
}

std::size_t HostPool::pending() const {
  const MutexLock lock(state_->mutex);
  return state_->pending;
}

}  // namespace gridctl::os
