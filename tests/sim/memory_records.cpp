// SPDX-License-Identifier: Apache-2.0
// The fast registry: the same operations on values. job::step is the real one; the fence of a commit is tested as the
// SQL statement tests it.
#include <algorithm>
#include <map>

#include "random.hpp"
#include "records.hpp"

namespace gridctl::sim {

namespace {

using registry::Checkpoint;
using registry::Registry;

struct Row {
  job::Spec spec;
  job::State machine;
  WallTime submitted_at;
  std::vector<Checkpoint> checkpoints;
};

class MemoryRecords : public Records {
 public:
  explicit MemoryRecords(Random& random) : random_(random) {}

  Result<job::Step> submit(const JobId& id, const job::Spec& spec, WallTime at) override {
    TRY(before_commit());
    job::Step step = job::submitted(id, spec, at);
    rows_[id.value] = {spec, step.state, at, {}};
    TRY(after_commit());
    return step;
  }

  Result<job::Step> apply(const JobId& id, const job::Event& event) override {
    TRY_ASSIGN(Row * row, find(id));
    job::Step step = job::step(row->machine, event);
    if (step.state == row->machine && step.records.empty() && step.attempts.empty()) return step;
    TRY(before_commit());
    row->machine = step.state;
    TRY(after_commit());
    return step;
  }

  Result<Registry::Commit> commit_checkpoint(Checkpoint c) override {
    TRY_ASSIGN(Row * row, find(c.job));
    // As the real one: neither a repeat nor an older one of the same attempt that arrives last moves the head.
    for (const Checkpoint& known : row->checkpoints)
      if (known.epoch == c.epoch &&
          (known.host_number == c.host_number || (known.host_number > c.host_number && !known.stray)))
        return Registry::Commit{known, false, {row->machine, {}, {}, {}}};
    const std::uint64_t newest = row->checkpoints.empty() ? 0 : row->checkpoints.back().seq.value;
    c.seq = {std::max(newest, row->machine.head.value) + 1};
    const bool became_head = c.epoch == row->machine.epoch && c.seq > row->machine.head;
    c.stray = !became_head;
    TRY(before_commit());
    Registry::Commit out{c, became_head, {row->machine, {}, {}, {}}};
    if (became_head) {
      out.step = job::step(row->machine, {c.created_at, job::CheckpointCommitted{c.epoch, c.seq, "", c.host_number}});
      row->machine = out.step.state;
    }
    row->checkpoints.push_back(std::move(c));
    TRY(after_commit());
    return out;
  }

  Result<registry::Job> job(const JobId& id) override {
    TRY_ASSIGN(const Row* row, find(id));
    registry::Job out;
    out.id = id;
    out.name = row->spec.name;
    out.spec = row->spec;
    out.machine = row->machine;
    out.submitted_at = row->submitted_at;
    return out;
  }

  Result<job::State> machine(const JobId& id) override {
    TRY_ASSIGN(const Row* row, find(id));
    return row->machine;
  }

  Result<std::vector<JobId>> unfinished() override {
    TRY(read());
    std::vector<JobId> ids;
    for (const auto& [id, row] : rows_)
      if (row.machine.needs_supervisor()) ids.push_back({id});
    return ids;
  }

  Result<std::vector<Checkpoint>> checkpoints(const JobId& id) override {
    TRY_ASSIGN(const Row* row, find(id));
    return row->checkpoints;
  }

  Result<Checkpoint> checkpoint(const JobId& id, CheckpointSeq seq) override {
    TRY_ASSIGN(const Row* row, find(id));
    for (const Checkpoint& c : row->checkpoints)
      if (c.seq == seq) return c;
    return make_error(Code::not_found, "no such checkpoint");
  }

  Result<std::vector<Checkpoint>> prunable(const JobId& id, int keep) override {
    TRY_ASSIGN(const Row* row, find(id));
    std::vector<Checkpoint> own;
    for (const Checkpoint& c : row->checkpoints)
      if (!c.stray) own.push_back(c);
    std::vector<Checkpoint> out;
    const job::Attempt* attempt = row->machine.attempt();
    for (std::size_t i = 0; i + static_cast<std::size_t>(std::max(keep, 2)) < own.size(); ++i) {
      const bool in_use = own[i].seq == row->machine.head || row->machine.restore == own[i].seq ||
                          (attempt != nullptr && attempt->resumed_from == own[i].seq);
      if (!in_use) out.push_back(own[i]);
    }
    return out;
  }

  Result<void> remove_checkpoint(const JobId& id, CheckpointSeq seq) override {
    TRY_ASSIGN(Row * row, find(id));
    TRY(before_commit());
    std::erase_if(row->checkpoints, [&](const Checkpoint& c) { return c.seq == seq; });
    return after_commit();
  }

  void close(bool) override {}
  Result<void> open() override { return {}; }
  void set_trouble(bool disk_full, bool errors) override { disk_full_ = disk_full, errors_ = errors; }

 private:
  Result<void> read() const {
    if (errors_ && random_.chance(0.2)) return make_error(Code::io, "the registry cannot be read");
    return {};
  }
  Result<Row*> find(const JobId& id) {
    TRY(read());
    const auto found = rows_.find(id.value);
    if (found == rows_.end()) return make_error(Code::not_found, "no job " + id.value);
    return &found->second;
  }
  Result<void> before_commit() const {
    if (disk_full_) return make_error(Code::no_space, "the disk is full");
    if (errors_ && random_.chance(0.3)) return make_error(Code::io, "the commit failed");
    return {};
  }
  // It is there, but who asked for it is not told so.
  Result<void> after_commit() const {
    if (errors_ && random_.chance(0.2)) return make_error(Code::io, "the end of the commit failed");
    return {};
  }

  Random& random_;
  std::map<std::string, Row> rows_;
  bool disk_full_ = false, errors_ = false;
};

}  // namespace

std::unique_ptr<Records> make_memory_records(Random& random) { return std::make_unique<MemoryRecords>(random); }

}  // namespace gridctl::sim
