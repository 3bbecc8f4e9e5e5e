// SPDX-License-Identifier: Apache-2.0
// Writes gridctl-training(7): distributed training for an engineer who knows PyTorch. The examples are planned while
// the page is written, so that none of its numbers can be out of date.
#include <algorithm>

#include "base/formatted.hpp"
#include "cmd/help.hpp"
#include "plan/beyond.hpp"
#include "plan/search.hpp"

namespace gridctl::cmd {

namespace {
struct Machine {
  const char* gpu;
  int each, nodes;
};

std::string gigabytes(double bytes) { return formatted(bytes < 10e9 ? "%.1f GB" : "%.0f GB", bytes / 1e9); }

plan::Question ask(const char* model, const Machine& machine, plan::Method method = plan::Method::full) {
  plan::Question out;
  out.training.model = *plan::family(model);
  out.training.sequence = 4096;
  out.training.batch = 256;
  out.training.method = method;
  out.training.framework = plan::Framework::megatron;
  const sched::GpuModel* const row = sched::model_by_key(machine.gpu);
  out.cluster = plan::cluster_of(plan::device_of(*row), row, machine.each);
  out.nodes = machine.nodes;
  out.fewer_nodes = false;
  return out;
}

// Returns text such as "dp=8 zero=3 mb=1: 21 GB on each GPU, 12.3 s a step, 41 % MFU".
std::string told(const plan::Plan& plan) {
  return plan::text_of(plan.parallelism) + ": " + gigabytes(plan.memory.peak()) + " on each GPU, " +
         formatted("%.3g s a step, ", plan.time.seconds) + formatted("%.0f %% MFU", 100 * plan.mfu);
}
std::string best_of(const plan::Question& question) {
  const plan::Answer answer = plan::search(question);
  return answer.best.empty() ? "nothing runs it" : told(answer.best.front());
}

std::string section(const char* title, const std::string& text) { return ".SH " + std::string(title) + "\n" + text; }
std::string paragraph(const std::string& text) { return ".PP\n" + roff(text) + "\n"; }
std::string example(const std::string& text) { return ".PP\n.RS 4\n.nf\n" + roff(text) + "\n.fi\n.RE\n"; }

constexpr Machine k_one{"A100 SXM4 80GB", 1, 1}, k_node{"A100 SXM4 80GB", 8, 1}, k_nodes{"H100 SXM5 80GB", 8, 8};

std::string one_gpu() {
  const plan::Question question = ask("llama-3.2-1b", k_one);
  const plan::MemoryFacts facts = plan::memory_facts(question.training);
  const plan::Memory memory = plan::memory_of(question.training, facts, {});
  const double n = facts.count.total;
  std::string text = paragraph(
      "A model with N parameters needs far more than its weights. In mixed precision with AdamW a GPU keeps " +
      formatted("%.0f", facts.bytes.weight) + " bytes of weights, " + formatted("%.0f", facts.bytes.grad) +
      " of gradients and " + formatted("%.0f", facts.bytes.optimizer) +
      " of optimizer states for each parameter. llama-3.2-1b has " + formatted("%.2f", n / 1e9) +
      " billion: " + gigabytes(memory.states()) + " before the first token.");
  const plan::Question large = ask("llama-3-8b", k_one);
  text += paragraph(
      "Activations come on top. They grow with the tokens of a micro-batch; recomputing them in the backward pass "
      "keeps only the inputs "
      "of each layer, for about a third more arithmetic. One sequence of 4096 tokens of llama-3-8b keeps " +
      gigabytes(plan::memory_of(large.training, {}).activations) + "; with full recomputation " +
      gigabytes(plan::memory_of(large.training, {.recompute = plan::Recompute::full}).activations) + ".");
  return text + paragraph("llama-3.2-1b on one A100 with 80 GB: " + best_of(question) +
                          ". A model of 8 billion does not fit: its states alone are " +
                          gigabytes(plan::memory_of(large.training, {}).states()) + ". An adapter does: with LoRA " +
                          gigabytes(plan::memory_of(ask("llama-3-8b", k_one, plan::Method::lora).training,
                                             {.recompute = plan::Recompute::full})
                                 .peak()) +
                          ", with QLoRA " +
                          gigabytes(plan::memory_of(ask("llama-3-8b", k_one, plan::Method::qlora).training,
                                             {.recompute = plan::Recompute::full})
                                 .peak()) +
                          ".");
}

std::string many_gpus() {
  std::string text = paragraph(
      "Data parallelism gives each GPU a copy of the model and a part of the batch; gradients are averaged each step. "
      "It changes nothing of the model's code and saves no memory. ZeRO and FSDP keep the copies but divide what they "
      "hold: stage 1 the optimizer, stage 2 the gradients too, stage 3 the parameters too.");
  const plan::Question question = ask("llama-3-8b", k_node);
  std::string rows = "stage   states of llama-3-8b on each of 8 GPUs\n";
  for (int stage = 0; stage <= 3; ++stage)
    rows += formatted("%5d", stage) + "   " +
            gigabytes(plan::memory_of(question.training, {.dp = 8, .zero = stage}).states()) + "\n";
  rows.pop_back();
  text += example(rows);
  return text + paragraph("On a node of eight A100: " + best_of(question) + ".");
}

std::string many_nodes() {
  const plan::Question question = ask("llama-3-70b", k_nodes);
  std::string text = paragraph(
      "Larger models are divided inside a layer, too. Tensor parallelism splits the matrices: all GPUs of the group "
      "talk four times in each layer, so the group stays inside a node. Pipeline parallelism gives each group some "
      "layers: it sends little, but stages wait for each other in a bubble of (stages - 1) / micro-batches. Context "
      "parallelism splits long sequences, expert parallelism the experts of a mixture.");
  const plan::Answer answer = plan::search(question);
  text += paragraph("llama-3-70b on eight nodes with eight H100 each, best first:");
  std::string rows;
  for (std::size_t i = 0; i < std::min<std::size_t>(4, answer.best.size()); ++i)
    rows += (i > 0 ? "\n" : "") + told(answer.best[i]);
  return text + example(rows);
}

std::string over_the_internet() {
  const plan::Wan wan{.bytes_per_s = 125e6, .step_s = 10, .params = 1.24e9, .bytes_per_param = 1};
  const plan::WanPlan each = plan::exchange(wan, 1);
  const auto seldom = plan::plan_wan(wan);
  std::string text = paragraph(
      "A WAN is too slow for an exchange in every step: for 1.24 billion parameters of one byte each, an exchange over "
      "1 Gbit/s takes " +
      formatted("%.3g s", each.sync_s) + ", and with steps of 10 s " + formatted("%.0f %%", 100 * each.utilisation) +
      " of the time would be computing. DiLoCo lets each island train alone for H steps and averages then.");
  if (seldom)
    text += paragraph("With H = " + std::to_string(seldom->inner_steps) + " it is " +
                      formatted("%.0f %%", 100 * seldom->utilisation) +
                      ". gridctl plans the least H, up to 500, at which four fifths of the time are computing, and "
                      "refuses what no H can save.");
  return text;
}
}  // namespace

std::string training_page_body() {
  std::string out = ".SH NAME\ngridctl\\-training \\- from one GPU to many hosts: how to choose\n";
  out += section("THE RULE",
                 ".PP\n1. What fits one GPU is trained data\\-parallel, on as many as are worth their price.\n"
                 ".PP\n2. What does not fit is sharded: ZeRO or FSDP within fast links, tensor parallelism inside a "
                 "node, pipelines across nodes.\n"
                 ".PP\n3. Data that must stay where it is, in several places, is for federated training: class: "
                 "federated in gridctl\\-job(5).\n"
                 ".PP\n.B gridctl plan train\napplies the rule with numbers, and says them. Every number on this page "
                 "is computed by it.\n");
  out += section("ONE GPU", one_gpu());
  out += section("SEVERAL GPUS", many_gpus());
  out += section("MANY NODES", many_nodes());
  out += section("OVER THE INTERNET", over_the_internet());
  out += section("FROM PLAN TO RUN",
                 ".PP\nThe strategy stands in configuration files, never in the model's code.\n"
                 ".PP\n.RS 4\n.nf\ngridctl plan train \\-\\-model llama\\-3\\-8b \\-\\-tokens 2B \\-\\-gpu H100:8x2 "
                 "\\-\\-emit fsdp out/\n"
                 "gridctl job submit out/job.yaml\n.fi\n.RE\n"
                 ".PP\nPut your train.py into the folder: it reads its arguments from the files there. Another "
                 "\\-\\-emit or \\-\\-layout writes other files for the same code.\n");
  out +=
      section("HOW FAR TO TRUST IT",
              ".PP\nMemory is planned with 8 % free. Against some hundred published runs the estimates of memory are "
              "mostly within 10 %, those of time within 10 to 15 %. "
              "Runs of your own train the coefficients:\n.B gridctl plan estimate\ntakes rows with calibrate: true.\n");
  return out + section("SEE ALSO", ".PP\ngridctl(1), gridctl\\-job(5), gridctl\\-query(7)\n");
}

}  // namespace gridctl::cmd
