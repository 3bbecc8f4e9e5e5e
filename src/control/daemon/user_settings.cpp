// SPDX-License-Identifier: Apache-2.0
#include "control/daemon/user_settings.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/names.hpp"
#include "base/text.hpp"
#include "os/entries.hpp"
#include "os/log.hpp"

namespace gridctl::control {

namespace {
constexpr std::size_t k_value_max = 4096;

os::Path settings_file(const Paths& paths) { return paths.root / "settings.json"; }

std::vector<job::Notice> notices_in(const std::string& value) {
  std::vector<job::Notice> notices;
  for (const std::string& word : split(value, ','))
    if (const auto notice = job::notice_name.find(trim(word))) notices.push_back(*notice);
  return notices;
}

Result<void> check_notices(const std::string& value) {
  if (notices_in(value).size() == split(value, ',').size()) return {};
  return make_error(Code::usage, "expected one or more of " + job::notice_name.choices() + ", separated by commas");
}
Result<void> check_webhook(const std::string& value) {
  if (value.starts_with("http://") || value.starts_with("https://")) return {};
  return make_error(Code::usage, "expected a URL that begins with http:// or https://");
}
Result<void> check_mail(const std::string& value) {
  if (value.find('@') != std::string::npos && value.find_first_of(" \r\n,<>") == std::string::npos) return {};
  return make_error(Code::usage, "expected one address such as ada@example.org");
}
enum class Switch : std::uint8_t { no, yes };
constexpr Names<Switch, Switch::yes> k_switch{"no", "yes"};
Result<void> check_switch(const std::string& value) {
  if (k_switch.find(value)) return {};
  return make_error(Code::usage, "expected yes or no");
}
Result<void> check_any(const std::string&) { return {}; }
Result<void> check_path(const std::string& value) {
  if (value.starts_with('/')) return {};
  return make_error(Code::usage, "expected an absolute path");
}

constexpr std::string_view k_off = "off";
Result<void> check_period(const std::string& value) {
  if (value == k_off || parse_duration(value)) return {};
  return make_error(Code::usage, "expected a duration such as 30s or 12h, or off");
}

constexpr std::string_view k_on = "notify.on", k_command = "notify.command", k_webhook = "notify.webhook", k_mail = "notify.mail",
                           k_job_commands = "notify.job_commands", k_sendmail = "notify.sendmail",
                           k_health = "health.every", k_recheck = "gpu.recheck";
constexpr SettingText k_settings[] = {
    {k_on, "events to notify of: end, failure, move, budget, silence", "all", check_notices},
    {k_command, "shell command to run on this machine; it gets the notification as JSON on standard input", "", check_any},
    {k_webhook, "URL that gets the notification by POST, as JSON", "", check_webhook},
    {k_mail, "mail address, served by sendmail", "", check_mail},
    {k_job_commands, "whether notify.command of a job file may run on this machine", "no", check_switch},
    {k_sendmail, "path of sendmail", "in PATH, /usr/sbin or /usr/lib", check_path},
    {k_health, "how often the daemon asks each host for its health, 1s to 24h, or off; from the daemon's next start", "1m", check_period,
     "GRIDCTL_HEALTH_EVERY"},
    {k_recheck, "how often the daemon challenges an idle GPU on average, or off; from the daemon's next start", "12h", check_period,
     "GRIDCTL_RECHECK"},
};

std::string value_of(const UserSettings& settings, std::string_view key) {
  const auto found = settings.find(std::string(key));
  return found == settings.end() ? "" : found->second;
}

Duration period_of(const UserSettings& settings, std::string_view key, Duration least, Duration most) {
  const SettingText& text = *std::ranges::find(k_settings, key, &SettingText::key);
  std::string value = from_environment(text).value_or(value_of(settings, key));
  if (value.empty() || !text.check(value)) value = text.fallback;
  if (value == k_off) return Duration::zero();
  return std::clamp(*parse_duration(value), least, most);
}
}  // namespace

std::span<const SettingText> setting_texts() { return k_settings; }

Result<const SettingText*> find_setting(const std::string& key) {
  std::vector<std::string> known;
  for (const SettingText& text : k_settings) {
    if (text.key == key) return &text;
    known.emplace_back(text.key);
  }
  const std::string near = nearest(key, known);
  return make_error(Code::not_found, "no setting '" + sanitize(key) + "'" + (near.empty() ? "" : "; did you mean '" + near + "'?"),
                    "gridctl config ls");
}

Result<UserSettings> read_settings(const Paths& paths) {
  if (!os::exists(settings_file(paths))) return UserSettings{};
  TRY_ASSIGN(const std::string text, os::read_file(settings_file(paths), 1u << 20));
  const nlohmann::json read = nlohmann::json::parse(text, nullptr, false);
  if (!read.is_object())
    return make_error(Code::state_unreadable, "the settings in " + settings_file(paths).string() + " are not readable as JSON",
                      "rm " + shell_quote(settings_file(paths).string()));
  UserSettings settings;
  for (const auto& [key, value] : read.items())
    if (value.is_string()) settings[key] = value.get<std::string>();
  return settings;
}

Result<void> change_setting(const Paths& paths, const std::string& key, const std::string& value) {
  TRY_ASSIGN(const SettingText* text, find_setting(key));
  if (!value.empty()) {
    const Result<void> ok = value.size() > k_value_max ? make_error(Code::usage, "expected at most 4096 bytes") : text->check(value);
    if (!ok) return make_error(Code::usage, key + ": " + ok.error().message + ", got '" + sanitize(value.substr(0, 80)) + "'", "gridctl config ls");
  }
  TRY(os::make_directories(paths.root, 0700));
  TRY_ASSIGN(const os::FileLock lock, os::FileLock::acquire(settings_file(paths).string() + ".lock"));
  TRY_ASSIGN(UserSettings settings, read_settings(paths));
  if (value.empty()) settings.erase(key);
  else settings[key] = value;
  return os::write_file_durably(settings_file(paths), nlohmann::json(settings).dump(2) + "\n");
}

Result<void> write_notify_rules(const Paths& paths, const JobId& id, const std::vector<job::Notify>& rules) {
  const os::Path file = paths.logs_of(id) / "notify.json";
  if (rules.empty()) return os::exists(file) ? os::remove_file(file) : Result<void>{};
  TRY(os::make_directories(file.parent_path()));
  return os::write_file_durably(file, job::to_json(rules));
}

Result<std::vector<job::Notify>> read_notify_rules(const Paths& paths, const JobId& id) {
  const os::Path file = paths.logs_of(id) / "notify.json";
  if (!os::exists(file)) return std::vector<job::Notify>{};
  TRY_ASSIGN(const std::string text, os::read_file(file, 1u << 20));
  return job::parse_notify(text);
}

job::Notify notify_of(const UserSettings& settings) {
  return {notices_in(value_of(settings, k_on)), value_of(settings, k_command), value_of(settings, k_webhook), value_of(settings, k_mail)};
}

bool may_run_job_commands(const UserSettings& settings) { return k_switch.find(value_of(settings, k_job_commands)) == Switch::yes; }
Duration health_period(const UserSettings& settings) {
  return period_of(settings, k_health, std::chrono::seconds{1}, std::chrono::hours{24});
}
Duration recheck_period(const UserSettings& settings) { return period_of(settings, k_recheck, std::chrono::seconds{1}, Duration::max()); }
std::optional<std::string> from_environment(const SettingText& setting) {
  if (setting.variable.empty()) return std::nullopt;
  const auto said = os::environment(setting.variable);
  if (!said || said->empty()) return std::nullopt;
  if (const Result<void> ok = setting.check(*said); !ok) {
    os::log(os::LogLevel::warn, std::string(setting.variable) + " is not used: " + ok.error().message);
    return std::nullopt;
  }
  return said;
}
std::string sendmail_of(const UserSettings& settings) { return value_of(settings, k_sendmail); }

}  // namespace gridctl::control
