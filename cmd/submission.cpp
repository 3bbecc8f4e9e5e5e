// SPDX-License-Identifier: Apache-2.0
#include "cmd/submission.hpp"

#include "base/bytes.hpp"
#include "base/text.hpp"
#include "bag/journal.hpp"
#include "control/copies/chunks.hpp"
#include "control/daemon/user_settings.hpp"
#include "control/follow/bag_files.hpp"
#include "control/follow/secrets.hpp"
#include "os/files.hpp"
#include "os/random.hpp"

namespace gridctl::cmd {

namespace {
constexpr std::size_t k_id_characters = 13;
constexpr std::size_t k_named_max = 5;  // files that are named in one line

std::string first_of(std::vector<std::string> names) {
  if (names.size() > k_named_max) {
    names.resize(k_named_max);
    names.emplace_back("and more");
  }
  return join(names, ", ");
}

std::string what_of(const control::InputListing& one) {
  if (one.role == "workdir") return "the working directory " + one.source;
  if (one.role == "image") return "the image archive " + one.source;
  return one.source + " as " + one.target;
}

}

Result<void> check_named_providers(registry::HostRecords& registry, const job::Spec& spec) {
  for (const std::string& name : spec.constraints.providers) TRY(registry.provider(HostName{name}));
  return {};
}

Result<void> check_supported(registry::HostRecords& registry, const job::Spec& spec) {
  const auto only_planned = [](const std::string& what, const std::string& key) {
    return make_error(Code::unsupported,
                      what + " can be planned and explained, but running it is not built yet: " + key,
                      "gridctl job submit --dry-run FILE.yaml");
  };
  if (spec.tasks && spec.twins > 1) return only_planned("a bag whose tasks run on several hosts at once", "replication");
  if (spec.tasks && spec.gang.ranks_per_node > 0) return only_planned("a task of several ranks", "ranks_per_node");
  return check_named_providers(registry, spec);
}

Result<std::vector<registry::Input>> store_inputs(Context& context, const job::Spec& spec) {
  TRY_ASSIGN(store::ChunkStore chunks, control::open_chunks(context.paths()));
  TRY_ASSIGN(control::ImportedInputs imported, control::import_inputs(spec, chunks));
  for (const std::string& note : imported.notes) context.note("left out: " + sanitize(note));
  if (!imported.keys.empty())
    context.note("warning: the working directory is sent with " + sanitize(first_of(imported.keys)) +
                 ", which may hold keys or passwords; what .gridctlignore names is not sent");
  return std::move(imported.inputs);
}

std::vector<std::string> sent_in_words(const std::vector<control::InputListing>& sent) {
  std::vector<std::string> lines;
  for (const control::InputListing& one : sent) {
    std::vector<std::string> largest;
    for (const auto& file : one.largest) largest.push_back(file.path + " " + format_size(file.bytes));
    lines.push_back("sends " + what_of(one) + ": " + ui::counted(one.files, "file") + ", " + format_size(one.bytes) +
                    (one.files > 1 ? "; largest " + join(largest, ", ") : ""));
    if (!one.notes.empty()) lines.push_back("  left out: " + first_of(one.notes));
    if (!one.keys.empty())
      lines.push_back("  these may hold keys or passwords: " + first_of(one.keys) +
                      (one.role == "workdir" ? "; what .gridctlignore names is not sent" : ""));
  }
  return lines;
}

std::string sent_json(const std::vector<control::InputListing>& sent) {
  return json_list(sent, [](const control::InputListing& one) {
    JsonObject json;
    json("role", one.role)("path", one.source).text_or_null("target", one.target)("files", one.files);
    json("bytes", one.bytes).raw("largest", json_list(one.largest, [](const auto& file) {
                                   return JsonObject()("path", file.path)("bytes", file.bytes).text();
                                 }));
    return json.raw("like_keys", json_list(one.keys)).raw("left_out", json_list(one.notes)).text();
  });
}

Result<std::map<std::string, std::string>> secrets_of(const control::Paths& paths, const registry::Job& job,
                                                      const std::string& again) {
  std::map<std::string, std::string> values;
  if (job.spec.secrets.empty()) return values;
  if (Result<std::map<std::string, std::string>> kept =
          control::read_secrets(paths.secrets_of(job.id), job.spec.secrets);
      kept)
    values = *std::move(kept);
  for (const std::string& name : job.spec.secrets)
    if (const std::optional<std::string> value = os::environment(name)) values[name] = *value;
  for (const std::string& name : job.spec.secrets)
    if (!values.contains(name))
      return make_error(Code::usage, "secret " + name + " is not in the environment; it is not kept after a job's end",
                        name + "=… " + again);
  return values;
}

Result<JobId> record(Context& context, registry::Registry& registry, const Submission& submission) {
  const JobId id{os::random_id(k_id_characters)};
  const os::Path secrets = context.paths().secrets_of(id);
  if (!submission.secrets.empty()) TRY(control::write_secrets(secrets, submission.secrets));
  const os::Path bag = context.paths().bag_of(id);
  if (submission.spec.tasks) {
    const bag::Begun begun{static_cast<std::uint64_t>(submission.spec.workload.tasks),
                           static_cast<std::uint64_t>(submission.spec.tasks->retries), submission.spec.tasks->raise.any()};
    if (!submission.items.empty()) TRY(control::write_bag_items(bag, submission.items));
    TRY(control::append_bag_journal(bag, bag::encode(begun) + submission.known_tasks));
  }
  TRY(write_origin(context.paths(), id, submission.origin));
  TRY(control::write_notify_rules(context.paths(), id, submission.notify));
  Result<job::Step> submitted = registry.submit(id, submission.spec, context.now(), submission.inputs);
  if (submitted) return id;
  // A commit whose last sync fails has still happened: the job will run, and needs its secrets. If even that cannot be
  // determined, the secrets stay until the daemon's housekeeping knows.
  const Result<registry::Job> recorded = registry.job(id);
  Error error = std::move(submitted).error();
  if (recorded || recorded.error().code != Code::not_found)
    return std::move(error).with_context("the job " + std::string(recorded ? "is" : "may be") +
                                         " recorded nevertheless, as " + id.value);
  (void)os::remove_tree(secrets);  // the error to tell is the first one
  (void)os::remove_tree(bag);
  (void)os::remove_tree(context.paths().logs_of(id));
  return error;
}

}  // namespace gridctl::cmd
