// SPDX-License-Identifier: Apache-2.0
// Words for hosts that are stored, shown and asked for by name.
#pragma once

#include <string_view>

namespace gridctl {

// Classes of hosts, as registered; the class sets the reliability that is expected before anything was seen.
inline constexpr std::string_view k_class_datacenter = "datacenter", k_class_cloud = "cloud", k_class_market = "market",
                                  k_class_home = "home";
[[nodiscard]] constexpr bool is_steady_class(std::string_view host_class) {
  return host_class == k_class_datacenter || host_class == k_class_cloud;
}

// States of a host, as the controller last judged them.
inline constexpr std::string_view k_host_unknown = "unknown", k_host_answering = "answering", k_host_suspect = "suspect",
                                  k_host_unreachable = "unreachable", k_host_lost = "lost";
[[nodiscard]] constexpr bool is_absent_state(std::string_view state) {
  return state == k_host_unreachable || state == k_host_lost;
}

}  // namespace gridctl
