// SPDX-License-Identifier: Apache-2.0
// Turns a host into a provider: verify its identity, log in, install the agent, take its inventory, judge it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "control/reach/agent_network.hpp"
#include "control/reach/host_keys.hpp"
#include "control/reach/paths.hpp"
#include "os/clock.hpp"
#include "probe/preflight.hpp"
#include "registry/records.hpp"

namespace gridctl::control {

struct EnrollRequest : TrustRequest {
  registry::Provider provider;  // name and what its owner says; the rest is found out
  std::string address;          // "[ssh://][user@]host[:port]", or a name of the user's ssh configuration
  std::vector<registry::Provider> others;  // those registered already: none of them may be the same machine
  bool force = false;                      // also when it shows the host key of another: cloned with its keys
};

struct Examined {
  registry::Provider provider;  // complete: address, transport, inventory, last_seen_at
  std::vector<probe::Finding> findings;
  HostName shares_machine_with;  // another provider on the same kernel, behind an SSH server of its own; may be empty
};

// Connects with the pinned key, installs the agent if it is missing, takes the inventory and judges it.
[[nodiscard]] Result<Examined> examine(AgentNetwork& net, registry::Provider provider, BootTime deadline,
                                       os::Clock& clock);

// Finds the registered machine that showed `keys` and has `found` as its inventory. A machine's identity is its host
// key. A different key on the same kernel (machine id and boot id agree) is another SSH server on that machine: this is
// allowed, and its capacity is counted once (free_capacity.hpp). The same machine id alone proves nothing, because images are cloned
// with it.
struct Twin {
  enum class Kind : std::uint8_t { none, same_key, same_kernel } kind = Kind::none;
  registry::Provider provider;
};
[[nodiscard]] Result<Twin> find_twin(const Inventory& found, std::span<const ssh::HostKey> keys,
                                     const std::vector<registry::Provider>& others, const Paths& paths);

// Another way to a registered host, once it has led there: the machine is the same. Nothing is recorded.
[[nodiscard]] Result<registry::Way> try_way(AgentNetwork& net, const registry::Provider& provider,
                                            const registry::Way& typed, const TrustRequest& request, const Paths& paths,
                                            BootTime deadline, os::Clock& clock);

// All of it, for a new host. Nothing is recorded; when the host cannot be used for want of a login, its newly pinned
// key stays pinned.
[[nodiscard]] Result<Examined> enroll(AgentNetwork& net, const EnrollRequest& request, const Paths& paths,
                                      BootTime deadline, os::Clock& clock);

}  // namespace gridctl::control
