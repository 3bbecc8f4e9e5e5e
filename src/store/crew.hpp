// SPDX-License-Identifier: Apache-2.0
// Files and their chunks on several threads: large files are shared chunk by chunk, small ones are taken whole. Memory
// is one chunk's work for each thread, whatever there is to do.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "base/bytes.hpp"
#include "base/result.hpp"

namespace gridctl::store {

// One open file. chunk() is called once for each of 0..chunks()-1, by several threads at once; finish() after the last.
class FileWork {
 public:
  virtual ~FileWork() = default;
  [[nodiscard]] virtual std::size_t chunks() const = 0;
  // `buffer` is the thread's own, with whatever was last in it.
  [[nodiscard]] virtual Result<void> chunk(std::size_t number, Bytes& buffer) = 0;
  // Null, or what is to be done anew in its place.
  [[nodiscard]] virtual Result<std::unique_ptr<FileWork>> finish() = 0;
};

// Opens file `number`; null when there is nothing to do for it.
using OpenFile = std::function<Result<std::unique_ptr<FileWork>>(std::size_t number)>;

// Stops at the first error, which it returns. With one thread everything happens in order, in the caller's.
[[nodiscard]] Result<void> work_on_files(std::size_t files, unsigned threads, const OpenFile& open);

// As many threads as there are processors that we may use, at most `most`.
[[nodiscard]] unsigned threads_here(unsigned most = 16);

}  // namespace gridctl::store
