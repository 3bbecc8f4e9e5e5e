// SPDX-License-Identifier: Apache-2.0
#include "agent/metrics.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "os/entries.hpp"

namespace gridctl::agent {

namespace {
constexpr std::uint64_t k_tail_bytes = 64 * 1024;

void take_line(std::string_view line, Metrics& into) {
  if (line.size() > k_metrics_line_max) return;
  const auto object = nlohmann::json::parse(line, nullptr, false);
  if (!object.is_object()) return;
  for (const auto& [name, value] : object.items()) {
    if (!value.is_number() || !is_metric_name(name) || !std::isfinite(value.get<double>())) continue;
    if (into.size() < k_metrics_max || into.contains(name)) into[name] = value.get<double>();
  }
}
}  // namespace

Metrics parse_metrics(std::string_view lines) {
  Metrics metrics;
  for (std::size_t end = lines.find('\n'); end != std::string_view::npos; end = lines.find('\n')) {
    take_line(lines.substr(0, end), metrics);
    lines.remove_prefix(end + 1);
  }
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

}  // namespace gridctl::agent
