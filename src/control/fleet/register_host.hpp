// SPDX-License-Identifier: Apache-2.0
// How a host becomes a provider: prove who it is, log in, install the agent, take its inventory, judge it.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "control/reach/deploy.hpp"
#include "control/reach/paths.hpp"
#include "os/clock.hpp"
#include "probe/preflight.hpp"
#include "registry/records.hpp"
#include "ssh/target.hpp"

namespace gridctl::control {

struct EnrollRequest {
  registry::Provider provider;  // name and what its owner says; the rest is found out
  std::string address;          // "[ssh://][user@]host[:port]", or a name of the user's ssh configuration
  std::string host_key;         // "SHA256:…" that the user expects; empty = not given
  // Shows the keys to a person and returns true when they shall be trusted. Empty: nobody is there to ask.
  std::function<bool(const std::string& peer, std::span<const ssh::HostKey> keys)> ask;
  std::vector<registry::Provider> others;  // those registered already: none of them may be the same machine
  bool force = false;                      // also when it shows the host key of another: cloned with its keys
  std::string accept_command;    // for the hint of an unknown key; "HOST_KEY" in it is replaced by the fingerprint
  UploadProgress progress = {};  // of putting the agent there
};

struct Examined {
  registry::Provider provider;  // complete: address, transport, inventory, last_seen_at
  std::vector<probe::Finding> findings;
  HostName shares_machine_with;  // another provider on the same kernel, behind an SSH server of its own; may be empty
};

// Decides which host keys are trusted and pins them. Rules: a key given must be among those the host shows (then it
// alone is pinned, also in place of a former one); a host known already must show a pinned key; of an unknown one the
// key that the user's own ssh recognises is pinned, else it needs a person's word. Everything else is host_key_mismatch
// and pins nothing. Returns the keys that the host shows.
[[nodiscard]] Result<std::vector<ssh::HostKey>> trust_host(const ssh::Target& target, const EnrollRequest& request,
                                                           BootTime deadline, os::Clock& clock);

// Connects with the pinned key, installs the agent when it is not there, takes the inventory and judges it.
[[nodiscard]] Result<Examined> examine(registry::Provider provider, const Paths& paths, const ControllerId& controller,
                                       BootTime deadline, os::Clock& clock, const UploadProgress& progress = {});

// Pins this key of a registered host's instead of the former one. Rules as above.
[[nodiscard]] Result<void> pin_again(const registry::Provider& provider, const std::string& host_key,
                                     const Paths& paths, BootTime deadline, os::Clock& clock);

// Which of the others is the machine that showed `keys` and gave `found` as its inventory. A machine is known by its
// host key. Another key on the same kernel (machine id and boot id agree) is another SSH server on one machine:
// allowed, its room is counted once (room.hpp). The same machine id alone says nothing: images are cloned with it.
struct Twin {
  enum class Kind : std::uint8_t { none, same_key, same_kernel } kind = Kind::none;
  registry::Provider provider;
};
[[nodiscard]] Result<Twin> find_twin(const Inventory& found, std::span<const ssh::HostKey> keys,
                                     const std::vector<registry::Provider>& others, const Paths& paths);

// All of it, for a new host. Nothing is recorded; when the host cannot be used for want of a login, its newly pinned
// key stays pinned.
[[nodiscard]] Result<Examined> enroll(const EnrollRequest& request, const Paths& paths, const ControllerId& controller,
                                      BootTime deadline, os::Clock& clock);

}  // namespace gridctl::control
