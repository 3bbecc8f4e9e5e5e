// SPDX-License-Identifier: Apache-2.0
// From a registered place to a backend.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control/copies/copy_plan.hpp"
#include "control/reach/paths.hpp"
#include "os/clock.hpp"
#include "registry/registry.hpp"
#include "store/backend.hpp"

namespace gridctl::control {

enum class PlaceKind : std::uint8_t { directory, host, bucket };  // nearest first

struct PlaceUrl {
  PlaceKind kind = PlaceKind::directory;
  std::string where;  // "" (this machine), a provider, a bucket
  std::string path;   // of the directory, absolute; of a host, absolute or in its user's home; a prefix in the bucket
};
// "dir:/path", "ssh://provider/path", "s3://bucket[/prefix]"; usage says what is wrong.
[[nodiscard]] Result<PlaceUrl> parse_place_url(std::string_view url);
[[nodiscard]] std::string to_text(const PlaceUrl& url);

// What a place is lost with: two of the same are not independent.
[[nodiscard]] std::string failure_domain_of(const registry::Place& place);

// Each with where it is and whose: of ssh:// what its provider is registered with.
[[nodiscard]] Result<std::vector<PlaceOffer>> place_offers(registry::Registry& registry);

// A place and what it takes to get there: for threads that have no registry.
struct RemoteAccess {
  registry::Place place;
  std::optional<registry::Provider> provider;  // of ssh://
  ControllerId controller;
};
// A provider may also be named by its address, where that is only one's; a registered place has its name.
[[nodiscard]] Result<RemoteAccess> access_to(registry::Registry& registry, const registry::Place& place);
// Contacts nobody yet where that can wait. Unless `marked`, also one that keeps no copies so far, whose folder is made.
[[nodiscard]] Result<std::unique_ptr<store::Backend>> open_place(const RemoteAccess& access, const Paths& paths,
                                                                 os::Clock& clock, bool marked = true);

// Names of places that lie on this provider.
[[nodiscard]] Result<std::vector<std::string>> places_on(registry::Registry& registry, const HostName& provider);

// Those that have a copy of this checkpoint, nearest first.
[[nodiscard]] Result<std::vector<RemoteAccess>> places_with(registry::Registry& registry, const JobId& job,
                                                            CheckpointSeq seq);

}  // namespace gridctl::control
