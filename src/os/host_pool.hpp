// SPDX-License-Identifier: Apache-2.0
// Threads for blocking work with hosts: each host has a small share of them, so that whatever one host does, work with
// the others is begun. Threads start when they are first needed.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

namespace gridctl::os {

class HostPool {
 public:
  HostPool(unsigned threads_max, unsigned per_host_max);
  // Waits for work that has begun; what has not is dropped.
  ~HostPool();
  HostPool(const HostPool&) = delete;
  HostPool& operator=(const HostPool&) = delete;

  // From any thread. Work that is not of one host (an empty name) has no share.
  void submit(const std::string& host, std::function<void()> work);
  [[nodiscard]] std::size_t pending() const;                         // submitted and not begun

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace gridctl::os
