// SPDX-License-Identifier: Apache-2.0
// Implements `checkpoint pin` and `checkpoint rm`.
#include "cmd/checkpoint_lookup.hpp"
#include "cmd/commands.hpp"
#include "ui/json.hpp"

namespace gridctl::cmd {

namespace checkpoint_marks {
namespace {
const std::initializer_list<Positional> k_positionals = {{"ID", Completion::checkpoint}};

Result<int> pin(Context& context, const Parsed& parsed) {
  const bool pinned = !parsed.has("off");
  TRY_ASSIGN(registry::Registry registry, context.open());
  TRY_ASSIGN(registry::Checkpoint checkpoint, find_checkpoint(registry, parsed.positionals[0]));
  TRY(registry.set_pinned(checkpoint.job, checkpoint.seq, pinned));
  checkpoint.pinned = pinned;
  const std::string name = checkpoint_name(checkpoint.job, checkpoint.seq);
  return context.print_line(context.json ? ui::checkpoint_json(checkpoint)
                                         : name + (pinned ? " is pinned" : " is not pinned"));
}

Result<int> remove(Context& context, const Parsed& parsed) {
  TRY_ASSIGN(const registry::CheckpointName name, registry::parse_checkpoint_name(parsed.positionals[0]));
  if (!name.seq)
    return make_error(Code::usage, "name the checkpoint to remove as JOB@NUMBER", "gridctl checkpoint ls " + name.job);
  TRY_ASSIGN(registry::Registry registry, context.open());
  TRY_ASSIGN(const registry::Checkpoint checkpoint, find_checkpoint(registry, parsed.positionals[0]));
  const std::string full = checkpoint_name(checkpoint.job, checkpoint.seq);
  if (checkpoint.pinned)
    return make_error(Code::usage, "checkpoint " + full + " is pinned", "gridctl checkpoint pin " + full + " --off");
  TRY(registry.remove_checkpoint(checkpoint.job, checkpoint.seq));
  return context.print_line(context.json ? JsonObject()("checkpoint_id", full)("removed", true).text()
                                         : full + " removed; the next collection removes its chunks");
}
}  // namespace
}  // namespace checkpoint_marks

const Command k_checkpoint_pin{
    .name = "checkpoint pin",
    .summary = "protect a checkpoint from removal",
    .examples = {{"Keep a checkpoint regardless of the retention rule", "gridctl checkpoint pin train-gpt@3"},
                 {"Unpin it", "gridctl checkpoint pin train-gpt@3 --off"}},
    .description = "The retention rule never removes a pinned checkpoint.",
    .positionals = checkpoint_marks::k_positionals,
    .options = {{"off", 0, "", "unpin it"}},
    .exit_codes = k_exits_job,
    .run = checkpoint_marks::pin};
const Command k_checkpoint_rm{
    .name = "checkpoint rm",
    .summary = "remove a checkpoint",
    .examples = {{"Remove one checkpoint", "gridctl checkpoint rm train-gpt@3"}},
    .description = "Removes one checkpoint. Refused if it is pinned, or if an unfinished job would continue from it.",
    .positionals = checkpoint_marks::k_positionals,
    .exit_codes = {3, 5, 7},
    .run = checkpoint_marks::remove};

}  // namespace gridctl::cmd
