// SPDX-License-Identifier: Apache-2.0
#include "registry/feed.hpp"

#include "registry/impl.hpp"

namespace gridctl::registry {

struct Feed::State {
  db::Database db;
};

Feed::Feed(std::unique_ptr<State> state) : state_(std::move(state)) {}
Feed::Feed(Feed&&) noexcept = default;
Feed::~Feed() = default;

Result<Feed> Feed::open(const os::Path& state_directory) {
  TRY_ASSIGN(db::Database db, db::Database::open(state_directory / "state.db"));
  return Feed(std::make_unique<State>(std::move(db)));
}

Result<Feed::Newest> Feed::newest() {
  db::Statement query = state_->db.prepare(
      "SELECT (SELECT coalesce(max(id), 0) FROM events), (SELECT coalesce(max(id), 0) FROM host_events)");
  TRY_ASSIGN(const bool row, query.next());
  return row ? Newest{query.integer(0), query.integer(1)} : Newest{};
}

Result<std::vector<EventRecord>> Feed::events(std::int64_t after, std::size_t limit) {
  db::Statement query = state_->db.prepare(
      "SELECT id, job, at_ms, kind, text, attempt, host FROM events WHERE id > ? ORDER BY id LIMIT ?");
  return query.bind(after, static_cast<std::int64_t>(limit)).all([](const db::Statement& row) {
    EventRecord event;
    event.id = row.integer(0);
    event.job = {row.text(1)};
    event.at = {row.integer(2)};
    event.kind = row.text(3);
    event.text = row.text(4);
    event.attempt = {row.count(5)};
    event.host = {row.text(6)};
    return event;
  });
}

Result<std::vector<HostEvent>> Feed::host_events(std::int64_t after, std::size_t limit) {
  db::Statement query = state_->db.prepare(
      "SELECT id, provider, at_ms, kind, text FROM host_events WHERE id > ? ORDER BY id LIMIT ?");
  return query.bind(after, static_cast<std::int64_t>(limit)).all([](const db::Statement& row) {
    return HostEvent{row.integer(0), {row.text(1)}, {row.integer(2)}, row.text(3), row.text(4)};
  });
}

}  // namespace gridctl::registry
