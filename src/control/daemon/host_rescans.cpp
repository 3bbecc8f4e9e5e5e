// SPDX-License-Identifier: Apache-2.0
#include "control/daemon/host_rescans.hpp"

#include "control/fleet/register_host.hpp"
#include "control/fleet/rescan.hpp"

namespace gridctl::control {

namespace {
constexpr Duration k_rescan_within = std::chrono::minutes{2};  // as long as a person would wait for it
}

void HostRescans::connected(const FleetHost& host, const wire::AgentHello& hello) {
  const Inventory& known = host.provider.inventory;
  const bool anew = !known.boot_id.empty() && known.boot_id != hello.boot_id;
  if (!anew && known.version >= k_inventory_version) return;
  if (!under_way_.insert(host.provider.name.value).second) return;
  const os::Lane lane{os::Lane::Kind::bulk, host.provider.name.value};
  run_.run(lane, [this, provider = host.provider] {
    auto found = std::make_shared<Result<Examined>>(
        examine(net_, provider, clock_.boot() + k_rescan_within, clock_));
    run_.post([this, name = provider.name, found] {
      under_way_.erase(name.value);
      if (!*found) return report(found->error(), "while updating the inventory of " + name.value);
      const auto kept = keep_examined(registry_, (*found)->provider, clock_.wall());
      if (!kept) return report(kept.error(), "while recording the inventory of " + name.value);
      // Reports our own writes here, so that each new connection does not look like a new start.
      fleet_.inventory_changed(name, (*found)->provider.inventory);
    });
  });
}

}  // namespace gridctl::control
