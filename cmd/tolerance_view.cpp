// SPDX-License-Identifier: Apache-2.0
#include "cmd/tolerance_view.hpp"

#include <string_view>

#include "base/numbers.hpp"

namespace gridctl::cmd {

namespace {
constexpr std::string_view k_title = "fault tolerance ";
}  // namespace

void put_newest_tolerance(const registry::Job& job, std::vector<std::string>& lines) {
  if (job.machine.head.value == 0) return;
  constexpr std::string_view k_none = "fault tolerance 1 of 4: ", k_until = ", until gridctl has seen a checkpoint of it",
                             k_on = "starts over on ", k_waits = "and starts over";
  for (std::string& line : lines) {
    if (!line.starts_with(k_none) || !line.ends_with(k_until)) continue;
    line.erase(line.size() - k_until.size());
    if (const std::size_t at = line.find(k_on); at != std::string::npos)
      line = "fault tolerance 3 of 4: if it dies, the job continues on " + line.substr(at + k_on.size()) + " from its last checkpoint";
    else if (line.ends_with(k_waits))
      line = "fault tolerance 2 of 4: if it dies, the job waits for another host and continues from its last checkpoint";
  }
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

}  // namespace gridctl::cmd
