// SPDX-License-Identifier: Apache-2.0
// Remotes that keep copies of checkpoints, and which copies they have acknowledged.
#include <algorithm>

#include "registry/impl.hpp"

namespace gridctl::registry {

namespace {

constexpr const char* k_remote_columns =
    "SELECT name, url, endpoint, region, profile, added_ms, answered_ms, trouble_ms, trouble_code, trouble, "
    "location, lent FROM places ";
constexpr std::size_t k_trouble_max = 400;  // characters kept of it

Remote read_remote(const db::Statement& row) {
  Remote remote{row.text(0), row.text(1), row.text(2), row.text(3), row.text(4), {row.integer(5)},
              {},          {},          "",          "",          "",          false};
  if (!row.is_null(6)) remote.answered_at = WallTime{row.integer(6)};
  if (!row.is_null(7)) remote.trouble_at = WallTime{row.integer(7)};
  remote.trouble_code = row.text(8);
  remote.trouble = row.text(9);
  remote.location = row.text(10);
  remote.lent = row.integer(11) != 0;
  return remote;
}

Copy read_copy(const db::Statement& row) { return {row.text(0), {row.text(1)}, {row.count(2)}, {row.integer(3)}}; }

}  // namespace

Result<void> Registry::add_remote(const Remote& remote) {
  TRY_ASSIGN(db::Transaction transaction, db::Transaction::begin(impl_->db));
  const Result<Remote> taken = this->remote(remote.name);
  if (taken)
    return make_error(Code::exists, "there is already a remote '" + remote.name + "': " + taken->url,
                      "gridctl store rm " + remote.name);
  if (taken.error().code != Code::not_found) return taken.error();
  TRY(impl_->db
          .prepare("INSERT INTO places(name, url, endpoint, region, profile, added_ms, location, lent) "
                   "VALUES(?,?,?,?,?,?,?,?)")
          .bind(remote.name, remote.url, remote.endpoint, remote.region, remote.profile, remote.added_at.ms, remote.location,
                remote.lent ? 1 : 0)
          .run());
  return transaction.commit();
}

Result<void> Registry::remove_remote(const std::string& name) {
  TRY_ASSIGN(db::Transaction transaction, db::Transaction::begin(impl_->db));
  TRY(remote(name));
  TRY(impl_->db.prepare("DELETE FROM copies WHERE place = ?").bind(name).run());
  TRY(impl_->db.prepare("DELETE FROM places WHERE name = ?").bind(name).run());
  return transaction.commit();
}

Result<std::vector<Remote>> Registry::remotes() {
  return impl_->db.prepare(std::string(k_remote_columns) + "ORDER BY n").all(read_remote);
}

Result<Remote> Registry::remote(const std::string& name) {
  TRY_ASSIGN(const std::vector<Remote> all, remotes());
  std::string known;
  for (const Remote& remote : all) {
    if (remote.name == name) return remote;
    known += (known.empty() ? "; there is " : ", ") + remote.name;
  }
  return make_error(Code::not_found, "no remote '" + name + "'" + known, "gridctl store ls");
}

Result<void> Registry::note_answer(const std::string& remote, WallTime at) {
  return impl_->db
      .prepare("UPDATE places SET answered_ms = ?, trouble_ms = NULL, trouble_code = '', trouble = '' WHERE name = ?")
      .bind(at.ms, remote)
      .run();
}

Result<bool> Registry::note_trouble(const std::string& name, WallTime at, const Error& error) {
  TRY_ASSIGN(const Remote before, remote(name));
  const std::string code(code_name(error.code));
  const bool is_news = before.trouble_code != code;
  if (!is_news) return false;  // each try would write otherwise
  TRY(impl_->db.prepare("UPDATE places SET trouble_ms = ?, trouble_code = ?, trouble = ? WHERE name = ?")
          .bind(before.trouble_at ? before.trouble_at->ms : at.ms, code, error.one_line().substr(0, k_trouble_max),
                name)
          .run());
  return true;
}

Result<void> Registry::add_copy(const Copy& copy) {
  return impl_->db.prepare("INSERT OR REPLACE INTO copies(place, job, seq, copied_ms) VALUES(?,?,?,?)")
      .bind(copy.remote, copy.job.value, copy.seq.value, copy.copied_at.ms)
      .run();
}

Result<void> Registry::remove_copy(const Copy& copy) {
  return impl_->db.prepare("DELETE FROM copies WHERE place = ? AND job = ? AND seq = ?")
      .bind(copy.remote, copy.job.value, copy.seq.value)
      .run();
}

Result<std::vector<Copy>> Registry::copies() {
  return impl_->db.prepare("SELECT place, job, seq, copied_ms FROM copies ORDER BY place, job, seq").all(read_copy);
}

Result<std::vector<Copy>> Registry::copies_of(const JobId& job) {
  return impl_->db.prepare("SELECT place, job, seq, copied_ms FROM copies WHERE job = ? ORDER BY place, seq")
      .bind(job.value)
      .all(read_copy);
}

Result<std::vector<CheckpointRef>> Registry::kept_checkpoints() {
  return impl_->db.prepare("SELECT job, seq FROM checkpoints ORDER BY job, seq").all([](const db::Statement& row) {
    return CheckpointRef{{row.text(0)}, {row.count(1)}};
  });
}

Result<std::vector<CopyWanted>> Registry::copyable() {
  struct Owner {
    JobId id;
    std::string name;
    int copies = 1;
    job::Constraints constraints;
  };
  std::vector<Owner> owners;
  TRY(impl_->db.prepare("SELECT id, name, spec FROM jobs WHERE id IN (SELECT job FROM checkpoints)")
          .each([&](const db::Statement& row) -> Result<void> {
            TRY_ASSIGN(job::Spec spec, job::parse_spec(row.text(2)));
            owners.push_back({{row.text(0)}, row.text(1), spec.checkpoint.copies, std::move(spec.constraints)});
            return {};
          }));
  std::vector<CopyWanted> wanted;
  for (const Owner& owner : owners) {
    TRY_ASSIGN(const std::vector<Checkpoint> list, checkpoints(owner.id));
    for (const Checkpoint& checkpoint : list)
      if (!checkpoint.stray || checkpoint.pinned)
        wanted.push_back({checkpoint, owner.name, owner.copies, owner.constraints});
  }
  std::ranges::stable_sort(wanted, [](const CopyWanted& a, const CopyWanted& b) {
    return a.checkpoint.created_at > b.checkpoint.created_at;
  });
  return wanted;
}

}  // namespace gridctl::registry
