// SPDX-License-Identifier: Apache-2.0
#include "base/bytes.hpp"
#include "base/numbers.hpp"
#include "base/text.hpp"
#include "cmd/checkpoint_lookup.hpp"
#include "cmd/checkpoint_remote.hpp"
#include "cmd/commands.hpp"
#include "cmd/empty_directory.hpp"
#include "cmd/network.hpp"
#include "control/copies/chunks.hpp"
#include "control/copies/healing.hpp"
#include "control/copies/newest.hpp"
#include "store/file_workers.hpp"

namespace gridctl::cmd {

namespace checkpoint_pull {
namespace {
constexpr std::size_t k_digest_least = 8;  // characters of a digest that is expected

struct Pulled {
  std::string name;
  store::Tree tree;
  Digest root;
  std::optional<std::vector<std::string>> newest_for;  // who else says that it is the newest; nullopt: nobody was asked
};

// Checks --expect: what the user knows from elsewhere.
Result<void> check_expected(const Parsed& parsed, const std::string& name, CheckpointSeq seq, const Digest& root) {
  if (!parsed.has("expect")) return {};
  const std::string wanted = lower(parsed.value("expect"));
  const bool hex = wanted.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (!hex || wanted.empty() || wanted.size() > 2 * sizeof(Digest))
    return make_error(Code::usage, "--expect: '" + sanitize(wanted, 80) +
                                       "' is neither the number of a checkpoint nor the beginning of a digest");
  if (wanted.size() >= k_digest_least && to_hex(root).starts_with(wanted)) return {};
  const auto number = wanted.size() < k_digest_least ? parse_number<std::uint64_t>(wanted) : std::nullopt;
  if (number && seq.value >= *number) return {};
  return make_error(Code::refused, "the newest checkpoint found is " + name + " with the root " + to_hex(root) +
                                       ", and you expect " + (number ? "number " : "the root ") + wanted);
}

Result<Pulled> copy_from_here(store::ChunkStore& chunks, const registry::Checkpoint& checkpoint,
                              const os::Path& directory) {
  TRY_ASSIGN(store::Tree tree, tree_of(chunks, checkpoint));
  const std::string name = checkpoint_name(checkpoint.job, checkpoint.seq);
  TRY(copy_into(directory, tree, chunks, store::threads_here(), "gridctl checkpoint pull " + name));
  return Pulled{name, std::move(tree), checkpoint.root, {}};  // each chunk was hashed as it was read
}

bool is_damage(const Error& error) {
  return error.code == Code::checkpoint_damaged || error.code == Code::not_found;  // a chunk that must be there is not
}

// Restores damaged or missing parts first, if a remote has them.
Result<Pulled> pull_healed(Context& context, const registry::Checkpoint& checkpoint,
                           const std::vector<control::RemoteAccess>& copies, const os::Path& directory) {
  TRY_ASSIGN(store::ChunkStore chunks, control::open_chunks(context.paths()));
  Result<Pulled> pulled = copy_from_here(chunks, checkpoint, directory);
  if (pulled || !is_damage(pulled.error()) || copies.empty()) return pulled;
  TRY_ASSIGN(registry::Registry registry, context.open_for_reading());
  TRY_ASSIGN(control::SshNetwork net, network_of(context, registry));
  TRY_ASSIGN(const control::HealedFrom healed,
             control::heal_from(context.paths(), net, chunks, copies, {checkpoint.job, checkpoint.seq}, checkpoint.root,
                                context.clock));
  context.note("the checkpoint was damaged here; restored " + control::describe(healed));
  return copy_from_here(chunks, checkpoint, directory);
}

Result<Pulled> pull_here(Context& context, const Parsed& parsed, const os::Path& directory) {
  TRY_ASSIGN(registry::Registry registry, context.open_for_reading());
  TRY_ASSIGN(const registry::Checkpoint checkpoint, find_last(registry, parsed.positionals[0]));
  if (checkpoint.as_left) {
    const Result<registry::Checkpoint> head = registry.checkpoint(checkpoint.job, std::nullopt);
    context.note(
        "these are the files as the job left them when it ended" +
        std::string(checkpoint.torn ? ", including a torn file" : "") +
        (head && !head->as_left ? "; the newest complete checkpoint is " + checkpoint_name(head->job, head->seq) : ""));
  }
  TRY(check_expected(parsed, checkpoint_name(checkpoint.job, checkpoint.seq), checkpoint.seq, checkpoint.root));
  TRY(check_empty(directory, "a checkpoint is"));
  TRY_ASSIGN(const auto copies, control::remotes_with(registry, checkpoint.job, checkpoint.seq));
  Result<Pulled> pulled = pull_healed(context, checkpoint, copies, directory);
  if (pulled) return pulled;
  Error error = std::move(pulled).error().with_context(
      "while copying checkpoint " + checkpoint_name(checkpoint.job, checkpoint.seq) + " to " + directory.string());
  if (!is_damage(error)) return error;
  error.code = Code::checkpoint_damaged;
  return std::move(error).with_hint("gridctl checkpoint verify " + checkpoint.job.value);
}

// A remote can hide newer checkpoints from a machine that knows of none, so all other sources are asked. Without a
// number, a checkpoint known to be older is refused.
Result<std::optional<std::vector<std::string>>> check_newest(Context& context, registry::Registry& registry,
                                                             const Parsed& parsed, const RemoteCheckpoint& remote) {
  TRY_ASSIGN(const registry::CheckpointName wanted, registry::parse_checkpoint_name(parsed.positionals[0]));
  if (wanted.seq) return std::optional<std::vector<std::string>>();
  const std::string from = parsed.value("from"), name = checkpoint_name(remote.record.job, remote.record.seq);
  TRY_ASSIGN(control::Testimony said,
             control::ask_witnesses(registry, context.paths(), *remote.net, *remote.key, from, remote.record, context.clock));
  if (remote.newest_seq != remote.record.seq)
    said.witnesses.push_back(
        {"a record on the remote whose packs are missing", "", remote.record.job, remote.newest_seq, remote.newest_at});
  const std::string shown = name + " of " + format_rfc3339(remote.record.created_at);
  if (const control::Witness* newer = said.newer_than(remote.record))
    return make_error(Code::refused,
                      from + " shows " + shown + " as the newest, and " + newer->who + " knows " +
                          checkpoint_name(newer->job, newer->seq) + " of " + format_rfc3339(newer->created_at) + ": " +
                          from + " lacks newer ones, or hides them; to get this one anyway, name it: " + name,
                      newer->remote.empty() ? "gridctl store check " + from + " --all"
                                            : "gridctl checkpoint pull " + checkpoint_name(newer->job, newer->seq) +
                                                  " " + parsed.positionals[1] + " --from " + newer->remote);
  std::vector<std::string> who;
  for (const control::Witness& one : said.witnesses)
    if (one.agrees_with(remote.record)) who.push_back(one.who);
  for (const std::string& silent : said.silent) context.note("could not ask for a newer one: " + sanitize(silent));
  const Result<registry::Checkpoint> head = registry.checkpoint(remote.record.job, std::nullopt);
  if (head && head->seq > remote.record.seq) {
    who.clear();
    context.note(sanitize(shown + " is the newest that " + from + " shows; this machine has a newer one that was not copied "
                          "there, " + checkpoint_name(remote.record.job, head->seq)));
  } else if (!who.empty()) {
    context.note(
        sanitize(shown + " is the newest that " + from + " shows, and the newest known to " + join(who, ", ")));
  } else if (!parsed.has("expect")) {
    context.note(sanitize(shown + " is the newest that " + from +
                          " shows; nothing here proves that no newer one exists (--expect N, if you know its number)"));
  }
  TRY(control::remember_newest(
      context.paths(), *remote.key,
      {{remote.record.job, remote.record.job_name, remote.record.seq, remote.record.created_at, context.now(), from}}));
  return std::optional(std::move(who));
}

Result<Pulled> pull_from_remote(Context& context, const Parsed& parsed, const os::Path& directory) {
  TRY_ASSIGN(registry::Registry registry, context.open_for_reading());
  TRY_ASSIGN(const RemoteCheckpoint remote,
             find_remote(context, registry, parsed.value("from"), parsed.positionals[0]));
  TRY(check_expected(parsed, checkpoint_name(remote.record.job, remote.record.seq), remote.record.seq,
                     remote.record.root));
  TRY_ASSIGN(std::optional<std::vector<std::string>> newest, check_newest(context, registry, parsed, remote));
  TRY(check_empty(directory, "a checkpoint is"));
  TRY_ASSIGN(store::Tree tree, remote.tree());
  const std::string name = checkpoint_name(remote.record.job, remote.record.seq);
  TRY(copy_into(directory, tree, *remote.source, 1,
                "gridctl checkpoint pull " + name + " --from " + parsed.value("from"))
          .context("while copying from " + parsed.value("from") + " to " + directory.string()));
  return Pulled{name, std::move(tree), remote.record.root, std::move(newest)};
}

Result<int> run(Context& context, const Parsed& parsed) {
  const os::Path directory = parsed.positionals[1];
  TRY_ASSIGN(const Pulled pulled,
             parsed.has("from") ? pull_from_remote(context, parsed, directory) : pull_here(context, parsed, directory));
  const std::uint64_t files = pulled.tree.file_count(), bytes = pulled.tree.total_bytes();
  if (!context.json)
    return context.print_line(pulled.name + ": " + ui::counted(files, "file") + ", " + format_size(bytes) +
                              ", verified, in " + directory.string());
  JsonObject json;
  json("checkpoint_id", pulled.name)("directory", std::filesystem::absolute(directory).string());
  json("bytes", bytes)("files", files)("root", to_hex(pulled.root));
  if (pulled.newest_for) json.raw("newest_also_for", json_list(*pulled.newest_for));
  return context.print_line(json.text());
}
}  // namespace
}  // namespace checkpoint_pull

const Command k_checkpoint_pull{
    .name = "checkpoint pull",
    .summary = "copy a checkpoint to a directory",
    .examples = {{"Copy the newest checkpoint to a directory", "gridctl checkpoint pull train-gpt ./result"},
                 {"Copy the third one", "gridctl checkpoint pull train-gpt@3 ./step3"},
                 {"Copy it from a remote, on a new machine that has the store's key",
                  "gridctl checkpoint pull train-gpt ./result --from nas"},
                 {"Refuse a checkpoint older than the 41st",
                  "gridctl checkpoint pull train-gpt ./result --from nas --expect 41"}},
    .description =
        "Writes the files of a checkpoint to a new directory and verifies every chunk. The directory appears when it "
        "is complete; an existing empty directory contains the file .gridctl-partial until then. If the command is "
        "killed, running it again replaces what it left.\n\nIf a chunk is damaged or missing in the store, gridctl "
        "first fetches it from the nearest remote with an intact copy. With --from, gridctl reads only the remote and "
        "needs only the store's key. ID is then a job's id or name as recorded there; without a number, the newest "
        "complete copy is used.\n\nA remote can hide newer checkpoints from a machine that knows nothing else. So "
        "gridctl asks all other remotes, what the imported key file noted, and what this machine saw before. If one of "
        "them knows a newer one, the command refuses and names it. If none of them knows this one either, the command "
        "says that nothing proves it to be the newest; --expect then compares it with what you know. A checkpoint that "
        "you name by its number is not compared.",
    .positionals = {{"ID", Completion::checkpoint}, {"DIR", Completion::directory}},
    .options =
        {{"from", 0, "REMOTE", "read the copy at this remote instead of the local store", {}, Completion::remote},
         {"expect", 0, "N|DIGEST", "refuse a checkpoint older than number N, or with another root digest"}},
    .exit_codes = {3, 5, 6, 7, 8},
    .run = checkpoint_pull::run};

}  // namespace gridctl::cmd
