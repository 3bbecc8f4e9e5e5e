// SPDX-License-Identifier: Apache-2.0
#include "cmd/submission.hpp"

#include "base/text.hpp"
#include "control/copies/chunks.hpp"
#include "control/follow/inputs.hpp"
#include "control/follow/secrets.hpp"
#include "os/files.hpp"
#include "os/random.hpp"
#include "os/terminal.hpp"

namespace gridctl::cmd {

namespace {
constexpr std::size_t k_id_characters = 13;
}

Result<void> check_named_providers(registry::Registry& registry, const job::Spec& spec) {
  for (const std::string& name : spec.constraints.providers) TRY(registry.provider(HostName{name}));
  return {};
}

Result<void> check_supported(registry::Registry& registry, const job::Spec& spec) {
  const auto only_planned = [](const std::string& what, const std::string& key) {
    return make_error(Code::unsupported,
                      what + " can be planned and explained, but running it is not built yet: " + key,
                      "gridctl job submit --dry-run FILE.yaml");
  };
  if (spec.workload.tasks > 0) return only_planned("a bag of tasks", "tasks is " + std::to_string(spec.workload.tasks));
  return check_named_providers(registry, spec);
}

Result<std::vector<registry::Input>> store_inputs(Context& context, const job::Spec& spec) {
  TRY_ASSIGN(store::ChunkStore chunks, control::open_chunks(context.paths()));
  TRY_ASSIGN(control::ImportedInputs imported, control::import_inputs(spec, chunks));
  for (const std::string& note : imported.notes) context.note("left out: " + sanitize(note));
  constexpr std::size_t k_named_max = 5;
  if (imported.keys.size() > k_named_max) {
    imported.keys.resize(k_named_max);
    imported.keys.emplace_back("and more");
  }
  if (!imported.keys.empty())
    context.note("warning: the working directory is sent with " + sanitize(join(imported.keys, ", ")) +
                 ", which may hold keys or passwords; what .gridctlignore names is not sent");
  return std::move(imported.inputs);
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
  Result<job::Step> submitted = registry.submit(id, submission.spec, context.now(), submission.inputs);
  if (submitted) return id;
  // A commit that fails in its last sync has happened all the same: the job will run, and needs its secrets. Where that
  // cannot be known either, they stay until the daemon's housekeeping knows.
  const Result<registry::Job> recorded = registry.job(id);
  Error error = std::move(submitted).error();
  if (recorded || recorded.error().code != Code::not_found)
    return std::move(error).with_context("the job " + std::string(recorded ? "is" : "may be") +
                                         " recorded all the same, as " + id.value);
  (void)os::remove_tree(secrets);  // the error to tell is the first one
  return error;
}

}  // namespace gridctl::cmd
