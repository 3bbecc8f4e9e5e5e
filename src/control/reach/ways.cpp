// SPDX-License-Identifier: Apache-2.0
#include "control/reach/ways.hpp"

#include <algorithm>

#include "base/record.hpp"
#include "lend/call.hpp"

namespace gridctl::control {

namespace {
constexpr Duration k_way_preferred = std::chrono::minutes{10};
}

template <class R>
void fields(R& r, Of<R, UsedWay>& m) {
  r("address", m.address);
}

std::string to_json(const UsedWay& way) { return write_record(way); }

std::optional<UsedWay> parse_used_way(std::string_view json) {
  Result<UsedWay> way = read_record<UsedWay>(json, "the way in use", k_own_rules, Code::state_unreadable);
  return way ? std::optional(*std::move(way)) : std::nullopt;
}

bool is_lent(const registry::Provider& provider) { return provider.address.starts_with(lend::k_scheme); }

bool leads_elsewhere(const Error& error) {
  return error.code == Code::host_unreachable || error.code == Code::timed_out || error.code == Code::host_key_mismatch;
}

std::vector<registry::Way> WayMemory::in_order(const registry::Provider& provider, BootTime now) {
  std::vector<registry::Way> ways = provider.ways();
  const os::MutexLock lock(mutex_);
  const auto last = last_.find(provider.name);
  if (last == last_.end()) return ways;
  const auto is_last = [&](const registry::Way& way) { return way.address == last->second.address; };
  if (now - last->second.since > k_way_preferred || std::ranges::none_of(ways, is_last)) last_.erase(last);
  else std::stable_partition(ways.begin(), ways.end(), is_last);
  return ways;
}

void WayMemory::answered(const HostName& host, const std::string& address, BootTime now) {
  const os::MutexLock lock(mutex_);
  Last& last = last_[host];
  if (last.address != address || now - last.since > k_way_preferred) last = {address, now};
}

}  // namespace gridctl::control
