// SPDX-License-Identifier: Apache-2.0
#include "agent/bag_queue.hpp"

#include <algorithm>

namespace gridctl::agent {

namespace {
wire::TaskResult never_begun(std::uint64_t first, std::uint64_t count, std::uint64_t order) {
  return {first, count, order, wire::TaskEnd::revoked};
}
}  // namespace

std::vector<wire::TaskResult> BagQueue::take(wire::BagOrder order) {
  const std::uint64_t number = orders_++;
  switch (order.kind) {
    case wire::OrderKind::revoke: return revoke(order.first, order.first + order.count);
    case wire::OrderKind::finish: exit_code_ = exit_code_.value_or(order.exit_code); return {};
    case wire::OrderKind::grant: break;
  }
  if (order.count == 0) return {};
  if (finished()) return {never_begun(order.first, order.count, number)};
  Range range{order.first, order.count, number, nullptr};
  if (!order.items.empty()) range.items = std::make_shared<const std::vector<std::string>>(std::move(order.items));
  ranges_.push_back(std::move(range));
  size_ += order.count;
  return {};
}

std::optional<BagTask> BagQueue::next() {
  if (ranges_.empty()) return std::nullopt;
  Range& range = ranges_.front();
  BagTask task{range.first, range.order, {}};
  if (range.items) task.item = (*range.items)[range.item];
  ++range.first, ++range.item, --size_;
  if (--range.count == 0) ranges_.pop_front();
  return task;
}

void BagQueue::put_back(const BagTask& task) {
  Range range{task.index, 1, task.order, nullptr};
  if (task.item) range.items = std::make_shared<const std::vector<std::string>>(1, *task.item);
  ranges_.push_front(std::move(range));
  ++size_;
}

std::vector<wire::TaskResult> BagQueue::take_back() { return revoke(0, UINT64_MAX); }

std::vector<wire::TaskResult> BagQueue::revoke(std::uint64_t first, std::uint64_t end) {
  std::vector<wire::TaskResult> taken;
  std::deque<Range> left;
  for (Range& range : ranges_) {
    const std::uint64_t range_end = range.first + range.count;
    const std::uint64_t from = std::max(first, range.first), to = std::min(end, range_end);
    if (from >= to) {
      left.push_back(std::move(range));
      continue;
    }
    taken.push_back(never_begun(from, to - from, range.order));
    size_ -= to - from;
    if (from > range.first) left.push_back({range.first, from - range.first, range.order, range.items, range.item});
    if (to < range_end) left.push_back({to, range_end - to, range.order, range.items, range.item + (to - range.first)});
  }
  ranges_ = std::move(left);
  return taken;
}

}  // namespace gridctl::agent
