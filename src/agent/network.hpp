// SPDX-License-Identifier: Apache-2.0
// Measures links for a controller, within the host's own bounds: one exchange at a time, a daily limit on bytes and
// connections, allowed addresses, ten seconds.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.hpp"
#include "os/clock.hpp"
#include "os/files.hpp"
#include "wire/frame.hpp"
#include "wire/network.hpp"

namespace gridctl::agent {

// Limits the bytes that one user's agent spends for all controllers in a day (UTC).
inline constexpr std::uint64_t k_link_bytes_day = 2ull << 30;  // of exchanges with other hosts, both ways
inline constexpr std::uint64_t k_link_connects_day = 1000;     // connections made and waited for
inline constexpr std::size_t k_link_strangers_max = 8;         // who come to a listener without the token, then it ends

class Links {
 public:
  Links(wire::Link& link, os::Path home, os::Clock& clock) : link_(link), home_(std::move(home)), clock_(clock) {}
  [[nodiscard]] static bool serves(std::string_view operation);  // link_*
  // Serves one request, and reads its data if there is any. An error means that the link is no longer usable.
  [[nodiscard]] Result<void> handle(const wire::Frame& request);

 private:
  [[nodiscard]] Result<void> sink(const wire::Frame& request);
  [[nodiscard]] Result<void> source(const wire::Frame& request);
  [[nodiscard]] Result<void> listen(const wire::Frame& request);
  [[nodiscard]] Result<wire::LinkResult> connect(const wire::ConnectRequest& request);
  [[nodiscard]] Result<wire::ReachReply> reach(const wire::ReachRequest& request);
  [[nodiscard]] Result<void> spend(std::uint64_t bytes, std::uint64_t connects);
  void give_back(std::uint64_t bytes);
  [[nodiscard]] Result<void> reply(const wire::Frame& request, std::string payload);
  [[nodiscard]] Result<void> refuse(const wire::Frame& request, const Error& error);

  wire::Link& link_;
  os::Path home_;
  os::Clock& clock_;
};

}  // namespace gridctl::agent
