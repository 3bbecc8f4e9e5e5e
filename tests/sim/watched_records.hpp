// SPDX-License-Identifier: Apache-2.0
// What the daemon asks of its registry, on the way to it: Truth hears of all that was applied, and here the process may
// be killed, before an operation, amid its writes, or when it is done and nobody was told; and each write is a fault
// point.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "records.hpp"
#include "support/forwarded_records.hpp"
#include "world.hpp"

namespace gridctl::sim {

class WatchedRecords : public testing::ForwardedRecords<WatchedRecords> {
  using Forwarded = testing::ForwardedRecords<WatchedRecords>;

 public:
  // `disk_full`, `trouble`: of the laptop.
  WatchedRecords(World& world, int laptop, Backend& backend, Random& random, const bool& disk_full, const bool& trouble)
      : world_(world), laptop_(laptop), backend_(backend), random_(random), disk_full_(disk_full), trouble_(trouble) {}

  // Another process has written; its own operations are not killed.
  void others_wrote() { ++foreign_; }
  template <class Operation>
  auto by_user(Operation operation);
  // The daemon's life: after its end nothing is read or written any more. A new one knows nothing.
  void open() { gone_ = false, seen_.clear(), held_.reset(); }
  void close() { gone_ = true; }

  Result<std::int64_t> data_version() override;
  Result<void> together(const std::function<Result<void>()>& writes) override;
  Result<job::Step> submit(const JobId& id, const job::Spec& spec, WallTime at,
                           const std::vector<registry::Input>& inputs) override;
  Result<job::Step> apply(const JobId& id, const job::TimedEvent& event) override;
  Result<job::Step> replace(const JobId& id, const job::Spec& spec, const std::vector<registry::Input>& inputs,
                            const job::TimedEvent& event) override;
  Result<void> update_spec(const JobId& id, const job::Spec& spec) override {
    return look([&](registry::AllRecords& records) { return records.update_spec(id, spec); });
  }
  Result<void> note(const JobId& id, WallTime at, const job::Record& record) override;
  Result<registry::Job> job(const JobId& id) override;
  Result<job::Step> take_result(const JobId& id, const JobId& twin, const job::TimedEvent& event) override;
  Result<Commit> commit_checkpoint(registry::Checkpoint checkpoint) override;
  Result<registry::Checkpoint> checkpoint(const JobId& id, std::optional<CheckpointSeq> seq) override;
  Result<void> remove_checkpoint(const JobId& id, CheckpointSeq seq) override;
  Result<std::vector<registry::Checkpoint>> prunable(const JobId& id, const job::KeepPolicy& keep) override;
  Result<void> save_results(const registry::Results& results) override;

  // For ForwardedRecords.
  template <class Operation>
  auto pass(Point point, const std::string& subject, Operation operation)
      -> decltype(operation(std::declval<registry::AllRecords&>()));
  template <class Operation>
  auto look(Operation operation) -> decltype(operation(std::declval<registry::AllRecords&>()));

 private:
  void wait_for_disk();
  void tell(const JobId& id, const std::vector<job::Record>& records);
  void once_committed(std::function<void()> then);  // at once, if nothing is written together

  World& world_;
  const int laptop_;
  Backend& backend_;
  Random& random_;
  const bool &disk_full_, &trouble_;
  std::int64_t foreign_ = 1;
  bool gone_ = true;
  std::map<std::string, job::State> seen_;  // what the daemon was told last
  std::optional<std::vector<std::function<void()>>> held_;  // of what is written together, until all of it is committed
};

template <class Operation>
auto WatchedRecords::by_user(Operation operation) {
  backend_.set_trouble(disk_full_, trouble_);
  auto result = operation(*backend_.records());
  if (result) others_wrote();
  return result;
}

namespace detail {
inline constexpr double k_kill_rate = 0.002;  // of single operations that write
}

template <class Operation>
auto WatchedRecords::look(Operation operation) -> decltype(operation(std::declval<registry::AllRecords&>())) {
  registry::AllRecords* records = backend_.records();
  if (gone_ || records == nullptr) return make_error(Code::io, "the registry is not open");
  backend_.set_trouble(disk_full_, trouble_);
  auto result = operation(*records);
  if (backend_.was_killed()) throw Killed{};
  return result;
}

template <class Operation>
auto WatchedRecords::pass(Point point, const std::string& subject, Operation operation)
    -> decltype(operation(std::declval<registry::AllRecords&>())) {
  if (gone_ || backend_.records() == nullptr) return make_error(Code::io, "the registry is not open");
  const Fate fate = world_.pass(laptop_, subject, point);
  if (fate == Fate::late) wait_for_disk();
  if (fate == Fate::fails) return make_error(Code::io, "the disk fails");
  backend_.set_trouble(disk_full_, trouble_);
  const bool kill = !world_.healed && world_.options.kill_point > 0 && random_.chance(detail::k_kill_rate);
  const std::uint64_t where = kill ? random_.below(3) : 3;
  if (where == 0) throw Killed{};
  if (where == 1) backend_.kill_soon();
  auto result = operation(*backend_.records());
  // Who was killed has told nobody of its success.
  if (where == 2 || backend_.was_killed()) throw Killed{};
  if (fate == Fate::lost) return make_error(Code::io, "the disk fails at the end");
  return result;
}

}  // namespace gridctl::sim
