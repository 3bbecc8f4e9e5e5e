// SPDX-License-Identifier: Apache-2.0
#include "base/bytes.hpp"
#include "cmd/checkpoint_lookup.hpp"
#include "cmd/commands.hpp"
#include "cmd/context.hpp"
#include "os/entries.hpp"
#include "store/copy_out.hpp"
#include "ui/json.hpp"

namespace gridctl::cmd {

namespace checkpoint_pull {
namespace {
constexpr Example k_examples[] = {{"Copy out the newest checkpoint", "gridctl checkpoint pull train-gpt ./result"},
                                  {"Copy out the third one", "gridctl checkpoint pull train-gpt@3 ./step3"}};
constexpr Positional k_positionals[] = {{"ID", Offer::checkpoint}, {"DIR", Offer::directory}};

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

Result<int> run(Context& context, const Parsed& parsed) {
  const os::Path directory = parsed.positionals[1];
  TRY_ASSIGN(registry::Registry registry, context.open_for_reading());
  TRY_ASSIGN(const registry::Checkpoint checkpoint, find_checkpoint(registry, parsed.positionals[0]));
  TRY(check_empty(directory));
  TRY_ASSIGN(store::ChunkStore chunks, store::ChunkStore::open(context.paths().chunk_store()));
  TRY_ASSIGN(const store::Tree tree, tree_of(chunks, checkpoint));
  const std::string name = checkpoint_name(checkpoint.job, checkpoint.seq);
  Result<void> copied = store::copy_out(tree, chunks, directory);  // each chunk is hashed as it is read
  if (!copied) {
    Error error = std::move(copied).error();
    if (error.code == Code::not_found) error.code = Code::checkpoint_damaged;  // a chunk that must be there is not
    return std::move(error)
        .with_context("while copying checkpoint " + name + " to " + directory.string())
        .with_hint("gridctl checkpoint verify " + checkpoint.job.value);
  }
  const std::string files = std::to_string(tree.file_count());
  if (context.json)
    context.print_line("{\"checkpoint_id\":" + ui::quoted(name) +
                       ",\"directory\":" + ui::quoted(std::filesystem::absolute(directory).string()) +
                       ",\"bytes\":" + std::to_string(tree.total_bytes()) + ",\"files\":" + files + "}");
  else
    context.print_line(name + ": " + files + " files, " + format_size(tree.total_bytes()) + ", verified, in " +
                       directory.string());
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
                                    "killed has left, the next one to the same place replaces.",
                                .positionals = checkpoint_pull::k_positionals,
                                .exit_codes = k_exits_checkpoint,
                                .run = checkpoint_pull::run};

}  // namespace gridctl::cmd
