// SPDX-License-Identifier: Apache-2.0
// The real registry on a disk that forgets.
#include <optional>

#include "records.hpp"
#include "registry/registry.hpp"
#include "vfs.hpp"
#include "world.hpp"

namespace gridctl::sim {

namespace {

using registry::Registry;

constexpr const char* k_directory = "/sim";
constexpr const char* k_file = "/sim/state.db";
constexpr std::uint64_t k_kill_within = 30;  // changes of files; a commit has about ten

class SqliteRecords : public Backend {
 public:
  explicit SqliteRecords(Random& random) : random_(random), disk_(random) {}

  registry::AllRecords* records() override { return registry_ ? &*registry_ : nullptr; }
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
  void kill_soon() override { disk_.kill_after(1 + random_.below(k_kill_within)); }
  [[nodiscard]] bool was_killed() const override { return disk_.killed(); }
  void revive() override { disk_.revive(); }

  Result<void> add_provider(const registry::Provider& provider) override { return registry_->add_provider(provider); }
  Result<void> save_budget(const registry::Budget& budget) override { return registry_->save_budget(budget); }

 private:
  Random& random_;
  FaultyDisk disk_;
  std::optional<Registry> registry_;
};

}  // namespace

std::unique_ptr<Backend> make_sqlite_records(Random& random) { return std::make_unique<SqliteRecords>(random); }

}  // namespace gridctl::sim
