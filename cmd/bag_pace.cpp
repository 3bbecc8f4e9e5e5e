// SPDX-License-Identifier: Apache-2.0
#include "cmd/bag_pace.hpp"

#include <cmath>
#include <cstdio>

namespace gridctl::cmd {

namespace {
constexpr std::size_t k_ends_least = 3;
constexpr double k_sure = 2;          // standard errors: about 95 %
constexpr double k_error_most = 0.9;  // of the rate: beyond that nobody knows when the end comes
constexpr double k_gap_least_s = 1e-4;

std::string seconds_text(double seconds) {
  return format_duration(std::chrono::seconds{static_cast<std::int64_t>(std::ceil(seconds))});
}
}  // namespace

void BagPace::take(const bag::Record& record) {
  const auto* told = std::get_if<bag::Told>(&record);
  if (told == nullptr) return;
  Ends& ends = ends_[told->worker];
  const std::size_t skipped = told->results.size() - std::min(told->results.size(), ends.kept.size());
  for (std::size_t i = skipped; i < told->results.size(); ++i) {
    const wire::TaskResult& one = told->results[i];
    if (one.end == wire::TaskEnd::revoked || one.began.ms <= 0) continue;
    ends.kept[ends.seen++ % ends.kept.size()] = one.began.ms + one.ms;
  }
}

std::optional<BagPace::Forecast> BagPace::forecast(const bag::Bag& bag) const {
  const bag::Progress now = bag.progress();
  Forecast all;
  double variance = 0, longest_s = 0;
  for (const auto& [worker, ends] : ends_) {
    const bag::Holder* holder = bag.find(worker);
    if (holder == nullptr || !holder->open || holder->held.empty() || ends.size() < k_ends_least) continue;
    const auto gaps = static_cast<double>(ends.size() - 1);
    const double mean_s = std::max(static_cast<double>(ends.back() - ends[0]) / 1000 / gaps, k_gap_least_s);
    double squares = 0;
    for (std::size_t i = 1; i < ends.size(); ++i)
      squares += std::pow(static_cast<double>(ends[i] - ends[i - 1]) / 1000 - mean_s, 2);
    const double error = std::sqrt(squares / gaps) / mean_s / std::sqrt(gaps);  // of the mean, as a share
    all.tasks_per_s += 1 / mean_s;
    variance += std::pow(error / mean_s, 2);
    longest_s = std::max(longest_s, mean_s);
  }
  if (all.tasks_per_s == 0 || now.over()) return std::nullopt;
  const double error = std::min(k_sure * std::sqrt(variance) / all.tasks_per_s, k_error_most);
  all.left_s = static_cast<double>(now.tasks - now.done - now.failed) / all.tasks_per_s;
  all.least_s = all.left_s / (1 + error);
  all.most_s = all.left_s / (1 - error) + longest_s;  // the last task may have just begun
  return all;
}

std::string in_words(const BagPace::Forecast& forecast) {
  char rate[32];
  std::snprintf(rate, sizeof rate, forecast.tasks_per_s < 10 ? "%.2f" : "%.0f", forecast.tasks_per_s);
  return std::string(rate) + " tasks/s, done in about " + seconds_text(forecast.left_s) + " (" +
         seconds_text(forecast.least_s) + " to " + seconds_text(forecast.most_s) + ")";
}

}  // namespace gridctl::cmd
