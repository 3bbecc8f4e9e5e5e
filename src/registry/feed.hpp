// SPDX-License-Identifier: Apache-2.0
// A feed reads the events of all jobs and hosts that came after some event. It has a connection of its own, for a thread of
// its own.
#pragma once

#include <memory>
#include <vector>

#include "base/result.hpp"
#include "os/files.hpp"
#include "registry/hosts.hpp"
#include "registry/records.hpp"

namespace gridctl::registry {

class Feed {
 public:
  [[nodiscard]] static Result<Feed> open(const os::Path& state_directory);  // which has a database
  Feed(Feed&&) noexcept;
  ~Feed();

  struct Newest {
    std::int64_t event = 0, host_event = 0;  // ids; 0: there is none
  };
  [[nodiscard]] Result<Newest> newest();
  // At most so many with a higher id, oldest first.
  [[nodiscard]] Result<std::vector<EventRecord>> events(std::int64_t after, std::size_t limit);
  [[nodiscard]] Result<std::vector<HostEvent>> host_events(std::int64_t after, std::size_t limit);

 private:
  struct State;
  explicit Feed(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace gridctl::registry
