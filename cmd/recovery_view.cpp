// SPDX-License-Identifier: Apache-2.0
#include "cmd/recovery_view.hpp"

#include <string_view>
#include <utility>

#include "base/numbers.hpp"
#include "control/follow/exactness.hpp"
#include "control/follow/job_files.hpp"
#include "sched/place.hpp"

namespace gridctl::cmd {

namespace {
constexpr std::string_view k_title = "fault tolerance ";
}  // namespace

void put_newest_tolerance(const registry::Job& job, std::vector<std::string>& lines) {
  if (job.machine.head.value == 0) return;
  for (std::string& line : lines) line = sched::explained_with_checkpoint(std::move(line));
}

Result<std::optional<ToleranceView>> tolerance_view(registry::JobRecords& registry, const registry::Job& job) {
  if (job::is_final(job.state)) return std::optional<ToleranceView>{};
  TRY_ASSIGN(std::vector<std::string> lines, registry.explanation(job.id));
  put_newest_tolerance(job, lines);
  for (const std::string& line : lines) {
    if (!line.starts_with(k_title)) continue;
    const auto level = parse_number<int>(line.substr(k_title.size(), 1));
    if (level) return std::optional(ToleranceView{*level, line.substr(k_title.size())});
  }
  return std::optional<ToleranceView>{};
}

std::optional<ToleranceView> tolerance_with(std::optional<ToleranceView> decided, int ready) {
  if (!decided) return decided;
  if (ready > 1) return ToleranceView{4, "4 of 4: if a replica dies, the others answer"};
  if (decided->level < 3) return decided;  // no other host could take its place when it was placed
  return ToleranceView{3, ready == 1 ? "3 of 4: one replica is ready; if it dies, requests wait until another one is"
                                     : "3 of 4: no replica is ready; requests wait until one is"};
}

Result<std::optional<ui::ExactnessTold>> exactness_of(const control::Paths& paths, registry::RunRecords& registry,
                                                      const JobId& id) {
  TRY_ASSIGN(const std::vector<registry::AttemptRecord> attempts, registry.attempts(id));
  control::JobFiles files(paths);
  TRY_ASSIGN(const std::optional<control::ExactnessFound> found, control::find_exactness(files, id, attempts));
  if (!found) return std::optional<ui::ExactnessTold>{};
  const Result<registry::Checkpoint> from = registry.checkpoint(id, found->from);  // it may be removed since
  return std::optional{ui::ExactnessTold{
      found->attempt, found->verdict, job::exactness_text(found->verdict, from ? from->how : "")}};
}

}  // namespace gridctl::cmd
