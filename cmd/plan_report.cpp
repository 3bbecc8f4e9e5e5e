// SPDX-License-Identifier: Apache-2.0
#include "cmd/plan_report.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "ui/human.hpp"
#include "ui/table.hpp"

namespace gridctl::cmd {

namespace {
using Json = nlohmann::ordered_json;
constexpr std::size_t k_rows = 10;  // of the table
constexpr std::size_t k_plot_lines = 8, k_plot_columns_max = 60;

std::string gb(double bytes) { return ui::number(bytes / 1e9, 3) + " GB"; }
std::string hours(double value) {
  return value >= 48  ? ui::number(value / 24, 3) + " d"
         : value >= 1 ? ui::number(value, 3) + " h"
                      : ui::number(value * 60, 3) + " min";
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
  for (std::size_t i = 0; i < std::min(k_rows, report.answer.best.size()); ++i) {
    const plan::Plan& plan = report.answer.best[i];
    table.add({std::to_string(plan.layout.gpus()), plan::text_of(plan.layout), gb(plan.memory.peak()),
               ui::number(plan.time.seconds, 3) + " s", ui::number(std::round(plan.tokens_per_s), 6),
               ui::number(100 * plan.mfu, 3) + " %", hours(plan.expected_hours()), ui::money(plan.usd)},
              {i == 0 ? ui::Paint::bold : ui::Paint{}});
  }
  return table.render(context.columns_out(), context.out_style);
}

std::string breakdown_of(const plan::Plan& plan) {
  const plan::Memory& m = plan.memory;
  std::string text = "memory per GPU: weights " + gb(m.weights) + ", gradients " + gb(m.grads) + ", optimizer " +
                     gb(m.optimizer) + ", activations " + gb(m.activations) + ", logits " + gb(m.logits) +
                     ", buffers " + gb(m.buffers) + ", base " +
                     gb(m.constants.base + (m.constants.overhead - 1) * m.allocated()) + ": " + gb(m.peak()) + "\n";
  if (m.offloaded > 0) text += "in the host's memory: " + gb(m.offloaded) + " per GPU\n";
  text += "a step: ";
  bool first = true;
  for (std::size_t i = 0; i < plan::k_terms; ++i) {
    if (plan.time.parts[i] < 0.005 * plan.time.seconds) continue;
    text += (first ? "" : ", ") + std::string(plan::text_of(static_cast<plan::Term>(i))) + " " +
            ui::number(plan.time.parts[i], 3) + " s";
    first = false;
  }
  text += "; bubble " + ui::number(100 * plan.time.bubble, 3) + " %, exposed communication " +
          ui::number(plan.time.exposed, 3) + " s\n";
  if (plan.traffic.data > 0)
    text += "data parallel traffic: " + gb(plan.traffic.data) + " a step in messages of " +
            gb(plan.traffic.data_message) + "\n";
  return text;
}

Json json_of(const plan::Plan& plan) {
  const plan::Memory& m = plan.memory;
  const plan::Layout& l = plan.layout;
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
}  // namespace

std::string frontier_plot(const std::vector<plan::Plan>& frontier, std::size_t columns) {
  if (frontier.size() < 2) return "";
  const std::size_t width = std::min(columns > 20 ? columns - 14 : k_plot_columns_max, k_plot_columns_max);
  const auto [quick, slow] = std::pair(frontier.front().expected_hours(), frontier.back().expected_hours());
  const auto [dear, cheap] = std::pair(frontier.front().usd, frontier.back().usd);
  if (!(slow > quick) || !(dear > cheap) || cheap <= 0) return "";
  std::vector<std::string> field(k_plot_lines, std::string(width, ' '));
  for (const plan::Plan& plan : frontier) {
    const double x = std::log(plan.expected_hours() / quick) / std::log(slow / quick);
    const double y = std::log(plan.usd / cheap) / std::log(dear / cheap);
    field[static_cast<std::size_t>(std::lround((1 - y) * (k_plot_lines - 1)))]
         [static_cast<std::size_t>(std::lround(x * static_cast<double>(width - 1)))] = '*';
  }
  std::string out;
  for (std::size_t i = 0; i < field.size(); ++i) {
    std::string label = i == 0 ? ui::money(dear) : i + 1 == field.size() ? ui::money(cheap) : "";
    label.insert(0, label.size() < 12 ? 12 - label.size() : 0, ' ');
    field[i].erase(field[i].find_last_not_of(' ') + 1);
    out += label + " |" + field[i] + "\n";
  }
  std::string axis = std::string(14, ' ') + hours(quick);
  const std::string end = hours(slow);
  if (axis.size() + end.size() < width + 14) axis.append(width + 14 - axis.size() - end.size(), ' ');
  return out + std::string(13, ' ') + "+" + std::string(width, '-') + "\n" + axis + end + "\n";
}

std::string plan_text(const Context& context, const PlanReport& report) {
  std::string out = table_of(context, report);
  const plan::Plan& best = report.answer.best.front();
  out += "\n" + breakdown_of(best);
  for (const std::string& line : plan::explain_choice(report.question, best)) out += line + "\n";
  if (best.efficiency < 1)
    out += "Failures and checkpoints leave " + ui::number(100 * best.efficiency, 4) + " % of the time for progress.\n";
  for (const std::string& source : report.machines.sources) out += source + "\n";
  for (const std::string& line : report.what_if) out += line + "\n";
  if (report.answer.frontier.size() > 1 && report.question.usd_per_gpu_hour > 0) {
    out += "\ntime against cost, none is both quicker and cheaper:\n";
    for (const plan::Plan& plan : report.answer.frontier)
      out += "  " + hours(plan.expected_hours()) + "  " + ui::money(plan.usd) + "  " +
             std::to_string(plan.layout.gpus()) + " GPUs  " + plan::text_of(plan.layout) + "\n";
    out += frontier_plot(report.answer.frontier, context.columns_out());
  }
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
           {"plans", Json::array()},
           {"frontier", Json::array()},
           {"rejected", Json::object()},
           {"explanation", plan::explain_choice(q, report.answer.best.front())}};
  for (const plan::Plan& plan : report.answer.best) out["plans"].push_back(json_of(plan));
  for (const plan::Plan& plan : report.answer.frontier) out["frontier"].push_back(json_of(plan));
  for (std::size_t i = 0; i < report.answer.rejected.count.size(); ++i)
    if (report.answer.rejected.count[i] > 0)
      out["rejected"][std::string(plan::text_of(static_cast<plan::Reason>(i)))] = report.answer.rejected.count[i];
  if (!report.what_if.empty()) out["what_if"] = report.what_if;
  return out.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace gridctl::cmd
