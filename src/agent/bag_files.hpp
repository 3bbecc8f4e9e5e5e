// SPDX-License-Identifier: Apache-2.0
// Manages the files of a bag's worker: incoming orders and outgoing results. The runner and the agent share only these
// and the output (bag_output.hpp), so that either continues when the other dies. Layout in gridctl-agent(7), FILES ON
// THE HOST.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "os/files.hpp"
#include "wire/bag.hpp"

namespace gridctl::agent {

inline constexpr const char* k_orders_file = "orders";  // in ctl
inline constexpr const char* k_bag_file = "bag";        // in the run folder: how the tasks are run
inline constexpr const char* k_results_file = "tasks";  // in the run folder, as the next ones
inline constexpr const char* k_board_file = "tasks.now";
inline constexpr std::uint64_t k_orders_bytes_max = 4ull << 30;  // then the host takes no more

// --- orders ---------------------------------------------------------------------------------------------------------

// Appends orders that are not there yet; returns the number of all that are there now. `refused` if some are missing in
// between. REQUIRES: the job's lock.
[[nodiscard]] Result<std::uint64_t> append_orders(const os::Path& control, std::uint64_t from,
                                                  const std::vector<wire::BagOrder>& orders);
[[nodiscard]] Result<std::uint64_t> count_orders(const os::Path& control);

class OrderReader {
 public:
  explicit OrderReader(os::Path control) : file_(std::move(control) / k_orders_file) {}
  // Returns the orders that have arrived since the last call.
  [[nodiscard]] std::vector<wire::BagOrder> read();

 private:
  os::Path file_;
  os::Fd fd_;
  std::uint64_t offset_ = 0, next_ = 0;
};

// --- results --------------------------------------------------------------------------------------------------------

class ResultWriter {
 public:
  [[nodiscard]] static Result<ResultWriter> open(const os::Path& run);
  // Reserves disk space for this many results, which append() then uses.
  [[nodiscard]] bool reserve(std::uint64_t results);
  [[nodiscard]] bool append(const wire::TaskResult& result);

 private:
  explicit ResultWriter(os::Fd file) : file_(std::move(file)) {}
  os::Fd file_;
  std::uint64_t bytes_ = 0, reserved_ = 0;
};

struct BagResults {
  std::uint64_t from = 0, end = 0;  // numbers
  std::vector<wire::TaskResult> results;
};
// The job could have written into it: damage ends the list.
[[nodiscard]] BagResults read_results(const os::Path& run, std::uint64_t from, std::uint64_t max);

// --- board: what goes on now ---------------------------------------------------------------------------------------

// Only the runner writes this; a reader treats it as a hint.
struct BoardHead {
  std::uint64_t orders = 0, queued = 0, output_end = 0;
};
class Board {
 public:
  [[nodiscard]] static Result<Board> make(const os::Path& run, std::size_t places);
  Board(Board&& other) noexcept : words_(std::exchange(other.words_, nullptr)), places_(other.places_) {}
  Board& operator=(Board&&) = delete;
  ~Board();
  void tell(const BoardHead& head);
  void set(std::size_t place, std::optional<std::uint64_t> index);

 private:
  Board(std::uint64_t* words, std::size_t places) : words_(words), places_(places) {}
  std::uint64_t* words_;
  std::size_t places_;
};
struct BoardView {
  BoardHead head;
  std::vector<std::uint64_t> running;
};
[[nodiscard]] BoardView read_board(const os::Path& run);

}  // namespace gridctl::agent
