// SPDX-License-Identifier: Apache-2.0
// The SSH host keys of providers: which are trusted, and their pins.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "control/reach/paths.hpp"
#include "os/clock.hpp"
#include "registry/records.hpp"
#include "ssh/target.hpp"

namespace gridctl::control {

struct TrustRequest {
  std::string host_key;  // "SHA256:…" that the user expects; empty = not given
  // Shows the keys to a person and returns true when they shall be trusted. Empty: nobody is there to ask.
  std::function<bool(const std::string& peer, std::span<const ssh::HostKey> keys)> ask;
  std::string accept_command;  // for the hint of an unknown key; "HOST_KEY" in it is replaced by the fingerprint
};

// Decides which host keys are trusted and pins them. Rules: a key given must be among those the host shows (then it
// alone is pinned, also in place of a former one); a host known already must show a pinned key; of an unknown one the
// key that the user's own ssh recognises is pinned, else it needs a person's word. Everything else is host_key_mismatch
// and pins nothing. Returns the keys that the host shows.
[[nodiscard]] Result<std::vector<ssh::HostKey>> trust_host(const ssh::Target& target, const TrustRequest& request,
                                                           BootTime deadline, os::Clock& clock);
// Does so for a provider that is to be registered. `provider` of the result also says where its address leads.
struct Trusted {
  registry::Provider provider;
  std::vector<ssh::HostKey> keys;
};
[[nodiscard]] Result<Trusted> trust_provider(registry::Provider provider, const TrustRequest& request,
                                             const Paths& paths, BootTime deadline, os::Clock& clock);
// Pins this key of a registered host's instead of the former one. Rules as above.
[[nodiscard]] Result<void> pin_again(const registry::Provider& provider, const std::string& host_key,
                                     const Paths& paths, BootTime deadline, os::Clock& clock);
// nullopt: there is no telling, as a key file of its login is gone, or nobody logs in there.
[[nodiscard]] Result<std::optional<std::vector<ssh::HostKey>>> pins_of(const registry::Provider& provider,
                                                                       const Paths& paths);

}  // namespace gridctl::control
