// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>

#include <filesystem>

#include "base/text.hpp"
#include "cmd/bag_reader.hpp"
#include "cmd/commands.hpp"
#include "cmd/empty_directory.hpp"
#include "control/copies/chunks.hpp"
#include "control/follow/results.hpp"
#include "control/reach/ssh_network.hpp"
#include "job/last_step.hpp"
#include "os/entries.hpp"
#include "os/loop.hpp"
#include "registry/records.hpp"
#include "store/file_workers.hpp"
#include "store/scan.hpp"
#include "store/stored_tree.hpp"

namespace gridctl::cmd {

namespace job_pull {
namespace {
// States where files of the job are on a host, if there are any.
struct Results {
  HostName host;
  Epoch epoch;
  control::ResultsWanted wanted;
};

std::optional<Results> source_of(const registry::Job& job, const std::optional<registry::Results>& known,
                                WallTime now) {
  Results source;
  if (known) source.wanted.before = known->root;
  source.wanted.tree = true;
  for (const job::Output& output : job.spec.outputs) source.wanted.patterns.push_back(output.from);
  const job::Attempt* const attempt = job.machine.attempt();
  if (attempt != nullptr && attempt->started_at) {
    source.host = attempt->lead().host;
    source.epoch = attempt->epoch;
    return source;
  }
  if (!known || !known->left || known->left->until < now) return std::nullopt;
  source.host = known->left->host;
  source.epoch = known->left->epoch;
  return source;
}

// Fetches what the host has; the result is kept here, so that it can be pulled again.
Result<void> fetch(Context& context, registry::Registry& registry, const registry::Job& job, const Results& source,
                   std::optional<registry::Results>& known) {
  TRY_ASSIGN(const registry::Provider provider, registry.provider(source.host));
  TRY_ASSIGN(const ControllerId controller, registry.controller_id());
  os::Loop loop;
  control::SshNetwork network(loop, context.clock, context.paths(), controller);
  control::LinkMeter meter;
  control::StoreFreight freight(network, context.clock, registry, meter);
  const control::HostReach host = control::with_budget({provider, nullptr}, context.clock);
  TRY_ASSIGN(const transfer::BulkLink bulk, freight.reach(host, control::k_reach_patience));
  TRY_ASSIGN(const control::GatheredResults gathered,
             control::gather_results(freight, host, *bulk.link, context.clock, job.id, source.epoch, source.wanted));
  for (const std::string& note : gathered.reply.notes) context.note("left out: " + sanitize(note));
  if (!gathered.root) return {};
  TRY(control::keep_results(registry, job.id, source.epoch, source.host, source.wanted, gathered, false,
                            context.now()));
  TRY_ASSIGN(known, registry.results(job.id));
  if (!known || !known->left) return {};
  known->left.reset();  // it is here now
  return registry.save_results(*known);
}

// `looked`: the host was asked just now, and has nothing.
Error nothing(const registry::Job& job, const std::optional<registry::Results>& known, bool looked) {
  const std::string who = "job " + job.name + " (" + job.id.value + ")";
  if (known && known->left)
    return make_error(Code::not_found, who + " left " +
                                           control::files_in_words(known->left->files, known->left->bytes, {}) +
                                           " on " + known->left->host.value + ", but only until " +
                                           format_rfc3339(known->left->until),
                      "to keep them, name them under 'outputs' in the job file");
  const std::string hint = "gridctl checkpoint ls " + job.id.value;
  const bool runs = !job::is_final(job.state);
  if (looked || known)
    return make_error(Code::not_found,
                      who + (runs ? " has written no files outside its checkpoints so far"
                                  : " left no files outside its checkpoints"),
                      hint);
  const bool began = job.machine.attempts.value > 0;
  return make_error(Code::not_found,
                    began ? "gridctl does not know which files " + who +
                                " left outside its checkpoints: its host was not asked, or "
                                "could not say; 'gridctl job events " +
                                job.id.value + "' says why"
                          : who + " has not run yet",
                    hint);
}

// Returns nullopt if there is nothing, while others may have files (`absent`).
Result<std::optional<store::Tree>> files_of(Context& context, registry::Registry& registry, store::ChunkStore& chunks,
                                            const registry::Job& job, bool absent) {
  TRY_ASSIGN(std::optional<registry::Results> known, registry.results(job.id));
  bool looked = false;
  if (const std::optional<Results> source = source_of(job, known, context.now())) {
    Result<void> fetched = fetch(context, registry, job, *source, known);
    if (!fetched && (!known || !known->root))
      return std::move(fetched).error().with_context("while fetching the files from " + source->host.value);
    if (!fetched)
      context.note("warning: " + source->host.value + " did not answer; these files are from " +
                   format_rfc3339(known->at) + ": " + sanitize(fetched.error().one_line()));
    looked = fetched.has_value();
  }
  if ((!known || !known->root) && absent) return std::optional<store::Tree>();
  if (!known || !known->root) return nothing(job, known, looked);
  TRY_ASSIGN(store::Tree tree, store::tree_at(chunks, *known->root));
  return std::optional(std::move(tree));
}

// The workers of a bag are separate jobs, and each has left files on its host. If two have left a file with the same
// name, the later worker's counts.
Result<store::Tree> with_workers(Context& context, registry::Registry& registry, store::ChunkStore& chunks,
                                 const registry::Job& job, const store::Tree& own) {
  std::map<std::string, store::Entry> all;
  for (const store::Entry& entry : own.entries) all[entry.path] = entry;
  TRY_ASSIGN(const std::vector<registry::JobRow> workers, registry.twins(job.id));
  for (const registry::JobRow& row : workers) {
    TRY_ASSIGN(const registry::Job worker, registry.job(row.id));
    Result<std::optional<store::Tree>> its = files_of(context, registry, chunks, worker, true);
    if (!its) context.note("warning: files of worker " + worker.name + " are missing: " + sanitize(its.error().one_line()));
    if (its && *its)
      for (const store::Entry& entry : (*its)->entries) all[entry.path] = entry;
  }
  std::vector<store::Entry> entries;
  for (auto& [path, entry] : all) entries.push_back(std::move(entry));
  return store::make_tree(std::move(entries));
}

constexpr std::uint64_t k_piece_max = 1u << 20;  // bytes copied at once
struct PulledFiles {
  std::uint64_t files = 0, bytes = 0;
};

Result<void> pull_task(const BagReader& reader, const TaskEnded& task, const os::Path& directory, PulledFiles& pulled) {
  return control::each_file(reader, task, [&](const control::TaskFile& file) -> Result<void> {
    const os::Path path = directory / file.path;
    TRY(os::make_directories(path.parent_path(), 0755));
    TRY_ASSIGN(const os::Fd fd, os::open_file(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, (file.mode & 0755) | 0600));
    for (std::uint64_t done = 0; done < file.size;) {
      TRY_ASSIGN(const std::string text, reader.read(task, file.begin + done, std::min(k_piece_max, file.size - done)));
      if (text.empty()) return make_error(Code::io, "the output of the bag has shrunk");
      TRY(os::write_all(fd.get(), as_bytes(text)));
      done += text.size();
    }
    ++pulled.files;
    pulled.bytes += file.size;
    return {};
  });
}

// Writes the files of the named tasks, or of all, below the directory, which is empty.
Result<int> pull_task_files(Context& context, const registry::Job& job, const std::optional<std::string>& tasks,
                            const os::Path& directory) {
  BagReader reader(context.paths().bag_of(job.id));
  TRY_ASSIGN(const auto by_index, reader.ended(static_cast<std::uint64_t>(job.spec.workload.tasks), tasks));
  PulledFiles pulled;
  for (const auto& [index, task] : by_index)
    TRY(pull_task(reader, task, job.spec.tasks->folder ? directory / std::to_string(index) : directory, pulled));
  os::set_attribute(directory, store::k_pulled_attribute);
  if (context.json)
    return context.print_line(JsonObject()("job_id", job.id.value)("directory", std::filesystem::absolute(directory).string())(
                                  "bytes", pulled.bytes)("files", pulled.files)
                                  .text());
  return context.print_line(job.name + ": " + control::files_in_words(pulled.files, pulled.bytes, {}) + " in " + directory.string());
}

Result<int> run(Context& context, const Parsed& parsed) {
  TRY_ASSIGN(registry::Registry reading, context.open_for_reading());
  TRY_ASSIGN(const JobId id, reading.resolve(parsed.positionals[0]));
  TRY_ASSIGN(registry::Registry registry, context.open());  // not before: no state is made for a job that is not there
  TRY_ASSIGN(const registry::Job job, registry.job(id));
  const os::Path directory = parsed.positionals.size() > 1 ? parsed.positionals[1] : job.name + "-outputs";
  TRY(check_empty(directory, "outputs are"));
  const std::optional<std::string> tasks = parsed.given("tasks");
  const bool of_tasks = job.spec.tasks && job.spec.twin_of.value.empty() && !job.spec.tasks->outputs.empty();
  if (of_tasks && (tasks || !job::is_last_step(job.spec)))
    return pull_task_files(context, job, tasks, directory);
  if (tasks)
    return make_error(Code::usage,
                      job.spec.tasks ? "the job file of this bag names no outputs" : "--tasks requires a bag of tasks",
                      "gridctl help gridctl-job.5");
  TRY_ASSIGN(store::ChunkStore chunks, control::open_chunks(context.paths()));
  const bool of_workers = job.spec.tasks && job.spec.twin_of.value.empty() && !job::is_last_step(job.spec);
  TRY_ASSIGN(std::optional<store::Tree> found, files_of(context, registry, chunks, job, of_tasks || of_workers));
  if (!found && of_tasks) return pull_task_files(context, job, tasks, directory);
  if (of_workers) {
    TRY_ASSIGN(found, with_workers(context, registry, chunks, job, found.value_or(store::Tree{})));
  }
  const store::Tree& tree = *found;
  if (tree.entries.empty()) {
    TRY_ASSIGN(const std::optional<registry::Results> known, registry.results(id));
    return nothing(job, known, false);
  }
  TRY(copy_into(directory, tree, chunks, store::threads_here(), "gridctl job pull " + id.value)
          .context("while copying the outputs to " + directory.string()));
  os::set_attribute(directory, store::k_pulled_attribute);
  if (context.json)
    context.print_line(JsonObject()("job_id", id.value)("directory", std::filesystem::absolute(directory).string())(
                           "bytes", tree.total_bytes())("files", tree.file_count())
                           .text());
  else
    context.print_line(job.name + ": " + control::files_in_words(tree.file_count(), tree.total_bytes(), {}) + " in " +
                       directory.string());
  return 0;
}
}  // namespace
}  // namespace job_pull

const Command k_job_pull{
    .name = "job pull",
    .summary = "get the files that a job has written",
    .examples = {{"Get the results of the job you submitted last", "gridctl job pull @last"},
                 {"Choose where to put them", "gridctl job pull train-gpt ./results"},
                 {"See what a running job has written so far", "gridctl job pull train-gpt ./so-far"}},
    .description =
        "Copies the files that the job file names under 'outputs' into a new directory, by default "
        "NAME-outputs. gridctl fetches outputs automatically when an attempt ends, however it ends. "
        "A later 'job submit' does not send that directory with the working directory around it.\n\n"
        "Without 'outputs', the files that the program left in its working directory, outside "
        "its checkpoints, stay on the host for 24 hours, and this command fetches them. "
        "For a running job, you get what it has written so far. For a bag, these are the files of the finished tasks, "
        "or, "
        "without 'outputs', the files that its workers left on their hosts; "
        "if each task has its own directory, that directory has the task's number in DIR. Once the bag's 'finally' has "
        "started, you get the "
        "files that it writes; --tasks gets those of the tasks.",
    .positionals = {{"ID", Completion::job}, {"DIR", Completion::directory, false}},
    .options = {{"tasks", 0, "LIST", "only the files of these tasks of a bag: 17,20-30", "all"}},
    .exit_codes = {3, 5, 6, 7, 8},
    .run = job_pull::run};

}  // namespace gridctl::cmd
