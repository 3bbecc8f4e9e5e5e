// SPDX-License-Identifier: Apache-2.0
// A laptop: the shipped control::Controller, wired to this world, and the user who gives it work. What the user's
// commands write is written by another process.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>

#include "control/daemon/controller.hpp"
#include "control/daemon/gateways.hpp"
#include "executor.hpp"
#include "folders.hpp"
#include "freight.hpp"
#include "gateways.hpp"
#include "image_registries.hpp"
#include "network.hpp"
#include "records.hpp"
#include "watched_records.hpp"
#include "world.hpp"

namespace gridctl::sim {

class Laptop {
 public:
  Laptop(World& world, int index);
  ~Laptop();

  void begin();               // the daemon starts, when it does not run
  void die(bool power_lost);  // kill -9, or the machine with it
  bool disk_full = false, registry_trouble = false;
  Nanos stalled_at = -2 * k_min;  // its loop: a rule that waited for the disk rests for up to a minute then
  void disturbed() { clear_since_ = world_.now; }
  void wait_for_disk();  // of its daemon
  [[nodiscard]] bool is_doomed() const { return doomed_.has_value(); }  // it dies as soon as its disk lets it

  void user_submits() { submit_jobs(); }  // those that were added since it began
  void user_cancels(const JobId& job, bool at_once);
  void user_resumes(const JobId& job);
  void user_applies(const JobId& service);  // its next version; or goes on with one that was interrupted
  void user_drains(int host, bool drained, Duration within);
  void user_prices(int host, double usd_per_hour);
  void user_ends(int host, std::optional<WallTime> until);
  void user_accepts(int host);  // that it was reinstalled
  void user_reaches(int host, const std::vector<std::string>& addresses);
  void user_budgets(const std::string& owner, double usd_month);

  // For the eye of Truth.
  [[nodiscard]] int index() const { return index_; }
  [[nodiscard]] control::Controller* controller() { return controller_.get(); }
  [[nodiscard]] SimGateways& gateways() { return gateways_; }
  [[nodiscard]] bool can_command() const;
  // A command that is still under way is over: by itself, or with the daemon's process.
  [[nodiscard]] bool applies(const JobId& service) const { return applies_.contains(service.value); }
  [[nodiscard]] int deaths() const { return deaths_; }
  [[nodiscard]] bool waits_for_files_of(const HostName& host) const { return run_.is_full(host.value); }
  [[nodiscard]] SimFolders& folders() { return folders_; }
  [[nodiscard]] const SimFolders& folders() const { return folders_; }
  [[nodiscard]] registry::AllRecords* records() { return backend_->records(); }
  [[nodiscard]] WallTime wall() const { return clock_.wall(); }
  [[nodiscard]] BootTime boot() const { return clock_.boot(); }
  // Since when it runs, awake and without trouble, as far as was seen.
  [[nodiscard]] Nanos clear_since() const { return clear_since_; }

 private:
  void start();
  void submit_jobs();
  void look();
  friend class SimRollDesk;
  template <class Change>
  bool change_provider(int host, Change change);

  World& world_;
  const int index_;
  Random random_;
  std::unique_ptr<Backend> backend_;
  WatchedRecords records_;
  SimExecutor run_;
  SimClock clock_;
  SimNetwork net_;
  SimFreight freight_;
  SimFolders folders_;
  SimImages images_;
  SimGateways gateways_;
  std::unique_ptr<control::Controller> controller_;
  std::unique_ptr<control::Gateways> gateway_watch_;  // in worlds with services
  std::set<std::string> applies_;
  bool running_ = false;
  int deaths_ = 0;
  std::optional<bool> doomed_;  // true: with the power
  Nanos clear_since_ = 0;
};

}  // namespace gridctl::sim
