// SPDX-License-Identifier: Apache-2.0
#include "base/bytes.hpp"
#include "base/text.hpp"
#include "cmd/commands.hpp"
#include "cmd/context.hpp"
#include "cmd/findings.hpp"
#include "control/daemon.hpp"
#include "os/entries.hpp"
#include "os/process.hpp"
#include "ui/human.hpp"
#include "ui/json.hpp"

namespace gridctl::cmd {

namespace {
constexpr std::uint64_t k_disk_min = 1ull << 30;         // bytes: less than this and checkpoints soon fail
constexpr Duration k_seen_max = std::chrono::hours{24};  // a provider not seen for longer is worth a look
constexpr unsigned k_mode_private = 0700;

constexpr Example k_examples[] = {{"What is wrong here?", "gridctl doctor"}, {"For a script", "gridctl doctor --json"}};

using Findings = std::vector<probe::Finding>;

probe::Finding good(std::string point, std::string detail) {
  return {std::move(point), true, std::move(detail), "", true};
}
probe::Finding bad(std::string point, std::string detail, std::string fix, bool required = true) {
  return {std::move(point), false, std::move(detail), std::move(fix), required};
}

probe::Finding check_ssh() {
  const std::optional<os::Path> program = os::find_program("ssh");
  if (!program)
    return bad("ssh", "no ssh program: ~/.ssh/config and hosts behind jump hosts cannot be used",
               "sudo apt-get install openssh-client", false);
  Result<os::RunOutcome> outcome = os::run({"ssh", "-V"});
  const std::string version = outcome ? std::string(trim(outcome->err)) : std::string{};
  return good("ssh", program->string() + (version.empty() ? "" : ", " + version));
}

void check_directory(const os::Path& state, Findings& findings) {
  if (!os::exists(state)) {
    findings.push_back(good("state", state.string() + " does not exist yet"));
    return;
  }
  const Result<std::optional<os::FileStatus>> status = os::status_of(state);
  const std::string quoted = shell_quote(state.string());
  if (!status || !*status || (*status)->kind != os::FileKind::directory)
    return findings.push_back(bad("state", state.string() + " is no directory that can be read", "ls -ld " + quoted));
  if (((*status)->mode & 077) != 0)
    findings.push_back(bad("state", state.string() + " is open to other users", "chmod 700 " + quoted));
  else findings.push_back(good("state", state.string()));
  const std::string kind = os::file_system_kind(state);
  if (kind == "nfs" || kind == "nfs4" || kind == "cifs" || kind == "smb2")
    findings.push_back(
        bad("state", "it lies on " + kind + ", where locks are not reliable", "gridctl --state DIR on a local disk"));
  const Result<std::uint64_t> space = os::free_bytes(state);
  if (space && *space < k_disk_min)
    findings.push_back(bad("disk", "only " + format_size(*space) + " free for checkpoints", "df -h " + quoted));
  else if (space) findings.push_back(good("disk", format_size(*space) + " free"));
}

probe::Finding check_daemon(const Context& context, registry::Registry& registry) {
  const Result<control::DaemonStatus> status = control::daemon_status(context.state);
  if (!status) return bad("daemon", status.error().message, "gridctl daemon status");
  if (status->running) return good("daemon", "running, pid " + std::to_string(status->pid));
  const Result<std::vector<JobId>> unfinished = registry.unfinished();
  if (unfinished && !unfinished->empty())
    return bad("daemon",
               "not running, and nobody follows " + std::to_string(unfinished->size()) +
                   (unfinished->size() == 1 ? " job" : " jobs"),
               "gridctl daemon start");
  return good("daemon", "not running; nothing to follow");
}

void check_provider(const registry::Provider& provider, WallTime now, Findings& findings) {
  const std::string name = provider.name.value, check = "gridctl provider check " + name;
  const std::string seen = "last seen " + ui::age(provider.last_seen_at, now);
  const bool stale =
      !provider.last_seen_at || now.ms - provider.last_seen_at->ms > k_seen_max / std::chrono::milliseconds{1};
  if (provider.liveness == "lost" || provider.liveness == "unreachable")
    findings.push_back(bad(name, provider.liveness + ", " + seen, check, false));
  else if (stale) findings.push_back(bad(name, seen, check, false));
  else findings.push_back(good(name, seen));
  for (probe::Finding finding : findings_of(provider)) {
    if (finding.ok) continue;
    finding.point = name + ": " + finding.point;
    finding.required = false;  // of that host, not of this machine
    findings.push_back(std::move(finding));
  }
}

// The first problem that decides the exit code.
Result<int> run(Context& context, const Parsed&) {
  Findings findings;
  findings.push_back(good("gridctl", "version " GRIDCTL_VERSION));
  findings.push_back(check_ssh());
  check_directory(context.state, findings);
  std::optional<Error> broken;
  if (Result<registry::Registry> registry = context.open_for_reading(); !registry) {
    broken = registry.error();
    findings.push_back(bad("database", broken->one_line(), broken->hint));
  } else {
    findings.push_back(check_daemon(context, *registry));
    Result<std::vector<registry::Provider>> providers = registry->providers();
    if (!providers) broken = providers.error();
    else
      for (const registry::Provider& provider : *providers) check_provider(provider, context.now(), findings);
    if (providers && providers->empty())
      findings.push_back(
          bad("providers", "none is registered", "gridctl provider register NAME ssh://user@host", false));
  }
  const bool passed = probe::passed(findings);
  if (context.json)
    context.print_line(std::string("{\"passed\":") + (passed ? "true" : "false") +
                       ",\"findings\":" + findings_json(findings) + "}");
  else
    for (const probe::Finding& finding : findings) context.print(finding_text(context.out_style, finding));
  if (broken) return *broken;
  if (!passed) return make_error(Code::state_unreadable, "this machine is not ready: see what failed above");
  return 0;
}
}  // namespace

const Command k_doctor{.noun = "doctor",
                       .verb = "",
                       .summary = "check this machine, the state and every provider",
                       .examples = k_examples,
                       .description =
                           "Checks without connecting anywhere, and prints the command that mends each finding. "
                           "'gridctl provider check NAME' looks at a host itself.",
                       .exit_codes = k_exits_state,
                       .run = run};

}  // namespace gridctl::cmd
