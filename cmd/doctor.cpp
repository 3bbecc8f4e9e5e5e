// SPDX-License-Identifier: Apache-2.0
#include "cmd/doctor.hpp"

#include "base/names.hpp"
#include "base/text.hpp"
#include "cmd/commands.hpp"
#include "control/daemon/daemon.hpp"

namespace gridctl::cmd {

namespace doctor {
namespace {
constexpr Duration k_patience =
    std::chrono::seconds{30};  // for the slowest host: login, upload of the agent, its tools

Diagnosis examine_daemon(const Context& context, registry::JobRecords& registry) {
  const Result<control::DaemonStatus> status = control::daemon_status(context.state);
  if (!status) return error_here("daemon", status.error().message, "gridctl daemon status");
  if (status->running) return {"", "daemon", Severity::ok, "running, pid " + std::to_string(status->pid), "", 0};
  const Result<std::vector<JobId>> unfinished = registry.unfinished();
  if (unfinished && !unfinished->empty())
    return error_here("daemon", "not running, so nothing follows " + ui::counted(unfinished->size(), "job"),
                      "gridctl daemon start");
  return {"", "daemon", Severity::ok, "not running; nothing to follow", "", 0};
}

void append(Diagnoses& all, Diagnoses more) {
  all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

void examine_state(const Context& context, bool offline, Duration patience, Diagnoses& all,
                   std::optional<Error>& broken) {
  Result<registry::Registry> registry = context.open_for_reading();
  if (!registry) {
    broken = registry.error();
    const std::string file = shell_quote((context.state / "state.db").string());
    const std::string fix = broken->hint.empty() ? "sqlite3 " + file + " .recover > saved.sql" : broken->hint;
    all.push_back(error_here("database", broken->one_line(), fix));
    return;
  }
  all.push_back(examine_daemon(context, *registry));
  const Result<std::vector<registry::Provider>> providers = registry->providers();
  if (!providers) {
    broken = providers.error();
    return;
  }
  append(all, examine_keys(*providers, context.now()));
  if (providers->empty()) {
    all.push_back({"", "providers", Severity::warning, "none is registered",
                   "gridctl provider register NAME ssh://user@host", 0});
    return;
  }
  for (const registry::Provider& provider : *providers) append(all, examine_record(*registry, provider, context.now()));
  const Result<ControllerId> controller = registry->controller_id();
  if (!offline && controller) append(all, examine_hosts(context, *providers, *controller, patience));
}

std::string text_of(ui::Style style, const Diagnosis& one) {
  const std::string mark = one.severity == Severity::ok        ? style(ui::Paint::green, "ok  ")
                           : one.severity == Severity::error   ? style(ui::Paint::red, "FAIL")
                           : one.severity == Severity::warning ? style(ui::Paint::yellow, "warn")
                                                               : "note";
  const std::string where = one.provider.empty() ? "" : one.provider + ": ";
  std::string text = "  " + mark + "  " + sanitize(where + one.point + ": " + one.detail) + "\n";
  if (one.severity != Severity::ok && !one.fix.empty()) {
    const bool there = !one.provider.empty() && !one.fix.starts_with("gridctl ");
    text += std::string("        ") + (there ? "fix there: " : "fix: ") + sanitize(one.fix) + "\n";
  }
  return text;
}

std::string json_of(const Diagnoses& all, bool passed) {
  const std::string findings = json_list(all, [](const Diagnosis& one) {
    JsonObject json;
    json.text_or_null("provider", one.provider)("point", one.point)("severity", severity_name(one.severity));
    json("ok", one.severity == Severity::ok)("required", one.severity == Severity::error)("detail", one.detail);
    return json.text_or_null("fix", one.fix).text();
  });
  return JsonObject()("passed", passed).raw("findings", findings).text();
}

Result<int> run(Context& context, const Parsed& parsed) {
  Diagnoses all{{"", "gridctl", Severity::ok, "version " GRIDCTL_VERSION, "", 0}};
  append(all, examine_here(context));
  std::optional<Error> broken;
  examine_state(context, parsed.has("offline"), context.timeout.value_or(k_patience), all, broken);
  // The most severe comes first: a damaged state, a host with another identity, a missing host.
  int code = 0;
  for (const Diagnosis& one : all)
    if (one.severity == Severity::error) code = std::max(code, one.exit_code);
  if (context.json) context.print_line(json_of(all, code == 0));
  else
    for (const Diagnosis& one : all) context.print(text_of(context.out_style, one));
  if (broken) return *broken;
  return code;
}
}  // namespace
}  // namespace doctor

std::string_view severity_name(Severity severity) {
  static constexpr Names<Severity, Severity::error> k_names{"ok", "note", "warning", "error"};
  return k_names(severity);
}

const Command k_doctor{
    .name = "doctor",
    .summary = "check this machine, the state and every provider",
    .examples = {{"Find problems here and on every provider", "gridctl doctor"},
                 {"Do not contact any host", "gridctl doctor --offline"},
                 {"For a script", "gridctl doctor --json | jq '.findings[] | select(.severity==\"error\")'"}},
    .description =
        "Checks this machine (programs, libraries with known vulnerabilities, keys, clock, state directory, database) "
        "and asks all providers at the same time; an unresponsive host costs no more than the time limit. Each finding "
        "comes with the command that fixes it.\n\nA distribution may have fixed a vulnerability without changing the "
        "upstream version. If the package revision shows that, it decides; otherwise the finding is a note that says "
        "so.\n\nNotes and warnings do not change the exit code 0. Errors do: 7 if this machine or its state has one, "
        "else 6 if a host has another key or refuses the login, else 5 if a host does not answer or cannot run jobs.",
    .options = {{.name = "offline", .value = "", .help = "do not contact hosts; use the recorded data"}},
    .exit_codes = {5, 6, 7},
    .waits = true,
    .run = doctor::run};

}  // namespace gridctl::cmd
