// SPDX-License-Identifier: Apache-2.0

#include "base/formatted.hpp"
#include "plan/search.hpp"

namespace gridctl::plan {

namespace {
std::string gb(double bytes) {
  if (bytes < 99.5e6) return formatted(bytes < 9.95e6 ? "%.1f MB" : "%.0f MB", bytes / 1e6);
  return formatted(bytes < 99.5e9 ? "%.1f GB" : "%.0f GB", bytes / 1e9);
}
}  // namespace

std::string_view text_of(Reason reason) {
  switch (reason) {
    case Reason::heads: return "heads or hidden size are not divisible by tp";
    case Reason::layers: return "fewer layers than stages";
    case Reason::sequence: return "the sequence is not divisible by cp";
    case Reason::batch: return "the batch is not divisible by dp times the micro-batch";
    case Reason::sharding: return "gradients or parameters sharded inside a pipeline";
    case Reason::recompute: return "the framework recomputes complete layers or nothing";
    case Reason::experts: return "experts are not divisible by ep";
    case Reason::memory: return "more memory than the GPU has";
    case Reason::host_memory: return "offloading needs more memory than the node has";
    case Reason::refused: return "the target cannot run it";
    case Reason::needless: return "recomputes or offloads although everything fits without";
    case Reason::budget: return "over the budget";
    case Reason::deadline: return "after the deadline";
    case Reason::count: break;
  }
  return "";
}

std::vector<std::string> explain_choice(const Question& question, const Plan& plan) {
  std::vector<std::string> out;
  const Training& training = question.training;
  MemoryFacts facts = memory_facts(training);
  if (question.constants) facts.constants = *question.constants;
  Parallelism one;
  one.recompute = Recompute::full;
  const Memory alone = memory_of(training, facts, one);
  const double room = question.cluster.device.memory * (1 - k_memory_margin);
  const Parallelism& l = plan.parallelism;
  const std::string device = question.cluster.device.name;
  if (alone.peak() <= room) {
    out.push_back("One " + device + " holds the training (" + gb(alone.peak()) + " of " + gb(room) +
                  "): data parallelism is enough" +
                  (l.tp * l.pp * l.cp == 1 ? "." : ", but this layout is quicker or cheaper."));
  } else {
    out.push_back("One " + device + " cannot hold the training: at least " + gb(alone.peak()) +
                  " is needed, of which " + gb(alone.states()) + " are weights, gradients and optimizer; " + gb(room) +
                  " are usable.");
  }
  if (l.zero > 0 && l.dp * l.cp > 1)
    out.push_back("ZeRO stage " + std::to_string(l.zero) + " shards " +
                  (l.zero == 1   ? "the optimizer"
                   : l.zero == 2 ? "optimizer and gradients"
                                 : "optimizer, gradients and parameters") +
                  " over " + std::to_string(l.dp * l.cp) + " GPUs: " + gb(plan.memory.states()) +
                  " of states on each.");
  if (l.tp > 1)
    out.push_back("Tensor parallelism of " + std::to_string(l.tp) +
                  " stays inside the fast links of a node: each layer sends " + gb(plan.traffic.tensor) +
                  " per micro-batch.");
  if (l.pp > 1)
    out.push_back("A pipeline of " + std::to_string(l.pp) + " stages spans nodes: messages of " +
                  gb(plan.traffic.pipeline) + ", and " + formatted("%.1f", 100 * plan.time.bubble) +
                  " % of the step is its bubble.");
  if (l.cp > 1)
    out.push_back("Sequences of " + std::to_string(training.sequence) + " are divided over " + std::to_string(l.cp) +
                  " GPUs.");
  if (l.ep > 1) out.push_back("Experts are divided over " + std::to_string(l.ep) + " GPUs.");
  if (l.recompute != Recompute::none)
    out.push_back("Activations are recomputed (" + std::string(text_of(l.recompute)) +
                  "): " + gb(plan.memory.activations) + " are kept until the backward pass.");
  if (l.offload != Offload::none) out.push_back(gb(plan.memory.offloaded) + " for each GPU are in the host's memory.");
  return out;
}

std::vector<std::string> explain_rejections(const Question& question, const Answer& answer) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < answer.rejected.count.size(); ++i) {
    const auto reason = static_cast<Reason>(i);
    if (answer.rejected.count[i] == 0) continue;
    std::string line = std::to_string(answer.rejected.count[i]) + " layouts: " + std::string(text_of(reason));
    if (reason == Reason::memory && answer.rejected.smallest) {
      const Plan& least = *answer.rejected.smallest;
      line += "; the least of them, " + text_of(least.parallelism) + ", needs " + gb(least.memory.peak()) + " of " +
              gb(question.cluster.device.memory * (1 - k_memory_margin)) + " (states " + gb(least.memory.states()) +
              ", activations " + gb(least.memory.activations) + ", logits " + gb(least.memory.logits) + ", buffers " +
              gb(least.memory.buffers) + ")";
    } else if (answer.rejected.example[i]) {
      line += ", such as " + text_of(*answer.rejected.example[i]);
      if (reason == Reason::refused) line += ": " + question.refuses(question.training, *answer.rejected.example[i]);
      else if (const auto faults = faults_of(question.training, *answer.rejected.example[i]); !faults.empty())
        line += ": " + faults.front();
    }
    out.push_back(std::move(line));
  }
  return out;
}

}  // namespace gridctl::plan
