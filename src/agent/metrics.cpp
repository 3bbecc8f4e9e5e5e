// SPDX-License-Identifier: Apache-2.0
#include "agent/metrics.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

#include "os/entries.hpp"

namespace gridctl::agent {

namespace {
constexpr std::uint64_t k_tail_bytes = 64 * 1024;

// Passes on each line that has its end and is a JSON object.
void each_object(std::string_view lines, const std::function<void(const nlohmann::json&)>& take) {
  for (std::size_t end = lines.find('\n'); end != std::string_view::npos; end = lines.find('\n')) {
    const auto object = nlohmann::json::parse(end > k_metrics_line_max ? "" : lines.substr(0, end), nullptr, false);
    if (object.is_object()) take(object);
    lines.remove_prefix(end + 1);
  }
}

void take_numbers(const nlohmann::json& object, Metrics& into) {
  for (const auto& [name, value] : object.items()) {
    if (!value.is_number() || !is_metric_name(name) || !std::isfinite(value.get<double>())) continue;
    if (into.size() < k_metrics_max || into.contains(name)) into[name] = value.get<double>();
  }
}
}  // namespace

Metrics parse_metrics(std::string_view lines) {
  Metrics metrics;
  each_object(lines, [&](const nlohmann::json& object) { take_numbers(object, metrics); });
  return metrics;
}

std::uint64_t metrics_bytes(const Path& run) {
  const auto file = open_hostile(run, "metrics");
  return file ? file->size : 0;
}

std::string metrics_tail(const Path& run, std::uint64_t until) {
  const auto file = open_hostile(run, "metrics");
  if (!file) return {};
  const std::uint64_t size = std::min(file->size, until);
  const std::uint64_t skipped = size > k_tail_bytes ? size - k_tail_bytes : 0;
  std::string text(static_cast<std::size_t>(std::min(size, k_tail_bytes)), '\0');
  const auto got = os::read_at(file->fd.get(), std::as_writable_bytes(std::span(text)), skipped);
  if (!got) return {};
  text.resize(*got);
  if (skipped > 0) text.erase(0, std::min(text.size(), text.find('\n')));  // the end of a line
  return text;
}

LogSlice metrics_from(const Path& run, std::uint64_t offset, std::uint32_t bytes_max) {
  const auto file = open_hostile(run, "metrics");
  if (!file) return {offset, offset, {}};
  LogSlice slice{std::min(offset, file->size), file->size, {}};
  slice.bytes.resize(static_cast<std::size_t>(std::min<std::uint64_t>(bytes_max, file->size - slice.offset)));
  const auto got = os::read_at(file->fd.get(), std::as_writable_bytes(std::span(slice.bytes)), slice.offset);
  slice.bytes.resize(got ? *got : 0);
  return slice;
}

Metrics read_metrics(const Path& run, std::uint64_t until) { return parse_metrics(metrics_tail(run, until)); }

namespace {
constexpr double k_number_max = 1e15;

std::optional<double> number_in(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_number()) return std::nullopt;
  const double value = found->get<double>();
  return std::isfinite(value) && std::abs(value) < k_number_max ? std::optional(value) : std::nullopt;
}

std::optional<wire::ToldStep> step_in(const nlohmann::json& object, std::uint32_t rank) {
  const auto step = number_in(object, "step"), said = number_in(object, "rank"), busy = number_in(object, "step_s");
  if (!step || (said && (*said < 0 || *said > 1e6))) return std::nullopt;
  wire::ToldStep told{said ? static_cast<std::uint32_t>(*said) : rank, static_cast<std::int64_t>(*step), std::nullopt};
  if (busy && *busy >= 0) told.step_s = busy;
  return told;
}
}  // namespace

std::vector<wire::ToldStep> parse_steps(std::string_view lines, std::uint32_t rank) {
  std::vector<wire::ToldStep> steps;
  each_object(lines, [&](const nlohmann::json& object) {
    if (const auto told = step_in(object, rank)) steps.push_back(*told);
  });
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
