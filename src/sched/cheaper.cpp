// SPDX-License-Identifier: Apache-2.0
#include "sched/cheaper.hpp"

#include <algorithm>

#include "base/formatted.hpp"
#include "base/time.hpp"

namespace gridctl::sched {

namespace {
std::string needs_text(const HostName& host, const Estimate& estimate) {
  return host.value + " needs " + in_words(estimate.takes()) +
         formatted(" and %.2f USD", estimate.cost());
}
}  // namespace

bool may_move_for_less(const job::Spec& spec) {
  const bool saves = spec.checkpoint.interval != job::CheckpointPolicy::Interval::off;
  // If the job orders GPUs, the cheaper host may have less preferred ones.
  return saves && spec.optimize == job::Optimize::cost && spec.resources.gpus.size() <= 1;
}

JobKnowledge for_less(JobKnowledge known, const CurrentRun& present) {
  known.task.work = present.work;
  known.task.resumes = true;
  return known;
}

std::optional<std::string> judge_cheaper(const CurrentRun& present, const Decision& elsewhere,
                                         const std::vector<Avoid>& avoided) {
  const auto& to = elsewhere.placement;
  if (!to || to->late || to->estimate.is_never()) return std::nullopt;
  // The job would be placed here again.
  if (std::ranges::any_of(avoided, [&](const Avoid& one) { return one.host == to->host; })) return std::nullopt;
  const double saving = present.rest.cost() - to->estimate.cost();
  const bool much = saving >= std::max(k_saving_usd_min, k_saving_min * present.rest.cost());
  if (!much || to->estimate.takes() > k_slower_max * present.rest.takes()) return std::nullopt;
  return needs_text(present.host, present.rest) + " to continue, " + needs_text(to->host, to->estimate);
}

}  // namespace gridctl::sched
