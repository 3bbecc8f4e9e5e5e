// SPDX-License-Identifier: Apache-2.0
// Reads and changes the settings of a state directory: `gridctl config`.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>

#include "control/reach/paths.hpp"
#include "job/notify.hpp"

namespace gridctl::control {

struct SettingText {
  std::string_view key, help;
  std::string_view fallback;  // what holds when it is not set
  Result<void> (*check)(const std::string& value);
  std::string_view variable = {};  // of the environment, which wins over the file; empty: none
};
[[nodiscard]] std::span<const SettingText> setting_texts();
[[nodiscard]] Result<const SettingText*> find_setting(const std::string& key);  // not_found names the nearest

using UserSettings = std::map<std::string, std::string>;  // what is set
[[nodiscard]] Result<UserSettings> read_settings(const Paths& paths);
// An empty value resets the setting to its fallback. usage when the value is not valid.
[[nodiscard]] Result<void> change_setting(const Paths& paths, const std::string& key, const std::string& value);

// Stores one job's rules, from its file, beside its logs.
[[nodiscard]] Result<void> write_notify_rules(const Paths& paths, const JobId& id, const std::vector<job::Notify>& rules);
[[nodiscard]] Result<std::vector<job::Notify>> read_notify_rules(const Paths& paths, const JobId& id);

// Returns the rule for every job and host.
[[nodiscard]] job::Notify notify_of(const UserSettings& settings);
// Returns true if `notify.command` of a job file may run on this machine.
[[nodiscard]] bool may_run_job_commands(const UserSettings& settings);
[[nodiscard]] std::string sendmail_of(const UserSettings& settings);  // a path, or empty: to be looked for
// Returns how often the daemon asks each host for its health: 1 s to 24 h, or zero for never.
[[nodiscard]] Duration health_period(const UserSettings& settings);
// Returns how often the daemon challenges an idle GPU on average: at least 1 s, or zero for never.
[[nodiscard]] Duration recheck_period(const UserSettings& settings);
// Returns the value of the setting's environment variable if it is set and valid; the daemon logs values that are not.
[[nodiscard]] std::optional<std::string> from_environment(const SettingText& setting);

}  // namespace gridctl::control
