// SPDX-License-Identifier: Apache-2.0
// The schema of state.db. Change it only by a new version with a migration.
#pragma once

#include <cstdint>

namespace gridctl::registry {

inline constexpr std::int64_t k_schema_version = 1;

inline constexpr const char* k_schema = R"sql(
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;

CREATE TABLE providers(
  name TEXT PRIMARY KEY,
  facts TEXT NOT NULL,            -- everything but what follows, as JSON
  drained INTEGER NOT NULL,
  liveness TEXT NOT NULL,
  last_seen_ms INTEGER            -- wall clock
) STRICT, WITHOUT ROWID;

CREATE TABLE jobs(
  n INTEGER PRIMARY KEY,          -- order of submission
  id TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL,
  spec TEXT NOT NULL,             -- job::Spec as JSON
  machine TEXT NOT NULL,          -- job::State as JSON: the truth; the columns below are read from it
  state TEXT NOT NULL,
  reason TEXT NOT NULL,
  provider TEXT NOT NULL,
  resources TEXT NOT NULL,
  epoch INTEGER NOT NULL,         -- the fence that a checkpoint commit tests
  head INTEGER NOT NULL,
  unfinished INTEGER NOT NULL,    -- State::needs_supervisor()
  exit_code INTEGER,
  recoveries INTEGER NOT NULL,
  submitted_ms INTEGER NOT NULL,
  ended_ms INTEGER,
  explanation TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX jobs_by_name ON jobs(name, n);
CREATE INDEX jobs_unfinished ON jobs(n) WHERE unfinished = 1;

CREATE TABLE inputs(
  job TEXT NOT NULL,
  role TEXT NOT NULL,
  target TEXT NOT NULL,
  root TEXT NOT NULL,             -- hex
  bytes INTEGER NOT NULL,
  PRIMARY KEY(job, role, target)
) STRICT, WITHOUT ROWID;

CREATE TABLE attempts(
  job TEXT NOT NULL,
  number INTEGER NOT NULL,
  epoch INTEGER NOT NULL,
  provider TEXT NOT NULL,
  state TEXT NOT NULL,
  reason TEXT NOT NULL,
  why TEXT NOT NULL,
  price REAL NOT NULL,
  started_ms INTEGER,
  ended_ms INTEGER,
  resumed_from INTEGER NOT NULL,
  exit_code INTEGER,
  PRIMARY KEY(job, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE events(
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  job TEXT NOT NULL,
  at_ms INTEGER NOT NULL,
  kind TEXT NOT NULL,
  text TEXT NOT NULL,
  epoch INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  host TEXT NOT NULL
) STRICT;
CREATE INDEX events_by_job ON events(job, id);

CREATE TABLE checkpoints(
  job TEXT NOT NULL,
  seq INTEGER NOT NULL,
  epoch INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  root TEXT NOT NULL,             -- hex
  created_ms INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  stored_bytes INTEGER NOT NULL,
  files INTEGER NOT NULL,
  host_number INTEGER NOT NULL,
  verified INTEGER NOT NULL,
  pinned INTEGER NOT NULL,
  stray INTEGER NOT NULL,
  how TEXT NOT NULL,
  PRIMARY KEY(job, seq)
) STRICT, WITHOUT ROWID;
)sql";

}  // namespace gridctl::registry
