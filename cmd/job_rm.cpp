// SPDX-License-Identifier: Apache-2.0
// Implements `job rm` and `job prune`, which forget ended jobs.

#include "base/bytes.hpp"
#include "base/text.hpp"
#include "cmd/commands.hpp"
#include "cmd/follow.hpp"
#include "control/daemon/daemon.hpp"
#include "control/follow/budgets.hpp"
#include "os/entries.hpp"
#include "os/terminal.hpp"
#include "registry/forget.hpp"
#include "ui/table.hpp"

namespace gridctl::cmd {

namespace job_rm {
namespace {
constexpr Duration k_clean_up = std::chrono::seconds{30};  // for hosts to remove what an ended job left there
constexpr Duration k_prune_age = std::chrono::hours{24 * 30};

constexpr Option k_yes{"yes", 'y', "", "remove without asking"};

struct Going {
  registry::JobRow job;
  std::uint64_t log_bytes = 0, checkpoint_bytes = 0;
  std::size_t checkpoints = 0;
  bool pinned = false;
};

std::uint64_t bytes_in(const os::Path& folder) {
  std::uint64_t bytes = 0;
  const auto names = os::list_directory(folder);
  if (!names) return 0;
  for (const std::string& name : *names)
    if (const auto status = os::status_of(folder / name); status && *status)
      bytes += (*status)->kind == os::FileKind::directory ? bytes_in(folder / name) : (*status)->blocks_bytes;
  return bytes;
}

Result<Going> measure(const control::Paths& paths, registry::JobRecords& registry, const registry::JobRow& job) {
  Going going{.job = job};
  TRY_ASSIGN(std::vector<registry::JobRow> rows, registry.twins(job.id));
  rows.push_back(job);
  for (const registry::JobRow& row : rows) {
    going.log_bytes += bytes_in(paths.logs_of(row.id)) + bytes_in(paths.bag_of(row.id));
    TRY_ASSIGN(const std::vector<registry::Checkpoint> checkpoints, registry.checkpoints(row.id));
    for (const registry::Checkpoint& one : checkpoints) {
      going.checkpoint_bytes += one.stored_bytes;
      going.pinned = going.pinned || one.pinned;
    }
    going.checkpoints += checkpoints.size();
  }
  return going;
}

std::string total_of(const std::vector<Going>& all) {
  std::uint64_t logs = 0, saved = 0;
  std::size_t checkpoints = 0;
  for (const Going& one : all) {
    logs += one.log_bytes;
    saved += one.checkpoint_bytes;
    checkpoints += one.checkpoints;
  }
  return ui::counted(all.size(), "job") + ", " + ui::counted(checkpoints, "checkpoint") + " (" + format_size(saved) +
         "), logs (" + format_size(logs) + ")";
}

std::string going_json(const Going& going, bool removed) {
  return JsonObject()("job_id", going.job.id.value)("name", going.job.name)(
      "state", job::state_name(going.job.state))("ended_at", going.job.ended_at)("checkpoints", going.checkpoints)(
      "checkpoint_bytes", going.checkpoint_bytes)("log_bytes", going.log_bytes)("removed", removed)
      .text();
}

void show(Context& context, const std::vector<Going>& all) {
  ui::Table table({{.title = "ID", .width_min = 13},
                   {.title = "NAME"},
                   {.title = "STATE"},
                   {.title = "ENDED"},
                   {.title = "CHECKPOINTS", .right = true},
                   {.title = "SIZE", .right = true},
                   {.title = "LOGS", .right = true}});
  for (const Going& one : all)
    table.add({one.job.id.value, one.job.name, std::string(job::state_name(one.job.state)),
               one.job.ended_at ? ui::age(*one.job.ended_at, context.now()) : "-", std::to_string(one.checkpoints),
               format_size(one.checkpoint_bytes), format_size(one.log_bytes)});
  context.print(table.render(context.columns_out(), context.out_style));
}

Result<void> forget(const Context& context, const JobId& id) {
  TRY_ASSIGN(const std::vector<JobId> gone,
             registry::forget_job(context.state, id, control::month_of(context.now()).begins, context.now()));
  for (const JobId& one : gone)
    for (const os::Path& folder : {context.paths().logs_of(one), context.paths().bag_of(one), context.paths().secrets_of(one)})
      TRY(os::remove_tree(folder).context("job " + one.value + " is removed"));
  return {};
}

// A job that just ended still has its processes and folders on its hosts for a moment: the daemon removes those first.
Result<void> wait_for_cleanup(Context& context, registry::Registry& registry, const registry::Job& job) {
  TRY_ASSIGN(std::vector<registry::JobRow> rows, registry.twins(job.id));
  rows.push_back(job);
  TRY(control::ensure_daemon(context.state, true));
  const BootTime until = context.clock.boot() + context.timeout.value_or(k_clean_up);
  std::string where;
  const auto look = [&]() -> Result<bool> {
    where.clear();
    for (const registry::JobRow& row : rows) {
      TRY_ASSIGN(const registry::Job now, registry.job(row.id));
      if (!job::is_final(now.state))
        return make_error(Code::busy, "job " + now.name + " (" + now.id.value + ") is " + std::string(job::state_name(now.state)),
                          "gridctl job cancel " + job.id.value + " --wait");
      for (const auto& left : now.machine.pending_cleanups) where = left.host.value;
    }
    return where.empty() || context.clock.boot() >= until;
  };
  TRY(repeat(context, k_follow_period, look, "nothing was removed", "gridctl job rm " + job.id.value));
  if (where.empty()) return {};
  return make_error(Code::busy,
                    "job " + job.name + " (" + job.id.value + ") may still have processes or files on " + where +
                        ", which does not confirm that they are gone",
                    "gridctl provider check " + where + ", or gridctl provider rm " + where + " --force");
}

Result<bool> may_remove(Context& context, const Parsed& parsed, const std::string& what) {
  if (parsed.has("yes")) return true;
  if (!context.terminal_in || !context.terminal_err || context.json) return false;
  context.write_err("remove " + what + "? [y/N] ");
  TRY_ASSIGN(const std::string answer, os::read_typed_line());
  return answer == "y" || answer == "Y" || answer == "yes";
}

Result<int> rm(Context& context, const Parsed& parsed) {
  TRY_ASSIGN(registry::Registry registry, context.open());
  std::vector<Going> all;
  for (const std::string& word : parsed.positionals) {
    TRY_ASSIGN(const JobId id, registry.resolve(word));
    TRY_ASSIGN(const registry::Job job, registry.job(id));
    if (!job.spec.twin_of.value.empty())
      return make_error(Code::usage, "job " + id.value + " is part of job " + job.spec.twin_of.value,
                        "gridctl job rm " + job.spec.twin_of.value);
    if (!job::is_final(job.state))
      return make_error(Code::busy, "job " + job.name + " (" + id.value + ") is " + std::string(job::state_name(job.state)),
                        "gridctl job cancel " + id.value + " --wait");
    if (std::ranges::any_of(all, [&](const Going& one) { return one.job.id == id; })) continue;
    TRY_ASSIGN(const Going going, measure(context.paths(), registry, job));
    all.push_back(going);
  }
  TRY_ASSIGN(const bool may, may_remove(context, parsed, total_of(all)));
  if (!may)
    return make_error(Code::usage, "nothing was removed: " + total_of(all),
                      "gridctl job rm -y " + join(parsed.positionals, " "));
  for (const Going& one : all) {
    TRY_ASSIGN(const registry::Job job, registry.job(one.job.id));
    TRY(wait_for_cleanup(context, registry, job));
    TRY(forget(context, one.job.id));
    context.print_line(context.json ? going_json(one, true) : one.job.name + " (" + one.job.id.value + ") is removed");
  }
  return 0;
}

Result<int> prune(Context& context, const Parsed& parsed) {
  TRY_ASSIGN(const std::optional<Duration> age, parsed.duration("older-than"));
  registry::JobFilter filter;
  for (const std::string& word : parsed.values("status")) {
    TRY_ASSIGN(const job::JobState state, job::parse_state_name(word));
    filter.states.push_back(state);
  }
  TRY_ASSIGN(registry::Registry registry, context.open());
  TRY_ASSIGN(const std::vector<registry::JobRow> rows, registry.jobs(filter));
  const std::int64_t latest = context.now().ms - age.value_or(k_prune_age) / std::chrono::milliseconds{1};
  std::vector<Going> all;
  std::size_t kept = 0;
  for (const registry::JobRow& row : rows) {
    if (!job::is_final(row.state) || !row.ended_at || row.ended_at->ms > latest) continue;
    TRY_ASSIGN(const registry::Job job, registry.job(row.id));
    if (!job.spec.twin_of.value.empty()) continue;  // goes with its leader
    TRY_ASSIGN(Going going, measure(context.paths(), registry, row));
    if (going.pinned) ++kept;
    else all.push_back(std::move(going));
  }
  if (kept > 0)
    context.note(ui::counted(kept, "job") + (kept == 1 ? " stays: it has" : " stay: they have") +
                 " pinned checkpoints");
  if (all.empty() && !context.json) return context.note("no job to remove");
  if (!context.json && !parsed.has("yes")) show(context, all);
  TRY_ASSIGN(const bool may, may_remove(context, parsed, total_of(all)));
  std::size_t removed = 0;
  std::vector<std::string> lines;
  for (const Going& one : all) {
    const Result<void> gone = may ? forget(context, one.job.id) : Result<void>{};
    if (!gone) context.note(sanitize(one.job.name + " (" + one.job.id.value + ") stays: " + gone.error().one_line()));
    if (may && gone) ++removed;
    lines.push_back(going_json(one, may && gone));
  }
  if (context.json) return context.print_line("[" + join(lines, ",") + "]");
  if (may) return context.print_line("removed " + std::to_string(removed) + " of " + total_of(all));
  return context.note("nothing was removed; to remove " + total_of(all) + ": repeat the command with -y");
}
}  // namespace
}  // namespace job_rm

const Command k_job_rm{
    .name = "job rm",
    .summary = "remove ended jobs with their logs and checkpoints",
    .examples = {{"Remove a job with its logs and checkpoints", "gridctl job rm train-gpt"},
                 {"Remove two jobs without asking", "gridctl job rm -y 3k5v train-old"}},
    .description =
        "Removes ended jobs from the state directory: records, logs, outputs and checkpoints, with their copies on "
        "remotes. "
        "On a terminal the command asks first; elsewhere it needs -y. Refused while a job runs, and while one of its "
        "checkpoints is pinned. What a job cost this month still counts for budgets. The disk space is free after the "
        "next collection of the store.",
    .positionals = {{.name = "ID", .offer = Completion::job, .many = true}},
    .options = {job_rm::k_yes},
    .exit_codes = {3, 5, 7, 130},
    .waits = true,
    .run = job_rm::rm};

const Command k_job_prune{
    .name = "job prune",
    .summary = "remove jobs that ended long ago",
    .examples = {
        {"Show which jobs ended over 30 days ago, and how much disk space they use", "gridctl job prune"},
        {"Remove the failed jobs that ended over a week ago", "gridctl job prune --older-than 7d --status FAILED -y"}},
    .description =
        "Lists the jobs that ended long ago with the disk space that their checkpoints and logs use, and removes them as "
        "'gridctl job rm' does. On a terminal the command asks first; elsewhere it removes nothing without -y. Jobs "
        "with pinned checkpoints stay. Checkpoints share chunks: the space that becomes free may be smaller.",
    .options = {
        {"older-than", 0, "TIME", "only jobs that ended at least this long ago: 12h, 30d", "30d"},
        {"status", 's', "STATE", "only jobs in this state", "", Completion::choices, "SUCCEEDED|FAILED|CANCELLED",
         true},
        job_rm::k_yes},
    .exit_codes = k_exits_state,
    .run = job_rm::prune};

}  // namespace gridctl::cmd
