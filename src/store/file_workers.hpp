// SPDX-License-Identifier: Apache-2.0
// Processes files and their chunks on several threads: large files are shared chunk by chunk, small ones are taken
// complete. A thread does everything for a chunk, from reading to writing, so that it stays in one core's cache. Memory
// is one chunk's work for each thread, however many files there are.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "base/result.hpp"
#include "os/large_buffer.hpp"

namespace gridctl::store {

inline constexpr std::size_t k_chunks_at_once = 2;  // neighbours that one thread takes when there are enough for all

// Represents one open file. work() gets each of 0..chunks()-1 once, from several threads at once; finish() comes after
// the last.
class FileWork {
 public:
  virtual ~FileWork() = default;
  [[nodiscard]] virtual std::size_t chunks() const = 0;
  // `count`: 1..k_chunks_at_once. `buffer` is the thread's own.
  [[nodiscard]] virtual Result<void> work(std::size_t first, std::size_t count, os::LargeBuffer& buffer) = 0;
  // Returns null, or a file to process again instead.
  [[nodiscard]] virtual Result<std::unique_ptr<FileWork>> finish() = 0;
};

// Opens file `number`; null if there is nothing to do for it.
using OpenFile = std::function<Result<std::unique_ptr<FileWork>>(std::size_t number)>;

// Stops at the first error, and returns it. With one thread, everything happens in order on the caller's thread.
[[nodiscard]] Result<void> work_on_files(std::size_t files, unsigned threads, const OpenFile& open);

// Returns the number of processors, at most `most`. Each thread needs some 26 MiB to encode chunks.
[[nodiscard]] unsigned threads_here(unsigned most = 8);

}  // namespace gridctl::store
