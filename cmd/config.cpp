// SPDX-License-Identifier: Apache-2.0
// Implements the settings of the state directory: `config ls`, `get` and `set`.
#include "cmd/commands.hpp"
#include "control/daemon/user_settings.hpp"
#include "ui/table.hpp"

namespace gridctl::cmd {

namespace config_commands {
namespace {
Result<int> ls(Context& context, const Parsed&) {
  TRY_ASSIGN(const control::UserSettings settings, control::read_settings(context.paths()));
  JsonObject json;
  ui::Table table({{.title = "KEY"}, {.title = "VALUE", .shrinks = true}, {.title = "MEANING", .shrinks = true}});
  for (const control::SettingText& text : control::setting_texts()) {
    const auto found = settings.find(std::string(text.key));
    const auto here = control::from_environment(text);
    const std::string value = here.value_or(found == settings.end() ? "" : found->second);
    json.text_or_null(text.key, value);
    table.add({std::string(text.key),
               here            ? value + " (" + std::string(text.variable) + ")"
               : value.empty() ? text.fallback.empty() ? "-" : "(" + std::string(text.fallback) + ")"
                               : value,
               std::string(text.help)});
  }
  return context.json ? context.print_line(json.text()) : context.print(table.render(context.columns_out(), context.out_style));
}

Result<int> get(Context& context, const Parsed& parsed) {
  TRY_ASSIGN(const control::SettingText* text, control::find_setting(parsed.positionals[0]));
  TRY_ASSIGN(const control::UserSettings settings, control::read_settings(context.paths()));
  const auto found = settings.find(std::string(text->key));
  const std::string value = control::from_environment(*text).value_or(found == settings.end() ? "" : found->second);
  return context.print_line(context.json ? JsonObject().text_or_null(text->key, value).text() : value);
}

Result<int> set(Context& context, const Parsed& parsed) {
  TRY(control::change_setting(context.paths(), parsed.positionals[0], parsed.positionals[1]));
  return context.json ? context.print_line(JsonObject().text_or_null(parsed.positionals[0], parsed.positionals[1]).text()) : 0;
}
}  // namespace
}  // namespace config_commands

const Command k_config_ls{.name = "config ls",
                          .summary = "list the settings",
                          .examples = {{"All settings", "gridctl config ls"}},
                          .description =
                              "Lists the settings of the state directory. Parentheses mark a default, and the "
                              "environment variable that overrides a "
                              "setting: GRIDCTL_HEALTH_EVERY for health.every, GRIDCTL_RECHECK for gpu.recheck.",
                          .exit_codes = k_exits_state,
                          .run = config_commands::ls};
const Command k_config_get{.name = "config get",
                           .summary = "print a setting",
                           .examples = {{"One setting", "gridctl config get notify.on"}},
                           .description = "Prints the value of a setting, or an empty line if the default applies.",
                           .positionals = {{"KEY"}},
                           .exit_codes = k_exits_job,
                           .run = config_commands::get};
const Command k_config_set{
    .name = "config set",
    .summary = "change a setting",
    .examples = {{"Post to a chat when a job ends, or when a budget stops it",
                  "gridctl config set notify.webhook https://chat.example/hook"},
                 {"Notify of some events only", "gridctl config set notify.on failure,silence"},
                 {"Ask hosts for their health more often", "gridctl config set health.every 30s"},
                 {"Show a message on this desktop",
                  "gridctl config set notify.command 'notify-send \"$GRIDCTL_MESSAGE\"'"},
                 {"Go back to the default", "gridctl config set notify.on ''"}},
    .description =
        "Changes a setting of the state directory; an empty value restores the default. Changes apply at once, also to "
        "a running daemon, unless the setting says otherwise.\n\nNotifications (notify.*) go out when a job ends or "
        "fails, runs again after a move or a restart, or is stopped by a budget or limit, and when a host no longer "
        "answers. Each is sent at most once. A receiver that is down is retried for about 13 minutes; a try ends after "
        "30 s and delays nothing else. Job files have notify rules of their own: gridctl-job(5).",
    .positionals = {{"KEY"}, {"VALUE"}},
    .exit_codes = k_exits_job,
    .run = config_commands::set};

}  // namespace gridctl::cmd
