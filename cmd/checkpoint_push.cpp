// SPDX-License-Identifier: Apache-2.0
#include "base/bytes.hpp"
#include "base/text.hpp"
#include "cmd/commands.hpp"
#include "control/copies/chunks.hpp"
#include "store/stored_tree.hpp"
#include "ui/json.hpp"

namespace gridctl::cmd {

namespace checkpoint_push {
namespace {
Result<registry::Checkpoint> store_directory(Context& context, registry::RunRecords& registry, const JobId& job,
                                             const os::Path& directory) {
  TRY_ASSIGN(store::ChunkStore chunks, control::open_chunks(context.paths()));
  store::ScanOptions options;
  options.skip_at_top = {".commit"};
  options.links_stay_inside = true;
  const auto head = registry.checkpoint(job, std::nullopt);
  TRY_ASSIGN(const store::StoredTree made,
             store::store_tree(chunks, directory, options, head ? std::optional(head->root) : std::nullopt));
  for (const std::string& note : made.notes) context.note("left out: " + sanitize(note));
  registry::Checkpoint checkpoint;
  checkpoint.root = made.root;
  checkpoint.bytes = made.tree.total_bytes();
  checkpoint.files = made.tree.file_count();
  checkpoint.stored_bytes = made.stored_bytes;
  checkpoint.how = "push";
  return checkpoint;
}

// Requires that the job is idle, so that no attempt of it commits a checkpoint in the meantime.
Result<void> check_idle(const registry::Job& job) {
  if (job.machine.attempt() == nullptr) return {};
  return make_error(Code::busy, "job " + job.name + " (" + job.id.value + ") has a running attempt",
                    "gridctl job cancel " + job.id.value + " --wait");
}

Result<int> run(Context& context, const Parsed& parsed) {
  TRY_ASSIGN(registry::Registry registry, context.open());
  TRY_ASSIGN(const JobId id, registry.resolve(parsed.positionals[0]));
  TRY_ASSIGN(const registry::Job job, registry.job(id));
  TRY(check_idle(job));
  TRY_ASSIGN(registry::Checkpoint checkpoint, store_directory(context, registry, id, parsed.positionals[1]));
  checkpoint.job = id;
  checkpoint.epoch = job.machine.epoch;
  checkpoint.created_at = context.now();
  TRY_ASSIGN(const registry::Registry::Commit commit, registry.commit_checkpoint(checkpoint));
  const std::string name = checkpoint_name(id, commit.checkpoint.seq);
  if (!commit.became_head)
    return make_error(Code::busy,
                      "job " + id.value + " was started in the meantime: your checkpoint is kept as stray " + name,
                      "gridctl job resume " + id.value + " --from " + name);
  if (context.json) context.print_line(ui::checkpoint_json(commit.checkpoint));
  else
    context.print_line(name + ": " + ui::counted(checkpoint.files, "file") + ", " + format_size(checkpoint.bytes) +
                       "; the next attempt starts from it");
  return 0;
}
}  // namespace
}  // namespace checkpoint_push

const Command k_checkpoint_push{
    .name = "checkpoint push",
    .summary = "import a checkpoint",
    .examples = {{"Give a job a checkpoint from elsewhere and continue from it",
                 "gridctl checkpoint push train-gpt ./ckpt && gridctl job resume train-gpt"}},
    .description =
        "Stores a directory as the job's newest checkpoint, so that the next attempt "
        "starts from it. Refused while an attempt is running.",
    .positionals = {{"JOB", Completion::job}, {"DIR", Completion::directory}},
    .exit_codes = {3, 5, 7},
    .run = checkpoint_push::run};

}  // namespace gridctl::cmd
