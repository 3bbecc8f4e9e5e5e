// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "ssh/channel.hpp"
#include "ssh/libssh2_session.hpp"

namespace gridctl::ssh {

// Takes over a session in which `channel` runs its command.
[[nodiscard]] std::unique_ptr<Channel> make_libssh2_channel(std::unique_ptr<Session> session, LIBSSH2_CHANNEL* channel,
                                                            std::string peer);

}  // namespace gridctl::ssh
