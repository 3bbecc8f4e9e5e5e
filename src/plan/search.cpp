// SPDX-License-Identifier: Apache-2.0
#include "plan/search.hpp"

#include <algorithm>
#include <cmath>

#include "sched/interval.hpp"

namespace gridctl::plan {

namespace {
constexpr double k_host_usable = 0.9;  // of a node's memory, beside the system and data loaders
// Estimates cannot distinguish plans that are closer than this.
constexpr double k_resolved = 1.03;
// A context parallel rank keeps at least this many tokens: with fewer, the transfer of keys and values is not hidden.
constexpr std::int64_t k_tokens_of_rank = 2048;

std::vector<int> divisors(int number, int most) {
  std::vector<int> out;
  for (int i = 1; i <= std::min(number, most); ++i)
    if (number % i == 0) out.push_back(i);
  return out;
}
template <class Value>
std::vector<Value> only(const std::optional<Value>& wanted, std::vector<Value> all) {
  return wanted ? std::vector<Value>{*wanted} : std::move(all);
}
std::vector<int> powers_of_two(std::int64_t most) {
  std::vector<int> out;
  for (std::int64_t i = 1; i <= most && i <= 1024; i *= 2) out.push_back(static_cast<int>(i));
  return out;
}

// Holds the choices beside the degrees, which are the same for every division of the GPUs.
struct Choices {
  std::vector<int> zero, virtual_stages;
  std::vector<Recompute> recompute;
  std::vector<Offload> offload;
};
Choices choices_of(const Question& question) {
  const Wanted& wanted = question.wanted;
  return {only(wanted.zero, sharding_stages(question.training.framework)), only(wanted.virtual_stages, {1, 2, 4}),
          only(wanted.recompute, {Recompute::none, Recompute::selective, Recompute::full}),
          only(wanted.offload, question.training.framework == Framework::ddp
                                   ? std::vector{Offload::none}
                                   : std::vector{Offload::none, Offload::optimizer, Offload::all})};
}

class Search {
 public:
  explicit Search(const Question& question)
      : question_(question), choices_(choices_of(question)), facts_(timing_facts(question.training, question.cluster)) {
    if (question.coefficients) facts_.coefficients = *question.coefficients;
    if (question.constants) facts_.memory.constants = *question.constants;
    room_ = question.cluster.device.memory * (1 - k_memory_margin);
    by_scores_ = question.training.framework == Framework::megatron ||
                 question.training.framework == Framework::megatron_deepspeed;
  }

  Answer run() {
    const int each = question_.cluster.gpus_per_node;
    for (const int gpus : counts_below(each)) divide(gpus);  // a part of a node
    for (const int nodes : counts_below(question_.nodes)) divide(nodes * each);
    divide(question_.nodes * each);
    finish();
    return std::move(answer_);
  }

 private:
  // Returns halves of the available number, or every number if a given degree is no power of two.
  std::vector<int> counts_below(int most) const {
    std::vector<int> out;
    if (!question_.fewer_nodes) return out;
    const Wanted& wanted = question_.wanted;
    bool odd = false;
    for (const auto& degree : {wanted.dp, wanted.tp, wanted.pp, wanted.cp})
      odd = odd || (degree && (*degree & (*degree - 1)) != 0);
    for (int n = 1; n < most; n = odd ? n + 1 : n * 2) out.push_back(n);
    return out;
  }

  void divide(int gpus) {
    const Training& training = question_.training;
    const Wanted& wanted = question_.wanted;
    const bool divides = divides_models(training.framework);
    const int ranks = static_cast<int>(std::min<std::int64_t>(64, training.sequence / k_tokens_of_rank));
    const int domain = std::max(question_.cluster.fast_domain, 1);
    for (const int tp : only(wanted.tp, divisors(gpus, divides ? domain : 1))) {
      if (tp < 1 || gpus % tp != 0) continue;
      for (const int pp : only(wanted.pp, divisors(gpus / tp, divides ? std::max(training.model.layers, 1) : 1))) {
        if (pp < 1 || (gpus / tp) % pp != 0) continue;
        for (const int cp : only(wanted.cp, divisors(gpus / tp / pp, divides ? std::max(ranks, 1) : 1))) {
          if (cp < 1 || (gpus / tp / pp) % cp != 0) continue;
          Parallelism parallelism{.dp = gpus / tp / pp / cp, .tp = tp, .pp = pp, .cp = cp, .sequence_parallel = tp > 1};
          if (wanted.dp && *wanted.dp != parallelism.dp) continue;
          for (const int ep : expert_degrees(parallelism)) {
            parallelism.ep = ep;
            vary(parallelism);
          }
        }
      }
    }
  }

  std::vector<int> expert_degrees(const Parallelism& parallelism) const {
    if (!question_.training.model.mixture() || !divides_models(question_.training.framework)) return only(question_.wanted.ep, {1});
    std::vector<int> out;
    for (const int ep : divisors(question_.training.model.experts, parallelism.dp * parallelism.cp))
      if ((parallelism.dp * parallelism.cp) % ep == 0) out.push_back(ep);
    return only(question_.wanted.ep, out);
  }

  void vary(Parallelism parallelism) {
    const std::int64_t share = question_.training.batch / parallelism.dp;
    const std::vector<int> batches =
        only(question_.wanted.micro_batch, powers_of_two(std::max<std::int64_t>(share, 1)));
    for (const int zero : choices_.zero)
      for (const int stages : choices_.virtual_stages)
        for (const int batch : batches) {
          parallelism.zero = zero;
          parallelism.virtual_stages = stages;
          parallelism.micro_batch = batch;
          save_memory(parallelism);
        }
  }

  // Recomputing and offloading cost time: a plan that fits with less of both is not tried with more.
  void save_memory(Parallelism parallelism) {
    std::optional<Recompute> enough;
    for (const Offload offload : choices_.offload)
      for (const Recompute recompute : choices_.recompute) {
        parallelism.offload = offload;
        parallelism.recompute = recompute;
        if (!makes_sense(parallelism)) continue;
        ++answer_.looked_at;
        if (enough && recompute >= *enough) note(Reason::needless, parallelism);
        else if (consider(parallelism)) enough = recompute;
      }
  }

  // Rejects choices that only repeat another: sharding over one, interleaving of one stage, offloading without
  // sharding, recomputing attention scores that flash attention never keeps.
  bool makes_sense(const Parallelism& parallelism) {
    if (parallelism.virtual_stages > 1 && parallelism.pp == 1 && !question_.wanted.virtual_stages) return false;
    if (parallelism.zero > 0 && parallelism.dp * parallelism.cp == 1 && parallelism.offload != Offload::all && !question_.wanted.zero)
      return false;
    if (parallelism.recompute == Recompute::selective &&
        ((question_.training.flash_attention && by_scores_) || !recomputes_parts(question_.training.framework)) &&
        !question_.wanted.recompute)
      return false;
    if (parallelism.offload == Offload::all && parallelism.zero != 3) return false;
    if (!question_.refuses || question_.refuses(question_.training, parallelism).empty()) return true;
    note(Reason::refused, parallelism);
    return false;
  }

  // Returns whether the plan can run and fits.
  bool consider(const Parallelism& parallelism) {
    if (!possible(question_.training, parallelism)) {
      note(*reason_against(question_.training, parallelism), parallelism);
      return false;
    }
    const Memory memory = memory_of(question_.training, facts_.memory, parallelism);
    if (memory.peak() > room_) {
      if (auto& smallest = answer_.rejected.smallest; !smallest || memory.peak() < smallest->memory.peak()) {
        smallest = Plan{};
        smallest->parallelism = parallelism;
        smallest->memory = memory;
      }
      note(Reason::memory, parallelism);
      return false;
    }
    const Cluster& cluster = question_.cluster;
    if (cluster.host_memory > 0 &&
        memory.offloaded * std::min(parallelism.gpus(), cluster.gpus_per_node) > cluster.host_memory * k_host_usable) {
      note(Reason::host_memory, parallelism);
      return false;
    }
    keep(plan_of(question_, facts_, parallelism));
    return true;
  }

  void note(Reason reason, const Parallelism& parallelism) {
    const auto at = static_cast<std::size_t>(reason);
    if (answer_.rejected.count[at]++ == 0) answer_.rejected.example[at] = parallelism;
  }

  void keep(Plan plan) {
    if (question_.budget_usd && plan.usd > *question_.budget_usd) return note(Reason::budget, plan.parallelism);
    if (question_.deadline_s && plan.expected_hours() * 3600 > *question_.deadline_s)
      return note(Reason::deadline, plan.parallelism);
    ++answer_.fitting;
    add_to_frontier(plan);
    keep_simpler(simple_, plan);
    keep_simpler(simple_by_gpus_[plan.parallelism.gpus()], plan);
    std::vector<Plan>& best = answer_.best;
    const auto place = std::ranges::upper_bound(best, value(plan), {}, [this](const Plan& one) { return value(one); });
    best.insert(place, plan);
    if (best.size() > k_best) best.pop_back();
  }

  // Keeps the plans sorted by time; cost falls along the list.
  void add_to_frontier(const Plan& plan) {
    std::vector<Plan>& front = answer_.frontier;
    const auto later = std::upper_bound(front.begin(), front.end(), plan.expected_hours(),
                                        [](double hours, const Plan& one) { return hours < one.expected_hours(); });
    if (later != front.begin() && std::prev(later)->usd <= plan.usd * 1.0001) return;
    const auto end = std::find_if(later, front.end(), [&](const Plan& one) { return one.usd < plan.usd; });
    front.insert(front.erase(later, end), plan);
  }

  double value(const Plan& plan) const {
    switch (question_.rank) {
      case RankBy::cost: return plan.hours * plan.parallelism.gpus();
      case RankBy::expected: return plan.expected_hours() * plan.parallelism.gpus();
      case RankBy::time: break;
    }
    return plan.expected_hours();
  }
  // Rates the effort of setting up and debugging a layout.
  static int effort(const Parallelism& l) {
    return l.pp * 8 + l.tp * 4 + l.cp * 4 + l.zero + 16 * static_cast<int>(l.offload) + l.virtual_stages;
  }
  // Keeps plans that no other beats both in value and in simplicity.
  void keep_simpler(std::vector<Plan>& plans, const Plan& plan) const {
    const auto beats = [this](const Plan& a, const Plan& b) {
      return value(a) <= value(b) && effort(a.parallelism) <= effort(b.parallelism);
    };
    if (std::ranges::any_of(plans, [&](const Plan& one) { return beats(one, plan); })) return;
    std::erase_if(plans, [&](const Plan& one) { return beats(plan, one); });
    plans.push_back(plan);
  }
  // Returns the simplest of the plans that are as good as the best, within the accuracy of estimates. REQUIRES:
  // !plans.empty().
  const Plan& simplest(const std::vector<Plan>& plans) const {
    const auto by_value = [this](const Plan& one) { return value(one); };
    const double limit = value(*std::ranges::min_element(plans, {}, by_value)) * k_resolved;
    return *std::ranges::min_element(plans, {}, [&](const Plan& one) {
      return std::pair(value(one) > limit, effort(one.parallelism));
    });
  }

  // The first is the choice; the others are sorted by their costs.
  void finish() {
    for (const auto& [gpus, plans] : simple_by_gpus_) answer_.by_gpus.emplace(gpus, simplest(plans));
    if (simple_.empty()) return;
    const Plan choice = simplest(simple_);
    std::erase_if(answer_.best, [&](const Plan& one) { return one.parallelism == choice.parallelism; });
    answer_.best.insert(answer_.best.begin(), choice);
    if (answer_.best.size() > k_best) answer_.best.pop_back();
  }

  const Question& question_;
  Choices choices_;
  TimingFacts facts_;
  double room_ = 0;
  bool by_scores_ = false;  // "selective" means the scores of attention, as Megatron has it
  std::vector<Plan> simple_;  // candidates for the choice
  std::map<int, std::vector<Plan>> simple_by_gpus_;
  Answer answer_;
};
}  // namespace

std::optional<RankBy> rank_of(std::string_view text) {
  if (text == "time") return RankBy::time;
  if (text == "cost") return RankBy::cost;
  if (text == "expected") return RankBy::expected;
  return std::nullopt;
}

Answer search(const Question& question) { return Search(question).run(); }

namespace {
// Returns the share of the time that failures and checkpoints leave to this number of nodes.
double efficiency_of(const Question& question, const TimingFacts& facts, double nodes) {
  if (question.risk.failures_per_node_hour <= 0) return 1;
  // A checkpoint has the weights and the optimizer's states of the model, written by all nodes at once.
  const double bytes = facts.memory.count.total * (facts.memory.bytes.weight + facts.memory.bytes.optimizer);
  const double stall = std::max(1.0, bytes / (question.risk.checkpoint_rate * nodes));
  const double mtbf = 3600 / (question.risk.failures_per_node_hour * nodes);
  return std::max(0.001, sched::best_efficiency(stall, mtbf, question.risk.restart_s));
}
}  // namespace

Plan plan_of(const Question& question, const TimingFacts& facts, const Parallelism& parallelism) {
  Plan plan;
  plan.parallelism = parallelism;
  plan.memory = memory_of(question.training, facts.memory, parallelism);
  plan.traffic = traffic_of(question.training, facts, parallelism);
  plan.time = step_time(terms_of(question.training, facts, question.cluster, parallelism), facts.coefficients,
                        question.training, parallelism);
  const double tokens = static_cast<double>(question.training.batch) * static_cast<double>(question.training.sequence);
  plan.tokens_per_s = tokens / plan.time.seconds;
  plan.mfu = facts.plain.model /
             (plan.time.seconds * parallelism.gpus() * question.cluster.device.peak(question.training.precision));
  plan.hours = (question.tokens > 0 ? question.tokens : tokens) / plan.tokens_per_s / 3600;
  const double nodes = std::ceil(static_cast<double>(parallelism.gpus()) / question.cluster.gpus_per_node);
  plan.efficiency = efficiency_of(question, facts, nodes);
  plan.usd = plan.expected_hours() * parallelism.gpus() * question.usd_per_gpu_hour;
  return plan;
}

std::optional<Reason> reason_against(const Training& training, const Parallelism& l) {
  const Model& m = training.model;
  if ((m.heads > 0 && m.heads % l.tp != 0) || m.hidden % l.tp != 0) return Reason::heads;
  if (l.pp * l.virtual_stages > std::max(m.layers, 1)) return Reason::layers;
  if (training.sequence % l.cp != 0) return Reason::sequence;
  const std::int64_t each = static_cast<std::int64_t>(l.dp) * l.micro_batch;
  if (training.batch < each || training.batch % each != 0) return Reason::batch;
  const bool sharded = l.zero == 2 || (l.zero == 3 && !shards_in_pipelines(training.framework));
  if ((sharded && l.pp > 1) || (l.virtual_stages > 1 && l.pp == 1)) return Reason::sharding;
  if (l.recompute == Recompute::selective && !recomputes_parts(training.framework)) return Reason::recompute;
  if (!possible(training, l)) return Reason::experts;
  return std::nullopt;
}

}  // namespace gridctl::plan
