// SPDX-License-Identifier: Apache-2.0
#include "cmd/deadline_view.hpp"

#include <cmath>
#include <utility>

#include "control/follow/job_knowledge.hpp"
#include "sched/deadline.hpp"
#include "ui/human.hpp"

namespace gridctl::cmd {

namespace {
constexpr const char* k_unknown = "the job's length is unknown (workload.work, or its metric 'progress')";

WallTime after(WallTime now, double seconds) { return {now.ms + std::llround(seconds * 1000)}; }

void tell(ui::DeadlineTold& told, const sched::Placement& placement, WallTime now) {
  if (placement.estimate.is_never()) return;
  told.expected_at = after(now, placement.estimate.takes());
  told.surely_at = after(now, placement.safely);
}

// Treats it as if it were placed where it runs.
sched::Placement as_placement(const sched::CurrentRun& present, double time_left) {
  sched::Placement here;
  here.host = present.host;
  here.estimate = present.rest;
  here.safely = sched::safely(present.rest, present.failures_per_hour);
  here.late = here.safely > time_left;
  return here;
}

std::string end_text(const registry::Job& job, WallTime at) {
  if (job.state != job::JobState::succeeded || !job.ended_at) return "the job did not finish";
  const Duration early = std::chrono::milliseconds{at.ms - job.ended_at->ms};
  return early >= Duration::zero() ? "met, " + format_duration(early) + " before"
                                   : "missed by " + format_duration(-early);
}

Result<std::string> prospects(registry::JobRecords& registry, const registry::Job& job,
                              const std::vector<sched::HostFacts>& hosts, WallTime now, ui::DeadlineTold& told) {
  TRY_ASSIGN(const sched::JobKnowledge known, control::knowledge_of(registry, job, hosts, now));
  if (!known.is_due()) return std::string(k_unknown);
  TRY_ASSIGN(const auto present, control::present_of(registry, job, hosts, now));
  if (present) {
    const sched::Placement here = as_placement(*present, *known.time_left);
    tell(told, here, now);
    return sched::due_text(here, *known.time_left);
  }
  const sched::Decision decision = sched::place(job.spec, hosts, job.machine.avoided, known);
  if (!decision.placement) return std::string("no host can run the job now");
  tell(told, *decision.placement, now);
  return sched::due_text(*decision.placement, *known.time_left) + " on " + decision.placement->host.value;
}
}  // namespace

Result<std::optional<DeadlineView>> deadline_view(registry::JobRecords& registry, const registry::Job& job,
                                                  const std::vector<sched::HostFacts>& hosts, WallTime now) {
  if (!job.spec.deadline) return std::optional<DeadlineView>{};
  DeadlineView view;
  view.told = {job::moment_of(*job.spec.deadline, job.submitted_at), job.spec.deadline->hard, {}, {}};
  const WallTime at = view.told.at;
  view.text = ui::moment(at, now) + (view.told.hard ? " (hard)" : "") + ": ";
  if (job::is_final(job.state)) {
    view.text += end_text(job, at);
  } else if (at <= now) {
    view.text += "passed " + format_duration(std::chrono::milliseconds{now.ms - at.ms}) + " ago; the job is late";
  } else {
    TRY_ASSIGN(const std::string text, prospects(registry, job, hosts, now, view.told));
    view.text += text;
  }
  return std::optional{std::move(view)};
}

std::optional<ui::DeadlineTold> deadline_told(const job::Spec& spec, const sched::Decision& decision, WallTime now) {
  if (!spec.deadline) return std::nullopt;
  ui::DeadlineTold told{job::moment_of(*spec.deadline, now), spec.deadline->hard, {}, {}};
  if (decision.placement && sched::knowledge_of(spec, now).is_due()) tell(told, *decision.placement, now);
  return told;
}

Result<void> check_deadline(const job::Spec& spec, WallTime now) {
  if (!spec.deadline || job::moment_of(*spec.deadline, now) > now) return {};
  return make_error(Code::usage,
                    "the deadline, " + format_rfc3339(job::moment_of(*spec.deadline, now)) + ", has passed",
                    "a later one: deadline: 6h, or a time such as 2026-12-01T08:00:00Z");
}

std::string deadline_doubt(const job::Spec& spec, const sched::Decision& decision, WallTime now) {
  if (!spec.deadline) return "";
  const sched::JobKnowledge known = sched::knowledge_of(spec, now);
  if (known.is_due()) return sched::late_warning(decision, known);
  return std::string(k_unknown) + ": gridctl cannot plan for its deadline" +
         (spec.deadline->hard ? ", it only stops the job then" : "");
}

}  // namespace gridctl::cmd
