// SPDX-License-Identifier: Apache-2.0
// Sends one notification: a command, a POST, or a mail. Blocks for at most half a minute.
#pragma once

#include <optional>
#include <string>

#include "base/time.hpp"
#include "control/daemon/notify_journal.hpp"
#include "os/clock.hpp"

namespace gridctl::control {

inline constexpr Duration k_notify_timeout = std::chrono::seconds{30};

enum class Fate : std::uint8_t {
  sent,
  refused,  // it surely did not arrive, and may when it is sent again
  lost,     // it cannot arrive, or it may have arrived
};
struct Sent {
  Fate fate = Fate::sent;
  std::string why;                  // for people, without the path of a URL
  std::optional<Duration> after{};  // as the receiver asked; foreign
};

// `sendmail`: a path, or empty.
[[nodiscard]] Sent send_notification(const Delivery& delivery, const std::string& sendmail, os::Clock& clock);

}  // namespace gridctl::control
