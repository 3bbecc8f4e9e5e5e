// SPDX-License-Identifier: Apache-2.0
// The researcher's side: what is kept of each invitation, the relay, and calls through it to the lent machine.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "os/clock.hpp"
#include "os/files.hpp"
#include "ssh/channel.hpp"

namespace gridctl::lend {

inline constexpr std::string_view k_scheme = "lent:";  // the address of such a provider is this and the id

// lent/ID.json in the state directory, for its owner's eyes only.
struct Invitation {
  std::string id;
  Digest secret{};
  WallTime expires;
  std::string relay;  // "[user@]host[:port]" as the researcher's ssh knows it; empty: this machine is the relay
  std::optional<Digest> session{};  // agreed on with the machine in the place of `secret`
};
[[nodiscard]] Result<void> keep_invitation(const os::Path& state, const Invitation& invitation);
[[nodiscard]] Result<Invitation> invitation_of(const os::Path& state, std::string_view address);
// Held by whoever agrees on a session's secret; nullopt: another process does.
[[nodiscard]] Result<std::optional<os::FileLock>> lock_invitation(const os::Path& state, const std::string& id);
void forget_invitation(const os::Path& state, const std::string& id);

// Starts a command on the relay.
using RelayCommand =
    std::function<Result<std::unique_ptr<ssh::Channel>>(const std::string& command, BootTime deadline)>;
// Where the relay is this machine.
[[nodiscard]] RelayCommand relay_here(os::Clock& clock);

// Lets the lent machine log in to the relay. `program`: the agent on the relay, for its shell.
[[nodiscard]] Result<void> open_relay(const RelayCommand& relay, const std::string& program,
                                      const Invitation& invitation, BootTime deadline, os::Clock& clock);
[[nodiscard]] Result<void> close_relay(const RelayCommand& relay, const std::string& id, BootTime deadline,
                                       os::Clock& clock);
// A sealed connection to an agent of the lent machine. host_unreachable: it is not there, in words.
[[nodiscard]] Result<std::unique_ptr<ssh::Channel>> call(const RelayCommand& relay, const Invitation& invitation,
                                                         BootTime deadline, os::Clock& clock);

}  // namespace gridctl::lend
