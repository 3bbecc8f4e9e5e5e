// SPDX-License-Identifier: Apache-2.0
#include "base/check.hpp"

#include <cstdio>
#include <cstdlib>

namespace gridctl {

void check_failed(const char* expression, const char* file, int line) {
  std::fprintf(stderr, "gridctl: internal error: check failed: %s at %s:%d\n", expression, file, line);
  std::abort();
}

}  // namespace gridctl
