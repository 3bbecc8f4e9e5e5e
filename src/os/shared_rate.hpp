// SPDX-License-Identifier: Apache-2.0
// One rate that several processes divide among themselves, through a file with a line for each. Whoever has less to send
// leaves the rest to the others, and the sum of all shares never exceeds the rate (but for a small least share).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.hpp"
#include "os/clock.hpp"
#include "os/files.hpp"

namespace gridctl::os {

// One of those who send; bytes a second.
struct Sender {
  std::string name;
  std::uint64_t share = 0;   // what it may send
  std::uint64_t demand = 0;  // what it would send
  BootTime seen{};
};
// Returns the new share of a sender with this demand: what is fair among all (max-min), and no more than the others have
// left. Pure. `others` without the sender itself.
[[nodiscard]] std::uint64_t fair_share(std::uint64_t rate, std::uint64_t demand, const std::vector<Sender>& others);
[[nodiscard]] std::string to_text(const std::vector<Sender>& senders);
// Lines that are none are left out, and so are senders that were not seen for three seconds.
[[nodiscard]] std::vector<Sender> parse_senders(std::string_view text, BootTime now);

class SharedRate {
 public:
  // How a sender's use says what it wants: `exact`, `held` is all that counts; `gaps`, it sends in bursts that are seen from
  // outside, and keeps a sixteenth and, for some seconds, more of what it had.
  enum class Kind : std::uint8_t { exact, gaps };
  // `name`: a word that no other sender has.
  SharedRate(Path file, std::string name, Kind kind, Clock& clock) : file_(std::move(file)), name_(std::move(name)), kind_(kind), clock_(clock) {}
  ~SharedRate() { leave(); }
  SharedRate(const SharedRate&) = delete;
  SharedRate& operator=(const SharedRate&) = delete;

  // Returns what this sender may send from now on; ask again within a second, or before it sends more. `used`: what it sent since it asked last;
  // `held`: it would have sent more. A file that cannot be used leaves it the least share.
  [[nodiscard]] std::uint64_t share_of(std::uint64_t rate, std::uint64_t used, bool held);
  void leave();  // its share is free for others

 private:
  const Path file_;
  const std::string name_;
  const Kind kind_;
  Clock& clock_;
  std::uint64_t demand_ = 0;
  bool listed_ = false;
};

}  // namespace gridctl::os
