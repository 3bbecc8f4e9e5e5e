// SPDX-License-Identifier: Apache-2.0
#include "forecast/trace.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/numbers.hpp"
#include "base/text.hpp"
#include "config/yaml.hpp"

namespace gridctl::forecast {

namespace {
using Json = nlohmann::json;
constexpr double k_gap_min = 0.001, k_gap_max = 7 * 86400.0;  // seconds

config::Position position_of(std::string_view text, std::size_t offset) {
  config::Position at;
  for (const char c : text.substr(0, offset)) {
    if (c == '\n') ++at.line, at.column = 1;
    else ++at.column;
  }
  return at;
}

// Returns where element `index` of the array "data" begins; its elements contain neither commas nor brackets.
std::size_t offset_of_element(std::string_view text, std::size_t index) {
  std::size_t at = text.find('[', text.find("\"data\""));
  for (std::size_t i = 0; i < index && at != std::string_view::npos; ++i) at = text.find(',', at + 1);
  at = text.find_first_not_of(" \t\r\n", at == std::string_view::npos ? at : at + 1);
  return std::min(at, text.size());
}

void add(Trace& trace, int hosts_up, std::uint64_t samples) {
  if (!trace.runs.empty() && trace.runs.back().hosts_up == hosts_up) trace.runs.back().samples += samples;
  else trace.runs.push_back({hosts_up, samples});
  trace.hosts_max = std::max(trace.hosts_max, hosts_up);
}

Result<Trace> checked(Trace trace, const std::string& file) {
  if (trace.runs.empty()) return config::error_at(file, {}, "the trace is empty: expected at least one sample");
  if (trace.hosts_max == 0) return config::error_at(file, {}, "no host is ever up in this trace");
  return trace;
}

Result<Trace> parse_published(std::string_view text, const std::string& file) {
  Json root;
  try {
    root = Json::parse(text);
  } catch (const Json::parse_error& problem) {
    return config::error_at(file, position_of(text, problem.byte == 0 ? 0 : problem.byte - 1), "not valid JSON");
  }
  Trace trace;
  trace.name = file;
  const Json* gap = nullptr;
  if (const auto metadata = root.find("metadata"); metadata != root.end() && metadata->is_object())
    if (const auto found = metadata->find("gap_seconds"); found != metadata->end()) gap = &*found;
  if (gap == nullptr || !gap->is_number() || !(gap->get<double>() >= k_gap_min && gap->get<double>() <= k_gap_max))
    return config::error_at(file, position_of(text, std::min(text.find("gap_seconds"), text.size())),
                            "key 'metadata.gap_seconds': expected the seconds between two samples, 0.001 to 604800");
  trace.gap_seconds = gap->get<double>();
  const auto data = root.find("data");
  if (data == root.end() || !data->is_array())
    return config::error_at(file, {}, "key 'data': expected a list with the number of hosts up in each sample");
  for (std::size_t i = 0; i < data->size(); ++i) {
    const Json& one = (*data)[i];
    const double value = one.is_number() ? one.get<double>() : -1;
    if (!(value >= 0 && value <= k_trace_hosts_max) || value != std::floor(value))
      return config::error_at(file, position_of(text, offset_of_element(text, i)),
                              "key 'data': expected whole numbers of hosts from 0 to " +
                                  std::to_string(k_trace_hosts_max) + ", got '" + config::excerpt(one.dump()) + "'");
    add(trace, static_cast<int>(value), 1);
  }
  return checked(std::move(trace), file);
}

template <class Number>
bool read(std::string_view text, Number low, Number high, Number& into) {
  return parse_into(trim(text), into) && into >= low && into <= high;
}

Result<Trace> parse_run_lengths(std::string_view text, const std::string& file) {
  Trace trace;
  trace.name = file;
  std::uint64_t samples_all = 0;
  bool header = false;
  int number = 0;
  for (const std::string& line : split_lines(text)) {
    const config::Position at{++number, 1};
    if (trim(line).empty() || line.starts_with('#')) continue;
    const std::size_t comma = line.find(',');
    const std::string_view first = std::string_view(line).substr(0, comma);
    const std::string_view second = comma == std::string::npos ? "" : std::string_view(line).substr(comma + 1);
    const config::Position behind{number, static_cast<int>(first.size()) + 2};
    if (trace.gap_seconds == 0) {
      if (trim(first) != "gap_seconds" || !read(second, k_gap_min, k_gap_max, trace.gap_seconds))
        return config::error_at(file, trim(first) == "gap_seconds" ? behind : at,
                                "expected gap_seconds,N with the seconds between two samples, 0.001 to 604800, got '" +
                                    config::excerpt(line) + "'");
      continue;
    }
    if (!header) {
      header = true;
      if (trim(line) == "hosts_up,samples") continue;
      return config::error_at(file, at, "expected the line hosts_up,samples, got '" + config::excerpt(line) + "'");
    }
    int hosts = 0;
    std::uint64_t samples = 0;
    if (!read(first, 0, k_trace_hosts_max, hosts))
      return config::error_at(file, at,
                              "expected a whole number of hosts from 0 to " + std::to_string(k_trace_hosts_max) +
                                  ", got '" + config::excerpt(first) + "'");
    if (!read(second, std::uint64_t{1}, k_trace_samples_max - samples_all, samples))
      return config::error_at(file, behind,
                              "expected a whole number of samples, at least 1 and in total at most " +
                                  std::to_string(k_trace_samples_max) + ", got '" + config::excerpt(second) + "'");
    samples_all += samples;
    add(trace, hosts, samples);
  }
  return checked(std::move(trace), file);
}
}  // namespace

double Trace::length_seconds() const {
  double samples = 0;
  for (const Run& run : runs) samples += static_cast<double>(run.samples);
  return samples * gap_seconds;
}

Result<Trace> parse_trace(std::string_view text, const std::string& file) {
  if (text.size() > k_trace_bytes_max)
    return config::error_at(file, {}, "longer than " + std::to_string(k_trace_bytes_max >> 20) + " MiB");
  return trim(text).starts_with('{') ? parse_published(text, file) : parse_run_lengths(text, file);
}

std::shared_ptr<const UpTimes> up_times(const Trace& trace, int rank, int hosts) {
  auto out = std::make_shared<UpTimes>();
  const auto is_up = [&](int hosts_up) {
    const auto scaled = (static_cast<std::int64_t>(hosts_up) * hosts + trace.hosts_max - 1) / trace.hosts_max;
    return rank < scaled;
  };
  out->length = trace.length_seconds();
  out->up = is_up(trace.runs.back().hosts_up);
  bool before = out->up;  // the end of the trace is followed by its beginning
  double at = 0;
  for (const Trace::Run& run : trace.runs) {
    const bool up = is_up(run.hosts_up);
    if (up != before) out->changes.push_back({at, up});
    before = up;
    at += static_cast<double>(run.samples) * trace.gap_seconds;
  }
  return out;
}

}  // namespace gridctl::forecast
