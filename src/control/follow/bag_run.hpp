// SPDX-License-Identifier: Apache-2.0
// Runs one bag: its journal, and the exchange with its workers. A host is told only what is durable here, and a host
// forgets only what is durable here. Loop thread only.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bag/bag.hpp"
#include "control/follow/attempts.hpp"
#include "wire/bag.hpp"

namespace gridctl::control {

// A result waits this long for the output of its task, which would be lost with the host. For a stream, the answer is
// the only output.
inline constexpr Duration k_print_patience = std::chrono::seconds{5}, k_stream_patience = std::chrono::minutes{2};

class BagRun : public std::enable_shared_from_this<BagRun> {
 public:
  struct Seat {  // of one attempt of a worker, from its start until nothing more comes from it
    JobId job;
    HostName host;
    std::optional<std::uint64_t> seen{};         // orders that its host has; nullopt: it has not told yet
    std::uint64_t orders = 0, results = 0;       // of the journal's, those that are durable
    std::vector<std::uint64_t> running{};        // as told last
    std::uint64_t output_at = 0, output_end = 0;  // of what its tasks printed: what is here, and what its host has
    bool output_busy = false;                     // a piece is on its way
    std::optional<wire::BagTold> held{};          // results that wait for what their tasks printed
    BootTime held_since{};
    std::optional<BootTime> idle_since{};         // nothing that waits can be given to it
    bag::Pace pace{};
    std::optional<BootTime> ended{};             // since when its attempt is known to have ended
    bool leaves = false;                         // it is asked to make room: it is given nothing
    bool has_left = false;                       // and that it did was told
    bool died = false;                           // by itself, and not by its host's fault or our order
  };

  // Reads the journal. Skips damaged records, and reports them in `repaired`.
  [[nodiscard]] static Result<std::shared_ptr<BagRun>> open(const World& world, const TrackedJob& leader);

  [[nodiscard]] const JobId& id() const { return id_; }  // of the leader
  [[nodiscard]] const bag::Bag& bag() const { return bag_; }
  [[nodiscard]] const std::string& repaired() const { return repaired_; }
  [[nodiscard]] std::map<bag::Worker, Seat>& seats() { return seats_; }
  void add(const bag::Record& record);
  // Adds the tasks that the job has and the journal lacks. Their items are written before the job names them.
  [[nodiscard]] Result<void> add_tasks(const TrackedJob& leader);
  void join(const bag::Worker& worker, const JobId& job, const job::Attempt& attempt, std::uint64_t level);
  // Closes workers that no job knows any more: an earlier daemon saw their end but did not record it.
  void close_forgotten(const JobBook& book);
  // Returns whether the seat may be given up: all data of its host is here.
  [[nodiscard]] bool take(const bag::Worker& worker, Seat& seat, const wire::BagTold& told);
  // Counts the results whose output is here.
  void count(const bag::Worker& worker, Seat& seat);
  void give(const bag::Worker& worker);  // what it needs now
  // Takes back what a worker that leaves has not begun, unless it will have done that soon. Returns whether it has
  // nothing left to do, and knows that it gets nothing more.
  [[nodiscard]] bool empty(const bag::Worker& worker);
  [[nodiscard]] Duration busy_for(const bag::Worker& worker) const;  // with what it holds
  [[nodiscard]] wire::BagAsk ask(const bag::Worker& worker, const Seat& seat) const;

  [[nodiscard]] bool is_saved() const { return unsaved_.empty() && !saving_; }
  // Returns true if the last write has failed, so that what hosts have found cannot be taken from them.
  [[nodiscard]] bool is_blocked() const { return blocked_; }
  // Writes new records, and calls `then` when they are durable. Does nothing if there are none, or while a write is
  // under way.
  void save(Attempts& attempts, const std::function<void()>& then);

 private:
  BagRun(const World& world, const TrackedJob& leader)
      : world_(world),
        id_(leader.id()),
        output_patience_(leader.spec().tasks->stream_window > 0 || !leader.spec().tasks->outputs.empty() ? k_stream_patience
                                                                                                         : k_print_patience) {}
  [[nodiscard]] bag::Ordered cut(bag::Ordered order) const;
  [[nodiscard]] std::string_view item(bag::Index index) const;
  void resend(const bag::Worker& worker, Seat& seat, const wire::BagTold& told);
  [[nodiscard]] std::size_t with_output(const Seat& seat) const;

  const World world_;
  const JobId id_;
  const Duration output_patience_;
  bag::Bag bag_;
  std::map<bag::Worker, Seat> seats_;
  std::string repaired_;
  std::string unsaved_;
  bool saving_ = false, blocked_ = false;
  std::string items_;
  std::vector<std::uint64_t> item_ends_;
};

}  // namespace gridctl::control
