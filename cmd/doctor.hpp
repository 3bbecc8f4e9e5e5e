// SPDX-License-Identifier: Apache-2.0
// Runs the doctor's checks: this machine, the state, and every provider.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cmd/context.hpp"
#include "registry/host_records.hpp"
#include "wire/health.hpp"

namespace gridctl::cmd {

inline constexpr std::int64_t k_day_ms = 86'400'000;

enum class Severity : std::uint8_t {
  ok,
  note,     // worth knowing; nothing needs to be done
  warning,  // should be mended; jobs run in spite of it
  error,    // jobs cannot run, or what they made is in danger
};
[[nodiscard]] std::string_view severity_name(Severity severity);  // "warning"

struct Diagnosis {
  std::string provider;  // empty: this machine
  std::string point;     // stable word: "state", "ssh", "clock", "reach", "CVE-2024-6387"
  Severity severity = Severity::ok;
  std::string detail;
  std::string fix;    // a command; on that host when `provider` is set and it is no gridctl command
  int exit_code = 0;  // of the whole, when this is an error
};
using Diagnoses = std::vector<Diagnosis>;
// Returns an error of this machine or its state.
[[nodiscard]] inline Diagnosis error_here(std::string point, std::string detail, std::string fix) {
  return {"", std::move(point), Severity::error, std::move(detail), std::move(fix), 7};
}

// Examines this machine: programs, libraries, keys, the state directory and its database. Opens only files.
[[nodiscard]] Diagnoses examine_here(const Context& context);
[[nodiscard]] Diagnoses examine_keys(const std::vector<registry::Provider>& providers, WallTime now);

// Examines the records of a provider; contacts no host.
[[nodiscard]] Diagnoses examine_record(registry::HostRecords& registry, const registry::Provider& provider, WallTime now);
// Asks every provider at once, each within the available time. Also says whether our own clock is wrong.
[[nodiscard]] Diagnoses examine_hosts(const Context& context, const std::vector<registry::Provider>& providers,
                                      const ControllerId& controller, Duration patience);
// Returns known weaknesses of these programs.
[[nodiscard]] Diagnoses examine_packages(const std::string& provider, const std::vector<wire::Package>& packages);

}  // namespace gridctl::cmd
