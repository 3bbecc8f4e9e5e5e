// SPDX-License-Identifier: Apache-2.0

#include "base/text.hpp"
#include "cmd/bag_log.hpp"
#include "cmd/bag_options.hpp"
#include "cmd/commands.hpp"
#include "cmd/deadline_view.hpp"
#include "cmd/follow.hpp"
#include "cmd/job_plan.hpp"
#include "cmd/outcome.hpp"
#include "cmd/provider_facts.hpp"
#include "cmd/submission.hpp"
#include "cmd/submit_checks.hpp"
#include "cmd/training_outcome.hpp"
#include "cmd/training_plan.hpp"
#include "cmd/word_doubts.hpp"
#include "config/job_file.hpp"
#include "control/copies/remotes.hpp"
#include "control/daemon/daemon.hpp"
#include "control/daemon/user_settings.hpp"
#include "control/daemon/user_unit.hpp"
#include "control/fleet/host_facts.hpp"
#include "control/follow/drilled.hpp"
#include "control/serve/balancer.hpp"
#include "os/terminal.hpp"
#include "sched/gang.hpp"
#include "sched/twins.hpp"
#include "ui/json.hpp"

namespace gridctl::cmd {

namespace job_submit {
namespace {
constexpr std::size_t k_job_file_max = 256 * 1024;  // bytes on standard input, as of a file

config::Overrides overrides_of(const Parsed& parsed) {
  config::Overrides overrides;
  overrides.name = parsed.given("name");
  overrides.gpu = parsed.given("gpu");
  overrides.cpus = parsed.given("cpus");
  overrides.memory = parsed.given("memory");
  overrides.disk = parsed.given("disk");
  overrides.priority = parsed.given("priority");
  overrides.image = parsed.given("image");
  overrides.envs = parsed.values("env");
  overrides.secrets = parsed.values("secret");
  overrides.providers = parsed.values("provider");
  return overrides;
}

// Handles `sbatch run.sh ARG…`: words after -- are the parameters of a batch script.
Result<config::ParsedJob> with_arguments(config::ParsedJob job, const Parsed& parsed) {
  if (!parsed.has_command) return job;
  if (job.spec.run.find("\n#SBATCH") == std::string::npos)
    return make_error(Code::usage, "give either a job file or a command after --, not both",
                      "gridctl job submit --help");
  std::string line = "set --";
  for (const std::string& word : parsed.command) line += " " + shell_quote(word);
  job.spec.run = line + "\n" + job.spec.run;
  return job;
}

// `typed`: the job file on standard input.
Result<config::ParsedJob> read_job(const Parsed& parsed, std::vector<std::string> known_providers, std::string& typed) {
  const bool from_file = !parsed.positionals.empty();
  const bool is_typed = from_file && parsed.positionals[0] == "-";
  const bool is_yaml = from_file && (parsed.positionals[0].ends_with(".yaml") || parsed.positionals[0].ends_with(".yml"));
  if ((is_typed || is_yaml) && parsed.has_command)
    return make_error(Code::usage, "give either a job file or a command after --, not both",
                      "gridctl job submit --help");
  if (!from_file && !parsed.has_command)
    return make_error(Code::usage, "'gridctl job submit' needs FILE.yaml, or a command after --",
                      "gridctl job submit --help");
  if (from_file && parsed.has("workdir"))
    return make_error(Code::usage, "--workdir requires a command after --; in a job file, write workdir:");
  const std::string here = std::filesystem::current_path().string();
  if (from_file && !is_typed) {
    TRY_ASSIGN(config::ParsedJob job, config::load_job_file(parsed.positionals[0], overrides_of(parsed), std::move(known_providers)));
    return with_arguments(std::move(job), parsed);
  }
  config::Context context = config::local_context(here, overrides_of(parsed));
  context.known_providers = std::move(known_providers);
  if (parsed.has("each")) return each_from_command(parsed, context);
  if (!from_file) return config::spec_from_command(parsed.command, context, parsed.value("workdir"));
  TRY_ASSIGN(typed, os::read_standard_input(k_job_file_max));
  return config::parse_job_file(typed, "standard input", context);
}

Result<void> apply_outputs(const Parsed& parsed, job::Spec& spec) {
  if (!parsed.has("outputs")) return {};
  if (!parsed.has_command)
    return make_error(Code::usage, "--outputs requires a command after --; in a job file, write outputs:");
  if (spec.tasks && spec.tasks->stream_window > 0)
    return make_error(Code::usage, "--outputs cannot be combined with --stream: there, a task's result is its answer");
  for (const std::string& text : parsed.values("outputs")) {
    Result<std::string> pattern = config::output_pattern(text);
    if (!pattern) return make_error(Code::usage, "--outputs: " + pattern.error().message);
    if (spec.tasks) spec.tasks->outputs.push_back(*std::move(pattern));
    else spec.outputs.push_back({*std::move(pattern)});
  }
  return {};
}

// Job files come from anywhere; their commands run on hosts, not here.
Result<void> check_notify(const Context& context, const std::vector<job::Notify>& rules) {
  if (std::ranges::all_of(rules, [](const job::Notify& rule) { return rule.command.empty(); })) return {};
  TRY_ASSIGN(const control::UserSettings settings, control::read_settings(context.paths()));
  if (control::may_run_job_commands(settings)) return {};
  return make_error(Code::bad_job_file,
                    "the job file's notify.command would run on this machine, but the settings do not allow that",
                    "gridctl config set notify.job_commands yes, or gridctl config set notify.command CMD");
}

// Holds the facts that are known before anything starts.
struct SubmitPreview {
  sched::Decision decision;                 // of one member, when the job is a gang
  std::optional<sched::GangDecision> gang;  // of all of them
  sched::GangWish wish;
  sched::Outline outline;
  std::optional<sched::Impossible> impossible;
  std::optional<ui::DeadlineTold> deadline;
  sched::TwinPlan twins;
};

Result<SubmitPreview> prospect_of(registry::Registry& registry, const job::Spec& spec,
                                  const std::vector<sched::HostFacts>& hosts, WallTime now) {
  TRY_ASSIGN(const std::vector<sched::PairLink> links, control::pair_links(registry));
  SubmitPreview prospect;
  job::Spec member = spec;
  member.num_nodes = 1;
  sched::JobKnowledge known = sched::knowledge_of(member, now);
  TRY_ASSIGN(known.drilled, control::passed_drill(registry, spec));
  prospect.decision = sched::place(member, hosts, {}, known);
  prospect.twins = sched::place_twins(member, hosts, prospect.decision, known);
  prospect.deadline = deadline_told(member, prospect.decision, now);
  if (spec.num_nodes > 1) {
    prospect.wish = sched::wish_of(spec, sched::classify(spec));
    prospect.gang = sched::place_gang(spec, prospect.wish, hosts, sched::topology_of(hosts, links), links, {},
                                      sched::knowledge_of(spec));
  }
  const auto chosen = prospect.gang ? chosen_of(*prospect.gang, hosts) : chosen_of(prospect.decision, hosts);
  prospect.outline = sched::outline(spec, chosen, hosts, links);
  prospect.impossible = sched::impossible(spec, prospect.outline.coupling, hosts, links);
  if (!prospect.impossible && prospect.gang) {
    std::vector<const sched::HostFacts*> members;
    for (const sched::Chosen& one : chosen) members.push_back(one.host);
    prospect.impossible = sched::impossible_there(spec, members, links);
  }
  return prospect;
}

// Measures unmeasured links, and again the rates that count against the job: a busy host may have lowered them.
Result<void> measure_links(Context& context, registry::Registry& known, const job::Spec& spec,
                           const std::vector<sched::HostFacts>& hosts, SubmitPreview& prospect) {
  for (const bool again : {false, true}) {
    const bool by_rates = prospect.impossible ? prospect.impossible->by_rates : prospect.gang->slow_links;
    if (again ? !by_rates : prospect.impossible.has_value()) continue;
    std::set<std::string> among = hosts_to_measure(*prospect.gang, prospect.wish, prospect.decision, again);
    if (among.empty()) continue;
    TRY_ASSIGN(registry::Registry writable, context.open());
    measure_between(context, writable, std::move(among), again);
    TRY_ASSIGN(prospect, prospect_of(known, spec, hosts, context.now()));
  }
  if (prospect.gang->plan && prospect.gang->slow_links) context.warn(prospect.gang->plan->unmeasured);
  return {};
}

std::string rejection_json(const sched::Rejection& one) {
  JsonObject json;
  json("provider", one.host.value)("code", one.code)("detail", one.detail)("temporary", one.temporary);
  return json.text();
}

std::string dry_run_json(const job::Spec& spec, const SubmitPreview& prospect,
                         const std::vector<control::InputListing>& sent) {
  const sched::Decision& decision = prospect.decision;
  const auto& placement = decision.placement;
  std::vector<sched::Placement> members;
  const sched::Estimate* end = nullptr;
  if (prospect.gang && prospect.gang->plan) {
    members = prospect.gang->plan->members;
    end = &prospect.gang->plan->estimate;
  } else if (placement && !prospect.gang) {
    members = {*placement};
    end = &placement->estimate;
  }
  JsonObject json;
  json("name", spec.name).raw("provider", placement ? ui::quoted(placement->host.value) : "null");
  json.raw("engine", placement ? ui::quoted(engine_name(placement->engine)) : "null");
  json.raw("reason", placement ? ui::quoted(placement->reason) : "null");
  json.raw("rejections", json_list(decision.rejections, rejection_json));
  json.raw("fault_tolerance", decision.tolerance ? std::to_string(decision.tolerance->level) : "null");
  json.raw("members", members_json(members));
  json.raw("replicas", spec.twins > 1 ? members_json(prospect.twins.placements) : "[]");
  json.raw("expected", end != nullptr ? estimate_json(*end) : "null");
  json.raw("deadline", ui::deadline_json(prospect.deadline)).raw("plan", outline_json(prospect.outline));
  return json.raw("sent", sent_json(sent)).text();
}

// Returns why it is not accepted: the same for a dry run and a real one.
Result<void> check_submittable(registry::HostRecords& registry, const job::Spec& spec, const SubmitPreview& prospect) {
  if (prospect.impossible) return impossible_error(spec.name, *prospect.impossible);
  TRY(check_supported(registry, spec));
  if (!prospect.decision.could_ever_fit) return nothing_fits(spec.name, prospect.decision);
  if (prospect.gang && !prospect.gang->could_ever_fit) return nothing_fits(spec, *prospect.gang);
  return {};
}

Result<int> dry_run(Context& context, registry::HostRecords& registry, const job::Spec& spec,
                    const SubmitPreview& prospect) {
  const Result<std::vector<control::InputListing>> listed = control::list_inputs(spec);
  if (!listed) context.warn("cannot list the files to send: " + listed.error().one_line());
  const std::vector<control::InputListing> sent = listed ? *listed : std::vector<control::InputListing>{};
  std::vector<std::string> lines = sched::explain(prospect.outline);
  if (!prospect.impossible)
    for (std::string& line :
         prospect.gang ? sched::explain(*prospect.gang, prospect.wish) : sched::explain(prospect.decision))
      lines.push_back(std::move(line));
  for (std::string& line : sched::explain(prospect.twins, spec, prospect.decision)) lines.push_back(std::move(line));
  for (std::string& line : sent_in_words(sent)) lines.push_back(std::move(line));
  if (context.json) context.print_line(dry_run_json(spec, prospect, sent));
  else
    for (const std::string& line : lines) context.print_line(sanitize(line));
  Result<void> refused = check_submittable(registry, spec, prospect);
  const bool starts = prospect.gang ? prospect.gang->plan.has_value() : prospect.decision.placement.has_value();
  if (refused && !starts) context.note("if you submit the job now, it waits for a host");
  if (refused) return 0;
  Error error = std::move(refused).error();
  if (!context.json && error.code == Code::no_provider_fits && !prospect.impossible)
    error.context.clear();  // said above already
  return error;
}

Result<int> wait_for(Context& context, registry::JobRecords& registry, const JobId& id, const Parsed& parsed) {
  const bool quiet = context.json;
  Result<registry::Job> job =
      watch(context, registry, id, {.logs = !parsed.has("wait") && !quiet,
                                     .from_start = true,
                                     .quiet = quiet || parsed.has("keep-order"),
                                     .keep_order = parsed.has("keep-order"),
                                     .joblog = parsed.value("joblog"),
                                     .joblog_goes_on = parsed.has("resume"),
                                     .results = parsed.value("results")});
  if (quiet) {
    TRY_ASSIGN(const registry::Job now, registry.job(id));
    context.print_line(outcome_json(now));
  }
  if (!job) return std::move(job).error();
  return outcome_of(*job);
}

// If a job asks for more copies than there are suitable remotes, it runs, and is copied when there are enough.
Result<void> warn_of_copies(Context& context, registry::Registry& registry, const job::Spec& spec) {
  registry::CopyWanted wanted;
  wanted.copies = spec.checkpoint.copies;
  wanted.constraints = spec.constraints;
  if (wanted.copies <= 1) return {};
  TRY_ASSIGN(const std::vector<control::RemoteOffer> offers, control::remote_offers(registry));
  std::set<std::string> domains;
  std::string refusals;
  for (const control::RemoteOffer& offer : offers) {
    const std::string why = control::copy_refusal(wanted, offer);
    if (why.empty()) domains.insert(offer.failure_domain);
    else refusals += "; not " + offer.name + ": " + why;
  }
  if (static_cast<int>(domains.size()) + 1 < wanted.copies)
    context.warn("checkpoint.copies is " + std::to_string(wanted.copies) + ", and " +
                 (domains.empty() ? std::string("no remote keeps copies")
                                  : "only " + std::to_string(domains.size()) + " independent remote" +
                                        (domains.size() == 1 ? " keeps" : "s keep") + " copies") +
                 " yet" + (refusals.empty() ? "" : " that may keep these" + refusals) +
                 "; gridctl store add NAME PLACE");
  return {};
}

// Offers it once for each state directory, if a person can read it.
void offer_service(Context& context) {
  const os::Path offered = context.paths().root / "service-offered";
  if (!context.terminal_err || os::exists(offered) || !control::has_systemd() || control::is_installed(context.state))
    return;
  if (!os::write_file_atomically(offered, "")) return;
  context.note("gridctl follows jobs until you log out; to follow them after a reboot too: gridctl daemon install");
}

Result<int> run(Context& context, const Parsed& parsed) {
  if (parsed.has("detach") && parsed.has("wait"))
    return make_error(Code::usage, "--detach and --wait cannot be combined", "gridctl job submit --help");
  for (const std::string_view option : {"keep-order", "joblog", "results"})
    if (parsed.has("detach") && parsed.has(option))
      return make_error(Code::usage, "--" + std::string(option) + " needs the command to wait: omit --detach");
  if (parsed.has("append")) return append_to_bag(context, parsed);
  TRY_ASSIGN(registry::Registry known, context.open_for_reading());  // a refused job leaves nothing behind
  TRY_ASSIGN(std::vector<sched::HostFacts> hosts, all_host_facts(known, context.now()));
  std::vector<std::string> names;
  for (const sched::HostFacts& host : hosts) names.push_back(host.name.value);
  std::string typed;
  TRY_ASSIGN(config::ParsedJob job, read_job(parsed, std::move(names), typed));
  TRY(apply_bag_options(parsed, job));
  TRY(apply_outputs(parsed, job.spec));
  TRY(send_what_is_named(context, parsed, job.items, job.spec));
  TRY(check_words(job.spec, hosts, parsed.has_command || parsed.has("gpu") ? Code::usage : Code::bad_job_file,
                  job.warnings));
  for (const std::string& warning : job.warnings) context.warn(warning);
  TRY(check_named_providers(known, job.spec));
  TRY(check_deadline(job.spec, context.now()));
  TRY(check_notify(context, job.notify));
  std::vector<plan::FinishedRun> runs;
  std::vector<registry::HostLink> links;
  if (!job.spec.workload.trained.model.empty()) {
    TRY_ASSIGN(runs, finished_runs(known));
    TRY_ASSIGN(links, known.links());
  }
  TRY_ASSIGN(const std::optional<std::string> planned, plan_training(job.spec, hosts, links, runs));
  if (planned) context.note(*planned);
  find_image_digests(context, job.spec, hosts);
  TRY_ASSIGN(SubmitPreview prospect, prospect_of(known, job.spec, hosts, context.now()));
  if (prospect.gang && !parsed.has("dry-run")) TRY(measure_links(context, known, job.spec, hosts, prospect));
  context.warn(deadline_doubt(job.spec, prospect.decision, context.now()));
  if (parsed.has("dry-run")) return dry_run(context, known, job.spec, prospect);
  TRY(check_submittable(known, job.spec, prospect));
  if (job.spec.service) TRY(control::find_balancer());
  const sched::Decision& decision = prospect.decision;
  TRY_ASSIGN(const std::string undrilled, drill_warning(known, job.spec, decision, hosts));
  context.warn(undrilled);
  if (prospect.gang) context.warn(clear_text_warning(*prospect.gang, hosts));
  context.warn(compulsory_checkpoints_warning(job.spec, decision, hosts));
  TRY(warn_of_copies(context, known, job.spec));
  if (job.spec.twins > 1)
    for (const std::string& line : sched::explain(prospect.twins, job.spec, decision)) context.note(sanitize(line));
  TRY_ASSIGN(registry::Registry registry, context.open());
  TRY_ASSIGN(std::vector<registry::Input> inputs, store_inputs(context, job.spec));
  std::string known_tasks;
  if (parsed.has("resume")) {
    TRY_ASSIGN(known_tasks, records_of_joblog(parsed.value("joblog"), job.spec));
  }
  JobOrigin origin = origin_of(k_job_submit, parsed, std::move(typed), job.secrets);
  TRY_ASSIGN(const JobId id, record(context, registry, {job.spec, job.secrets, std::move(inputs), std::move(job.items), std::move(known_tasks), std::move(origin), std::move(job.notify)}));
  TRY(control::ensure_daemon(context.state, true).context("the job is recorded as " + id.value));
  if (parsed.has("detach")) {
    context.print_line(context.json ? ui::submitted_json(id, job.spec.name, job::JobState::pending)
                                    : job.spec.name + " " + id.value);
    context.note((job.spec.service ? "see its replicas: gridctl service show " : "follow it: gridctl job watch ") +
                 id.value);
    offer_service(context);
    return 0;
  }
  context.note("job " + job.spec.name + " (" + id.value + ")");
  return wait_for(context, registry, id, parsed);
}
}  // namespace
}  // namespace job_submit

const Command k_job_submit{
    .name = "job submit",
    .summary = "start a job from a file or a command",
    .examples = {{"Submit a job file and follow it until it ends", "gridctl job submit train.yaml"},
                 {"Submit it and return at once", "gridctl job submit -d train.yaml"},
                 {"In a script, wait and exit as the job did", "gridctl job submit --wait --timeout 2h train.yaml"},
                 {"Run one command on one GPU", "gridctl job submit -n hello --gpu 1 -- nvidia-smi"},
                 {"Run a command for each file, as GNU parallel does",
                  "ls *.wav | gridctl job submit -n asr --outputs '*.txt' --each -- whisper {}"},
                 {"Show where it would run", "gridctl job submit --dry-run train.yaml"}},
    .description =
        "Checks the job, records it, and starts it on a suitable provider. gridctl stores the working directory, "
        "mounts and image archive now: later changes do not affect the job. Without -d, the command follows the job "
        "until it ends. Ctrl-C stops following; the job keeps running.\n\ngridctl-job(5) describes FILE.yaml, or a "
        "batch script with #SBATCH lines; - reads it from standard input. Options override the file. If no daemon is "
        "running, this command starts one in the background.",
    .positionals = {{"FILE.yaml", Completion::file, false}},
    .options =
        {{"name", 'n', "NAME", "the job's name", "from the file or the command"},
         {"detach", 'd', "", "return as soon as the job is recorded"},
         {"wait", 0, "", "wait for the job to end without showing its output"},
         {"yes", 'y', "", "do not ask (accepted for compatibility with other tools; nothing is asked)"},
         {"dry-run", 0, "",
          "show where the job would run and why, and which files it would send, without submitting it"},
         {"gpu", 0, "SPEC", "GPUs: 1, A100:2, nvidia:24GB..:1"},
         {"cpus", 0, "N", "minimum number of CPUs"},
         {"memory", 0, "GIB", "minimum memory"},
         {"disk", 0, "GIB", "minimum free disk space"},
         {"priority", 0, "N", "-1000 to 1000; higher runs first, and lower makes room", "0"},
         {"image", 0, "IMAGE", "container image or image archive", "", Completion::file},
         {"array", 0, "LIST", "run the job once for each index: 0-999, 1-99:2, 1,3,7, 0-999%50 (50 at once)"},
         {"each", 0, "", "run the command once for each line of standard input, or for each argument after :::"},
         {"append", 0, "BAG",
          "add tasks to this bag: lines of standard input, -a FILE, arguments after :::, --array, or the tasks of "
          "FILE.yaml",
          "", Completion::job},
         {"stream", 0, "",
          "with --each, start the command once on each host; it reads each item as a line and answers with a line"},
         {"jobs", 'j', "N", "with --array and --each, at most N tasks at once"},
         {"max-fails", 0, "N", "with --array and --each, stop when more than N tasks have failed"},
         {"keep-order", 'k', "", "with --each, print only the output of the tasks, in the order of their items"},
         {"joblog", 0, "FILE", "for a bag, write a line for each task, as GNU parallel does", "", Completion::file},
         {"resume", 0, "", "with --joblog, skip the tasks that the file already lists"},
         {"results", 0, "DIR", "for a bag, keep the output of each task in files, as GNU parallel does", "",
          Completion::directory},
         {"halt", 0, "WHEN", "for a bag, stop when so many tasks have failed: soon,fail=3 or soon,fail=10%", "never"},
         {"arg-file", 'a', "FILE", "with --each, take the items from this file", "standard input", Completion::file, "",
          true},
         {"retries", 0, "N", "with --array and --each, how often a failed task is retried", "1"},
         {"retry-memory", 0, "FACTOR",
          "with --array or --each and --memory, retry a task that ran out of memory with FACTOR times as much (x2)"},
         {"workdir", 'w', "DIR", "directory to upload, with a command after --; '' for none",
          "the current one if the command or an item names a file in it", Completion::directory},
         {"outputs", 0, "PATTERN",
          "files that a command after -- writes to its working directory, to be fetched; for a bag, when each task "
          "ends",
          "", Completion::nothing, "", true},
         {"env", 'e', "K=V", "environment variable; K alone copies it from your environment", "", Completion::nothing,
          "", true},
         {"secret", 0, "K=V", "secret; K alone takes it from your environment", "", Completion::nothing, "", true},
         {"provider", 'p', "NAME", "run only on this host", "", Completion::provider, "", true}},
    .tail = "CMD...",
    .exit_codes = {1, 3, 4, 5, 7, 9, 130},
    .waits = true,
    .run = job_submit::run};

}  // namespace gridctl::cmd
