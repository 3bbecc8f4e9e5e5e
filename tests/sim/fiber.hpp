// SPDX-License-Identifier: Apache-2.0
// Blocking work in one thread: a fiber runs until it waits, and goes on when the world's event says so. The process
// that it belongs to may be killed meanwhile; then Killed is thrown where it waits.
#pragma once

#include <ucontext.h>

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <vector>

namespace gridctl::sim {

class Fibers;

class Fiber : public std::enable_shared_from_this<Fiber> {
 public:
  Fiber(Fibers& fibers, std::function<void()> work) : fibers_(fibers), work_(std::move(work)) {}
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // From outside: runs it until it waits or ends. What it throws comes out here, but for Killed of its own kill().
  void resume();
  // Throws Killed where it waits, and lets it unwind. One that never ran just ends.
  void kill();
  // From inside: gives way. A later wake() with the number that this wait has goes on.
  void wait();
  [[nodiscard]] std::uint64_t next_wait() const { return waits_ + 1; }
  // Goes on when it is still in that wait.
  void wake(std::uint64_t wait);
  [[nodiscard]] bool ended() const { return ended_; }

 private:
  friend class Fibers;
  static void enter(unsigned high, unsigned low);
  void run();

  Fibers& fibers_;
  std::function<void()> work_;
  std::byte* stack_ = nullptr;
  ucontext_t here_{}, back_{};
  std::exception_ptr thrown_;
  std::uint64_t waits_ = 0;
  bool waiting_ = false, killed_ = false, ended_ = false;
};

// Their stacks, used again; and which one runs.
class Fibers {
 public:
  Fibers() = default;
  ~Fibers();
  Fibers(const Fibers&) = delete;
  Fibers& operator=(const Fibers&) = delete;
  [[nodiscard]] std::shared_ptr<Fiber> running() const { return running_ == nullptr ? nullptr : running_->shared_from_this(); }

 private:
  friend class Fiber;
  [[nodiscard]] std::byte* take_stack();
  std::vector<std::byte*> free_;
  Fiber* running_ = nullptr;
};

}  // namespace gridctl::sim
