// SPDX-License-Identifier: Apache-2.0
#include "registry/shared_price.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "db/database.hpp"
#include "registry/registry.hpp"

namespace gridctl::registry {

namespace {

constexpr double k_ms_an_hour = 3.6e6;

// The price of one run changes at `at_ms` from `before` to `after`.
struct PriceStep {
  std::int64_t at_ms = 0;
  double before = 0, after = 0;
};

double price_at(const WorkerRun& run, std::int64_t at_ms) {
  const bool paused = std::ranges::any_of(run.pauses, [&](const auto& one) { return one.from_ms <= at_ms && at_ms < one.until_ms; });
  if (paused) return 0;
  double price = run.usd_per_hour;
  for (const WorkerRun::Change& change : run.changes)
    if (change.at_ms <= at_ms) price += change.more;
  return price;
}

void add_steps(const WorkerRun& run, std::int64_t from_ms, std::vector<PriceStep>& steps) {
  const std::int64_t begin = std::max(run.from_ms, from_ms);
  if (begin >= run.until_ms) return;
  std::set<std::int64_t> cuts{begin};
  const auto cut = [&](std::int64_t at) {
    if (at > begin && at < run.until_ms) cuts.insert(at);
  };
  for (const WorkerRun::Change& change : run.changes) cut(change.at_ms);
  for (const WorkerRun::Stop& pause : run.pauses) cut(pause.from_ms), cut(pause.until_ms);
  double before = 0;
  for (const std::int64_t at : cuts) {
    const double price = price_at(run, at);
    if (price != before) steps.push_back({at, before, price});
    before = price;
  }
  if (before != 0) steps.push_back({run.until_ms, before, 0});
}

// USD that is paid once instead of several times for one host.
double saved_on_one(std::vector<PriceStep> steps) {
  std::ranges::sort(steps, {}, &PriceStep::at_ms);
  std::multiset<double> prices;
  double sum = 0, usd = 0;
  std::int64_t last = 0;
  for (const PriceStep& step : steps) {
    if (!prices.empty()) usd += (sum - *prices.rbegin()) * static_cast<double>(step.at_ms - last) / k_ms_an_hour;
    last = step.at_ms;
    if (step.before != 0) prices.erase(prices.find(step.before));
    if (step.after != 0) prices.insert(step.after);
    sum += step.after - step.before;
  }
  return usd;
}

constexpr std::string_view k_of_bag = " WHERE (job = ?1 OR (job > ?1 || 'r' AND job < ?1 || 's'))";

}  // namespace

SharedPrice shared_by(const std::vector<WorkerRun>& runs, std::int64_t from_ms) {
  std::map<std::string, std::vector<PriceStep>> steps;
  std::map<std::string, std::vector<double>> now;
  for (const WorkerRun& run : runs) {
    add_steps(run, from_ms, steps[run.host]);
    if (run.goes_on) now[run.host].push_back(price_at(run, run.until_ms));
  }
  SharedPrice shared;
  for (auto& [host, its] : steps) shared.usd += saved_on_one(std::move(its));
  for (const auto& [host, prices] : now) {
    for (const double price : prices) shared.usd_per_hour += price;
    shared.usd_per_hour -= std::ranges::max(prices);
  }
  return shared;
}

Result<SharedPrice> shared_by_workers(db::Database& db, const JobId& leader, WallTime from, WallTime now) {
  bool has_workers = false;
  db::Statement names = db.prepare("SELECT id, name FROM jobs WHERE id > ?1 || 'r' AND id < ?1 || 's'");
  TRY(names.bind(leader.value).each([&](const db::Statement& row) {
    has_workers = has_workers || row.text(1).ends_with("-w" + std::to_string(twin_number({row.text(0)})));
  }));
  if (!has_workers) return SharedPrice{};
  std::map<std::pair<std::string, std::int64_t>, WorkerRun> runs;
  db::Statement attempts = db.prepare("SELECT job, number, provider, price, started_ms, ended_ms FROM attempts" + std::string(k_of_bag) +
                                      " AND started_ms IS NOT NULL AND (ended_ms IS NULL OR ended_ms > ?2)");
  TRY(attempts.bind(leader.value, from.ms).each([&](const db::Statement& row) {
    const bool goes_on = row.is_null(5);
    runs[{row.text(0), row.integer(1)}] = {row.text(2), row.integer(4), goes_on ? now.ms : row.integer(5), goes_on, row.real(3)};
  }));
  if (runs.size() < 2) return SharedPrice{};
  db::Statement changes = db.prepare("SELECT job, number, at_ms, more FROM price_changes" + std::string(k_of_bag));
  TRY(changes.bind(leader.value).each([&](const db::Statement& row) {
    if (const auto run = runs.find({row.text(0), row.integer(1)}); run != runs.end())
      run->second.changes.push_back({row.integer(2), row.real(3)});
  }));
  db::Statement pauses = db.prepare("SELECT job, number, from_ms, until_ms FROM pauses" + std::string(k_of_bag));
  TRY(pauses.bind(leader.value).each([&](const db::Statement& row) {
    if (const auto run = runs.find({row.text(0), row.integer(1)}); run != runs.end())
      run->second.pauses.push_back({row.integer(2), row.is_null(3) ? INT64_MAX : row.integer(3)});
  }));
  std::vector<WorkerRun> list;
  for (auto& [key, run] : runs) list.push_back(std::move(run));
  return shared_by(list, from.ms);
}

Result<std::vector<JobId>> bags_with_workers(db::Database& db, const std::string& owner, WallTime from) {
  std::set<JobId> leaders;
  db::Statement query = db.prepare(
      "SELECT DISTINCT j.id, j.name FROM attempts a JOIN jobs j ON j.id = a.job WHERE a.job GLOB '*r[0-9]*' AND a.started_ms IS NOT NULL "
      "AND (a.ended_ms IS NULL OR a.ended_ms > ?1) AND (?2 = '' OR j.owner = ?2)");
  TRY(query.bind(from.ms, owner).each([&](const db::Statement& row) {
    const JobId id{row.text(0)};
    if (row.text(1).ends_with("-w" + std::to_string(twin_number(id)))) leaders.insert(leader_of(id));
  }));
  return std::vector<JobId>(leaders.begin(), leaders.end());
}

}  // namespace gridctl::registry
