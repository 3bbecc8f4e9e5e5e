// SPDX-License-Identifier: Apache-2.0
// Answers for the host about workers of bags: passes orders on, and hands over results and output.
#pragma once

#include <functional>

#include "agent/requests.hpp"
#include "base/result.hpp"
#include "os/clock.hpp"
#include "wire/bag.hpp"

namespace gridctl::agent {

class BagHost {
 public:
  BagHost(Requests& requests, os::Clock& clock) : requests_(requests), clock_(clock) {}
  // Waits for news as long as the request asks, and while `wanted` returns true.
  [[nodiscard]] wire::BagReply answer(const wire::BagRequest& request, const std::function<bool()>& wanted);
  [[nodiscard]] Result<wire::LogReply> output(const wire::LogRequest& request, std::string& bytes);

 private:
  [[nodiscard]] Result<wire::BagTold> order(const wire::BagAsk& ask);
  [[nodiscard]] Result<void> look(const wire::BagAsk& ask, std::uint64_t max, bool end_too, wire::BagTold& told);

  Requests& requests_;
  os::Clock& clock_;
};

}  // namespace gridctl::agent
