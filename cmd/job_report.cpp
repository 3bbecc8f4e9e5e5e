// SPDX-License-Identifier: Apache-2.0

#include "cmd/commands.hpp"
#include "control/follow/job_files.hpp"
#include "control/reach/version.hpp"
#include "job/exactness.hpp"
#include "os/files.hpp"
#include "sched/catalogue/catalogue.hpp"
#include "sched/catalogue/list_price.hpp"
#include "ui/job_page.hpp"

namespace gridctl::cmd {

namespace job_report {
namespace {
constexpr std::size_t k_output_ends = 8u << 20;  // bytes of an output that are read at each end
constexpr std::size_t k_events_read = 1000;      // at once
constexpr double k_ms_per_hour = 3'600'000;

using Numbers = std::vector<std::pair<AttemptNumber, job::StepNumbers>>;

Result<Numbers> numbers_of(Context& context, const JobId& id, const std::vector<registry::AttemptRecord>& attempts,
                           int rank) {
  control::JobFiles files(context.paths());
  Numbers all;
  for (const registry::AttemptRecord& attempt : attempts) {
    const Result<std::string> text = files.log_ends(id, attempt.number, rank, k_output_ends);
    if (!text && text.error().code != Code::not_found) return text.error();
    all.emplace_back(attempt.number, job::StepNumbers{});
    if (text) all.back().second.read(*text + "\n");
  }
  return all;
}

// Returns the name with the most steps; a name with "loss" in it comes before all others.
std::string number_to_draw(const Numbers& all) {
  std::map<std::string, std::size_t> steps;
  for (const auto& [attempt, numbers] : all)
    for (const auto& [name, series] : numbers.series()) steps[name] += series.size();
  const auto weight = [](const auto& one) { return std::pair(one.first.find("loss") != std::string::npos, one.second); };
  const auto best = std::ranges::max_element(steps, {}, weight);
  return best == steps.end() || best->second < 2 ? "" : best->first;
}

// Metrics are meant for programs to read; printed output is used only if they show nothing.
Result<void> add_curves(Context& context, ui::JobPage& page) {
  for (const int rank : {control::k_metrics_rank, 0}) {
    TRY_ASSIGN(const Numbers all, numbers_of(context, page.job.id, page.attempts, rank));
    const std::string name = number_to_draw(all);
    if (name.empty()) continue;
    page.number = name.substr(name.find(' ') + 1);
    for (const auto& [attempt, numbers] : all) {
      const auto series = numbers.series().find(name);
      if (series == numbers.series().end()) continue;
      ui::Curve curve{attempt, {}};
      for (const auto& [step, value] : series->second)
        curve.points.emplace_back(step.step > 0 ? step.step : step.epoch, value.number);
      std::ranges::sort(curve.points);
      page.curves.push_back(std::move(curve));
    }
    return {};
  }
  return {};
}

// Returns text such as "12.40 USD": the same hours on the same GPUs, or on similar ones, at a hyperscaler.
std::string at_list_price(registry::HostRecords& registry, const ui::JobPage& page, WallTime now) {
  const std::vector<job::GpuRequest>& wanted = page.job.spec.resources.gpus;
  if (wanted.empty()) return "";
  double usd = 0;
  for (const registry::AttemptRecord& attempt : page.attempts) {
    const Result<registry::Provider> host = registry.provider(attempt.provider);
    if (!host || host->inventory->gpus.empty() || !attempt.started_at) return "";
    const sched::GpuModel* model = sched::model_by_key(host->inventory->gpus.front().model);
    const std::optional<sched::ListPrice> listed = model == nullptr ? std::nullopt : sched::list_price(*model);
    if (!listed) return "";
    const double hours = static_cast<double>(attempt.ended_at.value_or(now).ms - attempt.started_at->ms) / k_ms_per_hour;
    const auto members = static_cast<double>(std::max<std::size_t>(attempt.members.size(), 1));
    usd += listed->usd_per_gpu_hour * wanted.front().count_min * members * std::max(hours, 0.0);
  }
  return usd > 0 ? ui::money(usd) : "";
}

Result<ui::JobPage> page_of(Context& context, registry::Registry& registry, const JobId& id) {
  ui::JobPage page;
  TRY_ASSIGN(page.job, registry.job(id));
  if (!job::is_final(page.job.state)) {
    TRY_ASSIGN(const registry::Spent spent, registry.spent(id, context.now()));
    page.job.cost = spent.usd;
  }
  TRY_ASSIGN(page.attempts, registry.attempts(id));
  TRY_ASSIGN(page.checkpoints, registry.checkpoints(id));
  for (bool more = true; more;) {
    TRY_ASSIGN(const std::vector<registry::EventRecord> next,
               registry.events(id, page.events.empty() ? 0 : page.events.back().id, k_events_read));
    page.events.insert(page.events.end(), next.begin(), next.end());
    more = next.size() == k_events_read;
  }
  TRY(add_curves(context, page));
  page.list_price = at_list_price(registry, page, context.now());
  page.version = control::k_version;
  return page;
}

// Only an earlier page is replaced.
Result<void> check_replaceable(const os::Path& file) {
  const Result<std::string> there = os::read_file(file, SIZE_MAX);
  if (!there) return there.error().code == Code::not_found ? Result<void>{} : there.error();
  if (there->empty() || there->starts_with(ui::k_page_mark)) return {};
  return make_error(Code::exists, file.string() + " is not a gridctl report", "rm " + file.string());
}

Result<int> run(Context& context, const Parsed& parsed) {
  TRY_ASSIGN(registry::Registry registry, context.open_for_reading());
  TRY_ASSIGN(const JobId id, registry.resolve(parsed.positionals[0]));
  TRY_ASSIGN(const ui::JobPage page, page_of(context, registry, id));
  const std::string text = ui::job_page(page, context.now());
  const std::string file = parsed.given("html").value_or(id.value + ".html");
  if (file == "-") return context.print(text);
  TRY(check_replaceable(file));
  TRY(os::write_file_atomically(file, text, 0644));
  return context.print_line(context.json ? JsonObject()("job_id", id.value)("file", file)("bytes", text.size()).text()
                                         : file);
}
}  // namespace
}  // namespace job_report

const Command k_job_report{
    .name = "job report",
    .summary = "write a job's history as one HTML page",
    .examples = {{"Write the report of a job and open it",
                  "gridctl job report train --html train.html && xdg-open train.html"},
                 {"Write the report of the most recent job to ID.html", "gridctl job report @last"}},
    .description =
        "Writes one page that needs no network: a timeline of the attempts with the reason of each "
        "end, the loss curve over all attempts as the program printed it or wrote it to "
        "$GRIDCTL_METRICS, checkpoints, events, the cost, and the cost of the same hours at a "
        "hyperscaler's list price. An earlier report in FILE is replaced; any other file is kept.",
    .positionals = {{"ID", Completion::job}},
    .options = {{"html", 0, "FILE", "the page's file; - is standard output", "ID.html", Completion::file}},
    .run = job_report::run};

}  // namespace gridctl::cmd
