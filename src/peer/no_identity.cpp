// SPDX-License-Identifier: Apache-2.0
// For machines that libsodium is not installed for.
#include "peer/identity.hpp"

namespace gridctl::peer {

Identity::Identity(const Digest& seed) { (void)seed; }

Result<Identity> Identity::open(const os::Path& file) {
  return make_error(Code::unsupported, "this agent was built without libsodium, and makes no key in " + file.string());
}

std::array<std::byte, 64> Identity::sign(ByteView message) const {
  (void)message;
  return secret_;
}

}  // namespace gridctl::peer
