// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "cmd/commands.hpp"
#include "cmd/job_changes.hpp"
#include "cmd/submission.hpp"
#include "config/job_file.hpp"
#include "control/daemon/user_settings.hpp"
#include "job/last_step.hpp"

namespace gridctl::cmd {

namespace job_apply {
namespace {
Result<int> submit(Context& context, const Parsed& parsed) {
  Parsed words = parsed;
  words.options["detach"] = {""};
  return k_job_submit.run(context, words);
}

Result<int> run(Context& context, const Parsed& parsed) {
  TRY_ASSIGN(registry::Registry registry, context.open());
  std::vector<std::string> names;
  TRY_ASSIGN(const std::vector<registry::Provider> providers, registry.providers());
  for (const registry::Provider& provider : providers) names.push_back(provider.name.value);
  TRY_ASSIGN(const config::ParsedJob file, config::load_job_file(parsed.positionals[0], {}, std::move(names)));
  const Result<JobId> id = registry.resolve(file.spec.name);
  if (!id && id.error().code == Code::not_found) return submit(context, parsed);
  TRY_ASSIGN(const registry::Job job, id ? registry.job(*id) : Result<registry::Job>(id.error()));
  if (job.name != file.spec.name || job.state == job::JobState::failed || job.state == job::JobState::cancelled)
    return submit(context, parsed);
  TRY_ASSIGN(const std::vector<registry::Input> inputs, store_inputs(context, file.spec));
  TRY_ASSIGN(const std::vector<registry::Input> before, registry.inputs(job.id));
  const std::vector<std::string> changed = changes_of(job::without_last_step(job.spec), before, file.spec, inputs);
  if (!changed.empty() && job::is_final(job.state)) return submit(context, parsed);
  if (!changed.empty())
    return make_error(Code::exists,
                      "job " + job.name + " (" + job.id.value + ") is " + std::string(job::state_name(job.state)) +
                          ", and the file would change " + sanitize(join(changed, ", ")),
                      job.spec.service ? "gridctl service apply " + parsed.positionals[0]
                                       : "gridctl job cancel " + job.id.value + ", then apply the file again");
  TRY(control::write_notify_rules(context.paths(), job.id, file.notify));  // the newest hold; the job itself is the same
  if (context.json)
    return context.print_line(
        JsonObject()("job_id", job.id.value)("name", job.name)("state", std::string(job::state_name(job.state))).text());
  return context.print_line(job.name + " " + job.id.value + " unchanged, " + std::string(job::state_name(job.state)));
}
}  // namespace
}  // namespace job_apply

const Command k_job_apply{
    .name = "job apply",
    .summary = "submit a job file unless its job already runs",
    .examples = {{"Make sure that the job described by a file runs or has run", "gridctl job apply train.yaml"}},
    .description =
        "Submits a job file, unless a job with the same name and content is running, waiting or has succeeded: then "
        "nothing happens. If a job with that name runs with different content, the command changes nothing and says "
        "what differs. It submits the file again if the job failed, was cancelled, or ended with different content.",
    .positionals = {{"FILE.yaml", Completion::file}},
    .exit_codes = {2, 3, 4, 5, 7, 9},
    .run = job_apply::run};

}  // namespace gridctl::cmd
