// SPDX-License-Identifier: Apache-2.0
#include "agent/steps.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

#include "agent/log_ring.hpp"
#include "agent/metrics.hpp"

namespace gridctl::agent {

namespace {
constexpr double k_number_max = 1e15;

std::optional<double> number_in(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_number()) return std::nullopt;
  const double value = found->get<double>();
  return std::isfinite(value) && std::abs(value) < k_number_max ? std::optional(value) : std::nullopt;
}

std::optional<wire::ToldStep> step_in(std::string_view line, std::uint32_t rank) {
  if (line.size() > k_metrics_line_max) return std::nullopt;
  const auto object = nlohmann::json::parse(line, nullptr, false);
  if (!object.is_object()) return std::nullopt;
  const auto step = number_in(object, "step"), said = number_in(object, "rank"), busy = number_in(object, "step_s");
  if (!step || (said && (*said < 0 || *said > 1e6))) return std::nullopt;
  wire::ToldStep told{said ? static_cast<std::uint32_t>(*said) : rank, static_cast<std::int64_t>(*step), std::nullopt};
  if (busy && *busy >= 0) told.step_s = busy;
  return told;
}
}  // namespace

std::vector<wire::ToldStep> parse_steps(std::string_view lines, std::uint32_t rank) {
  std::vector<wire::ToldStep> steps;
  for (std::size_t end = lines.find('\n'); end != std::string_view::npos; end = lines.find('\n')) {
    if (const auto told = step_in(lines.substr(0, end), rank)) steps.push_back(*told);
    lines.remove_prefix(end + 1);
  }
  if (steps.size() > wire::k_steps_max)
    steps.erase(steps.begin(), steps.end() - static_cast<std::ptrdiff_t>(wire::k_steps_max));
  return steps;
}

Result<wire::StepsReply> steps_of(const AttemptDir& attempt) {
  if (!os::exists(attempt.path)) return make_error(Code::not_found, "this attempt is not on this host");
  TRY_ASSIGN(const wire::AttemptSpec spec, read_spec(attempt));
  const std::uint32_t rank = spec.gang ? spec.gang->first_rank() : 0;
  return wire::StepsReply{parse_steps(metrics_tail(attempt.run(newest_launch(attempt))), rank),
                          log_end(attempt.log())};
}

}  // namespace gridctl::agent
