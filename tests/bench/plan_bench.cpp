// SPDX-License-Identifier: Apache-2.0
// How fast the planner is: parallelisms a second on one core. `plan_bench` prints one line for each question.
#include <chrono>
#include <cstdio>

#include "plan/search.hpp"

namespace {
using namespace gridctl::plan;

void time_search(const char* model, const char* gpu, int nodes) {
  Question question;
  question.training.model = *family(model);
  question.training.sequence = 8192;
  question.training.batch = 2048;
  question.training.framework = Framework::megatron;
  const gridctl::sched::GpuModel* const row = *gpu_named(gpu);
  question.cluster = cluster_of(device_of(*row), row, 8);
  question.nodes = nodes;
  question.usd_per_gpu_hour = 2;
  const auto began = std::chrono::steady_clock::now();
  const Answer answer = search(question);
  const double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - began).count();
  std::printf("%s on %d x 8 %s: %zu layouts in %.1f ms, %.0f ms for 100000; %zu fit\n", model, nodes, gpu,
              answer.looked_at, ms, ms / static_cast<double>(answer.looked_at) * 1e5, answer.fitting);
}

// Each whole: memory, traffic, time and failures, whether it fits or not.
void time_parallelisms() {
  Question question;
  question.training.model = *family("llama-3-70b");
  question.training.batch = 1024;
  const gridctl::sched::GpuModel* const row = *gpu_named("H100 SXM5 80GB");
  question.cluster = cluster_of(device_of(*row), row, 8);
  question.risk.failures_per_node_hour = 1e-4;
  const TimingFacts facts = timing_facts(question.training, question.cluster);
  double sum = 0;
  const auto began = std::chrono::steady_clock::now();
  for (int i = 0; i < 100'000; ++i)
    sum += plan_of(question, facts, {.dp = 8 << (i % 4), .tp = 1 << (i % 4), .pp = 1 + i % 2, .zero = 1}).time.seconds;
  const double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - began).count();
  std::printf("100000 layouts whole in %.1f ms (%.3g)\n", ms, sum);
}
}  // namespace

int main() {
  time_search("llama-3-8b", "H100 SXM5 80GB", 64);
  time_search("llama-3.1-405b", "H100 SXM5 80GB", 2048);
  time_search("deepseek-v3", "H100 SXM5 80GB", 512);
  time_parallelisms();
}
