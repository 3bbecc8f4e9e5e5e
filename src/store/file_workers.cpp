// SPDX-License-Identifier: Apache-2.0
#include "store/file_workers.hpp"

#include <algorithm>
#include <condition_variable>
#include <list>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

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

  // One thread's part: until nothing is left to do and nobody could bring more.
  void serve() {
    os::LargeBuffer buffer;
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return error_ || has_work() || busy_ == 0; });
      if (error_ || !has_work()) return;
      ++busy_;
      step(lock, buffer);
      --busy_;
      changed_.notify_all();
    }
  }
  [[nodiscard]] Result<void> outcome() const { return error_ ? Result<void>(*error_) : Result<void>(); }

 private:
  using Place = std::list<SharedFile>::iterator;
  Place unfinished() {
    return std::find_if(shared_.begin(), shared_.end(),
                        [](const SharedFile& file) { return file.begun < file.chunks; });
  }
  [[nodiscard]] bool has_work() { return next_file_ < files_ || unfinished() != shared_.end(); }

  // Called and left with the lock held; works without.
  void step(std::unique_lock<std::mutex>& lock, os::LargeBuffer& buffer) {
    const Place file = unfinished();
    Result<void> done = file == shared_.end() ? begin(lock, buffer) : help(lock, file, buffer);
    if (!lock.owns_lock()) lock.lock();
    if (!done && !error_) error_ = std::move(done).error();
  }

  Result<void> begin(std::unique_lock<std::mutex>& lock, os::LargeBuffer& buffer) {
    const std::size_t number = next_file_++;
    lock.unlock();
    return go_on(lock, open_(number), buffer);
  }

  Result<void> help(std::unique_lock<std::mutex>& lock, Place file, os::LargeBuffer& buffer) {
    const std::size_t first = file->begun, left = file->chunks - first;
    const std::size_t count = left > threads_ ? std::min(left, k_chunks_at_once) : 1;
    file->begun += count;
    lock.unlock();
    TRY(file->work->work(first, count, buffer));
    lock.lock();
    file->done += count;
    if (file->done < file->chunks) return {};
    const std::unique_ptr<FileWork> work = std::move(file->work);
    shared_.erase(file);
    lock.unlock();
    return go_on(lock, work->finish(), buffer);
  }

  // What is small is done here and now, what is large is shared.
  Result<void> go_on(std::unique_lock<std::mutex>& lock, Result<std::unique_ptr<FileWork>> opened,
                     os::LargeBuffer& buffer) {
    for (;;) {
      TRY_ASSIGN(std::unique_ptr<FileWork> work, std::move(opened));
      if (work == nullptr) return {};
      const std::size_t chunks = work->chunks();
      if (chunks > 1) {
        lock.lock();
        shared_.push_back({std::move(work), chunks, 0, 0});
        return {};
      }
      if (chunks == 1) TRY(work->work(0, 1, buffer));
      opened = work->finish();
    }
  }

  const std::size_t files_;
  const unsigned threads_;
  const OpenFile& open_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t next_file_ = 0;
  unsigned busy_ = 0;
  std::list<SharedFile> shared_;
  std::optional<Error> error_;
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
