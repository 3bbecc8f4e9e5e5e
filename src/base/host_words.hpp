// SPDX-License-Identifier: Apache-2.0
// Defines words for hosts that are stored, shown and used in queries.
#pragma once

#include <string_view>

namespace gridctl {

// Classes of hosts, as registered; the class sets the reliability expected before any observation.
inline constexpr std::string_view k_class_datacenter = "datacenter", k_class_cloud = "cloud", k_class_market = "market",
                                  k_class_home = "home";
[[nodiscard]] constexpr bool is_steady_class(std::string_view host_class) {
  return host_class == k_class_datacenter || host_class == k_class_cloud;
}

// States of a host, as last judged by the controller.
inline constexpr std::string_view k_host_unknown = "unknown", k_host_answering = "answering", k_host_suspect = "suspect",
                                  k_host_unreachable = "unreachable", k_host_lost = "lost";
[[nodiscard]] constexpr bool is_absent_state(std::string_view state) {
  return state == k_host_unreachable || state == k_host_lost;
}

}  // namespace gridctl
