// SPDX-License-Identifier: Apache-2.0
#include "base/bytes.hpp"
#include "cmd/checkpoint_lookup.hpp"
#include "cmd/checkpoint_remote.hpp"
#include "cmd/commands.hpp"
#include "cmd/context.hpp"
#include "control/copies/chunks.hpp"
#include "control/copies/healing.hpp"
#include "control/reach/disk_reserve.hpp"
#include "os/entries.hpp"
#include "store/copy_out.hpp"
#include "store/crew.hpp"
#include "ui/json.hpp"

namespace gridctl::cmd {

namespace checkpoint_pull {
namespace {
constexpr Example k_examples[] = {{"Copy out the newest checkpoint", "gridctl checkpoint pull train-gpt ./result"},
                                  {"Copy out the third one", "gridctl checkpoint pull train-gpt@3 ./step3"},
                                  {"Straight from a place that keeps copies, on a new machine with the store's key",
                                   "gridctl checkpoint pull train-gpt ./result --from nas"}};
constexpr Positional k_positionals[] = {{"ID", Completion::checkpoint}, {"DIR", Completion::directory}};
constexpr Option k_options[] = {{"from", 0, "PLACE", "read the copy there, not the store here", {}, Completion::place}};
constexpr int k_exits[] = {3, 5, 6, 7, 8};

struct Pulled {
  std::string name;
  store::Tree tree;
};

Result<void> check_empty(const os::Path& directory) {
  if (!os::exists(directory)) return {};
  TRY_ASSIGN(const std::optional<os::FileStatus> status, os::status_of(directory));
  if (status && status->kind != os::FileKind::directory)
    return make_error(Code::exists, directory.string() + " exists and is no directory");
  TRY_ASSIGN(const std::vector<std::string> names, os::list_directory(directory));
  if (names.empty() || os::exists(directory / store::k_partial_mark)) return {};
  return make_error(Code::exists,
                    directory.string() + " is not empty: a checkpoint is copied into a new directory only");
}

Result<Pulled> copy_from_here(store::ChunkStore& chunks, const registry::Checkpoint& checkpoint,
                              const os::Path& directory) {
  TRY_ASSIGN(store::Tree tree, tree_of(chunks, checkpoint));
  TRY(control::check_room(directory, tree.total_bytes()));  // one small chunk, repeated, may make terabytes
  TRY(store::copy_out(tree, chunks, directory, store::threads_here()));  // each chunk is hashed as it is read
  return Pulled{checkpoint_name(checkpoint.job, checkpoint.seq), std::move(tree)};
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
  TRY(check_empty(directory));
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
  TRY(check_empty(directory));
  TRY_ASSIGN(store::Tree tree, remote.tree());
  TRY(control::check_room(directory, tree.total_bytes()));
  TRY(store::copy_out(tree, *remote.source, directory)
          .context("while copying from " + parsed.value("from") + " to " + directory.string()));
  return Pulled{checkpoint_name(remote.record.job, remote.record.seq), std::move(tree)};
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

const Command k_checkpoint_pull{.noun = "checkpoint",
                                .verb = "pull",
                                .summary = "copy a checkpoint out",
                                .examples = checkpoint_pull::k_examples,
                                .description =
                                    "Writes the files of a checkpoint into a new directory; every chunk is "
                                    "hashed again on the way. The directory appears when it is whole; one that was "
                                    "there and empty holds the file .gridctl-partial until then. What a copy that was "
                                    "killed has left, the next one to the same place replaces.\n\n"
                                    "What is damaged or missing in the store is brought back first, from the nearest "
                                    "place that has a sound copy. With --from the place alone is read: the store's "
                                    "key is all that is needed here, and ID may be a job's id or name as the place "
                                    "has it; without a number, the newest whole copy is taken.",
                                .positionals = checkpoint_pull::k_positionals,
                                .options = checkpoint_pull::k_options,
                                .exit_codes = checkpoint_pull::k_exits,
                                .run = checkpoint_pull::run};

}  // namespace gridctl::cmd
