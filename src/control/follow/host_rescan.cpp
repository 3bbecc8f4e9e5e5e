// SPDX-License-Identifier: Apache-2.0
// A host that was started anew, or whose agent has learned more, may have other hardware than we know of.
#include "control/fleet/register_host.hpp"
#include "control/fleet/rescan.hpp"
#include "control/follow/following.hpp"
#include "control/follow/supervisor.hpp"

namespace gridctl::control {

namespace {
constexpr Duration k_rescan_within = std::chrono::minutes{2};  // as long as a person would wait for it
}

void Supervisor::on_connected(Host& host, const wire::AgentHello& hello) {
  const Inventory& known = host.provider.inventory;
  const bool anew = !known.boot_id.empty() && known.boot_id != hello.boot_id;
  if ((!anew && known.version >= k_inventory_version) || host.rescanning) return;
  host.rescanning = true;
  const registry::Provider provider = host.provider;
  work_pool_->submit([this, provider, paths = paths_] {
    auto found = std::make_shared<Result<Examined>>(
        examine(provider, paths, controller_, clock_.boot() + k_rescan_within, clock_));
    loop_.post([this, name = provider.name, found] {
      const auto host_now = hosts_.find(name.value);
      if (host_now != hosts_.end()) host_now->second->rescanning = false;
      if (!*found) return report(found->error(), "while taking the inventory of " + name.value + " anew");
      const auto kept = keep_examined(registry_, (*found)->provider, clock_.wall());
      if (!kept) return report(kept.error(), "while recording the inventory of " + name.value);
      // What we write ourselves is not read again: without this, each new connection would look like a new start.
      if (host_now != hosts_.end()) host_now->second->provider.inventory = (*found)->provider.inventory;
    });
  });
}

}  // namespace gridctl::control
