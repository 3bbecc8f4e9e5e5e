// SPDX-License-Identifier: Apache-2.0
#include "cmd/outcome.hpp"

#include "base/text.hpp"
#include "cmd/context.hpp"
#include "control/follow/budgets.hpp"
#include "control/follow/limits.hpp"
#include "job/last_step.hpp"

namespace gridctl::cmd {

std::string why_of(const registry::Job& job) {
  const std::string& why = job.machine.reason_text.empty() ? job.reason : job.machine.reason_text;
  // A host may have said it: it gets no line of its own beside our hints.
  return (job::is_last_step(job.spec) && job.machine.overtaken.empty() ? "finally: " : "") + sanitize(why);
}

Result<int> outcome_of(const registry::Job& job) {
  if (!job::is_final(job.state) || job.state == job::JobState::succeeded) return 0;
  const std::string why = why_of(job);
  const std::string who = "job " + job.name + " (" + job.id.value + ")";
  if (job.state == job::JobState::cancelled && !job.machine.limit.empty())
    return make_error(Code::cancelled, who + " was stopped: " + why, resume_with_more(job.id, job.machine.limit));
  if (job.state == job::JobState::cancelled)
    return make_error(Code::cancelled, who + " was " + (why.starts_with("cancelled") ? why : "cancelled: " + why),
                      "gridctl job resume " + job.id.value);
  if (job.reason == "no_provider_fits")
    return make_error(Code::no_provider_fits, who + " fits no provider: " + why, "gridctl job explain " + job.id.value);
  if (job.reason == "image_failed")
    return make_error(Code::engine, who + " failed: " + why, "gridctl job events " + job.id.value);
  return make_error(Code::job_failed, who + " failed" + (why.empty() ? "" : ": " + why),
                    "gridctl job logs " + job.id.value + " --tail 50");
}

std::string outcome_json(const registry::Job& job) {
  return JsonObject()("job_id", job.id.value)("name", job.name)("state", job::state_name(job.state))("reason", job.reason)(
             "exit_code", job.exit_code)
      .text();
}

std::string resume_with_more(const JobId& id, std::string_view limit) {
  const std::string resume = "gridctl job resume " + id.value;
  if (limit == control::k_limit_leader) return "gridctl job show " + registry::leader_of(id).value;
  if (limit == control::k_limit_month) return "gridctl budget set USD && " + resume;
  if (limit == "budget") return resume + " --budget USD";
  return resume + (limit == job::k_for_deadline ? " --deadline TIME" : " --max-duration TIME");
}

}  // namespace gridctl::cmd
