// SPDX-License-Identifier: Apache-2.0
// The real registry on a disk that forgets.
#include <optional>

#include "records.hpp"
#include "vfs.hpp"
#include "world.hpp"

namespace gridctl::sim {

namespace {

using registry::Checkpoint;
using registry::Registry;

constexpr const char* k_directory = "/sim";
constexpr const char* k_file = "/sim/state.db";
constexpr double k_kill_rate = 0.002;        // of single operations
constexpr std::uint64_t k_kill_within = 30;  // changes of files; a commit has about ten

class SqliteRecords : public Records {
 public:
  explicit SqliteRecords(Random& random) : random_(random), disk_(random) {}

  Result<job::Step> submit(const JobId& id, const job::Spec& spec, WallTime at) override {
    return with([&](Registry& registry) { return registry.submit(id, spec, at); });
  }
  Result<job::Step> apply(const JobId& id, const job::Event& event) override {
    return with([&](Registry& registry) { return registry.apply(id, event); });
  }
  Result<Registry::Commit> commit_checkpoint(Checkpoint checkpoint) override {
    return with([&](Registry& registry) { return registry.commit_checkpoint(std::move(checkpoint)); });
  }
  Result<registry::Job> job(const JobId& id) override {
    return with([&](Registry& registry) { return registry.job(id); });
  }
  Result<job::State> machine(const JobId& id) override {
    TRY_ASSIGN(registry::Job row, job(id));
    return std::move(row.machine);
  }
  Result<std::vector<JobId>> unfinished() override {
    return with([&](Registry& registry) { return registry.unfinished(); });
  }
  Result<std::vector<Checkpoint>> checkpoints(const JobId& id) override {
    return with([&](Registry& registry) { return registry.checkpoints(id); });
  }
  Result<Checkpoint> checkpoint(const JobId& id, CheckpointSeq seq) override {
    return with([&](Registry& registry) { return registry.checkpoint(id, seq); });
  }
  Result<std::vector<Checkpoint>> prunable(const JobId& id, int keep) override {
    return with([&](Registry& registry) { return registry.prunable(id, job::KeepPolicy::newest(keep)); });
  }
  Result<void> remove_checkpoint(const JobId& id, CheckpointSeq seq) override {
    return with([&](Registry& registry) { return registry.remove_checkpoint(id, seq); });
  }

  void close(bool power_lost) override {
    registry_.reset();
    if (power_lost) disk_.lose_power();
    disk_.revive();
  }

  Result<void> open() override {
    if (registry_) return {};
    TRY_ASSIGN(Registry opened, Registry::open_on(k_directory, disk_.vfs_name()));
    registry_.emplace(std::move(opened));
    // Whatever was interrupted, a file that was opened is whole again.
    if (const std::string damage = disk_.damage(k_file); !damage.empty())
      throw Violation("S3", "the registry is damaged: " + damage);
    return {};
  }

  void set_trouble(bool disk_full, bool errors) override { disk_.set_trouble(disk_full, errors); }
  void set_kills(bool wanted) override { kills_ = wanted; }
  [[nodiscard]] bool was_killed() const override { return disk_.killed(); }

 private:
  template <class Operation>
  auto with(Operation operation) -> decltype(operation(std::declval<Registry&>())) {
    if (!registry_ || disk_.killed()) return make_error(Code::io, "the registry is not open");
    if (kills_ && random_.chance(k_kill_rate)) disk_.kill_after(1 + random_.below(k_kill_within));
    auto result = operation(*registry_);
    // Who was killed has told nobody of its success.
    if (disk_.killed()) return make_error(Code::io, "the process was killed");
    disk_.revive();
    return result;
  }

  Random& random_;
  FaultyDisk disk_;
  std::optional<Registry> registry_;
  bool kills_ = false;
};

}  // namespace

std::unique_ptr<Records> make_sqlite_records(Random& random) { return std::make_unique<SqliteRecords>(random); }

}  // namespace gridctl::sim
