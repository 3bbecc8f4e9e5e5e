// SPDX-License-Identifier: Apache-2.0
// How fast one connection of a lent machine may send: its part of the rate that the owner allows to all work of guests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

#include "base/time.hpp"
#include "os/clock.hpp"

namespace gridctl::lend {

// Asked now and then which rate holds, in bytes a second; nullopt: none. `used`: bytes a second since it was asked last;
// `held`: more would have been sent.
using PaceSource = std::function<std::optional<std::uint64_t>(std::uint64_t used, bool held)>;

// A token bucket.
class Pace {
 public:
  Pace(PaceSource source, os::Clock& clock);

  // Returns how many of `wanted` bytes may go now. A few are not worth a packet: then it is none.
  [[nodiscard]] std::size_t may_send(std::size_t wanted);
  void sent(std::size_t bytes);
  // When as many may go as were last refused; nullopt: nothing was refused.
  [[nodiscard]] std::optional<BootTime> again() const { return again_; }

 private:
  void ask(BootTime now);

  const PaceSource source_;
  os::Clock& clock_;
  std::optional<std::uint64_t> rate_;
  double tokens_ = 0;  // bytes
  BootTime filled_, asked_;
  std::uint64_t sent_ = 0;  // since it was asked
  bool held_ = false;
  std::optional<BootTime> again_;
};

}  // namespace gridctl::lend
