// SPDX-License-Identifier: Apache-2.0
// Files and their chunks on several threads: large files are shared chunk by chunk, small ones are taken whole. A
// thread does all of a chunk, from reading to writing, so that it stays in one core's cache. Memory is one chunk's work
// for each thread, whatever there is to do.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "base/result.hpp"
#include "os/large_buffer.hpp"

namespace gridctl::store {

inline constexpr std::size_t k_chunks_at_once = 2;  // neighbours that one thread takes when there are enough for all

// One open file. work() gets each of 0..chunks()-1 once, by several threads at once; finish() comes after the last.
class FileWork {
 public:
  virtual ~FileWork() = default;
  [[nodiscard]] virtual std::size_t chunks() const = 0;
  // `count`: 1..k_chunks_at_once. `buffer` is the thread's own.
  [[nodiscard]] virtual Result<void> work(std::size_t first, std::size_t count, os::LargeBuffer& buffer) = 0;
  // Null, or what is to be done anew in its place.
  [[nodiscard]] virtual Result<std::unique_ptr<FileWork>> finish() = 0;
};

// Opens file `number`; null when there is nothing to do for it.
using OpenFile = std::function<Result<std::unique_ptr<FileWork>>(std::size_t number)>;

// Stops at the first error, which it returns. With one thread everything happens in order, in the caller's.
[[nodiscard]] Result<void> work_on_files(std::size_t files, unsigned threads, const OpenFile& open);

// As many threads as there are processors, at most `most`. Each of them needs some 26 MiB to encode chunks.
[[nodiscard]] unsigned threads_here(unsigned most = 8);

}  // namespace gridctl::store
