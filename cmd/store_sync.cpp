// SPDX-License-Identifier: Apache-2.0

#include "base/bytes.hpp"
#include "base/text.hpp"
#include "cmd/commands.hpp"
#include "cmd/network.hpp"
#include "cmd/store_remotes.hpp"
#include "control/copies/copy_plan.hpp"
#include "control/copies/remote_work.hpp"
#include "ui/json.hpp"

namespace gridctl::cmd {

namespace store_sync {
namespace {
struct Synced {
  std::string name;
  std::uint64_t copied = 0, packs = 0, bytes = 0, records_removed = 0, packs_removed = 0, bytes_freed = 0;
  std::vector<std::string> problems;  // of checkpoints
  std::optional<Error> error;         // of the remote
};

// Removes the record of a copy that the remote does not list, because the copy does not exist.
Result<void> forget_lost(registry::CopyRecords& registry, const control::RemoteWork& work, const std::string& remote) {
  TRY_ASSIGN(const auto copies, registry.copies());
  const auto& records = work.listing().records;
  for (const registry::Copy& copy : copies)
    if (copy.remote == remote && !std::ranges::binary_search(records, store::RecordName{copy.job, copy.seq}))
      TRY(registry.remove_copy(copy));
  return {};
}

// Removes the record of a checkpoint of our own job that is older than its newest and not kept: a crash of ours left
// it.
Result<std::uint64_t> forget_left_over(registry::CopyRecords& registry, const control::RemoteWork& work) {
  TRY_ASSIGN(const auto kept, registry.kept_checkpoints());
  std::uint64_t removed = 0;
  const std::vector<store::RecordName> records = work.listing().records;
  for (const store::RecordName& name : records) {
    const registry::CheckpointRef ref{name.job, name.seq};
    const auto after = std::ranges::upper_bound(kept, ref);
    const bool has_newer = after != kept.end() && after->job == name.job;
    if (!has_newer || std::ranges::binary_search(kept, ref)) continue;
    TRY(work.link().backend->remove(store::object_name(name)));
    ++removed;
  }
  return removed;
}

// Names, for each job, the checkpoints that deliberately stay away from the remote.
void tell_refused(Context& context, const control::RemoteOffer& remote,
                  const std::vector<registry::CopyWanted>& copyable) {
  std::set<std::string> told;
  for (const registry::CopyWanted& wanted : copyable) {
    const std::string why = control::copy_refusal(wanted, remote);
    if (why.empty() || !told.insert(wanted.checkpoint.job.value).second) continue;
    context.note(sanitize("copies of " + wanted.job_name + " (" + wanted.checkpoint.job.value + ") are not sent to " +
                          remote.name + ": " + why));
  }
}

Result<void> copy_missing(Context& context, registry::Registry& registry, control::RemoteWork& work, Synced& synced) {
  TRY_ASSIGN(const auto copyable, registry.copyable());
  TRY_ASSIGN(const auto copies, registry.copies());
  TRY_ASSIGN(const auto offers, control::remote_offers(registry));
  const auto here = std::ranges::find_if(offers, [&](const auto& one) { return one.name == synced.name; });
  if (here == offers.end()) return make_error(Code::not_found, "no remote '" + synced.name + "'", "gridctl store ls");
  tell_refused(context, *here, copyable);
  for (const registry::CopyWanted& wanted : control::missing_at(*here, copyable, copies)) {
    const std::string name = checkpoint_name(wanted.checkpoint.job, wanted.checkpoint.seq);
    Result<store::CopyStats> copied = make_error(Code::internal, "not copied");
    {
      ProgressLine line(context, name + " to " + synced.name);
      copied = work.copy(wanted, line.teller());
    }
    if (!copied && copied.error().code == Code::checkpoint_damaged) {
      synced.problems.push_back(name + ": " + copied.error().one_line());
      continue;
    }
    TRY(copied);
    ++synced.copied;
    synced.packs += copied->packs_sent;
    synced.bytes += copied->bytes_sent;
    if (!context.json) context.note(name + " is at " + synced.name + control::describe(*copied));
  }
  return {};
}

Result<void> sync(Context& context, registry::Registry& registry, const registry::Remote& remote, bool prune,
                  Synced& synced) {
  TRY_ASSIGN(control::SshNetwork net, network_of(context, registry));
  TRY_ASSIGN(control::RemoteWork work,
             control::RemoteWork::open(context.paths(), net, registry, remote, context.clock, true));
  TRY(forget_lost(registry, work, remote.name));
  TRY(copy_missing(context, registry, work, synced));
  if (prune) {
    TRY_ASSIGN(synced.records_removed, work.forget_obsolete());
    TRY_ASSIGN(const std::uint64_t more, forget_left_over(registry, work));
    synced.records_removed += more;
    TRY_ASSIGN(const store::RemotePruned pruned, work.prune());
    synced.packs_removed = pruned.packs_removed;
    synced.bytes_freed = pruned.bytes_freed;
  }
  return registry.note_answer(remote.name, context.now());
}

std::string json_of(const Synced& synced) {
  JsonObject json;
  json("name", synced.name)("copied", synced.copied)("packs_sent", synced.packs)("bytes_sent", synced.bytes);
  json("records_removed", synced.records_removed)("packs_removed", synced.packs_removed);
  json("bytes_freed", synced.bytes_freed).raw("problems", json_list(synced.problems));
  return json.raw("error", synced.error ? ui::quoted(synced.error->one_line()) : "null").text();
}

void tell(Context& context, const Synced& synced) {
  if (synced.error) context.note(synced.name + ": " + sanitize(synced.error->one_line()));
  for (const std::string& problem : synced.problems) context.note("not copied: " + sanitize(problem));
  if (synced.error) return;
  std::string text =
      synced.name + ": " +
      (synced.copied == 0 ? std::string("nothing was missing")
                          : ui::counted(synced.copied, "checkpoint") +
                                " copied, " + format_size(synced.bytes) + " sent");
  if (synced.records_removed + synced.packs_removed > 0)
    text += "; removed " + std::to_string(synced.records_removed) + " records and " +
            std::to_string(synced.packs_removed) + " packs, " + format_size(synced.bytes_freed) + " freed";
  context.print_line(text);
}

Result<int> run(Context& context, const Parsed& parsed) {
  TRY_ASSIGN(registry::Registry registry, context.open());
  TRY_ASSIGN(const std::vector<registry::Remote> remotes, chosen_remotes(registry, parsed));
  std::vector<std::string> list;
  std::optional<Error> failed;
  for (const registry::Remote& remote : remotes) {
    Synced synced;
    synced.name = remote.name;
    const Result<void> done = sync(context, registry, remote, parsed.has("prune"), synced);
    if (!done) {
      synced.error = done.error();
      TRY(registry.note_trouble(remote.name, context.now(), done.error()));
    }
    if (context.json) list.push_back(json_of(synced));
    else tell(context, synced);
    if (synced.error && !failed) failed = *synced.error;
    if (!synced.problems.empty() && !failed)
      failed = make_error(Code::checkpoint_damaged, "some checkpoints are damaged here and were not copied",
                          "gridctl store check " + remote.name + " --repair");
  }
  if (context.json) context.print_line("[" + join(list, ",") + "]");
  if (failed) return *failed;
  return 0;
}
}  // namespace
}  // namespace store_sync

const Command k_store_sync{
    .name = "store sync",
    .summary = "copy missing checkpoints to remotes",
    .examples = {{"Copy all checkpoints to all remotes", "gridctl store sync"},
                 {"Copy to one remote, and remove copies that are no longer needed there",
                  "gridctl store sync nas --prune"}},
    .description =
        "Copies every checkpoint in this store, newest first, to one remote or to all. A checkpoint counts as copied "
        "once the remote acknowledges its record, which is written after all its data. After Ctrl-C or a broken "
        "connection, the next run continues without sending anything twice.\n\nWith --prune, gridctl removes records "
        "of checkpoints that were removed here, and then packs that no record needs. It removes nothing unless it "
        "could list and read everything there.",
    .positionals = {{"NAME", Completion::remote, false}},
    .options = {{"prune", 0, "",
                "remove records of checkpoints that were removed here, and packs that no record needs"}},
    .exit_codes = k_exits_remote,
    .run = store_sync::run};

}  // namespace gridctl::cmd
