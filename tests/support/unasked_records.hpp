// SPDX-License-Identifier: Apache-2.0
// Records of which the daemon alone asks: what only commands read and write is refused.
#pragma once

#include "registry/all_records.hpp"

namespace gridctl::testing {

class UnaskedRecords : public registry::AllRecords {
 public:
  Result<ControllerId> controller_id() override { return unasked(); }
  Result<void> add_provider(const registry::Provider&) override { return unasked(); }
  Result<void> remove_provider(const HostName&) override { return unasked(); }
  Result<registry::Provider> provider(const HostName&) override { return unasked(); }
  Result<std::vector<registry::Provider>> rows(const std::function<bool(registry::Provider&)>&) override { return unasked(); }
  Result<std::vector<JobId>> jobs_on(const HostName&) override { return unasked(); }
  Result<void> save_link(const registry::HostLink&) override { return unasked(); }
  Result<void> at_once(const std::function<Result<void>()>&) override { return unasked(); }
  Result<void> update_spec(const JobId&, const job::Spec&) override { return unasked(); }
  Result<JobId> resolve(const std::string&) override { return unasked(); }
  Result<std::vector<registry::JobRow>> jobs(const registry::JobFilter&) override { return unasked(); }
  Result<std::vector<job::State>> running() override { return unasked(); }
  Result<std::map<std::string, Past>> pasts(WallTime) override { return unasked(); }
  Result<std::size_t> count_unfinished() override { return unasked(); }
  Result<std::vector<registry::JobRow>> twins(const JobId&) override { return unasked(); }
  Result<std::vector<registry::EventRecord>> events(const JobId&, std::int64_t, std::size_t) override { return unasked(); }
  Result<std::vector<std::string>> explanation(const JobId&) override { return unasked(); }
  Result<void> save_drill(const registry::Drill&) override { return unasked(); }
  Result<std::optional<registry::Drill>> drill(const std::string&) override { return unasked(); }
  Result<void> save_budget(const registry::Budget&) override { return unasked(); }
  Result<void> remove_budget(const std::string&) override { return unasked(); }
  Result<std::string> no_checkpoint(const JobId&) override { return unasked(); }
  Result<void> set_pinned(const JobId&, CheckpointSeq, bool) override { return unasked(); }
  Result<void> set_verified(const JobId&, CheckpointSeq, bool) override { return unasked(); }
  Result<std::vector<Digest>> live_roots() override { return unasked(); }
  Result<void> add_remote(const registry::Remote&) override { return unasked(); }
  Result<void> remove_remote(const std::string&) override { return unasked(); }
  Result<registry::Remote> remote(const std::string&) override { return unasked(); }
  Result<void> note_answer(const std::string&, WallTime) override { return unasked(); }
  Result<bool> note_trouble(const std::string&, WallTime, const Error&) override { return unasked(); }
  Result<void> add_copy(const registry::Copy&) override { return unasked(); }
  Result<void> remove_copy(const registry::Copy&) override { return unasked(); }
  Result<std::vector<registry::Copy>> copies() override { return unasked(); }
  Result<std::vector<registry::CheckpointRef>> kept_checkpoints() override { return unasked(); }
  Result<std::vector<registry::CopyWanted>> copyable() override { return unasked(); }

  // No time of pauses is kept.
  Result<bool> begin_pause(const JobId&, WallTime, std::optional<Duration>) override { return true; }
  Result<bool> end_pause(const JobId&, WallTime) override { return true; }
  Result<std::optional<registry::Pause>> paused(const JobId&) override { return std::optional<registry::Pause>(); }

 private:
  static Error unasked() { return make_error(Code::refused, "only commands ask for this, and none runs here"); }
};

}  // namespace gridctl::testing
