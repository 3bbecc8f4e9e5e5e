// SPDX-License-Identifier: Apache-2.0
// Every figure of these estimates, searches and mixtures is as it was: who changes a formula sees what that changes, and
// writes the figures anew with GRIDCTL_WRITE_FIGURES=1 when it is meant. How good they are is estimate_accuracy_test's matter.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "plan/mixed.hpp"
#include "plan/search.hpp"
#include "runs.hpp"

namespace gridctl::plan::testing::estimate_figures_test {
namespace {

const char* const k_file = GRIDCTL_SOURCE_DIR "/tests/data/plan/figures.json";
constexpr double k_close = 1e-6;  // relative: libraries of mathematics differ in the last digits
constexpr std::size_t k_each = 6;  // of so many published runs one is estimated

Question question(const char* model, const char* gpu, int each, int nodes, Framework framework = Framework::megatron) {
  Question out;
  out.training.model = *family(model);
  out.training.sequence = 4096;
  out.training.batch = 256;
  out.training.framework = framework;
  const sched::GpuModel* const row = *gpu_named(gpu);
  out.cluster = cluster_of(device_of(*row), row, each);
  out.nodes = nodes;
  out.tokens = 1e9;
  out.usd_per_gpu_hour = 2;
  return out;
}

Json figures_of(const Plan& plan) {
  const Memory& m = plan.memory;
  return {{"layout", text_of(plan.parallelism)}, {"peak", m.peak()},           {"states", m.states()},
          {"activations", m.activations},   {"buffers", m.buffers},       {"offloaded", m.offloaded},
          {"seconds", plan.time.seconds},   {"exposed", plan.time.exposed}, {"tokens_per_s", plan.tokens_per_s},
          {"mfu", plan.mfu},                {"hours", plan.hours},        {"efficiency", plan.efficiency},
          {"usd", plan.usd}};
}

Json figures_of(const Question& asked) {
  const Answer answer = search(asked);
  Json out{{"looked_at", answer.looked_at}, {"fitting", answer.fitting}, {"rejected", answer.rejected.count}};
  for (const Plan& plan : answer.best)
    if (out["best"].size() < 4) out["best"].push_back(figures_of(plan));
  for (const Plan& plan : answer.frontier) out["frontier"].push_back(text_of(plan.parallelism));
  for (const auto& [gpus, plan] : answer.by_gpus) out["by_gpus"][std::to_string(gpus)] = text_of(plan.parallelism);
  if (answer.rejected.smallest) out["smallest"] = figures_of(*answer.rejected.smallest);
  for (const auto& parallelism : answer.rejected.example) out["examples"].push_back(parallelism ? text_of(*parallelism) : "");
  if (!answer.best.empty()) out["choice"] = explain_choice(asked, answer.best.front());
  out["why_not"] = explain_rejections(asked, answer);
  return out;
}

std::map<std::string, Question> questions() {
  std::map<std::string, Question> all;
  all["8b on two nodes"] = question("llama-3-8b", "H100 SXM5 80GB", 8, 2);
  all["70b"] = question("llama-3-70b", "H100 SXM5 80GB", 8, 8);
  all["405b, in too little"] = question("llama-3.1-405b", "H100 SXM5 80GB", 8, 4);
  all["at home"] = question("llama-3-8b", "RTX 4090", 2, 1, Framework::deepspeed);
  all["sharded by torch"] = question("llama-3-8b", "A100 SXM4 80GB", 8, 4, Framework::fsdp2);
  Question& experts = all["experts"] = question("mixtral-8x7b", "H100 SXM5 80GB", 8, 4);
  experts.wanted.pp = 1;
  Question& text = all["long text"] = question("llama-3-8b", "H100 SXM5 80GB", 8, 2);
  text.training.sequence = 32768;
  text.training.batch = 32;
  Question& cheap = all["cheap"] = question("llama-3-8b", "A100 SXM4 80GB", 8, 8);
  cheap.rank = RankBy::cost;
  cheap.budget_usd = 120, cheap.deadline_s = 3600;
  Question& risky = all["risky"] = question("llama-3-70b", "H100 SXM5 80GB", 8, 16);
  risky.rank = RankBy::expected;
  risky.risk.failures_per_node_hour = 0.01;
  Question& wanted = all["wanted"] = question("llama-3-8b", "H100 SXM5 80GB", 8, 3);
  wanted.training.batch = 240;
  wanted.wanted.dp = 3;
  return all;
}

Json mixtures() {
  Json out;
  const std::vector<Question> batches{question("llama-3-8b", "H100", 8, 2), question("llama-3-8b", "A100", 8, 2)};
  std::vector<Plan> best;
  for (const Question& one : batches) best.push_back(search(one).best.front());
  const std::vector<Question> layers{question("llama-3-70b", "H100", 8, 1), question("llama-3-70b", "A100 SXM4 40GB", 8, 4)};
  for (const auto& mixed : {mix_batches(batches, best), mix_layers(layers)}) {
    if (!mixed) continue;
    Json one{{"seconds", mixed->seconds}, {"exchange", mixed->exchange}, {"tokens_per_s", mixed->tokens_per_s}, {"usd_per_hour", mixed->usd_per_hour}};
    for (const MixedPart& part : mixed->parts)
      one["parts"].push_back({{"layout", text_of(part.parallelism)}, {"batch", part.batch}, {"layers", part.layers}, {"seconds", part.seconds}, {"peak", part.peak}});
    out.push_back(one);
  }
  return out;
}

Json now() {
  Json out;
  const std::vector<Json> rows = rows_of("runs.jsonl");
  for (std::size_t i = 0; i < rows.size(); i += k_each) {
    Estimator estimator;
    out["runs"].push_back(ask(estimator, rows[i]));
  }
  for (const auto& [name, asked] : questions()) out["searches"][name] = figures_of(asked);
  out["mixtures"] = mixtures();
  return out;
}

// Where they differ first, or empty.
std::string difference(const Json& was, const Json& is, const std::string& at) {
  if (was.is_number() && is.is_number()) {
    const double a = was.get<double>(), b = is.get<double>();
    return std::abs(a - b) <= k_close * std::max(std::abs(a), std::abs(b)) ? "" : at + ": " + was.dump() + ", now " + is.dump();
  }
  if (was.type() != is.type() || was.size() != is.size() || !was.is_structured())
    return was == is ? "" : at + ": " + was.dump().substr(0, 300) + ", now " + is.dump().substr(0, 300);
  if (was.is_array()) {
    for (std::size_t i = 0; i < was.size(); ++i)
      if (std::string found = difference(was[i], is[i], at + "/" + std::to_string(i)); !found.empty()) return found;
    return "";
  }
  for (const auto& [key, value] : was.items()) {
    if (!is.contains(key)) return at + "/" + key + " is missing";
    if (std::string found = difference(value, is[key], at + "/" + key); !found.empty()) return found;
  }
  return "";
}

TEST(Figures, AreAsTheyWere) {
  const Json is = now();
  if (std::getenv("GRIDCTL_WRITE_FIGURES") != nullptr) std::ofstream(k_file) << is.dump(1) << "\n";
  std::ifstream in(k_file);
  const Json was = Json::parse(in, nullptr, false);
  ASSERT_FALSE(was.is_discarded());
  for (const char* part : {"runs", "searches", "mixtures"}) EXPECT_EQ(difference(was[part], is[part], part), "");
}

}  // namespace
}  // namespace gridctl::plan::testing::estimate_figures_test
