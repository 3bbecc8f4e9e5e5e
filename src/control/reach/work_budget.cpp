// SPDX-License-Identifier: Apache-2.0
#include "control/reach/work_budget.hpp"

#include <algorithm>
#include <utility>

namespace gridctl::control {

BootTime WorkBudget::until() const {
  if (cancelled_) return began_;
  const std::uint64_t seconds_max = static_cast<std::uint64_t>(limits_.total / std::chrono::seconds{1});
  const std::uint64_t earned = std::min(bytes_ / limits_.bytes_per_second, seconds_max);
  const Duration allowed = limits_.free + Duration{allowed_ns_} + std::chrono::seconds{earned};
  return began_ + std::min(allowed, limits_.total);
}

Error WorkBudget::over() const {
  Error error = cancelled_ ? make_error(Code::timed_out, "it was cancelled") : make_error(Code::timed_out, "the host moves too little: " + format_size(bytes_) + " in " +
                                                format_duration(clock_.boot() - began_));
  error.retry = Retry::same_host_later;
  return error;
}

namespace {

class Bounded : public wire::Link {
 public:
  Bounded(std::shared_ptr<WorkBudget> budget, std::unique_ptr<wire::Link> link)
      : budget_(std::move(budget)), link_(std::move(link)) {}

  Result<void> send(const wire::Frame& frame, BootTime deadline) override {
    if (budget_->is_over()) return budget_->over();
    TRY(link_->send(frame, std::min(deadline, budget_->until())));
    if (frame.kind == wire::FrameKind::data) budget_->moved(frame.payload.size());
    return {};
  }

  Result<wire::Frame> receive(BootTime deadline) override {
    if (budget_->is_over()) return budget_->over();
    TRY_ASSIGN(wire::Frame frame, link_->receive(std::min(deadline, budget_->until())));
    if (frame.kind == wire::FrameKind::data) budget_->moved(frame.payload.size());
    return frame;
  }

 private:
  std::shared_ptr<WorkBudget> budget_;
  std::unique_ptr<wire::Link> link_;
};

}  // namespace

std::unique_ptr<wire::Link> under(std::shared_ptr<WorkBudget> budget, std::unique_ptr<wire::Link> link) {
  return std::make_unique<Bounded>(std::move(budget), std::move(link));
}

}  // namespace gridctl::control
