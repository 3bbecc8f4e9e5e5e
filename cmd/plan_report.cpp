// SPDX-License-Identifier: Apache-2.0
#include "cmd/plan_report.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/text.hpp"
#include "ui/table.hpp"

namespace gridctl::cmd {

namespace {
using Json = nlohmann::ordered_json;
constexpr std::size_t k_plans_shown = 10;  // of the table
constexpr double k_hours_shown = 24 * 365.25 * 5;  // nobody waits longer
constexpr std::size_t k_plot_lines = 8, k_plot_columns_max = 60;

std::string gb(double bytes) {
  return bytes >= 1e12 ? ui::number(bytes / 1e12, 3) + " TB" : ui::number(bytes / 1e9, 3) + " GB";
}
std::string hours(double value) {
  return value >= 24 * 999 ? ui::number(value / 24 / 365.25, 3) + " years"
         : value >= 48     ? ui::number(value / 24, 3) + " d"
         : value >= 1      ? ui::number(value, 3) + " h"
                           : ui::number(value * 60, 3) + " min";
}
std::string step_text(double value) { return value >= 600 ? hours(value / 3600) : ui::number(value, 3) + " s"; }
// Cents are meaningless beside thousands.
std::string usd(double value) {
  return value >= 9999.5 ? "$" + std::to_string(std::llround(value)) : ui::money(value);
}

std::string table_of(const Context& context, const PlanReport& report) {
  ui::Table table({{.title = "GPUS", .right = true},
                   {.title = "LAYOUT"},
                   {.title = "MEMORY", .right = true},
                   {.title = "STEP", .right = true},
                   {.title = "TOKENS/S", .right = true},
                   {.title = "MFU", .right = true},
                   {.title = "TIME", .right = true},
                   {.title = "COST", .right = true}});
  for (std::size_t i = 0; i < std::min(k_plans_shown, report.answer.best.size()); ++i) {
    const plan::Plan& plan = report.answer.best[i];
    table.add({std::to_string(plan.parallelism.gpus()), plan::text_of(plan.parallelism), gb(plan.memory.peak()),
               step_text(plan.time.seconds), std::to_string(std::llround(plan.tokens_per_s)),
               ui::number(100 * plan.mfu, 3) + " %", hours(plan.expected_hours()), usd(plan.usd)},
              {i == 0 ? ui::Paint::bold : ui::Paint{}});
  }
  return table.render(context.columns_out(), context.out_style);
}

// Returns the parts of the memory at its peak: either the backward pass, with the logits or one recomputed layer, or
// the optimizer's step.
std::string memory_line(const plan::Memory& m) {
  std::vector<std::pair<std::string, double>> parts{
      {"weights", m.weights}, {"gradients", m.grads}, {"optimizer", m.optimizer}};
  if (m.step_copy > m.activations + std::max(m.working, m.logits)) {
    parts.emplace_back("the step's copy of gradients", m.step_copy);
  } else {
    parts.emplace_back("activations", m.activations);
    if (m.working > m.logits) parts.emplace_back("a layer being recomputed", m.working);
    else parts.emplace_back("logits", m.logits);
  }
  parts.emplace_back("buffers", m.buffers);
  parts.emplace_back("base", m.constants.base + (m.constants.overhead - 1) * m.allocated());
  std::string text = "memory per GPU: ";
  for (const auto& [name, bytes] : parts)
    if (bytes > 0) text += name + " " + gb(bytes) + (name == "base" ? ": " : ", ");
  return text + gb(m.peak()) + "\n";
}

std::string breakdown_of(const plan::Plan& plan) {
  const plan::Memory& m = plan.memory;
  std::string text = memory_line(m);
  if (m.offloaded > 0) text += "in the host's memory: " + gb(m.offloaded) + " per GPU\n";
  text += "a step: ";
  bool first = true;
  for (std::size_t i = 0; i < plan::k_terms; ++i) {
    if (plan.time.parts[i] < 0.005 * plan.time.seconds) continue;
    text += (first ? "" : ", ") + std::string(plan::text_of(static_cast<plan::Term>(i))) + " " +
            step_text(plan.time.parts[i]);
    first = false;
  }
  text += "; bubble " + ui::number(100 * plan.time.bubble, 3) + " %, exposed communication " +
          step_text(plan.time.exposed) + "\n";
  if (plan.traffic.data > 0)
    text += "data parallel traffic: " + gb(plan.traffic.data) + " a step in messages of " +
            gb(plan.traffic.data_message) + "\n";
  return text;
}

Json json_of(const plan::Plan& plan) {
  const plan::Memory& m = plan.memory;
  const plan::Parallelism& l = plan.parallelism;
  return {{"gpus", l.gpus()},
          {"layout",
           {{"dp", l.dp},
            {"tp", l.tp},
            {"pp", l.pp},
            {"cp", l.cp},
            {"ep", l.ep},
            {"zero", l.zero},
            {"virtual_stages", l.virtual_stages},
            {"micro_batch", l.micro_batch},
            {"recompute", plan::text_of(l.recompute)},
            {"sequence_parallel", l.sequence_parallel},
            {"offload", plan::text_of(l.offload)}}},
          {"memory_bytes",
           {{"peak", std::round(m.peak())},
            {"weights", std::round(m.weights)},
            {"gradients", std::round(m.grads)},
            {"optimizer", std::round(m.optimizer)},
            {"activations", std::round(m.activations)},
            {"working", std::round(m.working)},
            {"logits", std::round(m.logits)},
            {"buffers", std::round(m.buffers)},
            {"base", std::round(m.constants.base)},
            {"offloaded", std::round(m.offloaded)}}},
          {"step_seconds", plan.time.seconds},
          {"tokens_per_second", plan.tokens_per_s},
          {"mfu", plan.mfu},
          {"bubble", plan.time.bubble},
          {"exposed_communication_seconds", plan.time.exposed},
          {"data_parallel_bytes", std::round(plan.traffic.data)},
          {"data_parallel_message_bytes", std::round(plan.traffic.data_message)},
          {"pipeline_message_bytes", std::round(plan.traffic.pipeline)},
          {"hours", plan.hours},
          {"efficiency", plan.efficiency},
          {"expected_hours", plan.expected_hours()},
          {"usd", plan.usd}};
}

Json json_of(const TogetherAtSite& together) {
  const plan::Mixed& mixed = together.mixed;
  Json out{{"divided", mixed.by_layers() ? "layers" : "batch"},
           {"step_seconds", mixed.seconds},
           {"exchange_seconds", mixed.exchange},
           {"tokens_per_second", mixed.tokens_per_s},
           {"usd_per_hour", mixed.usd_per_hour},
           {"parts", Json::array()}};
  for (std::size_t i = 0; i < together.groups.size(); ++i) {
    const plan::MixedPart& part = mixed.parts[i];
    const Machines& machines = together.groups[i]->machines;
    Json one{{"gpu", machines.gpu},
             {"hosts", machines.hosts},
             {"layout", plan::text_of(part.parallelism)},
             {"seconds", part.seconds},
             {"peak_bytes", std::round(part.peak)}};
    if (mixed.by_layers()) one["layers"] = part.layers;
    else one["batch"] = part.batch;
    out["parts"].push_back(std::move(one));
  }
  return out;
}
}  // namespace

std::string frontier_plot(const std::vector<plan::Plan>& frontier, std::size_t columns) {
  if (frontier.size() < 2) return "";
  const std::size_t width = std::min(columns > 20 ? columns - 14 : k_plot_columns_max, k_plot_columns_max);
  const auto by_time = std::minmax_element(frontier.begin(), frontier.end(), [](const auto& a, const auto& b) {
    return a.expected_hours() < b.expected_hours();
  });
  const auto by_cost =
      std::minmax_element(frontier.begin(), frontier.end(), [](const auto& a, const auto& b) { return a.usd < b.usd; });
  const double quick = by_time.first->expected_hours(), slow = by_time.second->expected_hours();
  const double cheap = by_cost.first->usd, dear = by_cost.second->usd;
  // Differences that no estimate can distinguish are not plotted.
  if (!(slow > quick) || !(dear > cheap * 1.02) || cheap <= 0) return "";
  std::vector<std::string> field(k_plot_lines, std::string(width, ' '));
  for (const plan::Plan& plan : frontier) {
    const double x = std::log(plan.expected_hours() / quick) / std::log(slow / quick);
    const double y = std::log(plan.usd / cheap) / std::log(dear / cheap);
    field[static_cast<std::size_t>(std::lround((1 - y) * (k_plot_lines - 1)))]
         [static_cast<std::size_t>(std::lround(x * static_cast<double>(width - 1)))] = '*';
  }
  std::string out;
  for (std::size_t i = 0; i < field.size(); ++i) {
    std::string label = i == 0 ? usd(dear) : i + 1 == field.size() ? usd(cheap) : "";
    label.insert(0, label.size() < 12 ? 12 - label.size() : 0, ' ');
    field[i].erase(field[i].find_last_not_of(' ') + 1);
    out += label + " |" + field[i] + "\n";
  }
  std::string axis = std::string(14, ' ') + hours(quick);
  const std::string end = hours(slow);
  if (axis.size() + end.size() < width + 14) axis.append(width + 14 - axis.size() - end.size(), ' ');
  return out + std::string(13, ' ') + "+" + std::string(width, '-') + "\n" + axis + end + "\n";
}

namespace {
// Returns the assumptions behind the plan that the command line left open.
std::string assumptions_of(const plan::Question& q) {
  const plan::Training& t = q.training;
  return "planned for: " + std::to_string(t.batch) + " sequences of " + std::to_string(t.sequence) + " tokens a step, " +
         std::string(plan::text_of(t.precision)) + ", " + t.optimizer +
         (t.method == plan::Method::full ? "" : ", " + std::string(plan::text_of(t.method))) + ", as " +
         std::string(plan::text_of(t.framework)) + " does it\n";
}

// Lists each number of GPUs with its quickest plan; a star marks those that no other beats in both.
std::string frontier_text(const PlanReport& report, std::size_t columns) {
  const plan::Answer& answer = report.answer;
  const bool priced = report.question.usd_per_gpu_hour > 0;
  std::vector<plan::Plan> rows;
  for (auto one = answer.by_gpus.rbegin(); one != answer.by_gpus.rend(); ++one)
    if (one->second.expected_hours() < k_hours_shown || rows.empty()) rows.push_back(one->second);
  // A plan that is cheaper by less than estimates can distinguish is represented by the one shown.
  const auto stands_for = [](const plan::Plan& row, const plan::Plan& one) {
    return row.parallelism.gpus() == one.parallelism.gpus() && row.usd < one.usd * 1.02;
  };
  for (const plan::Plan& plan : answer.frontier)
    if (plan.expected_hours() < k_hours_shown &&
        std::ranges::none_of(rows, [&](const plan::Plan& row) { return stands_for(row, plan); }))
      rows.push_back(plan);
  std::ranges::sort(rows,
                    [](const plan::Plan& a, const plan::Plan& b) { return a.expected_hours() < b.expected_hours(); });
  if (rows.size() < 2) return "";
  std::string out =
      priced ? "\ntime against cost; no plan beats those with a star in both:\n" : "\nwith fewer GPUs:\n";
  for (const plan::Plan& plan : rows) {
    const bool starred =
        priced && std::ranges::any_of(answer.frontier, [&](const plan::Plan& one) { return stands_for(plan, one); });
    out += std::string(starred ? "* " : "  ") + hours(plan.expected_hours()) + "  " +
           (priced ? usd(plan.usd) + "  " : "") + ui::counted(plan.parallelism.gpus(), "GPU") + "  " +
           plan::text_of(plan.parallelism) + "\n";
  }
  return out + (priced ? frontier_plot(rows, columns) : "");
}
}  // namespace

std::string plan_text(const Context& context, const PlanReport& report) {
  if (report.answer.best.empty()) return join(report.what_if, "\n") + "\n";
  std::string out = table_of(context, report);
  const plan::Plan& best = report.answer.best.front();
  out += "\n" + assumptions_of(report.question) + breakdown_of(best);
  for (const std::string& line : plan::explain_choice(report.question, best)) out += line + "\n";
  if (best.efficiency < 1)
    out += "Failures and checkpoints leave " + ui::number(100 * best.efficiency, 4) + " % of the time for progress.\n";
  for (const std::string& source : report.machines.sources) out += source + "\n";
  for (const std::string& line : report.what_if) out += line + "\n";
  out += frontier_text(report, context.columns_out());
  if (report.explain) {
    out += "\n" + std::to_string(report.answer.looked_at) + " layouts were looked at, " +
           std::to_string(report.answer.fitting) + " can run it; not these:\n";
    for (const std::string& line : plan::explain_rejections(report.question, report.answer)) out += "  " + line + "\n";
  }
  return out;
}

std::string plan_json(const PlanReport& report) {
  const plan::Question& q = report.question;
  Json out{{"model", q.training.model.name},
           {"params", plan::count_params(q.training.model).total},
           {"gpu", report.machines.gpu},
           {"nodes", q.nodes},
           {"gpus_per_node", q.cluster.gpus_per_node},
           {"hosts", report.machines.hosts},
           {"sources", report.machines.sources},
           {"looked_at", report.answer.looked_at},
           {"fitting", report.answer.fitting},
           {"sequence", q.training.sequence},
           {"batch", q.training.batch},
           {"precision", plan::text_of(q.training.precision)},
           {"optimizer", q.training.optimizer},
           {"method", plan::text_of(q.training.method)},
           {"framework", plan::text_of(q.training.framework)},
           {"plans", Json::array()},
           {"frontier", Json::array()},
           {"by_gpus", Json::array()},
           {"rejected", Json::object()}};
  if (!report.answer.best.empty()) out["explanation"] = plan::explain_choice(q, report.answer.best.front());
  if (report.together) out["together"] = json_of(*report.together);
  for (const plan::Plan& plan : report.answer.best) out["plans"].push_back(json_of(plan));
  for (const plan::Plan& plan : report.answer.frontier) out["frontier"].push_back(json_of(plan));
  for (const auto& [gpus, plan] : report.answer.by_gpus) out["by_gpus"].push_back(json_of(plan));
  for (std::size_t i = 0; i < report.answer.rejected.count.size(); ++i)
    if (report.answer.rejected.count[i] > 0)
      out["rejected"][std::string(plan::text_of(static_cast<plan::Reason>(i)))] = report.answer.rejected.count[i];
  if (!report.what_if.empty()) out["what_if"] = report.what_if;
  return out.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace gridctl::cmd
