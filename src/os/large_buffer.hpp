// SPDX-License-Identifier: Apache-2.0
// Provides memory of some MiB that is used again and again.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

namespace gridctl::os {

// Asks for pages of 2 MiB: with small pages, the first use of such a buffer costs as much as processing it once.
class LargeBuffer {
 public:
  // Returns `size` bytes that still begin with their last content, valid until the next call. Throws std::bad_alloc.
  [[nodiscard]] std::span<std::byte> take(std::size_t size);

 private:
  static constexpr std::align_val_t k_page{2 << 20};  // bytes
  struct Free {
    void operator()(std::byte* memory) const { ::operator delete(memory, k_page); }
  };
  std::unique_ptr<std::byte, Free> memory_;
  std::size_t capacity_ = 0;
};

}  // namespace gridctl::os
