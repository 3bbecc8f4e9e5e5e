// SPDX-License-Identifier: Apache-2.0
#include "wire/bag.hpp"

#include "base/names.hpp"
#include "wire/coding.hpp"

namespace gridctl::wire {

namespace {
constexpr std::int64_t k_array_max = 1ll << 52;  // with the next, first + index * step stays a number
constexpr std::int64_t k_array_step_max = 1ll << 20;
constexpr std::size_t k_outputs_max = 256, k_output_pattern_max = 4096;
constexpr std::uint64_t k_output_max = 1ull << 50;  // bytes
constexpr Names<BagItems, BagItems::columns> k_items{"text", "variables", "columns"};
constexpr Names<BagMode, BagMode::stream> k_modes{"tasks", "stream"};
constexpr Names<OrderKind, OrderKind::finish> k_orders{"grant", "revoke", "finish"};
constexpr Names<TaskEnd, TaskEnd::no_space> k_ends{"ended",   "timeout",   "oom",    "stopped",
                                                   "revoked", "unstarted", "garbled", "no_space"};
}  // namespace

std::string_view task_end_name(TaskEnd end) { return k_ends(end); }

template <class R>
void fields(R& r, Of<R, BagSpec>& m) {
  r.unless("array_first", m.array_first, 0, -k_array_max, k_array_max);
  r.unless("array_step", m.array_step, 0, -k_array_step_max, k_array_step_max);
  r.unless("count", m.count, 0, k_bag_index_max).unless("folder", m.folder, false);
  r.word("items", m.items, k_items).unless("json", m.json, false);
  r.unless("max_restarts", m.max_restarts, 3).word("mode", m.mode, k_modes);
  r.unless("outputs", m.outputs, {}, k_outputs_max, k_output_pattern_max);
  r("output_bytes_max", m.output_bytes_max, k_output_max)("output_total_max", m.output_total_max, k_output_max);
  r.unless("render", m.render, false)("slots", m.slots, k_bag_slots_max).unless("split", m.split, false);
  r.unless("stdin_from", m.stdin_from, "").unless("timeout_ms", m.timeout, {})("window", m.window, k_bag_window_max);
  r.check(m.slots > 0 && m.window > 0, "has no slot or no window");
  r.check(m.mode == BagMode::tasks || std::size_t{m.slots} * m.window <= k_bag_running_max,
          "has too many items under way");
}
GRIDCTL_FIELDS(BagSpec)

template <class R>
void fields(R& r, Of<R, BagOrder>& m) {
  r("count", m.count, k_bag_index_max).unless("exit_code", m.exit_code, 0)("first", m.first, k_bag_index_max);
  r.unless("items", m.items, {}, k_bag_items_max, k_bag_item_max).word("kind", m.kind, k_orders);
  r.check(m.items.empty() || (m.kind == OrderKind::grant && m.items.size() == m.count),
          "does not have one item for each task");
}

// Keys are short, because thousands travel at once.
template <class R>
void fields(R& r, Of<R, TaskResult>& m) {
  r.unless("b", m.began, {}).unless("d", m.dropped, 0).unless("e", m.exit_code, 0).unless("en", m.error_bytes, 0);
  r.unless("f", m.file_bytes, 0, 1ull << 50);
  r("g", m.order)("i", m.index, k_bag_index_max).unless("k", m.count, 1, k_bag_index_max).unless("m", m.peak_kib, 0);
  r.unless("n", m.bytes, 0).unless("o", m.offset, 0, 1ull << 62).unless("s", m.signal, 0, 128).unless("t", m.ms, 0);
  if (!R::reads && m.end == TaskEnd::ended) return;
  if constexpr (R::reads) r.assume("w", task_end_name(TaskEnd::ended));
  r.word("w", m.end, k_ends);
}

template <class R>
void fields(R& r, Of<R, BagAsk>& m) {
  r("epoch", m.epoch)("job", m.job).unless("orders", m.orders, {}, k_bag_orders_max)("orders_from", m.orders_from);
  r("output_from", m.output_from)("results_from", m.results_from)("results_max", m.results_max);
}

template <class R>
void fields(R& r, Of<R, BagRequest>& m) {
  r("gather_ms", m.gather)("wait_ms", m.wait)("workers", m.workers, k_bag_workers_max);
}

template <class R>
void fields(R& r, Of<R, BagTold>& m) {
  r("epoch", m.epoch).maybe("failed", m.error)("job", m.job)("orders_seen", m.orders_seen);
  r("output_begin", m.output_begin)("output_end", m.output_end)("over", m.over)("queued", m.queued);
  r("results", m.results, k_bag_results_max)("results_end", m.results_end)("results_from", m.results_from);
  r("running", m.running, k_bag_running_max, k_bag_index_max);
}

template <class R>
void fields(R& r, Of<R, BagReply>& m) {
  r("workers", m.workers, k_bag_workers_max);
}

template <class R>
void fields(R& r, Of<R, BagOrders>& m) {
  r("from", m.from)("orders", m.orders, k_bag_orders_max);
}

GRIDCTL_REQUEST(BagRequest, parse_bag, k_bag_operation)
GRIDCTL_REPLY(BagReply, parse_bag_reply, "bag reply")
GRIDCTL_REPLY(BagOrders, parse_bag_orders, "orders of a bag")
GRIDCTL_REPLY(BagSpec, parse_bag_spec, "bag")

std::string encode_bag_output(const LogRequest& m) { return encode_request(k_bag_output_operation, m); }
Result<LogRequest> parse_bag_output(std::string_view text) {
  return parse_request<LogRequest>(text, k_bag_output_operation);
}

}  // namespace gridctl::wire
