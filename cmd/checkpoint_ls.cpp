// SPDX-License-Identifier: Apache-2.0

#include "base/bytes.hpp"
#include "base/text.hpp"
#include "cmd/commands.hpp"
#include "ui/json.hpp"
#include "ui/table.hpp"

namespace gridctl::cmd {

namespace checkpoint_ls {
namespace {
std::string marks(const registry::Checkpoint& checkpoint, CheckpointSeq head) {
  std::string text;
  const auto add = [&text](std::string_view word) { text += (text.empty() ? "" : ", ") + std::string(word); };
  if (checkpoint.seq == head) add("head");
  if (checkpoint.pinned) add("pinned");
  if (checkpoint.stray) add("stray");
  if (checkpoint.provisional) add("provisional");
  if (checkpoint.suspect) add("suspect");
  if (!checkpoint.verified) add("DAMAGED");
  return text.empty() ? "-" : text;
}

Result<int> run(Context& context, const Parsed& parsed) {
  TRY_ASSIGN(registry::Registry registry, context.open_for_reading());
  TRY_ASSIGN(const JobId id, registry.resolve(parsed.positionals[0]));
  TRY_ASSIGN(const registry::Job job, registry.job(id));
  TRY_ASSIGN(const std::vector<registry::Checkpoint> checkpoints, registry.checkpoints(id));
  if (context.json) return context.print_line(ui::checkpoints_json(checkpoints));
  if (checkpoints.empty()) return context.note(job.name + " (" + id.value + ") has no checkpoint yet");
  const std::string& metric = job.spec.checkpoint.keep.metric;
  std::vector<ui::Column> columns{{.title = "CHECKPOINT", .width_min = 15}, {.title = "ATTEMPT", .right = true},
                                  {.title = "AGE", .right = true},          {.title = "SIZE", .right = true},
                                  {.title = "STORED", .right = true},       {.title = "FILES", .right = true},
                                  {.title = "HOW", .shrinks = true},        {.title = "MARKS", .shrinks = true}};
  const bool has_copies =
      std::ranges::any_of(checkpoints, [](const registry::Checkpoint& one) { return !one.copies.empty(); });
  if (has_copies) columns.push_back({.title = "COPIES", .shrinks = true});
  if (!metric.empty()) columns.push_back({.title = metric, .right = true});
  ui::Table table(std::move(columns));
  const WallTime now = context.now();
  for (const registry::Checkpoint& checkpoint : checkpoints) {
    const auto measured = checkpoint.metrics.find(metric);
    std::vector<std::string> cells{checkpoint_name(id, checkpoint.seq),
                                   checkpoint.attempt.value == 0 ? "-" : std::to_string(checkpoint.attempt.value),
                                   ui::age(checkpoint.created_at, now),
                                   format_size(checkpoint.bytes),
                                   format_size(checkpoint.stored_bytes),
                                   std::to_string(checkpoint.files),
                                   checkpoint.how,
                                   marks(checkpoint, job.machine.head)};
    if (has_copies) cells.push_back(checkpoint.copies.empty() ? "-" : join(checkpoint.copies, ", "));
    if (!metric.empty()) cells.push_back(measured == checkpoint.metrics.end() ? "-" : ui::number(measured->second));
    table.add(std::move(cells), {ui::Paint::bold});
  }
  return context.print(table.render(context.columns_out(), context.out_style));
}
}  // namespace
}  // namespace checkpoint_ls

const Command k_checkpoint_ls{
    .name = "checkpoint ls",
    .summary = "list a job's checkpoints, oldest first",
    .examples = {{"List a job's checkpoints", "gridctl checkpoint ls train-gpt"},
                 {"Print the name of the newest one",
                  "gridctl checkpoint ls @last --json | jq -r '.[-1].checkpoint_id'"}},
    .description =
        "STORED is what the checkpoint added to the store: content shared with other checkpoints is kept once. COPIES "
        "names the remotes that have acknowledged a complete copy; the column is omitted if there are none. A stray "
        "was saved by an attempt that gridctl had given up; it is kept, and restored only if you name it. HOW shows "
        "how gridctl recognised it as complete, with the layout of a framework and its unit if there is one. A "
        "provisional one is restored only if there is no other. A suspect one is damaged here, or the program failed "
        "twice after starting from it, before it saved anything newer; the job went back to an earlier one, and the "
        "suspect one is kept, but only job resume --from restores it. See CHECKPOINTS in gridctl-job(5).",
    .positionals = {{"ID", Completion::job}},
    .exit_codes = k_exits_job,
    .run = checkpoint_ls::run};

}  // namespace gridctl::cmd
