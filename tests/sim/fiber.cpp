// SPDX-License-Identifier: Apache-2.0
#include "fiber.hpp"

#include <cstdint>
#include <cstdlib>
#include <utility>

#include "world.hpp"

namespace gridctl::sim {

namespace {
constexpr std::size_t k_stack_bytes = 256 * 1024;  // touched by need only
}

Fibers::~Fibers() {
  for (std::byte* stack : free_) std::free(stack);
}

std::byte* Fibers::take_stack() {
  if (free_.empty()) return static_cast<std::byte*>(std::malloc(k_stack_bytes));
  std::byte* stack = free_.back();
  free_.pop_back();
  return stack;
}

Fiber::~Fiber() {
  if (stack_ != nullptr) fibers_.free_.push_back(stack_);
}

void Fiber::enter(unsigned high, unsigned low) {
  reinterpret_cast<Fiber*>((static_cast<std::uintptr_t>(high) << 32) | low)->run();
}

void Fiber::run() {
  try {
    work_();
  } catch (const Killed&) {
    if (!killed_) thrown_ = std::current_exception();
  } catch (...) {
    thrown_ = std::current_exception();
  }
  ended_ = true;
  swapcontext(&here_, &back_);
}

void Fiber::resume() {
  if (ended_) return;
  const auto self = shared_from_this();
  if (stack_ == nullptr) {
    stack_ = fibers_.take_stack();
    getcontext(&here_);
    here_.uc_stack.ss_sp = stack_;
    here_.uc_stack.ss_size = k_stack_bytes;
    here_.uc_link = nullptr;
    const auto address = reinterpret_cast<std::uintptr_t>(this);
    makecontext(&here_, reinterpret_cast<void (*)()>(enter), 2, static_cast<unsigned>(address >> 32),
                static_cast<unsigned>(address & 0xFFFFFFFFu));
  }
  Fiber* const before = std::exchange(fibers_.running_, this);
  waiting_ = false;
  swapcontext(&back_, &here_);
  fibers_.running_ = before;
  if (!ended_) return;
  work_ = nullptr;
  if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
}

void Fiber::kill() {
  if (ended_) return;
  killed_ = true;
  if (stack_ != nullptr) return resume();
  ended_ = true;
  work_ = nullptr;
}

void Fiber::wait() {
  if (killed_) throw Killed{};
  ++waits_;
  waiting_ = true;
  swapcontext(&here_, &back_);
  if (killed_) throw Killed{};
}

void Fiber::wake(std::uint64_t wait) {
  if (waiting_ && wait == waits_) resume();
}

}  // namespace gridctl::sim
