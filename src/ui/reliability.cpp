// SPDX-License-Identifier: Apache-2.0
#include "ui/reliability.hpp"

#include "base/formatted.hpp"
#include "sched/standing/verdict.hpp"
#include "ui/human.hpp"

namespace gridctl::ui {

std::optional<double> figure(const registry::Provider& provider, std::string_view name) {
  const auto found = provider.figures.find(name);
  return found == provider.figures.end() ? std::nullopt : std::optional{found->second};
}

sched::Reliability reliability(const registry::Provider& provider) {
  const auto mtbf_hours = figure(provider, "mtbf"), low = figure(provider, "mtbf_low"),
             high = figure(provider, "mtbf_high");
  if (!mtbf_hours || !low || !high || *mtbf_hours <= 0 || *low <= 0 || *high <= 0)
    return sched::estimate(sched::class_rate_per_hour(provider.host_class), {}, {});
  sched::Reliability out;
  out.rate_per_hour = 1 / *mtbf_hours;
  out.low_per_hour = 1 / *high;
  out.high_per_hour = 1 / *low;
  out.hours = figure(provider, "watched").value_or(0);
  out.failures = static_cast<int>(figure(provider, "failures").value_or(0));
  out.up_share = figure(provider, "reliability").value_or(1);
  out.seen_share = figure(provider, "uptime");
  return out;
}

std::string mtbf(const registry::Provider& provider) {
  const sched::Reliability found = reliability(provider);
  if (found.hours > 0) return sched::describe(found);
  return sched::short_hours(found.mtbf_hours()) + "?";
}

std::string record(const registry::Provider& provider) {
  const sched::Reliability found = reliability(provider);
  if (found.hours <= 0) return {};
  const std::string share = found.seen_share ? formatted("up %.2f %% of the time, ", *found.seen_share * 100) : "";
  const auto start = figure(provider, "start_time");
  return share + counted(found.failures, "failure") + " in " +
         sched::short_hours(found.hours) + (start ? formatted(", 9 of 10 jobs start in under %.0fs", *start) : "");
}

std::string bench_drift(const registry::Provider& provider) {
  const auto fall = figure(provider, "bench_drift");
  if (!fall) return {};
  if (*fall < 0.005) return "none";
  return formatted("%.0f %% slower than usual", *fall * 100);
}

std::string bench_verdict(const registry::Provider& provider) {
  const auto found = figure(provider, "verdict");
  const auto verdict = found ? sched::verdict_of_figure(*found) : std::nullopt;
  return verdict ? std::string(sched::verdict_name(*verdict)) : std::string();
}

}  // namespace gridctl::ui
