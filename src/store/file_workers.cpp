// SPDX-License-Identifier: Apache-2.0
#include "store/file_workers.hpp"

#include <algorithm>
#include <list>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "os/mutex.hpp"

namespace gridctl::store {
namespace {

struct SharedFile {
  std::unique_ptr<FileWork> work;
  std::size_t chunks = 0, begun = 0, done = 0;
};

class FileWorkers {
 public:
  FileWorkers(std::size_t files, unsigned threads, const OpenFile& open)
      : files_(files), threads_(threads), open_(open) {}

  // Runs one thread's part: until nothing is left to do and no other thread could bring more.
  void serve() {
    os::LargeBuffer buffer;
    const os::MutexLock lock(mutex_);
    for (;;) {
      while (!error_ && !has_work() && busy_ != 0) changed_.wait(mutex_);
      if (error_ || !has_work()) return;
      ++busy_;
      step(buffer);
      --busy_;
      changed_.notify_all();
    }
  }
  [[nodiscard]] Result<void> outcome() const {
    const os::MutexLock lock(mutex_);
    return error_ ? Result<void>(*error_) : Result<void>();
  }

 private:
  using Place = std::list<SharedFile>::iterator;
  Place unfinished() GRIDCTL_REQUIRES(mutex_) {
    return std::ranges::find_if(shared_, [](const SharedFile& file) { return file.begun < file.chunks; });
  }
  [[nodiscard]] bool has_work() GRIDCTL_REQUIRES(mutex_) {
    return next_file_ < files_ || unfinished() != shared_.end();
  }

  // Works without the lock.
  void step(os::LargeBuffer& buffer) GRIDCTL_REQUIRES(mutex_) {
    const Place file = unfinished();
    Result<void> done = file == shared_.end() ? begin(buffer) : help(file, buffer);
    if (!done && !error_) error_ = std::move(done).error();
  }

  Result<void> begin(os::LargeBuffer& buffer) GRIDCTL_REQUIRES(mutex_) {
    const std::size_t number = next_file_++;
    Result<std::unique_ptr<FileWork>> large = std::unique_ptr<FileWork>();
    {
      const os::MutexUnlock meanwhile(mutex_);
      large = go_on(open_(number), buffer);
    }
    return share(std::move(large));
  }

  Result<void> help(Place file, os::LargeBuffer& buffer) GRIDCTL_REQUIRES(mutex_) {
    const std::size_t first = file->begun, left = file->chunks - first;
    const std::size_t count = left > threads_ ? std::min(left, k_chunks_at_once) : 1;
    file->begun += count;
    Result<void> worked;
    {
      const os::MutexUnlock meanwhile(mutex_);
      worked = file->work->work(first, count, buffer);
    }
    if (!worked) return worked;
    file->done += count;
    if (file->done < file->chunks) return {};
    std::unique_ptr<FileWork> work = std::move(file->work);
    shared_.erase(file);
    Result<std::unique_ptr<FileWork>> large = std::unique_ptr<FileWork>();
    {
      const os::MutexUnlock meanwhile(mutex_);
      large = go_on(work->finish(), buffer);
      work = nullptr;
    }
    return share(std::move(large));
  }

  // Finishes a small file at once; returns a large one to be shared; null: nothing is left.
  static Result<std::unique_ptr<FileWork>> go_on(Result<std::unique_ptr<FileWork>> opened, os::LargeBuffer& buffer) {
    for (;;) {
      TRY_ASSIGN(std::unique_ptr<FileWork> work, std::move(opened));
      if (work == nullptr || work->chunks() > 1) return work;
      if (work->chunks() == 1) TRY(work->work(0, 1, buffer));
      opened = work->finish();
    }
  }

  Result<void> share(Result<std::unique_ptr<FileWork>> large) GRIDCTL_REQUIRES(mutex_) {
    TRY_ASSIGN(std::unique_ptr<FileWork> work, std::move(large));
    if (work == nullptr) return {};
    const std::size_t chunks = work->chunks();
    shared_.push_back({std::move(work), chunks, 0, 0});
    return {};
  }

  const std::size_t files_;
  const unsigned threads_;
  const OpenFile& open_;
  mutable os::Mutex mutex_;
  os::Condition changed_;
  std::size_t next_file_ GRIDCTL_GUARDED_BY(mutex_) = 0;
  unsigned busy_ GRIDCTL_GUARDED_BY(mutex_) = 0;
  std::list<SharedFile> shared_ GRIDCTL_GUARDED_BY(mutex_);
  std::optional<Error> error_ GRIDCTL_GUARDED_BY(mutex_);
};

}  // namespace

Result<void> work_on_files(std::size_t files, unsigned threads, const OpenFile& open) {
  FileWorkers workers(files, threads, open);
  std::vector<std::thread> helpers;
  for (unsigned i = 1; i < threads && files > 0; ++i) helpers.emplace_back([&workers] { workers.serve(); });
  workers.serve();
  for (std::thread& helper : helpers) helper.join();
  return workers.outcome();
}

unsigned threads_here(unsigned most) { return std::clamp(std::thread::hardware_concurrency(), 1u, most); }

}  // namespace gridctl::store
