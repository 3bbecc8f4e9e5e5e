// SPDX-License-Identifier: Apache-2.0
#include "control/reach/image_registries.hpp"

#include "images/ask_digest.hpp"
#include "os/clock.hpp"

namespace gridctl::control {

Result<std::string> HttpImageRegistries::digest_of(const job::ImageReference& image) {
  return images::ask_digest(image, k_registry_wait, os::system_clock());
}

}  // namespace gridctl::control
