// SPDX-License-Identifier: Apache-2.0

#include "base/text.hpp"
#include "cmd/commands.hpp"
#include "cmd/findings.hpp"
#include "cmd/lend_words.hpp"
#include "lend/boot.hpp"
#include "lend/dial.hpp"
#include "lend/leave.hpp"
#include "lend/receipt_book.hpp"
#include "lend/serve.hpp"
#include "os/entries.hpp"
#include "os/process.hpp"
#include "os/terminal.hpp"
#include "probe/inventory.hpp"
#include "probe/preflight.hpp"

namespace gridctl::cmd {

namespace lend_join {
namespace {
constexpr Duration k_timeout = std::chrono::minutes{2};
constexpr std::size_t k_token_max = 16 * 1024;

const std::initializer_list<Example> k_examples = {
    {"Lend this machine to the sender of the token", "gridctl provider join gridctl-lend-1.AAAAC2JvYi..."},
    {"At night only", "gridctl provider join gridctl-lend-1.AAAAC2JvYi... --hours 23:00-07:00"},
    {"In a script, from a file", "gridctl provider join - --yes < token"}};
const std::initializer_list<Positional> k_positionals = {{"TOKEN|-"}};
const std::initializer_list<Option> k_options = {
    {"hours", 0, "FROM-TO", "when jobs may run, such as 23:00-07:00 (local time)", "always"},
    {"egress", 0, "WHAT",
     "which networks jobs reach: the Internet but not your home network, everything that you reach, or nothing",
     "filtered", Completion::choices, k_egress_words},
    k_when_option, k_disk_option, k_up_option, k_max_job_option, k_cpus_option, k_memory_option, k_gpu_power_option, k_max_heat_option,
    k_on_battery_option, k_price_option, k_registries_option,
    {"yes", 'y', "", "lend without a question"}};
constexpr std::initializer_list<int> k_exits = {5, 6, 7, 130};

// Jobs of others run only in containers, whose network is filtered unless the owner decides otherwise. Errors name what
// is missing, and how to get it.
Result<void> check_engine(Context& context, wire::Egress egress, const Inventory& inventory) {
  const bool filtered = egress == wire::Egress::filtered;
  std::string problems;
  for (const Engine& engine : inventory.engines) {
    if (engine.kind == EngineKind::process || (filtered && engine.kind != EngineKind::podman)) continue;
    if (engine.problem.empty() && (!filtered || os::find_program("slirp4netns"))) return {};
    const std::string problem = engine.problem.empty() ? "slirp4netns is missing" : sanitize(engine.problem);
    problems += (problems.empty() ? "" : "; ") + std::string(engine_name(engine.kind)) + ": " + problem;
  }
  if (!problems.empty()) problems = " (" + problems + ")";
  if (filtered)
    return make_error(
        Code::engine, "podman and slirp4netns keep jobs out of your home network, and they do not work here" + problems,
        "sudo apt install podman slirp4netns   # or, if jobs may reach everything that you reach: --egress open");
  show_problems(context, probe::preflight(inventory, EngineKind::podman, context.now()));
  return make_error(Code::engine, "this machine cannot run containers, and jobs of others run in nothing else" + problems,
                    "sudo apt install podman");
}

bool ask_owner(Context& context, const lend::Token& token, const wire::GuestTerms& terms) {
  const wire::Egress egress = terms.egress;
  context.note(sanitize(token.who) + " asks to use this machine, as '" + sanitize(token.name) + "'.\n");
  context.note("What jobs can do: use its GPUs, processors, memory and disk, inside containers.");
  context.note("What they cannot: leave their container, read your files, get a shell of this machine.");
  context.note(egress == wire::Egress::filtered ? "They reach the Internet, and not your home network or this machine."
               : egress == wire::Egress::none   ? "They reach no network."
                                                : "They reach what any program here reaches, your home network too.");
  context.note("Your limits: " + limits_text(terms) + ".");
  context.note("You can stop them at any time: gridctl lend pause, gridctl lend leave.\n");
  context.write_err("Lend it? [yes/no] ");
  const Result<std::string> answer = os::read_typed_line();
  return answer && lower(trim(*answer)) == "yes";
}

Result<lend::Token> read_token(const Parsed& parsed) {
  if (parsed.positionals[0] != "-") return lend::parse_token(parsed.positionals[0]);
  TRY_ASSIGN(const std::string text, os::read_standard_input(k_token_max));
  return lend::parse_token(text);
}

// An attempt to join that failed has left a folder for news there, and no job.
bool holds_jobs(const os::Path& folder) {
  const auto names = os::list_directory(folder);
  return names && std::ranges::any_of(*names, [](const std::string& name) { return name != "notify"; });
}

// Returns earlier invitations of the same controller, which this one replaces. Anyone who has seen its token knows the
// controller's name, but only its owner can add a key at its relay: so the relay has to be the same.
Result<std::vector<lend::Lent>> earlier_ones(const lend::Token& token) {
  std::vector<lend::Lent> all;
  for (const lend::Lent& other : lend::all_lent()) {
    const auto terms = other.terms();
    const auto its = other.token();
    const bool proven = its && its->relay == token.relay && its->relay_key == token.relay_key;
    if (other.id() == token.id && its && its->secret == token.secret) continue;
    if (other.id() == token.id)
      return make_error(Code::refused, "the token has the id of another invitation but not its secret: one of the two is forged",
                        "gridctl lend status");
    if (!terms || terms->controller != token.controller) continue;
    if (!proven)
      return make_error(Code::refused, "this machine is lent to " + sanitize(terms->who) + " already, by way of " +
                                           sanitize(its ? its->relay : "a relay that cannot be read") +
                                           "; this invitation would take over the jobs of that host",
                        "gridctl lend leave " + other.id() + "   # then join again");
    all.push_back(other);
  }
  const os::Path jobs = lend::agent_home() / "jobs" / token.controller.value;
  if (all.empty() && !os::exists(lend::guest_file(token.controller)) && holds_jobs(jobs))
    return make_error(Code::refused, "the gridctl that made this token already runs jobs on this machine, over a connection of its own: " + jobs.string(),
                      "mv " + shell_quote(jobs.string()) + " " + shell_quote(jobs.string() + ".old") + "   # only if it no longer does; then join again");
  return all;
}

// Keeps the owner's limits from the earlier invitation, and prints them.
void take_limits(Context& context, const lend::Lent& from, wire::GuestTerms& terms) {
  const Result<wire::GuestTerms> before = from.terms();
  if (!before) return;
  const wire::GuestTerms invited = terms;
  terms = *before;
  terms.controller = invited.controller;
  terms.who = invited.who;
  context.note("your limits from the earlier invitation still apply: " + limits_text(terms) + (terms.is_paused(context.now()) ? ", paused" : ""));
}

// The token's login has worked, so it replaces earlier ones.
Result<void> replace(const std::vector<lend::Lent>& earlier, const lend::Lent& lent, const lend::Token& token, os::Clock& clock) {
  TRY(lent.take_jobs_of(token.controller));
  for (const lend::Lent& other : earlier) {
    TRY_ASSIGN(const lend::Lent gone, lend::withdraw(other, token.controller, clock));
    TRY(lend::make_receipts(gone.folder(), clock));
    TRY(lend::save_receipts(gone.folder(), os::home_directory(), gone.id()));
    TRY(lend::remove_for_good(gone.folder(), clock));
    lent.log("replaces an earlier invitation from " + token.who, clock);
  }
  lent.log("lent to " + token.who + " as " + token.name, clock);
  return {};
}

int print_result(Context& context, const lend::Token& token, const Result<std::string>& boots) {
  if (context.json)
    return context.print_line(
        JsonObject()("id", token.id)("name", token.name)("researcher", token.who)("starts", boots ? *boots : "").text());
  context.print_line("this machine is lent to " + sanitize(token.who) + ", who knows it as '" + sanitize(token.name) + "'");
  context.note(boots ? "it is connected again " + *boots : boots.error().message);
  context.note("see who uses it: gridctl lend status; your machine back at once: gridctl lend pause");
  return 0;
}

Result<int> run(Context& context, const Parsed& parsed) {
  TRY_ASSIGN(const lend::Token token, read_token(parsed));
  wire::GuestTerms wanted;
  TRY(describe_terms(parsed, wanted));
  const lend::Lent lent(token.id);
  const bool again = os::exists(lent.folder() / "token");
  if (!again && context.now() >= token.expires)
    return make_error(Code::refused, "the invitation expired at " + format_rfc3339(token.expires),
                      "ask " + sanitize(token.who) + " for a new token: gridctl provider invite");
  const Inventory inventory = probe::take_inventory(context.clock, {});
  TRY(check_engine(context, wanted.egress, inventory));
  TRY(check_limits(context, parsed, wanted, inventory));
  for (const Unheld& one : unheld_limits(wanted, inventory))
    if (one.options.starts_with("--cpus")) context.note("nothing limits how much memory and processor time jobs use here: " + one.why);
  if (const std::string unseen = unseen_use(context, wanted); !unseen.empty()) context.note("--when idle: " + unseen);
  if (!parsed.has("yes")) {
    if (!context.terminal_in || !context.terminal_err || context.json)
      return make_error(Code::usage, "without a terminal, gridctl cannot ask whether " + sanitize(token.who) +
                                         " may use this machine; --yes says so");
    if (!ask_owner(context, token, wanted)) return make_error(Code::interrupted, "not lent; nothing was changed");
  }
  const BootTime deadline = context.clock.boot() + context.timeout.value_or(k_timeout);
  TRY_ASSIGN(const std::vector<lend::Lent> earlier, earlier_ones(token));
  for (const lend::Lent& other : earlier)
    if (const auto its = other.token())
      context.note("this invitation replaces the one from " + sanitize(its->who) + " (as " + sanitize(its->name) +
                   ") and takes over the jobs that run under it");
  const bool was_there = os::exists(lent.folder());
  TRY_ASSIGN(const os::Path agent, own_agent(context, token.controller, deadline));
  TRY(lent.make(lend::encode(token), token, agent));
  TRY_ASSIGN(wire::GuestTerms terms, lent.terms());
  if (!again && !earlier.empty()) take_limits(context, earlier.back(), terms);
  TRY(describe_terms(parsed, terms));
  TRY(lent.set_terms(terms));
  if (Result<void> tried = lend::try_relay(lent, deadline, context.clock); !tried) {
    if (!was_there) (void)os::remove_tree(lent.folder());
    return std::move(tried).error().with_context("while calling " + sanitize(token.relay));
  }
  TRY(replace(earlier, lent, token, context.clock));
  const Result<std::string> boots = lend::start_at_boot();
  TRY(lend::ensure_serving(context.clock));
  return print_result(context, token, boots);
}
}  // namespace
}  // namespace lend_join

namespace {
Command join_command(std::string_view name) {
  return {.name = name,
          .summary = "lend this machine to somebody who sent you a token",
          .examples = lend_join::k_examples,
          .description =
              "Lends this machine to the person who made the token with 'gridctl provider invite'. It dials out to the "
              "SSH server that the token names, and opens no port. No root access is needed. Jobs run in containers only "
              "(podman or docker); whatever the researcher's gridctl asks for, it gets no shell of this machine, none of "
              "its files, and no program outside of a container.\n\nThe commands of 'gridctl lend' are yours: they work "
              "without network, and without the researcher.",
          .positionals = lend_join::k_positionals,
          .options = lend_join::k_options,
          .exit_codes = lend_join::k_exits,
          .waits = true,
          .run = lend_join::run};
}
}  // namespace

const Command k_provider_join = join_command("provider join");
const Command k_lend_join = join_command("lend join");

}  // namespace gridctl::cmd
