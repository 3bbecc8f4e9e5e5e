// SPDX-License-Identifier: Apache-2.0
#include "os/large_buffer.hpp"

#include <sys/mman.h>

namespace gridctl::os {

std::span<std::byte> LargeBuffer::take(std::size_t size) {
  if (size > capacity_) {
    constexpr auto k_unit = static_cast<std::size_t>(k_page);
    const std::size_t wanted = (size + k_unit - 1) / k_unit * k_unit;
    capacity_ = 0;
    memory_.reset();
    memory_.reset(static_cast<std::byte*>(::operator new(wanted, k_page)));
    capacity_ = wanted;
#ifdef MADV_HUGEPAGE
    ::madvise(memory_.get(), wanted, MADV_HUGEPAGE);  // where there are none it fails, and nothing is lost
#endif
  }
  return {memory_.get(), size};
}

}  // namespace gridctl::os
