// SPDX-License-Identifier: Apache-2.0
#include "os/loop.hpp"

#include <uv.h>

#include <deque>

#include "os/mutex.hpp"

namespace gridctl::os {

namespace {
int events_of(Interest interest) { return (interest.read ? UV_READABLE : 0) | (interest.write ? UV_WRITABLE : 0); }

std::uint64_t to_ms(Duration duration) {  // rounded up: a timer never fires early
  return duration.count() <= 0 ? 0 : static_cast<std::uint64_t>((duration.count() + 999'999) / 1'000'000);
}
}  // namespace

// Holds a libuv handle and its callback. Lives until libuv's close callback, whatever happens to the Handle or the
// Loop.
struct UvHandle {
  union {
    uv_handle_t any;
    uv_poll_t poll;
    uv_timer_t timer;
    uv_signal_t signal;
  };
  std::function<void(Interest)> callback;
  bool closing = false;
  bool running = false;  // inside its callback
  std::shared_ptr<UvHandle> self;

  UvHandle() : any{} {}
  UvHandle(const UvHandle&) = delete;
  UvHandle& operator=(const UvHandle&) = delete;
  ~UvHandle() {}

  void call(Interest ready) {
    running = true;
    callback(ready);
    running = false;
    if (closing) callback = nullptr;
  }
  void close() {
    if (closing) return;
    closing = true;
    uv_close(&any, [](uv_handle_t* handle) { of(handle)->self.reset(); });
    // Keeps the callback while it runs, because its captures are still in use.
    if (!running) callback = nullptr;
  }
  template <class T>
  static UvHandle* of(T* handle) {
    return static_cast<UvHandle*>(handle->data);
  }
};

class Loop::Handle {
 public:
  explicit Handle(std::shared_ptr<UvHandle> inner_in) : inner(std::move(inner_in)) {}
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() { inner->close(); }
  const std::shared_ptr<UvHandle> inner;
};

struct Loop::State {
  uv_loop_t loop{};
  uv_async_t wake{};
  Mutex mutex;
  std::deque<std::function<void()>> posted GRIDCTL_GUARDED_BY(mutex);

  void run_posted() {
    std::deque<std::function<void()>> batch;  // what is posted meanwhile waits for the next turn: nobody starves
    {
      const MutexLock lock(mutex);
      batch.swap(posted);
    }
    for (std::function<void()>& work : batch) {
      work();
      work = nullptr;
    }
  }

  std::shared_ptr<UvHandle> add(std::function<void(Interest)> callback) {
    auto inner = std::make_shared<UvHandle>();
    inner->callback = std::move(callback);
    return inner;
  }
  // Call it only after uv_*_init has succeeded: from here on, libuv owns a reference.
  Watch adopt(std::shared_ptr<UvHandle> inner) {
    inner->self = inner;
    return std::make_shared<Handle>(std::move(inner));
  }
};

Loop::Loop() : state_(std::make_unique<State>()) {
  GRIDCTL_CHECK(uv_loop_init(&state_->loop) == 0);
  state_->wake.data = nullptr;
  state_->loop.data = state_.get();
  GRIDCTL_CHECK(uv_async_init(&state_->loop, &state_->wake,
                              [](uv_async_t* handle) { static_cast<State*>(handle->loop->data)->run_posted(); }) == 0);
}

Loop::~Loop() {
  uv_walk(
      &state_->loop,
      [](uv_handle_t* handle, void*) {
        if (handle->data != nullptr) UvHandle::of(handle)->close();
        else if (uv_is_closing(handle) == 0) uv_close(handle, nullptr);
      },
      nullptr);
  while (uv_loop_close(&state_->loop) == UV_EBUSY) uv_run(&state_->loop, UV_RUN_NOWAIT);
}

Loop::Watch Loop::watch(int fd, Interest interest, std::function<void(Interest)> ready) {
  auto inner = state_->add(std::move(ready));
  if (uv_poll_init(&state_->loop, &inner->poll, fd) != 0) return nullptr;
  inner->poll.data = inner.get();
  Watch handle = state_->adopt(std::move(inner));
  change(handle, interest);
  return handle;
}

void Loop::change(const Watch& watch, Interest interest) {
  if (watch == nullptr || watch->inner->closing) return;
  uv_poll_t* poll = &watch->inner->poll;
  if (events_of(interest) == 0) {
    uv_poll_stop(poll);
    return;
  }
  uv_poll_start(poll, events_of(interest), [](uv_poll_t* handle, int status, int events) {
    const bool broken = status < 0;
    UvHandle::of(handle)->call({broken || (events & UV_READABLE) != 0, broken || (events & UV_WRITABLE) != 0});
  });
}

namespace {
void start_timer(uv_loop_t* loop, UvHandle& inner, std::uint64_t first_ms, std::uint64_t repeat_ms) {
  GRIDCTL_CHECK(uv_timer_init(loop, &inner.timer) == 0);
  inner.timer.data = &inner;
  uv_update_time(loop);  // the loop's own idea of now is as old as this turn
  uv_timer_start(
      &inner.timer, [](uv_timer_t* handle) { UvHandle::of(handle)->call({}); }, first_ms, repeat_ms);
}
}  // namespace

Loop::Timer Loop::after(Duration delay, std::function<void()> due) {
  auto inner = state_->add([due = std::move(due)](Interest) { due(); });
  start_timer(&state_->loop, *inner, to_ms(delay), 0);
  return state_->adopt(std::move(inner));
}

Loop::Timer Loop::every(Duration period, std::function<void()> due) {
  GRIDCTL_CHECK(to_ms(period) > 0);
  auto inner = state_->add([due = std::move(due)](Interest) { due(); });
  start_timer(&state_->loop, *inner, to_ms(period), to_ms(period));
  return state_->adopt(std::move(inner));
}

Loop::Watch Loop::on_signal(int signal, std::function<void()> received) {
  auto inner = state_->add([received = std::move(received)](Interest) { received(); });
  GRIDCTL_CHECK(uv_signal_init(&state_->loop, &inner->signal) == 0);
  inner->signal.data = inner.get();
  const int started = uv_signal_start(
      &inner->signal, [](uv_signal_t* handle, int) { UvHandle::of(handle)->call({}); }, signal);
  GRIDCTL_CHECK(started == 0);
  return state_->adopt(std::move(inner));
}

void Loop::post(std::function<void()> work) {
  {
    const MutexLock lock(state_->mutex);
    state_->posted.push_back(std::move(work));
  }
  uv_async_send(&state_->wake);
}

void Loop::run() { uv_run(&state_->loop, UV_RUN_DEFAULT); }

void Loop::stop() { uv_stop(&state_->loop); }

}  // namespace gridctl::os
