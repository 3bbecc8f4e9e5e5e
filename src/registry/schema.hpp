// SPDX-License-Identifier: Apache-2.0
// The schema of state.db as the steps that lead to it: entry n brings version n to version n + 1. Never change a step
// that was released; add one.
#pragma once

#include <array>
#include <cstdint>

namespace gridctl::registry {

inline constexpr std::array k_schema_steps = {
    // 0 -> 1: jobs and what they run on
    R"sql(
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
  unfinished INTEGER NOT NULL,    -- State::needs_controller()
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
)sql",
    // 1 -> 2: what is known of hosts over time
    R"sql(
CREATE TABLE host_events(
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  provider TEXT NOT NULL,
  at_ms INTEGER NOT NULL,
  kind TEXT NOT NULL,
  text TEXT NOT NULL
) STRICT;
CREATE INDEX host_events_by_provider ON host_events(provider, id);

CREATE TABLE host_reports(        -- the newest of each kind
  provider TEXT NOT NULL,
  kind TEXT NOT NULL,
  at_ms INTEGER NOT NULL,
  body TEXT NOT NULL,             -- JSON of the kind's own shape
  PRIMARY KEY(provider, kind)
) STRICT, WITHOUT ROWID;

CREATE TABLE host_spans(          -- how long something was watched, and whether it failed
  provider TEXT NOT NULL,
  unit TEXT NOT NULL,             -- '' = the host, else a GPU's uuid
  began_ms INTEGER NOT NULL,
  ended_ms INTEGER NOT NULL,
  cause TEXT NOT NULL,            -- '' = it did not fail: the observation ended or goes on
  PRIMARY KEY(provider, unit, began_ms)
) STRICT, WITHOUT ROWID;

CREATE TABLE links(
  source TEXT NOT NULL,           -- provider, or '@here' for this machine
  target TEXT NOT NULL,
  at_ms INTEGER NOT NULL,
  rtt_us INTEGER,
  bits_per_second REAL,           -- from source to target
  PRIMARY KEY(source, target)
) STRICT, WITHOUT ROWID;
)sql",
    // 2 -> 3: what listings read without unpacking inventories; what checkpoints cost
    R"sql(
CREATE TABLE listings(            -- made from providers.facts, again whenever `format` is not this program's
  provider TEXT PRIMARY KEY,
  format INTEGER NOT NULL,
  line TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE figures(
  provider TEXT PRIMARY KEY,
  numbers TEXT NOT NULL           -- measured, "name=value name=value"
) STRICT, WITHOUT ROWID;
CREATE INDEX providers_by_state ON providers(name, drained, liveness, last_seen_ms);
ALTER TABLE checkpoints ADD COLUMN stall_ms INTEGER;   -- how long it held the job up; NULL = not known
ALTER TABLE checkpoints ADD COLUMN upload_ms INTEGER;  -- until it was whole and verified here
)sql",
    // 3 -> 4: drills
    R"sql(
CREATE TABLE drills(              -- the newest of each name
  name TEXT PRIMARY KEY,          -- of jobs
  fingerprint TEXT NOT NULL,
  job TEXT NOT NULL,
  at_ms INTEGER NOT NULL,
  verdict TEXT NOT NULL,
  summary TEXT NOT NULL,
  took_ms INTEGER,
  steps_lost INTEGER
) STRICT, WITHOUT ROWID;
)sql",
    // 4 -> 5: which checkpoint was best
    R"sql(
ALTER TABLE checkpoints ADD COLUMN metrics TEXT;       -- what the job had told when it was taken, JSON; NULL = nothing
)sql",
    // 5 -> 6: places that keep copies
    R"sql(
CREATE TABLE places(
  n INTEGER PRIMARY KEY,          -- order of adding
  name TEXT NOT NULL UNIQUE,
  url TEXT NOT NULL,
  endpoint TEXT NOT NULL,         -- this and the next two: of S3, may be empty
  region TEXT NOT NULL,
  profile TEXT NOT NULL,
  added_ms INTEGER NOT NULL,
  answered_ms INTEGER,            -- when it last did what was asked
  trouble_ms INTEGER,             -- since when it does not; NULL = it does
  trouble_code TEXT NOT NULL DEFAULT '',
  trouble TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE TABLE copies(              -- acknowledged by the place; one without a checkpoint is to be removed there
  place TEXT NOT NULL,
  job TEXT NOT NULL,
  seq INTEGER NOT NULL,
  copied_ms INTEGER NOT NULL,
  PRIMARY KEY(place, job, seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX copies_by_job ON copies(job, seq);
)sql",
    // 6 -> 7: where places are, and whose
    R"sql(
ALTER TABLE places ADD COLUMN location TEXT NOT NULL DEFAULT '';   -- a region; '' = not known, or that of its provider
ALTER TABLE places ADD COLUMN lent INTEGER NOT NULL DEFAULT 0;     -- 1 = it belongs to others
)sql",
    // 7 -> 8: budgets of months
    R"sql(
CREATE TABLE budgets(
  owner TEXT PRIMARY KEY,         -- '' = all jobs together
  usd_month REAL NOT NULL,
  used_up TEXT NOT NULL DEFAULT ''  -- the month in which it was: what is left then is for saving and stopping
) STRICT, WITHOUT ROWID;
ALTER TABLE jobs ADD COLUMN owner TEXT NOT NULL DEFAULT '';        -- of the spec
CREATE INDEX jobs_by_owner ON jobs(owner) WHERE owner != '';
)sql",
    // 8 -> 9: prices that change while a job runs
    R"sql(
CREATE TABLE price_changes(       -- attempts.price is the one that an attempt began with
  job TEXT NOT NULL,
  number INTEGER NOT NULL,        -- of the attempt
  at_ms INTEGER NOT NULL,
  more REAL NOT NULL,             -- USD per hour that it costs more from then on
  PRIMARY KEY(job, number, at_ms)
) STRICT, WITHOUT ROWID;
)sql",
    // 9 -> 10: attempts on several hosts
    R"sql(
CREATE TABLE members(             -- of attempts; attempts.provider is that of rank 0
  job TEXT NOT NULL,
  number INTEGER NOT NULL,        -- of the attempt
  rank INTEGER NOT NULL,
  provider TEXT NOT NULL,
  price REAL NOT NULL,            -- USD per hour when it was placed
  state TEXT NOT NULL,            -- job::Part, or how it ended
  exit_code INTEGER,
  PRIMARY KEY(job, number, rank)
) STRICT, WITHOUT ROWID;
)sql",
    // 10 -> 11: checkpoints of which nobody could be sure
    R"sql(
ALTER TABLE checkpoints ADD COLUMN provisional INTEGER NOT NULL DEFAULT 0;  -- 1 = restored only when nothing better is
)sql",
    // 11 -> 12: what jobs leave in their working directories
    R"sql(
CREATE TABLE results(
  job TEXT PRIMARY KEY,
  root TEXT,                      -- hex, of the tree of its outputs; NULL = none are here
  files INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  at_ms INTEGER NOT NULL,
  left_on TEXT NOT NULL,          -- this and what follows: of what lies on a host only; '' = nothing does
  left_epoch INTEGER NOT NULL,
  left_files INTEGER NOT NULL,
  left_bytes INTEGER NOT NULL,
  left_until_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
)sql",
    // 12 -> 13: who follows jobs reads those that changed, not all
    R"sql(
ALTER TABLE jobs ADD COLUMN revision INTEGER NOT NULL DEFAULT 0;  -- higher than all others when spec or machine changed
CREATE INDEX jobs_by_revision ON jobs(revision);
CREATE TRIGGER job_added AFTER INSERT ON jobs BEGIN
  UPDATE jobs SET revision = (SELECT max(revision) + 1 FROM jobs) WHERE n = new.n;
END;
CREATE TRIGGER job_changed AFTER UPDATE OF spec, machine ON jobs BEGIN
  UPDATE jobs SET revision = (SELECT max(revision) + 1 FROM jobs) WHERE n = new.n;
END;
)sql",
    // 13 -> 14: what listings show lies together, apart from specifications and machines, long as those are
    R"sql(
CREATE INDEX jobs_listed ON jobs(n, id, name, state, reason, provider, exit_code, submitted_ms, ended_ms, recoveries, resources);
)sql",
    // 14 -> 15: attempts that were paused in place
    R"sql(
CREATE TABLE pauses(
  job TEXT NOT NULL,
  number INTEGER NOT NULL,        -- of the attempt
  from_ms INTEGER NOT NULL,
  until_ms INTEGER,               -- NULL = it is paused, or its attempt ended so
  most_ms INTEGER NOT NULL,       -- then the job moves
  PRIMARY KEY(job, number, from_ms)
) STRICT, WITHOUT ROWID;
)sql",
    // 15 -> 16: receipts of lent hosts
    R"sql(
CREATE TABLE receipt_chains(
  chain TEXT PRIMARY KEY,         -- the id of the invitation
  provider TEXT NOT NULL,
  host_key TEXT NOT NULL,         -- hex; '' = it has told none yet
  head INTEGER NOT NULL,          -- the number of the newest receipt here
  host_head INTEGER NOT NULL,     -- and there, as the host told last
  rates TEXT NOT NULL,            -- what the host asks; '' = not told yet
  agreed_micro INTEGER NOT NULL,  -- accepted up to so much for an hour of the whole host
  trouble TEXT NOT NULL,          -- what is wrong with the chain; '' = nothing
  told_ms INTEGER NOT NULL,       -- when the host was asked last, by the wall clock here
  pending TEXT NOT NULL           -- attempts that it told to have no receipt yet: ' JOB.EPOCH JOB.EPOCH '
) STRICT, WITHOUT ROWID;
CREATE TABLE accepted_rates(
  chain TEXT NOT NULL,
  at_ms INTEGER NOT NULL,
  rates TEXT NOT NULL,
  PRIMARY KEY(chain, at_ms)
) STRICT, WITHOUT ROWID;
CREATE TABLE receipts(
  chain TEXT NOT NULL,
  number INTEGER NOT NULL,
  job TEXT NOT NULL,
  epoch INTEGER NOT NULL,
  at_ms INTEGER NOT NULL,         -- when the use ended, by the host
  asked_micro INTEGER NOT NULL,   -- by the host
  counted_micro INTEGER NOT NULL, -- here: the same, or our own figure where we disagree
  agreed INTEGER NOT NULL,        -- 1 = both say the same
  line TEXT NOT NULL,             -- with both signatures
  answer TEXT NOT NULL,           -- what the host gets
  PRIMARY KEY(chain, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX receipts_by_attempt ON receipts(job, epoch);
)sql",
    // 16 -> 17: several ways to a host
    R"sql(
CREATE TABLE ways(
  provider TEXT NOT NULL,
  n INTEGER NOT NULL,             -- the order in which they are tried
  kind TEXT NOT NULL,             -- 'dial': by SSH; 'relay': its owner lends it, and it is called at the relay it dials
  address TEXT NOT NULL,          -- as shown to people
  facts TEXT NOT NULL,            -- everything else of registry::Way, as JSON
  PRIMARY KEY(provider, n)
) STRICT, WITHOUT ROWID;
INSERT INTO ways(provider, n, kind, address, facts)
  SELECT name, 0, CASE WHEN json_extract(facts, '$.address') GLOB 'lent:*' THEN 'relay' ELSE 'dial' END,
    coalesce(json_extract(facts, '$.address'), ''),
    json_object('user', json_extract(facts, '$.user'), 'host', json_extract(facts, '$.host'),
                'port', json_extract(facts, '$.port'), 'identities', json_extract(facts, '$.identities'),
                'jump', json_extract(facts, '$.jump'), 'alias', json_extract(facts, '$.alias'),
                'transport', json_extract(facts, '$.transport'))
  FROM providers;
UPDATE providers SET facts = json_remove(facts, '$.address', '$.user', '$.host', '$.port', '$.identities', '$.jump',
                                         '$.alias', '$.transport');
)sql",
    // 17 -> 18: what the user agreed to pay on a lent host besides the hours
    R"sql(
ALTER TABLE receipt_chains ADD COLUMN agreed_gigabyte_micro INTEGER NOT NULL DEFAULT 0;  -- of traffic
ALTER TABLE receipt_chains ADD COLUMN agreed_minimum_micro INTEGER NOT NULL DEFAULT 0;   -- for an attempt
)sql"};

inline constexpr std::int64_t k_schema_version = k_schema_steps.size();

}  // namespace gridctl::registry
