// SPDX-License-Identifier: Apache-2.0
// Runs several blocking tasks at once and takes the results that are ready in time. A task that never returns (a tool
// stuck in the kernel cannot be killed) is left behind, so tasks must own everything that they use.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

#include "base/time.hpp"
#include "os/clock.hpp"
#include "os/mutex.hpp"

namespace gridctl::probe {

// Returns one element per task, in order; nullopt = not ready within `within`.
template <class T>
[[nodiscard]] std::vector<std::optional<T>> gather(std::vector<std::function<T()>> works, Duration within) {
  struct Shared {
    os::Mutex mutex;
    os::Condition done;
    std::vector<std::optional<T>> results GRIDCTL_GUARDED_BY(mutex);
    std::size_t open GRIDCTL_GUARDED_BY(mutex);
    explicit Shared(std::size_t count) : results(count), open(count) {}
  };
  auto shared = std::make_shared<Shared>(works.size());
  std::vector<std::thread> threads(works.size());
  for (std::size_t i = 0; i < works.size(); ++i) {
    auto task = [shared, i, work = std::move(works[i])] {
      T result = work();
      const os::MutexLock lock(shared->mutex);
      shared->results[i] = std::move(result);
      --shared->open;
      shared->done.notify_all();
    };
    try {
      threads[i] = std::thread(task);
    } catch (const std::system_error&) {
      task();  // no thread to be had (process limit): one after the other still answers
    }
  }
  const os::Clock& clock = os::system_clock();
  const BootTime until = clock.boot() + within;
  std::vector<std::optional<T>> results;
  {
    const os::MutexLock lock(shared->mutex);
    for (Duration left = within; shared->open != 0 && left > Duration::zero(); left = until - clock.boot())
      shared->done.wait_for(shared->mutex, left);
    results = shared->results;
  }
  // A thread that has its result is joined: the per-thread data of libraries must be gone before we may exit.
  for (std::size_t i = 0; i < threads.size(); ++i) {
    if (!threads[i].joinable()) continue;
    if (results[i]) threads[i].join();
    else threads[i].detach();
  }
  return results;
}

}  // namespace gridctl::probe
