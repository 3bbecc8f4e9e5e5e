// SPDX-License-Identifier: Apache-2.0
// Decides whether a host and each of its GPUs may get jobs. Health reports move them between three states:
//
//   ok --bad sign--> quarantined --long enough, and clean--> probation --an hour clean--> ok
//                         ^---------------- bad sign -------------'
//
// Each return takes longer than the one before: a quarantine lasts twice as long as the last one, until a week has
// passed
// without one. Pure: time arrives with the look. Jobs on a quarantined unit continue; nothing new is placed there.
//
// A unit is quarantined for its own faults. Other users make it busy, which is not a fault and passes.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/names.hpp"
#include "base/result.hpp"
#include "base/time.hpp"

namespace gridctl::sched {

inline constexpr Duration k_hold_lasting = std::chrono::minutes{2};  // beyond the last time that it was seen
inline constexpr Duration k_hold_event = std::chrono::minutes{15};   // Slurm's and DCGM's users wait about as long
inline constexpr Duration k_hold_grave = std::chrono::hours{24};     // or until the machine was restarted
inline constexpr Duration k_hold_max = std::chrono::hours{24};
inline constexpr Duration k_probation = std::chrono::hours{1};
inline constexpr Duration k_strikes_forgotten = std::chrono::hours{24 * 7};
inline constexpr int k_clean_for_probation = 2, k_clean_for_ok = 3;  // looks running without a bad sign

enum class Weight : std::uint8_t {
  note,   // history, and nothing follows: a job's own fault, a driver that mended itself
  doubt,  // bad when it is seen in two looks running: a tool that was slow once
  bad,
  grave,  // bad, and only a reset or a restart mends it
};

struct Sign {
  std::string unit;  // a GPU's uuid; empty = the whole host
  std::string code;  // machine word: "xid-79", "disk_full"
  Weight weight = Weight::note;
  bool lasting = false;  // it is so now; else it happened at `at`
  WallTime at;
  std::string text;  // why, for people; foreign text
};

enum class UnitState : std::uint8_t { ok, quarantined, probation };
inline constexpr Names<UnitState, UnitState::probation> unit_state_name{"ok", "quarantined", "probation"};

struct UnitStanding {
  UnitState state = UnitState::ok;
  std::string code, text;  // of the sign that brought it there
  WallTime since, until;   // until: of a quarantine, not before
  int strikes = 0;         // quarantines within the last week
  WallTime struck_at;
  int clean = 0, doubts = 0;  // looks running
  bool operator==(const UnitStanding&) const = default;
};

struct HostStanding {
  std::map<std::string, UnitStanding> units;  // that are not ok, or whose past still counts; "" = the host
  std::string boot_id;
  std::uint64_t log_us = 0;                          // newest event of that boot's kernel log that was judged
  std::map<std::string, std::string> busy;           // GPU -> who uses it without a lease
  std::set<std::string> noted;                       // lasting notes that have been told: "unit code"
  std::map<std::string, std::uint64_t> uncorrected;  // GPU -> errors counted so far
  std::uint64_t file_system_errors = 0;
  std::int64_t clock_base_ms = 0;  // host's wall clock minus its boot clock
  bool operator==(const HostStanding&) const = default;

  [[nodiscard]] UnitState state_of(const std::string& unit) const;
};

// Holds the outcome of one health report.
struct Look {
  WallTime now;
  std::string boot_id;
  std::uint64_t log_us = 0;
  std::vector<Sign> signs;
  std::set<std::string> looked_at;  // units; the others can be neither clean nor bad by a lasting sign
  std::map<std::string, std::string> busy;
  std::map<std::string, std::uint64_t> uncorrected;
  std::uint64_t file_system_errors = 0;
  std::int64_t clock_base_ms = 0;
};

struct Change {
  std::string unit;
  std::string kind;  // quarantined, probation, cleared, noted
  std::string code, text;
};

// Returns true for a GPU's own failures, which show how often it fails. A driver that hangs is the host's trouble, and
// a job's leftovers are no failure.
[[nodiscard]] bool is_gpu_failure(const Change& change);

struct Judgement {
  HostStanding next;
  std::vector<Change> changes;
};
[[nodiscard]] Judgement judge(const HostStanding& before, const Look& look);

// A person requested the check: units without a bad sign in this look are ok at once, their strikes forgotten.
[[nodiscard]] Judgement judge_checked(const HostStanding& before, const Look& look);

// Interprets an Xid of NVIDIA's driver, by NVIDIA's "Xid catalog" (resolution buckets, driver 590): RESTART_APP and
// IGNORE are the program's fault or nobody's (note), 63 and 94 leave a usable GPU with bad memory (bad), errors that
// need a reset, a restart or a repair are grave, and errors that NVIDIA does not expect are bad.
struct XidMeaning {
  Weight weight = Weight::bad;
  bool jobs_fault = false;
  std::string_view text;
};
[[nodiscard]] XidMeaning xid_meaning(int code);

[[nodiscard]] std::string to_json(const HostStanding& standing);
// Ignores unknown keys; refuses anything that is not a standing.
[[nodiscard]] Result<HostStanding> parse_standing(std::string_view json);

}  // namespace gridctl::sched
