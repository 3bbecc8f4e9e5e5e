// SPDX-License-Identifier: Apache-2.0
#include "control/follow/exactness.hpp"

#include <algorithm>

#include "control/reach/paths.hpp"

namespace gridctl::control {

namespace {

constexpr std::size_t k_each_end = 8u << 20;  // bytes of an output that are read: its first steps and its last

Result<job::StepNumbers> numbers_of(JobFolders& folders, const JobId& job, AttemptNumber attempt, int rank) {
  job::StepNumbers numbers;
  const Result<std::string> text = folders.log_ends(job, attempt, rank, k_each_end);
  if (!text && text.error().code != Code::not_found) return text.error();
  if (text) numbers.read(*text + "\n");
  return numbers;
}

Result<job::ExactnessVerdict> judge(JobFolders& folders, const JobId& job,
                                    const std::vector<registry::AttemptRecord>& attempts, std::size_t restored, int rank) {
  job::StepNumbers first, before;
  for (std::size_t i = restored; i-- > 0;) {
    TRY_ASSIGN(job::StepNumbers one, numbers_of(folders, job, attempts[i].number, rank));
    before.add_absent(one);
    if (attempts[i].resumed_from.value != 0) continue;
    first = std::move(one);
    break;
  }
  TRY_ASSIGN(const job::StepNumbers after, numbers_of(folders, job, attempts[restored].number, rank));
  return job::judge_exactness(first, before, after);
}

}  // namespace

Result<std::optional<ExactnessFound>> find_exactness(JobFolders& folders, const JobId& job,
                                                     const std::vector<registry::AttemptRecord>& attempts) {
  for (std::size_t i = attempts.size(); i-- > 1;) {
    if (attempts[i].resumed_from.value == 0) continue;
    ExactnessFound found{attempts[i].number, attempts[i].resumed_from, {}};
    // Metrics are meant for programs to read; printed output is used only if they show nothing.
    TRY_ASSIGN(found.verdict, judge(folders, job, attempts, i, k_metrics_rank));
    if (found.verdict.verdict == job::Exactness::cannot_tell) {
      TRY_ASSIGN(found.verdict, judge(folders, job, attempts, i, 0));
    }
    return std::optional{std::move(found)};
  }
  return std::optional<ExactnessFound>{};
}

}  // namespace gridctl::control
