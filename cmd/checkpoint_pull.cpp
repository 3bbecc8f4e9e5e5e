// SPDX-License-Identifier: Apache-2.0
#include "base/bytes.hpp"
#include "cmd/checkpoint_lookup.hpp"
#include "cmd/checkpoint_remote.hpp"
#include "cmd/commands.hpp"
#include "cmd/context.hpp"
#include "cmd/empty_directory.hpp"
#include "control/copies/chunks.hpp"
#include "control/copies/healing.hpp"
#include "store/file_workers.hpp"
#include "ui/json.hpp"

namespace gridctl::cmd {

namespace checkpoint_pull {
namespace {
constexpr Example k_examples[] = {
    {"Copy the newest checkpoint to a directory", "gridctl checkpoint pull train-gpt ./result"},
    {"Copy the third one", "gridctl checkpoint pull train-gpt@3 ./step3"},
    {"Copy it from a remote, on a new machine that has the store's key",
     "gridctl checkpoint pull train-gpt ./result --from nas"}};
constexpr Positional k_positionals[] = {{"ID", Completion::checkpoint}, {"DIR", Completion::directory}};
constexpr Option k_options[] = {
    {"from", 0, "REMOTE", "read the copy at this remote instead of the local store", {}, Completion::place}};
constexpr int k_exits[] = {3, 5, 6, 7, 8};

struct Pulled {
  std::string name;
  store::Tree tree;
};

Result<Pulled> copy_from_here(store::ChunkStore& chunks, const registry::Checkpoint& checkpoint,
                              const os::Path& directory) {
  TRY_ASSIGN(store::Tree tree, tree_of(chunks, checkpoint));
  const std::string name = checkpoint_name(checkpoint.job, checkpoint.seq);
  TRY(copy_into(directory, tree, chunks, store::threads_here(), "gridctl checkpoint pull " + name));
  return Pulled{name, std::move(tree)};  // each chunk was hashed as it was read
}

bool is_damage(const Error& error) {
  return error.code == Code::checkpoint_damaged || error.code == Code::not_found;  // a chunk that must be there is not
}

// What is damaged or missing here is brought back first, when a place has it.
Result<Pulled> pull_healed(Context& context, const registry::Checkpoint& checkpoint,
                           const std::vector<control::RemoteAccess>& copies, const os::Path& directory) {
  TRY_ASSIGN(store::ChunkStore chunks, control::open_chunks(context.paths()));
  Result<Pulled> pulled = copy_from_here(chunks, checkpoint, directory);
  if (pulled || !is_damage(pulled.error()) || copies.empty()) return pulled;
  TRY_ASSIGN(const control::HealedFrom healed,
             control::heal_from(context.paths(), chunks, copies, {checkpoint.job, checkpoint.seq}, checkpoint.root,
                                context.clock));
  context.note("it was damaged here; brought back " + control::describe(healed));
  return copy_from_here(chunks, checkpoint, directory);
}

Result<Pulled> pull_here(Context& context, const Parsed& parsed, const os::Path& directory) {
  TRY_ASSIGN(registry::Registry registry, context.open_for_reading());
  TRY_ASSIGN(const registry::Checkpoint checkpoint, find_checkpoint(registry, parsed.positionals[0]));
  TRY(check_empty(directory, "a checkpoint is"));
  TRY_ASSIGN(const auto copies, control::places_with(registry, checkpoint.job, checkpoint.seq));
  Result<Pulled> pulled = pull_healed(context, checkpoint, copies, directory);
  if (pulled) return pulled;
  Error error = std::move(pulled).error().with_context(
      "while copying checkpoint " + checkpoint_name(checkpoint.job, checkpoint.seq) + " to " + directory.string());
  if (!is_damage(error)) return error;
  error.code = Code::checkpoint_damaged;
  return std::move(error).with_hint("gridctl checkpoint verify " + checkpoint.job.value);
}

Result<Pulled> pull_from_place(Context& context, const Parsed& parsed, const os::Path& directory) {
  TRY_ASSIGN(registry::Registry registry, context.open_for_reading());
  TRY_ASSIGN(const RemoteCheckpoint remote,
             find_remote(context, registry, parsed.value("from"), parsed.positionals[0]));
  TRY(check_empty(directory, "a checkpoint is"));
  TRY_ASSIGN(store::Tree tree, remote.tree());
  const std::string name = checkpoint_name(remote.record.job, remote.record.seq);
  TRY(copy_into(directory, tree, *remote.source, 1,
                "gridctl checkpoint pull " + name + " --from " + parsed.value("from"))
          .context("while copying from " + parsed.value("from") + " to " + directory.string()));
  return Pulled{name, std::move(tree)};
}

Result<int> run(Context& context, const Parsed& parsed) {
  const os::Path directory = parsed.positionals[1];
  TRY_ASSIGN(const Pulled pulled,
             parsed.has("from") ? pull_from_place(context, parsed, directory) : pull_here(context, parsed, directory));
  const std::string files = std::to_string(pulled.tree.file_count());
  if (context.json)
    context.print_line("{\"checkpoint_id\":" + ui::quoted(pulled.name) +
                       ",\"directory\":" + ui::quoted(std::filesystem::absolute(directory).string()) +
                       ",\"bytes\":" + std::to_string(pulled.tree.total_bytes()) + ",\"files\":" + files + "}");
  else
    context.print_line(pulled.name + ": " + files + " files, " + format_size(pulled.tree.total_bytes()) +
                       ", verified, in " + directory.string());
  return 0;
}
}  // namespace
}  // namespace checkpoint_pull

const Command k_checkpoint_pull{
    .noun = "checkpoint",
    .verb = "pull",
    .summary = "copy a checkpoint to a directory",
    .examples = checkpoint_pull::k_examples,
    .description =
        "Writes the files of a checkpoint to a new directory and verifies every chunk. The directory appears when it "
        "is complete; an existing empty directory contains the file .gridctl-partial until then. If the command is "
        "killed, running it again replaces what it left.\n\nIf a chunk is damaged or missing in the store, gridctl "
        "first fetches it from the nearest remote with an intact copy. With --from, gridctl reads only the remote and "
        "needs only the store's key. ID is then a job's id or name as recorded there; without a number, the newest "
        "complete copy is used.",
    .positionals = checkpoint_pull::k_positionals,
    .options = checkpoint_pull::k_options,
    .exit_codes = checkpoint_pull::k_exits,
    .run = checkpoint_pull::run};

}  // namespace gridctl::cmd
