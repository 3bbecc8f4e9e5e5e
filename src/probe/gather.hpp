// SPDX-License-Identifier: Apache-2.0
// Runs several blocking works at once and takes what is ready in time. A work that never returns (a tool stuck in the
// kernel cannot be killed) is left behind, so works must own all they use.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

#include "base/time.hpp"

namespace gridctl::probe {

// One element per work, in order; nullopt = not ready within `within`.
template <class T>
[[nodiscard]] std::vector<std::optional<T>> gather(std::vector<std::function<T()>> works, Duration within) {
  struct Shared {
    std::mutex mutex;
    std::condition_variable done;
    std::vector<std::optional<T>> results;
    std::size_t open = 0;
  };
  auto shared = std::make_shared<Shared>();
  shared->results.resize(works.size());
  shared->open = works.size();
  std::vector<std::thread> threads(works.size());
  for (std::size_t i = 0; i < works.size(); ++i) {
    auto task = [shared, i, work = std::move(works[i])] {
      T result = work();
      const std::lock_guard lock(shared->mutex);
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
  std::unique_lock lock(shared->mutex);
  shared->done.wait_for(lock, within, [&] { return shared->open == 0; });
  auto results = shared->results;
  lock.unlock();
  // One that has its result is waited for to its end: what libraries keep for each thread is gone before we may exit.
  for (std::size_t i = 0; i < threads.size(); ++i) {
    if (!threads[i].joinable()) continue;
    if (results[i]) threads[i].join();
    else threads[i].detach();
  }
  return results;
}

}  // namespace gridctl::probe
