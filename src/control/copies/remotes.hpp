// SPDX-License-Identifier: Apache-2.0
// From a registered remote to a backend.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control/copies/copy_plan.hpp"
#include "control/reach/agent_network.hpp"
#include "os/clock.hpp"
#include "registry/registry.hpp"
#include "store/backend.hpp"

namespace gridctl::control {

enum class RemoteKind : std::uint8_t { directory, host, bucket };  // nearest first

struct RemoteUrl {
  RemoteKind kind = RemoteKind::directory;
  std::string where;  // "" (this machine), a provider, a bucket
  std::string path;   // of the directory, absolute; of a host, absolute or in its user's home; a prefix in the bucket
};
// "dir:/path", "ssh://provider/path", "s3://bucket[/prefix]"; usage says what is wrong.
[[nodiscard]] Result<RemoteUrl> parse_remote_url(std::string_view url);
[[nodiscard]] std::string to_text(const RemoteUrl& url);

// Returns the failure domain of a remote: two remotes in one are not independent.
[[nodiscard]] std::string failure_domain_of(const registry::Remote& remote);

// Each with where it is and whose: of ssh:// what its provider is registered with.
[[nodiscard]] Result<std::vector<RemoteOffer>> remote_offers(registry::Registry& registry);

// A remote and what it takes to get there: for threads that have no registry.
struct RemoteAccess {
  registry::Remote remote;
  std::optional<registry::Provider> provider;  // of ssh://
  ControllerId controller;
};
// A provider may also be named by its address, where that is only one's; a registered remote has its name.
[[nodiscard]] Result<RemoteAccess> access_to(registry::Registry& registry, const registry::Remote& remote);
// Contacts nobody yet where that can wait; `net` outlives the result. Unless `marked`, also one that keeps no copies so far, whose folder is made.
[[nodiscard]] Result<std::unique_ptr<store::Backend>> open_remote(const RemoteAccess& access, AgentNetwork& net,
                                                                 os::Clock& clock, bool marked = true);

// Names of remotes that lie on this provider.
[[nodiscard]] Result<std::vector<std::string>> remotes_on(registry::Registry& registry, const HostName& provider);

// Returns the remotes that have a copy of this checkpoint, nearest first.
[[nodiscard]] Result<std::vector<RemoteAccess>> remotes_with(registry::Registry& registry, const JobId& job,
                                                            CheckpointSeq seq);

}  // namespace gridctl::control
