// SPDX-License-Identifier: Apache-2.0
#include "cmd/bag_view.hpp"

#include <map>

#include "base/text.hpp"
#include "cmd/context.hpp"
#include "control/follow/bag_files.hpp"

namespace gridctl::cmd {

namespace {

constexpr std::size_t k_failed_shown = 20;

// Returns text such as "exit code 3", "signal 11", "timeout".
std::string end_of(const bag::Trouble& trouble) {
  if (trouble.died) return "it killed its worker";
  if (trouble.last.end != wire::TaskEnd::ended) return std::string(wire::task_end_name(trouble.last.end));
  return trouble.last.signal != 0 ? "signal " + std::to_string(trouble.last.signal)
                                  : "exit code " + std::to_string(trouble.last.exit_code);
}

struct HostRow {
  std::uint64_t done = 0, failed = 0, held = 0;
  int workers = 0;
};
std::map<std::string, HostRow> by_host(const bag::Bag& bag) {
  std::map<std::string, HostRow> rows;
  for (const auto& [worker, holder] : bag.workers()) {
    HostRow& row = rows[holder.host];
    row.done += holder.done;
    row.failed += holder.failed;
    if (!holder.open) continue;
    ++row.workers;
    row.held += holder.held.count();
  }
  return rows;
}

}  // namespace

Result<BagSeen> read_bag(const control::Paths& paths, const registry::Job& job) {
  TRY_ASSIGN(const std::string journal, control::read_bag_journal(paths.bag_of(job.id)));
  BagSeen seen;
  BagPace pace;
  (void)bag::scan(journal, [&](const bag::Record& record) {
    seen.bag.apply(record);
    pace.take(record);
  });
  if (!job::is_final(job.state)) seen.forecast = pace.forecast(seen.bag);
  return seen;
}

std::optional<bag::Progress> bag_progress(const control::Paths& paths, const JobId& id) {
  if (!os::exists(paths.bag_of(id))) return std::nullopt;
  const Result<std::string> journal = control::read_bag_journal(paths.bag_of(id));
  if (!journal) return std::nullopt;
  bag::Bag bag;
  (void)bag::scan(*journal, [&](const bag::Record& record) { bag.apply(record); });
  return bag.progress();
}

std::string progress_in_words(const bag::Progress& now) {
  const std::uint64_t over = now.done + now.failed;
  std::string text = std::to_string(now.done) + " of " + std::to_string(now.tasks) + " tasks done (" +
                     std::to_string(now.tasks == 0 ? 100 : over * 100 / now.tasks) + " %)";
  if (now.failed > 0) text += ", " + std::to_string(now.failed) + " failed";
  return text;
}

std::vector<std::string> bag_in_words(const BagSeen& seen) {
  const bag::Bag& bag = seen.bag;
  const bag::Progress now = bag.progress();
  std::vector<std::string> lines{progress_in_words(now)};
  if (seen.forecast) lines.push_back(in_words(*seen.forecast));
  if (now.retries > 0 || now.twice > 0 || now.late > 0)
    lines.push_back(std::to_string(now.retries) + " tried again, " + std::to_string(now.twice) +
                    " run twice but counted once, " + std::to_string(now.late) + " results of lost hosts not counted" +
                    (now.late_differ > 0 ? " (" + std::to_string(now.late_differ) + " of them differ)" : ""));
  for (const auto& [level, tasks] : bag.hungry())
    lines.push_back("waiting for a worker with more memory or disk: " + bag::to_text(tasks.list(), k_failed_shown));
  for (const auto& [host, row] : by_host(bag))
    lines.push_back(sanitize(host) + ": " + std::to_string(row.done) + " done, " + std::to_string(row.failed) + " failed" +
                    (row.workers > 0 ? ", holds " + std::to_string(row.held) : ""));
  std::size_t shown = 0;
  for (const auto& [index, trouble] : bag.troubles()) {
    if (!bag.has_failed(index)) continue;
    if (++shown > k_failed_shown) return lines.push_back("… and more failed tasks; --json lists all of them"), lines;
    std::vector<std::string> hosts(trouble.hosts.begin(), trouble.hosts.end());
    lines.push_back("task " + std::to_string(index) + " failed: " + end_of(trouble) + ", " + std::to_string(trouble.tries) +
                    (trouble.tries == 1 ? " try on " : " tries on ") + sanitize(join(hosts, ", ")));
  }
  return lines;
}

std::string bag_json(const bag::Bag& bag) {
  const bag::Progress now = bag.progress();
  std::vector<std::string> hosts, failed;
  for (const auto& [host, row] : by_host(bag))
    hosts.push_back(JsonObject()("provider", host)("done", row.done)("failed", row.failed)("held", row.held).text());
  for (const auto& [index, trouble] : bag.troubles())
    if (bag.has_failed(index)) {
      JsonObject one;
      one("task", index)("end", end_of(trouble))("tries", trouble.tries);
      one.raw("providers", json_list(std::vector<std::string>(trouble.hosts.begin(), trouble.hosts.end())));
      failed.push_back(one.text());
    }
  JsonObject json;
  json("tasks", now.tasks)("done", now.done)("failed", now.failed)("held", now.held)("runs", now.runs);
  json("run_twice", now.twice)("late", now.late)("late_differ", now.late_differ)("tried_again", now.retries);
  const auto as_it_is = [](const std::string& text) { return text; };
  return json.raw("providers", json_list(hosts, as_it_is)).raw("failures", json_list(failed, as_it_is)).text();
}

std::string tasks_json(const BagSeen& seen) {
  const bag::Progress now = seen.bag.progress();
  std::uint64_t running = 0;
  for (const auto& [worker, holder] : seen.bag.workers())
    if (holder.open && !holder.held.empty()) ++running;
  JsonObject json;
  json("total", now.tasks)("done", now.done)("failed", now.failed)("running", running)("executions", now.runs);
  if (seen.forecast) json("tasks_per_s", seen.forecast->tasks_per_s)("left_s", seen.forecast->left_s);
  return json.text();
}

Result<void> resume_bag(const control::Paths& paths, const registry::Job& job) {
  TRY_ASSIGN(const BagSeen seen, read_bag(paths, job));
  const bag::Progress now = seen.bag.progress();
  const bool is_over = job.spec.tasks->finally_run.empty() || job.state == job::JobState::succeeded;
  if (now.done == now.tasks && is_over)
    return make_error(Code::usage,
                      "all " + std::to_string(now.tasks) + " tasks of the bag are done; there is nothing left to run",
                      "gridctl job show " + job.id.value);
  return control::append_bag_journal(paths.bag_of(job.id), bag::encode(bag::Resumed{}));
}

}  // namespace gridctl::cmd
