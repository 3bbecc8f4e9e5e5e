// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "probe/vendor.hpp"

namespace gridctl::probe {

std::span<const VendorPlugin> vendors() {
  static const std::array table{
      k_nvidia,
      k_amd,
      k_intel,
  };
  return table;
}

}  // namespace gridctl::probe
