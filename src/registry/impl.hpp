// SPDX-License-Identifier: Apache-2.0
// Declarations that the registry's source files share. Not for other rooms.
#pragma once

#include <map>
#include <string>

#include "db/database.hpp"
#include "registry/registry.hpp"

namespace gridctl::registry {

// Holds for an attempt `a` on a host with a price of its owner's, which has said since that it makes no receipt for it.
#define GRIDCTL_NO_RECEIPT                                                                                      \
  "EXISTS (SELECT 1 FROM receipt_chains c WHERE c.provider = a.provider AND a.ended_ms < c.told_ms "            \
  "AND instr(c.pending, ' ' || a.job || '.' || a.epoch || ' ') = 0 AND EXISTS (SELECT 1 FROM accepted_rates x " \
  "WHERE x.chain = c.chain AND x.at_ms <= COALESCE(a.started_ms, a.ended_ms)))"
// Holds for an attempt `a` whose cost is not settled: one with a receipt costs what that says.
#define GRIDCTL_UNBILLED \
  "(NOT EXISTS (SELECT 1 FROM receipts r WHERE r.job = a.job AND r.epoch = a.epoch) AND NOT " GRIDCTL_NO_RECEIPT ")"

// The amount of receipts from ?2 until ?1, over attempts that had not ended by ?3, in USD: of one that began before, the
// share of its time.
inline constexpr std::string_view k_billed =
    "SELECT SUM(r.counted_micro * CASE WHEN a.started_ms < ?2 AND a.ended_ms > a.started_ms "
    "THEN CAST(MIN(a.ended_ms, ?1) - ?2 AS REAL) / (a.ended_ms - a.started_ms) ELSE 1.0 END) / 1e6 "
    "FROM receipts r JOIN attempts a ON a.job = r.job AND a.epoch = r.epoch WHERE (a.ended_ms IS NULL OR a.ended_ms > ?3)";

// The amount that changed prices add from ?2 until ?1, over attempts that had not ended by ?3, in USD.
inline constexpr std::string_view k_price_changes =
    "SELECT SUM(c.more * MAX(COALESCE(a.ended_ms, ?1) - MAX(a.started_ms, c.at_ms, ?2), 0)) / 3.6e6 "
    "FROM price_changes c JOIN attempts a ON a.job = c.job AND a.number = c.number "
    "WHERE a.started_ms IS NOT NULL AND (a.ended_ms IS NULL OR a.ended_ms > ?3) AND " GRIDCTL_UNBILLED;

// The amount that pauses take off from ?2 until ?1, over attempts that had not ended by ?3: milliseconds times price.
inline constexpr std::string_view k_unbilled_price = "a.price * " GRIDCTL_UNBILLED;
inline constexpr std::string_view k_paused_ms =
    "MAX(MIN(COALESCE(p.until_ms, ?1), COALESCE(a.ended_ms, ?1)) - MAX(p.from_ms, a.started_ms, ?2), 0)";
inline constexpr std::string_view k_paused_from =
    " FROM pauses p JOIN attempts a ON a.job = p.job AND a.number = p.number "
    "WHERE a.started_ms IS NOT NULL AND (a.ended_ms IS NULL OR a.ended_ms > ?3)";

// The cost of forgotten jobs in a month stands in `meta` under this key and their owner.
[[nodiscard]] inline std::string forgotten_key(WallTime month_begins) {
  return "forgotten." + std::to_string(month_begins.ms) + ".";
}

struct Registry::Impl {
  os::Path directory;
  db::Database db;
  // Hosts as read last: most have not changed when a daemon asks again, and to parse them takes longer than all the rest.
  struct KnownHost {
    std::string facts, figures, ways;
    Provider parsed;
  };
  std::map<std::string, KnownHost> known_hosts;
  bool asks_again = false;  // who asks once remembers nothing

  Impl(os::Path dir, db::Database database) : directory(std::move(dir)), db(std::move(database)) {}

  [[nodiscard]] Result<job::State> load_machine(const JobId& id);
  // Within a transaction of the caller: the state with its projections, records and attempt rows.
  [[nodiscard]] Result<void> save_inputs(const JobId& id, const std::vector<Input>& inputs);
  [[nodiscard]] Result<void> save_step(const JobId& id, const job::Step& step, WallTime at);
  [[nodiscard]] Result<void> save_record(const JobId& id, WallTime at, AttemptNumber attempt,
                                         const job::Record& record);
  // Within a transaction of the caller.
  [[nodiscard]] Result<void> save_listing(const Provider& provider);
  [[nodiscard]] Result<void> save_ways(const Provider& provider);
  [[nodiscard]] Result<void> load_figures(Provider& provider);
  [[nodiscard]] Result<void> forget_host(const HostName& name);  // within a transaction of the caller
  // Without its twins. `list`: its attempts.
  [[nodiscard]] Result<Spent> spent_alone(const std::vector<AttemptRecord>& list, const JobId& id, WallTime now);
  [[nodiscard]] Result<void> save_attempt(const JobId& id, const job::AttemptRow& row);
  [[nodiscard]] Result<void> save_member(const JobId& id, AttemptNumber number, const job::Member& member);
  [[nodiscard]] Result<void> load_members(const JobId& id, std::vector<AttemptRecord>& attempts);
};

// "ADDRESS\x1fFACTS\x1e…", as k_hosts of registry.cpp asks for them.
[[nodiscard]] Result<void> read_ways(std::string_view text, Provider& provider);

}  // namespace gridctl::registry
