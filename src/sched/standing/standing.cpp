// SPDX-License-Identifier: Apache-2.0
#include "sched/standing/standing.hpp"

#include <algorithm>

#include "base/names.hpp"

namespace gridctl::sched {
namespace {

constexpr std::int64_t k_ms = 1'000'000;  // nanoseconds
constexpr int k_doublings_max = 10;

WallTime later(WallTime time, Duration by) { return {time.ms + by.count() / k_ms}; }

Duration hold_of(const Sign& sign, int strikes) {
  if (sign.weight == Weight::grave && !sign.lasting) return k_hold_grave;
  const Duration first = sign.lasting ? k_hold_lasting : k_hold_event;
  return std::min(k_hold_max, first * (1 << std::clamp(strikes - 1, 0, k_doublings_max)));
}

class Judge {
 public:
  Judge(const HostStanding& before, const Look& look, bool checked) : look_(look), checked_(checked) {
    verdict_.next = before;
    rebooted_ = !before.boot_id.empty() && before.boot_id != look.boot_id;
  }

  Judgement run() {
    HostStanding& next = verdict_.next;
    next.boot_id = look_.boot_id;
    next.log_us = rebooted_ ? look_.log_us : std::max(next.log_us, look_.log_us);
    next.busy = look_.busy;
    next.file_system_errors = look_.file_system_errors;
    next.clock_base_ms = look_.clock_base_ms;
    if (rebooted_) next.uncorrected.clear();
    for (const auto& [unit, count] : look_.uncorrected) next.uncorrected[unit] = count;
    note();
    std::set<std::string> units = look_.looked_at;
    for (const auto& [unit, standing] : next.units) units.insert(unit);
    for (const Sign& sign : look_.signs)
      if (sign.weight != Weight::note) units.insert(sign.unit);
    for (const std::string& unit : units) judge_unit(unit);
    std::erase_if(next.units, [](const auto& entry) {
      return entry.second.state == UnitState::ok && entry.second.strikes == 0 && entry.second.doubts == 0;
    });
    return std::move(verdict_);
  }

 private:
  void change(const std::string& unit, std::string_view kind, const std::string& code, const std::string& text) {
    verdict_.changes.push_back({unit, std::string(kind), code, text});
  }

  // A lasting note is reported when it begins.
  void note() {
    std::set<std::string> noted;
    for (const Sign& sign : look_.signs) {
      if (sign.weight != Weight::note) continue;
      const std::string key = sign.unit + " " + sign.code;
      const bool known = sign.lasting && verdict_.next.noted.contains(key);
      if (sign.lasting) noted.insert(key);
      if (!known) change(sign.unit, "noted", sign.code, sign.text);
    }
    // A finding that was not examined this time may still be true.
    for (const std::string& key : verdict_.next.noted)
      if (!look_.looked_at.contains(key.substr(0, key.find(' ')))) noted.insert(key);
    verdict_.next.noted = std::move(noted);
  }

  // Returns the most severe of the unit's signs that count; doubts count only when they repeat.
  [[nodiscard]] const Sign* worst(const std::string& unit, UnitStanding& standing) const {
    const Sign* found = nullptr;
    bool doubted = false;
    for (const Sign& sign : look_.signs) {
      if (sign.unit != unit || sign.weight == Weight::note) continue;
      if (sign.weight == Weight::doubt) {
        doubted = true;
        const bool repeated = standing.doubts > 0 || standing.state == UnitState::quarantined;
        if (!repeated) continue;
      }
      if (found == nullptr || sign.weight > found->weight) found = &sign;
    }
    standing.doubts = doubted ? standing.doubts + 1 : 0;
    return found;
  }

  void judge_unit(const std::string& unit) {
    UnitStanding& standing = verdict_.next.units[unit];
    if (standing.strikes > 0 && later(standing.struck_at, k_strikes_forgotten) < look_.now &&
        standing.state == UnitState::ok)
      standing = {};
    // A wall clock that was set back must not make a quarantine endless.
    standing.until = std::min(standing.until, later(look_.now, k_hold_max));
    if (const Sign* sign = worst(unit, standing)) return strike(unit, standing, *sign);
    if (standing.doubts > 0) {
      standing.clean = 0;
      return;
    }
    if (look_.looked_at.contains(unit)) improve(unit, standing);
  }

  void strike(const std::string& unit, UnitStanding& standing, const Sign& sign) {
    const bool fresh = standing.state != UnitState::quarantined;
    const int strikes = fresh ? standing.strikes + 1 : standing.strikes;
    const WallTime until = later(sign.lasting ? look_.now : sign.at, hold_of(sign, strikes));
    if (fresh && until <= look_.now) return change(unit, "noted", sign.code, sign.text);  // long ago, and over
    standing.clean = 0;
    standing.until = std::max(standing.until, until);
    if (!fresh) return;
    standing.state = UnitState::quarantined;
    standing.code = sign.code;
    standing.text = sign.text;
    standing.since = standing.struck_at = look_.now;
    standing.until = until;
    standing.strikes = strikes;
    change(unit, unit_state_name(UnitState::quarantined), sign.code, sign.text);
  }

  void improve(const std::string& unit, UnitStanding& standing) {
    ++standing.clean;
    if (standing.state == UnitState::ok) return;
    if (checked_) {
      change(unit, "cleared", standing.code, "checked and found clean; before: " + standing.text);
      standing = {};
      return;
    }
    if (standing.state == UnitState::quarantined) {
      const bool long_enough = rebooted_ || standing.until <= look_.now;
      if (!long_enough || standing.clean < (rebooted_ ? 1 : k_clean_for_probation)) return;
      standing.state = UnitState::probation;
      standing.since = look_.now;
      standing.clean = 0;
      return change(unit, "probation", standing.code,
                    std::string(rebooted_ ? "clean after a restart" : "clean again") + "; before: " + standing.text);
    }
    if (later(standing.since, k_probation) > look_.now || standing.clean < k_clean_for_ok) return;
    standing.state = UnitState::ok;
    change(unit, "cleared", standing.code, "clean for " + format_duration(k_probation));
    standing.since = look_.now;
  }

  const Look& look_;
  bool checked_;
  bool rebooted_ = false;
  Judgement verdict_;
};

}  // namespace

UnitState HostStanding::state_of(const std::string& unit) const {
  const auto found = units.find(unit);
  return found == units.end() ? UnitState::ok : found->second.state;
}

bool is_gpu_failure(const Change& change) {
  return change.kind == unit_state_name(UnitState::quarantined) && !change.unit.empty() && !change.code.starts_with("driver_") &&
         !change.code.starts_with("leftover_");
}

Judgement judge(const HostStanding& before, const Look& look) { return Judge(before, look, false).run(); }
Judgement judge_checked(const HostStanding& before, const Look& look) { return Judge(before, look, true).run(); }

}  // namespace gridctl::sched
