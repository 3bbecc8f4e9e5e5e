// SPDX-License-Identifier: Apache-2.0
// Provides threads for blocking work with hosts: each host has a small share of them, so that one slow host never
// delays work with the others. Threads start when they are first needed.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

namespace gridctl::os {

class HostPool {
 public:
  HostPool(unsigned threads_max, unsigned per_host_max);
  // Waits for work that has begun, and drops the rest.
  ~HostPool();
  HostPool(const HostPool&) = delete;
  HostPool& operator=(const HostPool&) = delete;

  void submit(const std::string& host, std::function<void()> work);  // from any thread
  [[nodiscard]] std::size_t pending() const;                         // submitted and not begun

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace gridctl::os
