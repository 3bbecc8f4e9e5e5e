// SPDX-License-Identifier: Apache-2.0
#include "registry/registry.hpp"

#include <fcntl.h>

#include <utility>

#include "base/text.hpp"
#include "os/entries.hpp"
#include "os/random.hpp"
#include "registry/impl.hpp"
#include "registry/listing.hpp"
#include "registry/provider_json.hpp"
#include "registry/schema.hpp"

namespace gridctl::registry {

namespace {

constexpr std::size_t k_controller_id_characters = 26;  // 130 bits: never met twice

Result<void> prepare_schema(db::Database& db, const os::Path& path) {
  TRY_ASSIGN(std::int64_t version, db.user_version());
  if (version > k_schema_version)
    return make_error(Code::state_unreadable, path.string() + " was written by a newer gridctl (schema " +
                                                  std::to_string(version) + ", this one knows " +
                                                  std::to_string(k_schema_version) + ")");
  if (version == k_schema_version) return {};
  if (version > 0)  // what a step gets wrong must not be the end of the state
    TRY(db.back_up_to(path.string() + ".schema" + std::to_string(version))
            .context("while keeping a copy of " + path.string()));
  TRY_ASSIGN(db::Transaction transaction, db::Transaction::begin(db));
  TRY_ASSIGN(version, db.user_version());  // another process may have done it meanwhile
  if (version >= k_schema_version) return {};
  const bool is_new = version == 0;
  for (; version < k_schema_version; ++version) TRY(db.execute(k_schema_steps.at(static_cast<std::size_t>(version))));
  if (is_new)
    TRY(db.prepare("INSERT INTO meta(key, value) VALUES('controller_id', ?)")
            .bind(os::random_id(k_controller_id_characters))
            .run());
  TRY(db.set_user_version(k_schema_version));
  return transaction.commit();
}

// Whoever can write here can make us run what they like, and whoever can read here has the keys.
Result<void> check_ours(const os::Path& directory) {
  TRY_ASSIGN(const os::Fd fd, os::open_file(directory, O_RDONLY | O_DIRECTORY));
  TRY_ASSIGN(const os::FileStatus owner, os::status_of(fd.get()));
  if (!owner.is_ours)
    return make_error(Code::state_unreadable, "the state directory " + directory.string() + " belongs to another user",
                      "gridctl --state DIR …");
  if ((owner.mode & 022) == 0) return {};
  return make_error(Code::state_unreadable,
                    "the state directory " + directory.string() + " can be written by other users",
                    "chmod 0700 " + shell_quote(directory.string()));
}

}  // namespace

Registry::Registry(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Registry::Registry(Registry&&) noexcept = default;
Registry& Registry::operator=(Registry&&) noexcept = default;
Registry::~Registry() = default;

Result<Registry> Registry::open(const os::Path& state_directory) {
  TRY(os::make_directories(state_directory, 0700).context("while making the state directory"));
  TRY(check_ours(state_directory));
  const os::Path path = state_directory / "state.db";
  TRY_ASSIGN(db::Database db, db::Database::open(path));
  Result<void> prepared = prepare_schema(db, path);
  if (!prepared && prepared.error().code == Code::state_unreadable)
    return std::move(prepared).error().with_hint("gridctl doctor --state " + shell_quote(state_directory.string()));
  TRY(prepared);
  return Registry(std::make_unique<Impl>(state_directory, std::move(db)));
}

Result<Registry> Registry::open_on(const os::Path& state_directory, const std::string& vfs) {
  const os::Path path = state_directory / "state.db";
  TRY_ASSIGN(db::Database db, db::Database::open_on(path, vfs));
  TRY(prepare_schema(db, path));
  return Registry(std::make_unique<Impl>(state_directory, std::move(db)));
}

Result<Registry> Registry::open_for_reading(const os::Path& state_directory) {
  if (os::exists(state_directory / "state.db")) return open(state_directory);
  TRY_ASSIGN(db::Database db, db::Database::open(":memory:"));
  TRY(prepare_schema(db, ":memory:"));
  return Registry(std::make_unique<Impl>(state_directory, std::move(db)));
}

const os::Path& Registry::directory() const { return impl_->directory; }

Result<ControllerId> Registry::controller_id() {
  db::Statement query = impl_->db.prepare("SELECT value FROM meta WHERE key = 'controller_id'");
  TRY_ASSIGN(const bool row, query.next());
  if (!row) return make_error(Code::state_unreadable, "the state database has no controller id");
  return ControllerId{query.text(0)};
}

Result<std::int64_t> Registry::data_version() { return impl_->db.data_version(); }

// --- Providers -----------------------------------------------------------------------------------------------------

Result<void> Registry::add_provider(const Provider& p) {
  TRY_ASSIGN(db::Transaction transaction, db::Transaction::begin(impl_->db));
  db::Statement insert = impl_->db.prepare(
      "INSERT INTO providers(name, facts, drained, liveness, last_seen_ms) VALUES(?,?,?,?,?) "
      "ON CONFLICT(name) DO NOTHING");
  const auto seen = p.last_seen_at ? std::optional{p.last_seen_at->ms} : std::nullopt;
  TRY(insert.bind(p.name.value, to_json(p), p.drained, p.liveness, seen).run());
  if (impl_->db.changes() == 0)
    return make_error(Code::exists, "a provider named '" + p.name.value + "' is already registered",
                      "gridctl provider rm " + p.name.value);
  TRY(impl_->save_ways(p));
  TRY(impl_->save_listing(p));
  return transaction.commit();
}

Result<void> Registry::update_provider(const Provider& p) {
  TRY_ASSIGN(db::Transaction transaction, db::Transaction::begin(impl_->db));
  TRY(impl_->db.prepare("UPDATE providers SET facts = ?, drained = ? WHERE name = ?")
          .bind(to_json(p), p.drained, p.name.value)
          .run());
  if (impl_->db.changes() > 0) {
    TRY(impl_->save_ways(p));
    TRY(impl_->save_listing(p));
  }
  return transaction.commit();
}

Result<void> Registry::set_liveness(const HostName& name, const std::string& liveness, std::optional<WallTime> seen) {
  db::Statement update =
      impl_->db.prepare("UPDATE providers SET liveness = ?, last_seen_ms = coalesce(?, last_seen_ms) WHERE name = ?");
  return update.bind(liveness, seen ? std::optional{seen->ms} : std::nullopt, name.value).run();
}

Result<void> Registry::remove_provider(const HostName& name) {
  TRY_ASSIGN(db::Transaction transaction, db::Transaction::begin(impl_->db));
  TRY(impl_->db.prepare("DELETE FROM providers WHERE name = ?").bind(name.value).run());
  TRY(impl_->forget_host(name));
  return transaction.commit();
}

namespace {
constexpr std::string_view k_hosts =
    "SELECT p.name, p.facts, f.numbers, p.drained, p.liveness, p.last_seen_ms, "
    "(SELECT group_concat(way, char(30)) FROM "
    "(SELECT w.address || char(31) || w.facts AS way FROM ways w WHERE w.provider = p.name ORDER BY w.n)) "
    "FROM providers p LEFT JOIN figures f ON f.provider = p.name ";

Result<Provider> parsed(std::string_view facts, std::string_view figures, std::string_view ways) {
  TRY_ASSIGN(Provider p, parse_provider(facts));
  TRY(read_ways(ways, p));
  if (!figures.empty()) read_figures(figures, p.figures);
  return p;
}

void read_news(const db::Statement& row, Provider& p) {
  p.drained = row.integer(3) != 0;
  p.liveness = row.text(4);
  if (!row.is_null(5)) p.last_seen_at = WallTime{row.integer(5)};
}
}  // namespace

Result<Provider> Registry::provider(const HostName& name) {
  db::Statement query = impl_->db.prepare(std::string(k_hosts) + "WHERE p.name = ?");
  TRY_ASSIGN(const bool row, query.bind(name.value).next());
  if (row) {
    TRY_ASSIGN(Provider found, parsed(query.view(1), query.view(2), query.view(6)));
    read_news(query, found);
    return found;
  }
  TRY_ASSIGN(const std::vector<std::string> names,
             impl_->db.prepare("SELECT name FROM providers ORDER BY name").all([](const auto& other) {
               return other.text(0);
             }));
  const std::string near = nearest(name.value, names);
  return make_error(
      Code::not_found,
      "no provider named '" + name.value.substr(0, 64) + "'" + (near.empty() ? "" : "; did you mean '" + near + "'?"),
      "gridctl provider ls");
}

Result<std::vector<Provider>> Registry::providers() {
  db::Statement query = impl_->db.prepare(std::string(k_hosts) + "ORDER BY p.name");
  const bool remembers = std::exchange(impl_->asks_again, true);
  std::map<std::string, Impl::KnownHost> known;
  std::vector<Provider> all;
  for (;;) {
    TRY_ASSIGN(const bool row, query.next());
    if (!row) break;
    const std::string_view facts = query.view(1), figures = query.view(2), ways = query.view(6);
    auto before = impl_->known_hosts.extract(query.text(0));
    if (!before.empty() && before.mapped().facts == facts && before.mapped().figures == figures &&
        before.mapped().ways == ways) {
      all.push_back(before.mapped().parsed);
      known.insert(known.end(), std::move(before));
    } else {
      TRY_ASSIGN(Provider p, parsed(facts, figures, ways));
      if (remembers) known.insert_or_assign(query.text(0), Impl::KnownHost{std::string(facts), std::string(figures), std::string(ways), p});
      all.push_back(std::move(p));
    }
    read_news(query, all.back());
  }
  impl_->known_hosts = std::move(known);
  return all;
}

Result<std::vector<JobId>> Registry::jobs_on(const HostName& name) {
  // Names are words, so that JSON has them as they are; most jobs are told by that without being unpacked.
  const std::string quoted = '"' + name.value + '"';
  db::Statement query = impl_->db.prepare("SELECT machine, id FROM jobs WHERE unfinished = 1 ORDER BY n");
  std::vector<JobId> found;
  for (;;) {
    TRY_ASSIGN(const bool row, query.next());
    if (!row) return found;
    if (query.view(0).find(quoted) == std::string_view::npos) continue;
    const Result<job::State> state = job::parse_state(query.text(0));
    const job::Attempt* attempt = state ? state->attempt() : nullptr;
    bool here = !state || (attempt != nullptr && attempt->on(name) != nullptr);  // unreadable, but it names the host
    if (state)
      for (const job::PendingCleanup& end : state->pending_cleanups) here = here || end.host == name;
    if (here) found.push_back({query.text(1)});
  }
}

Result<CheckpointName> parse_checkpoint_name(const std::string& text) {
  CheckpointName name{text, std::nullopt};
  const std::size_t at = text.rfind('@');
  if (at == std::string::npos || at == 0) return name;
  const std::string number = text.substr(at + 1);
  if (number.empty() || number.size() > 18 || number.find_first_not_of("0123456789") != std::string::npos)
    return make_error(Code::usage,
                      "'" + text.substr(0, 80) + "' does not name a checkpoint: expected JOB or JOB@NUMBER");
  name.job = text.substr(0, at);
  name.seq = CheckpointSeq{std::stoull(number)};
  return name;
}

}  // namespace gridctl::registry
