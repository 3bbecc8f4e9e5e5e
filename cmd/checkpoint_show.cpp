// SPDX-License-Identifier: Apache-2.0
#include "base/bytes.hpp"
#include "base/text.hpp"
#include "cmd/checkpoint_lookup.hpp"
#include "cmd/commands.hpp"
#include "control/copies/chunks.hpp"
#include "ui/json.hpp"
#include "ui/table.hpp"

namespace gridctl::cmd {

namespace checkpoint_show {
namespace {
std::string_view kind_name(store::EntryKind kind) {
  switch (kind) {
    case store::EntryKind::directory: return "directory";
    case store::EntryKind::file: return "file";
    case store::EntryKind::symlink: return "symlink";
  }
  return "file";
}

std::string json_of(const registry::Checkpoint& checkpoint, const store::Tree& tree, CheckpointSeq resumed_from) {
  std::string text = ui::checkpoint_json(checkpoint);
  text.pop_back();  // the closing brace: more keys follow
  const std::string from = resumed_from.value == 0 ? "" : checkpoint_name(checkpoint.job, resumed_from);
  const std::string entries = json_list(tree.entries, [](const store::Entry& entry) {
    JsonObject json;
    json("path", entry.path)("kind", kind_name(entry.kind))("bytes", entry.size)("chunks", entry.chunks.size());
    return json.text();
  });
  return text + "," + JsonObject().text_or_null("resumed_from", from).raw("entries", entries).text().substr(1);
}

// Returns the checkpoint from which the attempt that made this one started.
Result<CheckpointSeq> parent_of(registry::RunRecords& registry, const registry::Checkpoint& checkpoint) {
  TRY_ASSIGN(const std::vector<registry::AttemptRecord> attempts, registry.attempts(checkpoint.job));
  for (const registry::AttemptRecord& attempt : attempts)
    if (attempt.number == checkpoint.attempt) return attempt.resumed_from;
  return CheckpointSeq{};
}

ui::Facts facts_of(const registry::Checkpoint& checkpoint, CheckpointSeq from, WallTime now) {
  ui::Facts facts;
  facts.add("checkpoint", checkpoint_name(checkpoint.job, checkpoint.seq));
  facts.add("created", ui::moment(checkpoint.created_at, now) + ", " + ui::age(checkpoint.created_at, now));
  if (checkpoint.attempt.value != 0)
    facts.add("attempt",
              std::to_string(checkpoint.attempt.value) + ", epoch " + std::to_string(checkpoint.epoch.value));
  facts.add("continues", from.value == 0 ? "a fresh start" : checkpoint_name(checkpoint.job, from));
  facts.add("whole by", checkpoint.how);
  facts.add("size", format_size(checkpoint.bytes) + " in " + ui::counted(checkpoint.files, "file") + ", added " +
                        format_size(checkpoint.stored_bytes) + " to the store");
  std::string metrics;
  for (const auto& [name, value] : checkpoint.metrics)
    metrics += (metrics.empty() ? "" : ", ") + name + " " + ui::number(value);
  facts.add("metrics", metrics);
  facts.add("verified", checkpoint.verified ? "yes" : "NO: damaged");
  facts.add("copies", join(checkpoint.copies, ", "));
  facts.add("pinned", checkpoint.pinned ? "yes" : "");
  facts.add("suspect", checkpoint.suspect
                           ? "yes: the program failed twice after starting from it; only job resume --from restores it"
                           : "");
  facts.add("provisional", checkpoint.provisional ? "yes: nothing proves that it is complete" : "");
  facts.add("stray", checkpoint.stray ? "yes: from an attempt that gridctl had given up" : "");
  facts.add("root", to_hex(checkpoint.root));
  return facts;
}

ui::Table table_of(const store::Tree& tree) {
  ui::Table table(
      {{.title = "SIZE", .right = true}, {.title = "CHUNKS", .right = true}, {.title = "PATH", .shrinks = true}});
  for (const store::Entry& entry : tree.entries) {
    const bool file = entry.kind == store::EntryKind::file;
    table.add({file ? format_size(entry.size) : "-", file ? std::to_string(entry.chunks.size()) : "-",
               entry.path + (entry.kind == store::EntryKind::directory ? "/" : "") +
                   (entry.kind == store::EntryKind::symlink ? " -> " + entry.target : "")});
  }
  return table;
}

Result<int> run(Context& context, const Parsed& parsed) {
  TRY_ASSIGN(registry::Registry registry, context.open_for_reading());
  TRY_ASSIGN(const registry::Checkpoint checkpoint, find_checkpoint(registry, parsed.positionals[0]));
  TRY_ASSIGN(store::ChunkStore chunks, control::open_chunks(context.paths()));
  TRY_ASSIGN(const store::Tree tree, tree_of(chunks, checkpoint));
  TRY_ASSIGN(const CheckpointSeq from, parent_of(registry, checkpoint));
  if (context.json) return context.print_line(json_of(checkpoint, tree, from));
  context.print(facts_of(checkpoint, from, context.now()).render(context.out_style) + "\n");
  return context.print(table_of(tree).render(context.columns_out(), context.out_style));
}
}  // namespace
}  // namespace checkpoint_show

const Command k_checkpoint_show{.name = "checkpoint show",
                                .summary = "show a checkpoint's origin and contents",
                                .examples = {{"Show the newest checkpoint", "gridctl checkpoint show train-gpt"},
                                             {"Show the third one", "gridctl checkpoint show train-gpt@3"}},
                                .description =
                                    "Shows where a checkpoint comes from and which files it contains. ID is a job, "
                                    "which means its newest checkpoint, or JOB@NUMBER.",
                                .positionals = {{"ID", Completion::checkpoint}},
                                .exit_codes = k_exits_checkpoint,
                                .run = checkpoint_show::run};

}  // namespace gridctl::cmd
