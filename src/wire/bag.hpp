// SPDX-License-Identifier: Apache-2.0
// Defines orders to the workers of bags and results from them: gridctl-agent(7), BAGS. Both are append-only lists with
// numbers, so that a lost or repeated request or answer changes nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "wire/bag_spec.hpp"
#include "wire/messages.hpp"

namespace gridctl::wire {

inline constexpr std::string_view k_bags_feature = "bags";
inline constexpr std::string_view k_bag_operation = "bag";
inline constexpr std::string_view k_bag_output_operation = "bag-output";  // the message of "log"
inline constexpr std::size_t k_bag_workers_max = 64;                      // in one request
inline constexpr std::size_t k_bag_orders_max = 4096;                     // for one worker in one request
inline constexpr std::size_t k_bag_results_max = 4096;                    // in one answer, all workers together
inline constexpr std::size_t k_bag_items_max = 4096;                      // of one order
inline constexpr std::size_t k_bag_item_max = 64 * 1024;                  // bytes
inline constexpr std::size_t k_bag_slots_max = 1024;
inline constexpr std::size_t k_bag_window_max = 1024;
inline constexpr std::size_t k_bag_running_max = 4096;  // slots * window; told in one answer
inline constexpr std::uint64_t k_bag_index_max = 1ull << 32;
inline constexpr Duration k_bag_wait_max = std::chrono::seconds{10};

enum class OrderKind : std::uint8_t {
  grant,   // these tasks are to be run
  revoke,  // of what was granted before, these are not to be begun any more
  finish,  // the worker ends when it has done what it was granted
};
struct BagOrder {
  OrderKind kind = OrderKind::grant;
  std::uint64_t first = 0, count = 0;  // task indices
  std::vector<std::string> items{};    // of a grant: none, or one for each index
  std::uint8_t exit_code = 0;          // of the worker, with finish
  bool operator==(const BagOrder&) const = default;
};

enum class TaskEnd : std::uint8_t {
  ended,      // by itself: exit code or signal
  timeout,    // it was killed for its time
  oom,        // the memory limit killed it
  stopped,    // the worker's orderly stop killed it
  revoked,    // it was never begun: an order, or the worker's orderly stop
  unstarted,  // this host could not start it
  garbled,    // stream: its program ended well, and had not answered it
  no_space,   // it failed, and said that the disk is full
};
struct TaskResult {
  std::uint64_t index = 0, count = 1;  // more than one only with revoked
  std::uint64_t order = 0;             // number of its grant
  TaskEnd end = TaskEnd::ended;
  std::uint8_t exit_code = 0;
  std::uint8_t signal = 0;
  WallTime began{};      // by the host's clock
  std::uint32_t ms = 0;  // that it ran
  std::uint32_t peak_kib = 0;
  std::uint64_t offset = 0;                  // of its output in the worker's
  std::uint32_t bytes = 0, error_bytes = 0;  // kept of it; of standard error, behind them
  std::uint64_t dropped = 0;                 // bytes that were not kept
  std::uint64_t file_bytes = 0;              // of its files, behind its output; gridctl-agent(7)
  [[nodiscard]] std::uint64_t output_end() const { return offset + bytes + error_bytes + file_bytes; }
  [[nodiscard]] bool succeeded() const { return end == TaskEnd::ended && exit_code == 0 && signal == 0; }
  bool operator==(const TaskResult&) const = default;
};

struct BagAsk {
  JobId job;
  Epoch epoch;
  std::uint64_t orders_from = 0;  // number of the first of `orders`; the host skips those that it has
  std::vector<BagOrder> orders{};
  std::uint64_t results_from = 0;  // number of the first that is wanted; the controller has all before
  std::uint32_t results_max = k_bag_results_max;
  std::uint64_t output_from = 0;  // the controller has all before, or wants none of it
  bool operator==(const BagAsk&) const = default;
};
struct BagRequest {
  std::vector<BagAsk> workers;
  Duration wait{};                                  // for the first news
  Duration gather = std::chrono::milliseconds{20};  // from the first news on
};

struct BagTold {
  JobId job;
  Epoch epoch;
  std::optional<Error> error{};  // then nothing else is told
  std::uint64_t orders_seen = 0;
  std::uint64_t results_from = 0, results_end = 0;  // numbers of the first here, and behind the last there is
  std::vector<TaskResult> results{};
  std::uint64_t queued = 0;              // granted and not begun
  std::vector<std::uint64_t> running{};  // after the end: those that it took with it
  std::uint64_t output_begin = 0, output_end = 0;
  bool over = false;  // the attempt has ended, and no results will come
};
struct BagReply {
  std::vector<BagTold> workers;
};

[[nodiscard]] std::string_view task_end_name(TaskEnd end);

GRIDCTL_MESSAGE(BagRequest, parse_bag)
GRIDCTL_MESSAGE(BagReply, parse_bag_reply)
[[nodiscard]] std::string encode_bag_output(const LogRequest& request);
[[nodiscard]] Result<LogRequest> parse_bag_output(std::string_view text);
GRIDCTL_MESSAGE(BagSpec, parse_bag_spec)

// Holds orders as they are stored in a file of the host.
struct BagOrders {
  std::uint64_t from = 0;  // number of the first
  std::vector<BagOrder> orders;
};
GRIDCTL_MESSAGE(BagOrders, parse_bag_orders)

}  // namespace gridctl::wire
