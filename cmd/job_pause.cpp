// SPDX-License-Identifier: Apache-2.0
#include "cmd/commands.hpp"
#include "cmd/pausing.hpp"
#include "ui/json.hpp"

namespace gridctl::cmd {

namespace job_pause {
namespace {
Result<int> run(Context& context, const Parsed& parsed) {
  TRY_ASSIGN(const std::optional<Duration> most, parsed.duration("max"));
  TRY_ASSIGN(registry::Registry registry, context.open());
  TRY_ASSIGN(const JobId id, registry.resolve(parsed.positionals[0]));
  TRY_ASSIGN(const registry::Job job, registry.job(id));
  TRY_ASSIGN(const std::string done, pause_in_place(context, registry, job, {false, parsed.has("gpu-only"), most}));
  if (context.json) return context.print_line(ui::submitted_json(id, job.name, job.state));
  context.print_line(job.name + " (" + id.value + ") " + done);
  return context.note("continue it there: gridctl job resume " + id.value);
}
}  // namespace
}  // namespace job_pause

const Command k_job_pause{
    .name = "job pause",
    .summary = "free the GPU of a running job, keeping its state in memory",
    .examples = {{"Free the GPU of a running job; its state stays in the host's memory", "gridctl job pause train-gpt"},
                 {"Continue it where it stopped", "gridctl job resume train-gpt"},
                 {"Let it move to another host if it is still paused after eight hours",
                  "gridctl job pause train-gpt --max 8h"}},
    .description =
        "Moves the GPU memory of the job into the memory of its host, and stops its processes. The GPUs are then free "
        "for other jobs and programs; the memory stays reserved. 'gridctl job resume' continues the job there, from "
        "the very instruction at which it stopped. A job without GPUs only stops.\n\nThe time limits and the budget of "
        "the job do not run while it is paused. A job that is still paused after --max moves to another host, as soon "
        "as one can take it, and continues there from its last checkpoint.\n\nFor GPUs, this needs an NVIDIA driver of "
        "version 570 or later on x86_64, a whole GPU (no MIG), a job on one host that exchanges no data between GPUs, "
        "and as much free memory on the host as the job uses on its GPUs. Otherwise the command names the missing "
        "part. 'gridctl job cancel' frees the GPU anyway; 'gridctl job resume' then continues from the last "
        "checkpoint.",
    .positionals = {{"ID", Completion::job}},
    .options = {{"gpu-only", 0, "", "free the GPU, but do not stop the job's processes"},
                {"max", 0, "TIME", "after this long, the job moves to another host from its last checkpoint", "2h"}},
    .exit_codes = {2, 3, 5, 7, 130},
    .run = job_pause::run};

}  // namespace gridctl::cmd
