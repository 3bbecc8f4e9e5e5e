// SPDX-License-Identifier: Apache-2.0
// Defines the library's mutex and condition, with the annotations for clang's analysis: base/thread_annotations.hpp.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "base/thread_annotations.hpp"

namespace gridctl::os {

class GRIDCTL_CAPABILITY("mutex") Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;
  void lock() GRIDCTL_ACQUIRE() { mutex_.lock(); }
  void unlock() GRIDCTL_RELEASE() { mutex_.unlock(); }
  // Makes the analysis believe that the mutex is held, for lambdas that run with it held. It does nothing.
  void assert_held() const GRIDCTL_ASSERT_CAPABILITY(this) {}

 private:
  friend class Condition;
  std::mutex mutex_;
};

// Holds the mutex for its lifetime.
class GRIDCTL_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) GRIDCTL_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() GRIDCTL_RELEASE() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

// Releases a held mutex for its lifetime, for long work in between.
class GRIDCTL_SCOPED_CAPABILITY MutexUnlock {
 public:
  explicit MutexUnlock(Mutex& mutex) GRIDCTL_RELEASE(mutex) : mutex_(mutex) { mutex_.unlock(); }
  ~MutexUnlock() GRIDCTL_RELEASE() { mutex_.lock(); }  // RELEASE: undoes what the constructor did
  MutexUnlock(const MutexUnlock&) = delete;
  MutexUnlock& operator=(const MutexUnlock&) = delete;

 private:
  Mutex& mutex_;
};

// Waits release the mutex and hold it again when they return. They may return for no reason, so wait in a loop.
class Condition {
 public:
  void notify_one() noexcept { condition_.notify_one(); }
  void notify_all() noexcept { condition_.notify_all(); }
  void wait(Mutex& mutex) GRIDCTL_REQUIRES(mutex) {
    std::unique_lock<std::mutex> held(mutex.mutex_, std::adopt_lock);
    condition_.wait(held);
    held.release();
  }
  // Returns false at that time.
  bool wait_until(Mutex& mutex, std::chrono::steady_clock::time_point time) GRIDCTL_REQUIRES(mutex) {
    std::unique_lock<std::mutex> held(mutex.mutex_, std::adopt_lock);
    const std::cv_status status = condition_.wait_until(held, time);
    held.release();
    return status == std::cv_status::no_timeout;
  }
  template <class Rep, class Period>
  bool wait_for(Mutex& mutex, std::chrono::duration<Rep, Period> time) GRIDCTL_REQUIRES(mutex) {
    return wait_until(mutex, std::chrono::steady_clock::now() +
                                 std::chrono::duration_cast<std::chrono::steady_clock::duration>(time));
  }

 private:
  std::condition_variable condition_;
};

}  // namespace gridctl::os
