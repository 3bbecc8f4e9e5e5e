// SPDX-License-Identifier: Apache-2.0
#include "plan/mixed.hpp"

#include <algorithm>
#include <numeric>

#include "plan/beyond.hpp"

namespace gridctl::plan {

namespace {
constexpr std::int64_t k_batch_max = 1'000'000'000;

TimingFacts facts_of(const Question& question) {
  TimingFacts facts = timing_facts(question.training, question.cluster);
  if (question.coefficients) facts.coefficients = *question.coefficients;
  if (question.constants) facts.memory.constants = *question.constants;
  return facts;
}

double usd_per_hour(std::span<const Question> groups, const Mixed& mixed) {
  double sum = 0;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const MixedPart& part = mixed.parts[i];
    const double gpus = mixed.by_layers() ? static_cast<double>(part.parallelism.dp) * part.parallelism.tp *
                                                static_cast<double>(part.layers.size())
                                          : part.parallelism.gpus();
    sum += gpus * groups[i].usd_per_gpu_hour;
  }
  return sum;
}

// Returns the seconds that the gradients take between the groups: a ring in which all nodes of a group send their part.
// The slowest sender limits it.
double exchange_between(std::span<const Question> groups, std::span<const Plan> best) {
  const double k = static_cast<double>(groups.size());
  const Training& training = groups.front().training;
  const MemoryFacts facts = memory_facts(training);
  const double params = training.method == Method::full ? facts.count.total : facts.trainable;
  const double bytes = 2 * (k - 1) / k * params * (training.precision == Precision::fp32 ? 4 : 2);
  double rate = 1e300;
  for (std::size_t i = 0; i < groups.size(); ++i)
    rate = std::min(rate, groups[i].cluster.inter_link * best[i].parallelism.gpus());
  return bytes / rate;
}
}  // namespace

std::optional<Mixed> mix_batches(std::span<const Question> groups, std::span<const Plan> best) {
  std::int64_t unit = 1;
  std::vector<double> speeds;
  for (const Plan& plan : best) {
    unit = std::lcm(unit, static_cast<std::int64_t>(plan.parallelism.dp) * plan.parallelism.micro_batch);
    if (unit > k_batch_max) return std::nullopt;
    speeds.push_back(plan.tokens_per_s);
  }
  const std::int64_t units = groups.front().training.batch / unit;
  if (units < static_cast<std::int64_t>(groups.size())) return std::nullopt;
  std::vector<int> shares = batch_by_speed(static_cast<int>(std::min(units, k_batch_max)), speeds);
  Mixed out;
  std::int64_t batch = 0;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (shares[i] == 0) return std::nullopt;  // so slow that it would have nothing to do
    Question own = groups[i];
    own.training.batch = shares[i] * unit;
    const Plan plan = plan_of(own, facts_of(own), best[i].parallelism);
    out.parts.push_back({best[i].parallelism, own.training.batch, {}, plan.time.seconds, plan.memory.peak()});
    out.seconds = std::max(out.seconds, plan.time.seconds);
    batch += own.training.batch;
  }
  out.exchange = exchange_between(groups, best);
  out.seconds += out.exchange;
  out.tokens_per_s = static_cast<double>(batch * groups.front().training.sequence) / out.seconds;
  out.usd_per_hour = usd_per_hour(groups, out);
  return out;
}

namespace {
// Describes one division of the GPUs into stages of dp * tp; the GPUs of a group beyond complete stages are idle.
class Pipeline {
 public:
  Pipeline(std::span<const Question> groups, std::span<const TimingFacts> facts) : groups_(groups), facts_(facts) {}

  std::optional<Mixed> with(Parallelism parallelism) const {
    std::vector<int> stages;
    for (const Question& group : groups_)
      stages.push_back(group.nodes * group.cluster.gpus_per_node / (parallelism.dp * parallelism.tp));
    parallelism.pp = std::accumulate(stages.begin(), stages.end(), 0);
    const Training& training = groups_.front().training;
    if (std::ranges::count(stages, 0) > 0 || parallelism.pp > training.model.layers || !possible(training, parallelism))
      return std::nullopt;
    std::vector<double> speeds;
    std::vector<int> most;
    std::vector<Plan> even;
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      even.push_back(plan_of(groups_[i], facts_[i], parallelism));
      speeds.insert(speeds.end(), static_cast<std::size_t>(stages[i]), 1 / computing(even.back()));
      most.insert(most.end(), static_cast<std::size_t>(stages[i]), layers_held(i, even.back()));
    }
    const auto layers = layers_by_speed(training.model.layers, speeds, most);
    if (!layers) return std::nullopt;
    return composed(parallelism, stages, even, *layers);
  }

 private:
  // Returns the seconds that grow with the layers of a stage.
  static double computing(const Plan& even) { return std::max(even.time.seconds - even.time.exposed, 1e-12); }

  // Counts the layers that fit into the memory of the group's GPUs.
  int layers_held(std::size_t group, const Plan& even) const {
    const Memory& m = even.memory;
    const double share = stages_of(groups_.front().training.model.layers, even.parallelism.pp).most;
    const double each = (m.states() + m.activations) * m.constants.overhead / share;
    const double fixed = m.peak() - each * share;
    const double room = groups_[group].cluster.device.memory * (1 - k_memory_margin) - fixed;
    return std::clamp(static_cast<int>(room / each), 0, groups_.front().training.model.layers);
  }

  Mixed composed(const Parallelism& parallelism, const std::vector<int>& stages, const std::vector<Plan>& even,
                 const std::vector<int>& layers) const {
    const Training& training = groups_.front().training;
    const double share = stages_of(training.model.layers, parallelism.pp).most;
    Mixed out;
    std::size_t at = 0;
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      MixedPart part{parallelism, training.batch, {}, 0, 0};
      for (int s = 0; s < stages[i]; ++s) part.layers.push_back(layers[at++]);
      const double most = *std::ranges::max_element(part.layers) / share;
      const Memory& m = even[i].memory;
      part.seconds = computing(even[i]) * most + even[i].time.exposed;
      part.peak = m.peak() + (most - 1) * (m.states() + m.activations) * m.constants.overhead;
      out.seconds = std::max(out.seconds, part.seconds);
      out.parts.push_back(std::move(part));
    }
    out.tokens_per_s = static_cast<double>(training.batch * training.sequence) / out.seconds;
    out.usd_per_hour = usd_per_hour(groups_, out);
    return out;
  }

  std::span<const Question> groups_;
  std::span<const TimingFacts> facts_;
};
}  // namespace

std::optional<Mixed> mix_layers(std::span<const Question> groups) {
  std::vector<TimingFacts> facts;
  int most = 0, domain = 1'000'000;
  for (const Question& group : groups) {
    facts.push_back(facts_of(group));
    const int gpus = group.nodes * group.cluster.gpus_per_node;
    most = most == 0 ? gpus : std::min(most, gpus);
    domain = std::min(domain, std::max(group.cluster.fast_domain, 1));
  }
  const Pipeline pipeline(groups, facts);
  std::optional<Mixed> best;
  for (int tp = 1; tp <= domain; tp *= 2)
    for (int dp = 1; dp * tp <= most; dp *= 2)
      for (int micro_batch = 1; micro_batch <= 4; micro_batch *= 2)
        for (const int zero : {0, 1})
          for (const Recompute recompute : {Recompute::none, Recompute::full}) {
            const auto one = pipeline.with({.dp = dp, .tp = tp, .zero = dp > 1 ? zero : 0, .micro_batch = micro_batch,
                                            .recompute = recompute, .sequence_parallel = tp > 1});
            if (one && (!best || one->seconds < best->seconds)) best = one;
          }
  return best;
}

}  // namespace gridctl::plan
