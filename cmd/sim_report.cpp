// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "base/formatted.hpp"
#include "base/text.hpp"
#include "cmd/context.hpp"
#include "cmd/sim_question.hpp"
#include "ui/table.hpp"

namespace gridctl::cmd {

namespace {
using IntervalKind = job::CheckpointPolicy::Interval;

std::string percent(double share) { return formatted(share > 0 && share < 0.1 ? "%.1f %%" : "%.0f %%", share * 100); }
std::string json_number(double value) { return formatted("%.10g", std::isfinite(value) ? value : 0.0); }
std::string decimal(double value) { return formatted(value < 10 ? "%.1f" : "%.0f", value); }

std::string choice_text(const SimRow& row) {
  const bool fixed = row.interval == IntervalKind::fixed;
  return (fixed ? "checkpoints every " : "checkpoints ") + row.checkpoints + ", " + row.hosts;
}

ui::Table table_of(const SimQuestion& question, const SimReport& report) {
  std::vector<ui::Column> columns{{.title = "CHECKPOINTS", .shrinks = true}, {.title = "HOSTS", .shrinks = true},
                                  {.title = "TIME", .right = true},          {.title = "9 OF 10 RUNS", .right = true},
                                  {.title = "COST", .right = true},          {.title = "9 OF 10 RUNS", .right = true},
                                  {.title = "LOST", .right = true},          {.title = "RECOVERY", .right = true},
                                  {.title = "FAILURES", .right = true}};
  if (question.settings.deadline) columns.push_back({.title = "IN TIME", .right = true});
  if (question.settings.budget) columns.push_back({.title = "IN BUDGET", .right = true});
  ui::Table table(std::move(columns));
  for (const SimRow& row : report.rows) {
    const forecast::Figures& f = row.figures;
    const bool any = f.finished > 0;
    const auto or_dash = [&](std::string text) { return any ? std::move(text) : std::string("-"); };
    std::vector<std::string> cells{
        row.checkpoints,
        row.hosts,
        any ? (f.all_finished() ? "" : "*") + long_time(f.time.mean) : "never",
        or_dash(long_time(f.time.low) + " - " + long_time(f.time.high)),
        or_dash(ui::money(f.cost.mean)),
        or_dash(f.cost.mean > 0 ? ui::money(f.cost.low) + " - " + ui::money(f.cost.high) : "-"),
        or_dash(long_time(f.lost)),
        or_dash(percent(f.recovery_share())),
        or_dash(decimal(f.failures))};
    if (f.in_time) cells.push_back(percent(*f.in_time));
    if (f.in_budget) cells.push_back(percent(*f.in_budget));
    table.add(std::move(cells));
  }
  return table;
}

std::string best_lines(const SimQuestion& question, const SimReport& report) {
  const SimRow& fast = report.rows[report.fastest];
  const std::string horizon = long_time(question.grid.horizon);
  if (fast.figures.finished == 0)
    return "never done: of " + std::to_string(fast.figures.runs) + " runs of each choice none ended within " + horizon +
           "; shorter checkpoint intervals or more reliable hosts are needed\n";
  std::string text = "fastest: " + choice_text(fast) + ": " + long_time(fast.figures.time.mean);
  const SimRow& cheap = report.rows[report.cheapest];
  if (fast.figures.cost.mean > 0) text += " for " + ui::money(fast.figures.cost.mean);
  text += "\n";
  if (report.cheapest != report.fastest && cheap.figures.cost.mean < fast.figures.cost.mean)
    text += "cheapest: " + choice_text(cheap) + ": " + long_time(cheap.figures.time.mean) + " for " +
            ui::money(cheap.figures.cost.mean) + "\n";
  const bool some_never = std::ranges::any_of(
      report.rows, [](const SimRow& row) { return row.figures.finished > 0 && !row.figures.all_finished(); });
  if (some_never) text += "* of the runs that ended within " + horizon + "; others did not\n";
  return text;
}

std::string where_it_goes(const SimRow& row) {
  const forecast::Figures& f = row.figures;
  if (f.finished == 0 || f.time.mean <= 0) return {};
  const auto part = [&](double seconds, const char* name) { return percent(seconds / f.time.mean) + " " + name; };
  return "its time: " + part(f.work, "work, ") + part(f.stalled, "stalled by checkpoints, ") + part(f.lost, "lost, ") +
         part(f.recovery, "recovery, ") + part(f.start + f.collecting, "first start and result") + "\n";
}

std::string spread_json(const forecast::Spread& spread) {
  JsonObject json;
  json.raw("mean", json_number(spread.mean)).raw("p5", json_number(spread.low));
  return json.raw("p95", json_number(spread.high)).text();
}

std::string row_json(const SimRow& row) {
  const forecast::Figures& f = row.figures;
  const bool tuned = row.interval == IntervalKind::automatic, any = f.finished > 0;
  JsonObject json;
  json("checkpoints", row.every ? "fixed" : std::string(tuned ? "auto" : "off"));
  json.raw("interval_seconds", row.every ? json_number(*row.every) : "null")("hosts", row.hosts);
  json.raw("providers", json_list(row.providers))("runs", f.runs)("finished", f.finished);
  json.raw("time_seconds", any ? spread_json(f.time) : "null").raw("cost", any ? spread_json(f.cost) : "null");
  for (const auto& [name, value] : {std::pair{"work_seconds", f.work},
                                    {"stalled_seconds", f.stalled},
                                    {"lost_seconds", f.lost},
                                    {"recovery_seconds", f.recovery},
                                    {"start_seconds", f.start},
                                    {"collecting_seconds", f.collecting},
                                    {"recovery_share", f.recovery_share()},
                                    {"failures", f.failures},
                                    {"attempts", f.attempts},
                                    {"moves", f.moves}})
    json.raw(name, any ? json_number(value) : "null");
  json.raw("in_time", f.in_time ? json_number(*f.in_time) : "null");
  return json.raw("in_budget", f.in_budget ? json_number(*f.in_budget) : "null").text();
}

}  // namespace

std::string long_time(double seconds) {
  if (!(seconds > 0)) return "0s";
  if (seconds < 1)
    return format_duration(std::chrono::milliseconds{std::max<std::int64_t>(std::llround(seconds * 1000), 1)});
  const auto s = static_cast<std::int64_t>(std::llround(seconds));
  const std::int64_t unit = s < 3600 ? 1 : s < 48 * 3600 ? 60 : 3600;
  return format_duration(std::chrono::seconds{(s + unit / 2) / unit * unit});
}

std::string sim_text(const Context& context, const SimQuestion& question, const SimReport& report) {
  std::string text = table_of(question, report).render(context.columns_out(), context.out_style) + "\n";
  text += best_lines(question, report) + where_it_goes(report.rows[report.fastest]);
  for (const std::string& line : report.arithmetic) text += sanitize(line) + "\n";
  for (const std::string& line : question.assumptions) text += "assumed: " + sanitize(line) + "\n";
  return text;
}

std::string sim_json(const SimQuestion& question, const SimReport& report) {
  const bool any = report.rows[report.fastest].figures.finished > 0;
  const auto& deadline = question.settings.deadline;
  JsonObject json;
  json("job", question.spec.name).raw("work_seconds", json_number(question.grid.work))("seed", question.settings.seed);
  json.raw("horizon_seconds", json_number(question.grid.horizon));
  json.raw("deadline_seconds", deadline ? json_number(*deadline) : "null");
  json.raw("choices", json_list(report.rows, row_json)).raw("fastest", any ? std::to_string(report.fastest) : "null");
  json.raw("cheapest", any ? std::to_string(report.cheapest) : "null");
  json.raw("arithmetic", json_list(report.arithmetic)).raw("assumptions", json_list(question.assumptions));
  return json.text();
}

}  // namespace gridctl::cmd
