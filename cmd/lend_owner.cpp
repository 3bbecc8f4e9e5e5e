// SPDX-License-Identifier: Apache-2.0
// Implements the owner's commands on a lent machine. They need no network.

#include "base/numbers.hpp"
#include "base/text.hpp"
#include "cmd/commands.hpp"
#include "cmd/lend_words.hpp"
#include "lend/boot.hpp"
#include "lend/dial.hpp"
#include "lend/gpu_power.hpp"
#include "lend/leave.hpp"
#include "lend/lent.hpp"
#include "lend/receipt_book.hpp"
#include "lend/serve.hpp"
#include "os/process.hpp"
#include "probe/inventory.hpp"
#include "ui/table.hpp"

namespace gridctl::cmd {

namespace lend_owner {
namespace {
constexpr Duration k_grace = std::chrono::seconds{30};
constexpr Duration k_beyond_grace = std::chrono::seconds{30};  // for containers to be removed
constexpr Duration k_look = std::chrono::milliseconds{200};
constexpr std::uint64_t k_log_shown = 4u << 20;
constexpr Duration k_agent_wait = std::chrono::seconds{30};

const std::initializer_list<Option> k_grace_options = {
    {"grace", 0, "DURATION", "how long programs may save what they have, before they are killed", "30s"}};
constexpr std::initializer_list<int> k_exits = {3, 5, 7};

struct Running {
  std::string job, phase, image, name;
  std::int64_t running_ms = -1;
};

Result<std::string> ask_agent(const lend::Lent& lent, const wire::GuestTerms& terms, std::vector<std::string> words) {
  TRY_ASSIGN(const os::Path agent, lent.agent());
  words.insert(words.begin(), {agent.string(), "guest", terms.controller.value});
  TRY_ASSIGN(const os::RunOutcome outcome, os::run(words));
  if (outcome.status.success()) return outcome.out;
  return make_error(Code::internal, "the agent of this machine fails: " + sanitize(trim(outcome.err), 300));
}

Result<std::vector<Running>> running_of(const lend::Lent& lent, const wire::GuestTerms& terms) {
  TRY_ASSIGN(const std::string told, ask_agent(lent, terms, {"list"}));
  std::vector<Running> all;
  for (const std::string& line : split(told, '\n')) {
    std::vector<std::string> words = split(line, '\t');
    if (words.size() < 2) continue;  // their number, and the end
    words.resize(6);
    all.push_back({words[0], words[2], words[4], words[5], parse_number<std::int64_t>(words[3]).value_or(-1)});
  }
  return all;
}

Result<std::vector<lend::Lent>> those_lent() {
  std::vector<lend::Lent> all = lend::all_lent();
  if (!all.empty()) return all;
  return make_error(Code::not_found, "this machine is not lent to anybody", "gridctl provider join TOKEN");
}

std::string state_of(const lend::Lent& lent, const wire::GuestTerms& terms, WallTime now) {
  if (terms.is_paused(now))
    return *terms.paused_until_ms == wire::k_until_resumed ? "paused"
                                                           : "paused until " + format_rfc3339({*terms.paused_until_ms});
  const Result<std::string> reclaimed = os::read_file(lent.folder() / wire::k_reclaimed_file);
  if (reclaimed && now.ms < parse_number<std::int64_t>(trim(*reclaimed)).value_or(0))
    return "a program of yours has the GPU";
  const auto closed = wire::parse_closed(os::read_file(lent.folder() / wire::k_closed_file).value_or(""));
  if (closed && now < closed->until) return "waiting since " + format_rfc3339(closed->since) + ": " + sanitize(closed->why, 300);
  if (!lend::is_serving()) return "not served; gridctl lend resume starts it";
  const std::string told = os::read_file(lent.state_file()).value_or("connecting");
  return sanitize(told == "ready" ? "connected" : told, 200);
}

std::string ran(std::int64_t ms) {
  return ms < 0 ? "" : ", for " + format_duration(std::chrono::seconds{ms / 1000});
}

// Returns text such as "your GPU was given back 12 times: median 700ms, worst 1.1s"; empty: never.
std::string returns_text(std::vector<std::chrono::milliseconds> all) {
  if (all.empty()) return "";
  std::ranges::sort(all);
  return "your GPU was given back " + ui::counted(all.size(), "time") + ": median " +
         format_duration(all[all.size() / 2]) + ", worst " + format_duration(all.back());
}

// Returns zero if its receipts cannot be read: `lend receipts` says why.
std::int64_t earned(const lend::Lent& lent) {
  const Result<lend::ReceiptBook> book = lend::read_receipts(lent.folder());
  return book ? lend::check_chain(book->lines, book->head).asked : 0;
}

std::string running_json(const Running& job) {
  return JsonObject()("id", job.job)("name", job.name)("phase", job.phase)("image", job.image).text();
}

Result<int> status(Context& context, const Parsed&) {
  TRY_ASSIGN(const std::vector<lend::Lent> all, those_lent());
  std::vector<std::string> json;
  for (const lend::Lent& lent : all) {
    TRY_ASSIGN(const wire::GuestTerms terms, lent.terms());
    TRY_ASSIGN(const lend::Token token, lent.token());
    TRY_ASSIGN(const std::vector<Running> jobs, running_of(lent, terms));
    const std::string state = state_of(lent, terms, context.now());
    if (context.json) {
      JsonObject one;
      one("id", lent.id())("name", token.name)("researcher", terms.who)("state", state)("hours", hours_text(terms));
      json.push_back(one("earned_micro", earned(lent)).raw("jobs", json_list(jobs, running_json)).text());
      continue;
    }
    context.print_line(sanitize(terms.who) + " (as " + sanitize(token.name) + "): " + state + "; hours: " + hours_text(terms));
    for (const Running& job : jobs)
      context.print_line("  " + sanitize(job.name) + " (" + sanitize(job.job) + ") " + sanitize(job.phase) + ran(job.running_ms) +
                         (job.image.empty() ? "" : ", image " + sanitize(job.image)));
    if (jobs.empty()) context.print_line("  no job runs");
    if (const std::int64_t micro = earned(lent); micro > 0 || terms.rates != Rates{})
      context.print_line("  earned: " + usd_text(micro) + " USD; price: " + rates_text(terms.rates));
    if (const std::string told = returns_text(lent.returns()); !told.empty()) context.print_line("  " + told);
  }
  return context.json ? context.print_line("[" + join(json, ",") + "]") : 0;
}

// Ends the jobs of one researcher. Returns how many were running.
Result<int> end_jobs(Context& context, const lend::Lent& lent, const wire::GuestTerms& terms, Duration grace, const char* why) {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(grace).count();
  const BootTime until = context.clock.boot() + grace + k_beyond_grace;
  std::set<std::string> ended;
  for (;;) {  // a start that was under way is asked to end, too
    TRY(ask_agent(lent, terms, {"end", std::to_string(ms), why}));
    TRY_ASSIGN(const std::vector<Running> left, running_of(lent, terms));
    if (left.empty()) return static_cast<int>(ended.size());
    for (const Running& one : left) ended.insert(one.job);
    if (context.clock.boot() >= until)
      return make_error(Code::timed_out, std::to_string(left.size()) + " jobs of " + sanitize(terms.who) +
                                             " have not ended; the first is " + sanitize(left.front().job));
    os::pause_for(k_look);
  }
}

// The supervisor of an attempt that has just ended is still tidying up.
Result<void> remove_jobs(Context& context, const lend::Lent& lent, const wire::GuestTerms& terms) {
  for (const BootTime until = context.clock.boot() + k_beyond_grace;; os::pause_for(k_look)) {
    const Result<std::string> removed = ask_agent(lent, terms, {"remove"});
    if (removed) return {};
    if (context.clock.boot() >= until) return removed.error();
  }
}

Result<Duration> grace_of(const Parsed& parsed) {
  TRY_ASSIGN(const auto given, parsed.duration("grace"));
  return given.value_or(k_grace);
}

Result<void> pause_until(const lend::Lent& lent, std::int64_t until) {
  TRY_ASSIGN(wire::GuestTerms terms, lent.terms());
  terms.paused_until_ms = until;
  return lent.set_terms(terms).context("while noting the pause; the jobs have ended");
}

Result<int> pause(Context& context, const Parsed& parsed) {
  TRY_ASSIGN(const std::vector<lend::Lent> all, those_lent());
  TRY_ASSIGN(const Duration grace, grace_of(parsed));
  std::int64_t until = wire::k_until_resumed;
  if (!parsed.positionals.empty()) {
    TRY_ASSIGN(const Duration given, parse_duration(parsed.positionals[0]));
    until = context.now().ms + std::chrono::duration_cast<std::chrono::milliseconds>(given).count();
  }
  const BootTime began = context.clock.boot();
  int ended = 0;
  for (const lend::Lent& lent : all) (void)pause_until(lent, until);  // first all: none takes another's room. If the disk is full, later
  for (const lend::Lent& lent : all) {
    TRY_ASSIGN(const wire::GuestTerms terms, lent.terms());
    TRY_ASSIGN(const int jobs, end_jobs(context, lent, terms, grace, "pause"));
    if (terms.paused_until_ms != until) TRY(pause_until(lent, until));
    lent.log("paused by the owner; " + std::to_string(jobs) + " jobs ended", context.clock);
    ended += jobs;
  }
  const double took = seconds(context.clock.boot() - began);
  const std::string text = format_duration(std::chrono::milliseconds{static_cast<std::int64_t>(took * 1000)});
  if (context.json) return context.print_line(JsonObject()("paused", true)("jobs_ended", ended)("seconds", took).text());
  context.print_line(ended == 0 ? "paused; no job was running"
                                : "paused; " + ui::counted(ended, "job") + " ended in " + text +
                                      ", and will continue elsewhere");
  return 0;
}

Result<int> resume(Context& context, const Parsed&) {
  TRY_ASSIGN(const std::vector<lend::Lent> all, those_lent());
  for (const lend::Lent& lent : all) {
    TRY_ASSIGN(wire::GuestTerms terms, lent.terms());
    terms.paused_until_ms.reset();
    TRY(lent.set_terms(terms));
    lent.log("resumed by the owner", context.clock);
  }
  TRY(lend::ensure_serving(context.clock));
  return context.print_line(context.json ? JsonObject()("paused", false).text() : "jobs may begin here again");
}

std::string limits_json(const wire::GuestTerms& terms, const std::string& why_not, const std::string& unseen) {
  const auto seconds = terms.max_job_ms ? std::optional{*terms.max_job_ms / 1000} : std::nullopt;
  return JsonObject()("researcher", terms.who)("hours", hours_text(terms))("egress", std::string(wire::egress_name(terms.egress)))(
      "reclaim", terms.reclaim)("disk_bytes", terms.disk_bytes)("max_job_seconds", seconds)("cpus", terms.cpus)(
      "memory_bytes", terms.memory_bytes)("up_bits_per_second", terms.up_bits)("when", when_text(terms))("gpu_power_watts", terms.gpu_watts)(
      "max_heat_celsius", terms.heat_celsius)("on_battery", terms.on_battery)("price", rates_text(terms.rates)).raw(
      "registries", json_list(terms.registries))("does_not_hold", why_not)("not_seen", unseen).text();
}

// The agent of an older gridctl here may not know the newest limits.
Result<void> renew_agent(Context& context, const lend::Lent& lent, const ControllerId& controller) {
  TRY_ASSIGN(const os::Path agent, own_agent(context, controller, context.clock.boot() + k_agent_wait));
  if (const auto before = lent.agent(); before && *before == agent) return {};
  TRY(lent.set_agent(agent));
  lent.log("another version of gridctl serves from now on", context.clock);
  context.note("jobs that run now were started by another version of gridctl: they keep the limits that it knew");
  return {};
}

Result<int> limits(Context& context, const Parsed& parsed) {
  TRY_ASSIGN(const std::vector<lend::Lent> all, those_lent());
  const Inventory inventory = probe::take_inventory(context.clock, {});
  for (const lend::Lent& lent : all) {
    TRY_ASSIGN(wire::GuestTerms terms, lent.terms());
    const wire::GuestTerms before = terms;
    TRY(describe_terms(parsed, terms));
    TRY(check_limits(context, parsed, terms, inventory));
    const std::string text = limits_text(terms), unseen = unseen_use(context, terms);
    std::string why_not;
    const std::vector<Unheld> unheld = unheld_limits(terms, inventory);
    for (const Unheld& one : unheld) why_not += (why_not.empty() ? "" : "; ") + one.options + " not hold: " + one.why;
    if (terms != before) {
      TRY(renew_agent(context, lent, terms.controller));
      TRY(lent.set_terms(terms));
      lent.log(text, context.clock);
    }
    context.print_line(context.json ? limits_json(terms, why_not, unseen) : sanitize(terms.who) + ": " + text);
    for (const Unheld& one : unheld) context.note(one.options + " not hold on this machine: " + one.why);
    if (!unseen.empty()) context.note("--when idle: " + unseen);
  }
  return 0;
}

Result<int> show_log(Context& context, const Parsed&) {
  TRY_ASSIGN(const std::vector<lend::Lent> all, those_lent());
  for (const lend::Lent& lent : all) context.print(os::read_file(lent.log_file(), k_log_shown).value_or(""));
  return 0;
}

// Removes the folders that agents have made for one controller.
Result<void> remove_traces(const ControllerId& controller, os::Clock& clock) {
  const os::Path home = lend::agent_home();
  TRY(lend::remove_for_good(home / "jobs" / controller.value, clock));
  TRY(lend::remove_for_good(lend::guest_file(controller), clock));
  for (const char* place : {"kept", "standby"}) {
    std::error_code failed;
    std::vector<os::Path> ours;
    for (const auto& entry : std::filesystem::directory_iterator(home / place, failed))
      if (entry.path().filename().string().starts_with(controller.value + ".")) ours.push_back(entry.path());
    for (const os::Path& path : ours) TRY(lend::remove_for_good(path, clock));
  }
  return {};
}

bool is_unused(const os::Path& home) {
  std::error_code failed;
  return std::filesystem::is_empty(home / "jobs", failed) || !os::exists(home / "jobs");
}

// Returns the invitations that a name means: a researcher, the provider name that the researcher uses for this machine,
// or an id. Without a name, all of them.
Result<std::vector<lend::Lent>> named(const Parsed& parsed) {
  if (parsed.positionals.empty() && !lend::withdrawn().empty()) return lend::all_lent();
  TRY_ASSIGN(std::vector<lend::Lent> all, those_lent());
  if (parsed.positionals.empty()) return all;
  const std::string& name = parsed.positionals[0];
  std::erase_if(all, [&](const lend::Lent& lent) {
    const Result<lend::Token> token = lent.token();
    return lent.id() != name && !(token && (token->who == name || token->name == name));
  });
  if (!all.empty()) return all;
  return make_error(Code::not_found, "this machine is not lent to '" + sanitize(name) + "'", "gridctl lend status");
}

// Removes the rest when the machine is no longer lent. Returns true if no other user needs the folder and it is gone.
Result<bool> remove_the_rest(os::Clock& clock) {
  (void)lend::forget_boot();
  for (const BootTime until = clock.boot() + k_grace; lend::is_serving() && clock.boot() < until;) os::pause_for(k_look);
  TRY(lend::GpuPower(lend::lend_home() / lend::k_gpu_power_file).keep(std::nullopt));
  TRY(lend::remove_for_good(lend::lend_home(), clock));
  const os::Path home = lend::agent_home();
  if (is_unused(home)) TRY(lend::remove_for_good(home, clock));
  return !os::exists(home);
}

// The owner keeps the proof of what others owe.
Result<void> keep_receipts(Context& context, const lend::Lent& lent) {
  TRY(lend::make_receipts(lent.folder(), context.clock));
  TRY_ASSIGN(const os::Path file, lend::save_receipts(lent.folder(), os::home_directory(), lent.id()));
  if (!file.empty()) context.note("its receipts are kept in " + file.string() + "; check them: gridctl receipts verify " + shell_quote(file.string()));
  return {};
}

// Ends an invitation. Returns how many jobs ran. A start that was under way also ends: once the researcher is no longer
// served, jobs are searched for again.
Result<int> end_lending(Context& context, const lend::Lent& lent, Duration grace) {
  TRY_ASSIGN(wire::GuestTerms terms, lent.terms());
  terms.paused_until_ms = wire::k_until_resumed;
  TRY(lent.set_terms(terms));
  TRY_ASSIGN(int ended, end_jobs(context, lent, terms, grace, "leave"));
  TRY_ASSIGN(const lend::Lent gone, lend::withdraw(lent, terms.controller, context.clock));
  TRY_ASSIGN(const int late, end_jobs(context, gone, terms, grace, "leave"));
  TRY(remove_jobs(context, gone, terms));
  TRY(remove_traces(terms.controller, context.clock));
  TRY(keep_receipts(context, gone));
  TRY(lend::remove_for_good(gone.folder(), context.clock));
  return ended + late;
}

Result<int> leave(Context& context, const Parsed& parsed) {
  TRY_ASSIGN(std::vector<lend::Lent> all, named(parsed));
  TRY_ASSIGN(const Duration grace, grace_of(parsed));
  int ended = 0;
  for (lend::Lent& lent : lend::withdrawn()) {
    if (lent.has_jobs()) all.push_back(std::move(lent));
    else {
      TRY(keep_receipts(context, lent));
      TRY(lend::remove_for_good(lent.folder(), context.clock));
    }
  }
  for (const lend::Lent& lent : all) {
    TRY_ASSIGN(const int jobs, end_lending(context, lent, grace));
    ended += jobs;
  }
  const std::string jobs = "; " + ui::counted(ended, "job") + " ended";
  const std::vector<lend::Lent> others = lend::all_lent();
  bool gone = false;
  if (others.empty()) {
    TRY_ASSIGN(gone, remove_the_rest(context.clock));
  }
  if (context.json) return context.print_line(JsonObject()("jobs_ended", ended)("removed", gone).text());
  if (!others.empty()) return context.print_line("this machine is still lent to " + std::to_string(others.size()) + jobs);
  context.print_line("this machine is no longer lent to anybody" + jobs);
  const os::Path home = lend::agent_home();
  context.note(gone ? home.string() + " is removed" : home.string() + " stays: somebody else runs jobs here");
  return 0;
}

Result<int> serve(Context& context, const Parsed&) {
  TRY(lend::serve([] { return false; }, context.clock));
  return 0;
}

Result<int> dial(Context& context, const Parsed& parsed) {
  const auto tell = [&](lend::DialNews news) {
    context.print_line(news == lend::DialNews::ready ? "ready" : "called");
  };
  const Result<void> outcome = lend::dial(lend::Lent(parsed.positionals[0]), tell, context.clock);
  if (outcome) return 0;
  context.print_line((outcome.error().code == Code::refused ? "refused " : "error ") + outcome.error().one_line());
  return 0;
}

}  // namespace
}  // namespace lend_owner

const Command k_lend_status{.name = "lend status",
                            .summary = "show who uses this machine, and what runs",
                            .examples = {{"Who uses this machine?", "gridctl lend status"}},
                            .description = "Shows for each researcher whether the machine is connected, when it is lent, why jobs wait "
                                           "and since when, and the jobs that run here now with their images.",
                            .exit_codes = lend_owner::k_exits,
                            .run = lend_owner::status};
const Command k_lend_pause{.name = "lend pause",
                           .summary = "end the jobs of others here, and start no new ones",
                           .examples = {{"Have the machine back until further notice", "gridctl lend pause"},
                                        {"For two hours", "gridctl lend pause 2h"}},
                           .description =
                               "Ends the jobs that others run on this machine: their programs are told to save what they "
                               "have, and are killed after --grace. They continue on other machines. No job begins here "
                               "until 'gridctl lend resume', or until DURATION has passed.",
                           .positionals = {{"DURATION", Completion::nothing, false}},
                           .options = lend_owner::k_grace_options,
                           .exit_codes = lend_owner::k_exits,
                           .run = lend_owner::pause};
const Command k_lend_resume{.name = "lend resume",
                            .summary = "allow jobs of others to start here again",
                            .examples = {{"Let jobs begin again", "gridctl lend resume"}},
                            .description = "Ends a pause. Also starts the process that connects this machine, if it does "
                                           "not run.",
                            .exit_codes = lend_owner::k_exits,
                            .run = lend_owner::resume};
const Command k_lend_limits{
    .name = "lend limits",
    .summary = "show or set what jobs of others can do here",
    .examples = {{"Lend at night only", "gridctl lend limits --hours 23:00-07:00"},
                 {"At any time again", "gridctl lend limits --hours always"},
                 {"50 GB of disk, and no job for longer than 12 hours",
                  "gridctl lend limits --disk 50GB --max-job 12h"},
                 {"While nobody has used the machine for half an hour", "gridctl lend limits --when idle:30m"},
                 {"No more than 20 Mbit/s of your upload, and cool GPUs",
                  "gridctl lend limits --up 20Mbps --max-heat 80C"},
                 {"Images of two registries only", "gridctl lend limits --registries docker.io,ghcr.io"}},
    .description =
        "The machine itself holds these limits, whatever the researcher's gridctl asks for.\n\n"
        "Outside of --hours no job begins here; jobs that run when they end are told to save, and end "
        "within a minute. They continue elsewhere. --egress is "
        "for jobs that begin from now on: 'filtered' closes private, shared and local addresses, "
        "those of this machine, and IPv6 to containers (it needs podman and slirp4netns), 'open' "
        "leaves all open that you reach yourself, 'none' gives no network.\n\nWith --reclaim yes, the "
        "default, a program of yours on a GPU ends the jobs that hold GPUs: within a few seconds they "
        "are told to save, and ten seconds later they are gone. No job begins until your program has "
        "left the GPU. Programs that only draw a screen do not count.\n\n--disk counts what gridctl keeps "
        "here for others: directories of jobs, checkpoints, and files sent before, but not images. A "
        "start, or a file, that would exceed it is refused; when jobs grow beyond it, the largest is "
        "told to save and ends. With --max-job, a job that has run for so long is told to save, and "
        "ends within half a minute. In both cases it continues elsewhere, and the researcher reads "
        "why. --cpus and --memory are refused where the machine cannot enforce them, and the command "
        "says so.\n\n--up holds what jobs and gridctl send for others, checkpoints too, to one rate "
        "together. With --when idle, jobs run while nobody uses the machine: no input at a terminal or in "
        "a desktop session, no program of yours on a GPU; they leave when you return. --gpu-power needs a "
        "driver that lets you set the limit, and puts the old one back. With --max-heat, jobs leave when "
        "a GPU or processor is hotter for 30 seconds, and return 10 degrees below. On its battery the "
        "machine runs no jobs, unless --on-battery yes says so. The command names what does not hold "
        "here.\n\nImages come from --registries by name, and without any login of yours; an image "
        "that you have is used only when its registry gives the same name to everybody. 'public' "
        "stands for docker.io, ghcr.io, quay.io, nvcr.io, gcr.io, public.ecr.aws, mcr.microsoft.com and "
        "registry.gitlab.com. With 'localhost' in the list, jobs may use the images that you have "
        "named localhost/.... Archives that the researcher sends are always allowed.",
    .options =
        {{"hours", 0, "FROM-TO", "when jobs may run (local time), or 'always'"},
         {"egress", 0, "WHAT",
          "which networks jobs reach: the Internet but not your home network, everything that you reach, or nothing",
          "", Completion::choices, k_egress_words},
         {"reclaim", 0, "YES|NO", "whether a program of yours on a GPU ends the jobs that hold GPUs", "",
          Completion::choices, "yes|no"},
         k_when_option,
         k_disk_option,
         k_up_option,
         k_max_job_option,
         k_cpus_option,
         k_memory_option,
         k_gpu_power_option,
         k_max_heat_option,
         k_on_battery_option,
         k_price_option,
         k_registries_option},
    .exit_codes = lend_owner::k_exits,
    .run = lend_owner::limits};
const Command k_lend_log{.name = "lend log",
                         .summary = "show the events on this machine",
                         .examples = {{"What happened here?", "gridctl lend log"}},
                         .description = "Prints connections, pauses and changes of what is lent, with their times.",
                         .exit_codes = lend_owner::k_exits,
                         .run = lend_owner::show_log};
const Command k_lend_leave{
    .name = "lend leave",
    .summary = "stop lending this machine",
    .examples = {{"Stop lending this machine", "gridctl lend leave"},
                 {"Not to this researcher any more", "gridctl lend leave alice@laptop"}},
    .description =
        "Ends the jobs of others, disconnects, and removes everything that gridctl has put on this machine: "
        "~/.gridctl with its keys, and the entry that starts it at boot. Images stay in podman or "
        "docker. It works without a network. The same researcher can invite you again.\n\nWith RESEARCHER, "
        "as 'gridctl lend status' names him, the machine stays lent to the others.",
    .positionals = {{"RESEARCHER", Completion::nothing, false}},
    .options = lend_owner::k_grace_options,
    .exit_codes = lend_owner::k_exits,
    .run = lend_owner::leave};
const Command k_lend_serve{.name = "lend serve",
                           .summary = "connect this machine, in the foreground",
                           .examples = {{"Serve in the foreground and watch the connections", "gridctl lend serve"}},
                           .description = "Dials for each researcher, and serves their calls. 'provider join' starts it in "
                                          "the background, and with the machine.",
                           .exit_codes = lend_owner::k_exits,
                           .hidden = true,
                           .run = lend_owner::serve};
const Command k_lend_dial{.name = "lend dial",
                          .summary = "one connection of 'lend serve'",
                          .examples = {{"One connection; 'lend serve' starts these", "gridctl lend dial ID"}},
                          .description = "Prints 'ready' when the relay has let this machine in, and 'called' when it is "
                                         "used.",
                          .positionals = {{"ID"}},
                          .exit_codes = lend_owner::k_exits,
                          .hidden = true,
                          .run = lend_owner::dial};

}  // namespace gridctl::cmd
