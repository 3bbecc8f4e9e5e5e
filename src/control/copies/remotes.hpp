// SPDX-License-Identifier: Apache-2.0
// Opens the backend of a registered remote.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control/copies/copy_plan.hpp"
#include "control/reach/agent_network.hpp"
#include "os/clock.hpp"
#include "registry/all_records.hpp"
#include "store/backend.hpp"

namespace gridctl::control {

enum class RemoteKind : std::uint8_t { directory, host, bucket };  // nearest first

struct RemoteUrl {
  RemoteKind kind = RemoteKind::directory;
  std::string where;  // "" (this machine), a provider, a bucket
  std::string path;   // of the directory, absolute; of a host, absolute or in its user's home; a prefix in the bucket
};
// Parses "dir:/path", "ssh://provider/path" or "s3://bucket[/prefix]"; usage says what is wrong.
[[nodiscard]] Result<RemoteUrl> parse_remote_url(std::string_view url);
[[nodiscard]] std::string to_text(const RemoteUrl& url);

// Returns the failure domain of a remote: two remotes in one are not independent.
[[nodiscard]] std::string failure_domain_of(const registry::Remote& remote);

// Returns each remote with its location and owner; ssh:// remotes take them from their provider's registration.
[[nodiscard]] Result<std::vector<RemoteOffer>> remote_offers(registry::AllRecords& registry);

// Holds a remote and everything needed to reach it, for threads that have no registry.
struct RemoteAccess {
  registry::Remote remote;
  std::optional<registry::Provider> provider;  // of ssh://
  ControllerId controller;
};
// Accepts a provider's address too, if only one provider has it; a registered remote has the provider's name.
[[nodiscard]] Result<RemoteAccess> access_to(registry::HostRecords& registry, const registry::Remote& remote);
// Opens the remote without contacting it where that can wait; `net` outlives the result. Unless `marked`, it also opens
// a remote that has no copies so far, and makes its folder.
[[nodiscard]] Result<std::unique_ptr<store::Backend>> open_remote(const RemoteAccess& access, AgentNetwork& net,
                                                                 os::Clock& clock, bool marked = true);

// Lets work at a remote open that remote, which is registered and therefore has a mark.
using OpenRemote =
    std::function<Result<std::unique_ptr<store::Backend>>(const RemoteAccess&, AgentNetwork&, os::Clock&)>;
[[nodiscard]] inline Result<std::unique_ptr<store::Backend>> open_marked_remote(const RemoteAccess& access,
                                                                                AgentNetwork& net, os::Clock& clock) {
  return open_remote(access, net, clock);
}
// Returns the names of remotes on this provider.
[[nodiscard]] Result<std::vector<std::string>> remotes_on(registry::CopyRecords& registry, const HostName& provider);

// Returns the remotes that have a copy of this checkpoint, nearest first.
[[nodiscard]] Result<std::vector<RemoteAccess>> remotes_with(registry::AllRecords& registry, const JobId& job,
                                                            CheckpointSeq seq);

}  // namespace gridctl::control
