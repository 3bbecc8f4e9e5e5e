// SPDX-License-Identifier: Apache-2.0
#include "gpubench/device.hpp"

namespace gridctl::gpubench {

Result<std::vector<DeviceFacts>> list_cuda() {
  return make_error(Code::unsupported, "this build has no kernels for CUDA");
}
Result<std::unique_ptr<Device>> open_cuda(std::uint32_t) {
  return make_error(Code::unsupported, "this build has no kernels for CUDA");
}

}  // namespace gridctl::gpubench
