// SPDX-License-Identifier: Apache-2.0
#include "plan/parallelism.hpp"

#include <algorithm>
#include <utility>

#include "base/text.hpp"

namespace gridctl::plan {

namespace {
template <class Value>
using Words = std::vector<std::pair<std::string_view, Value>>;

const Words<Precision>& precisions() {
  static const Words<Precision> words{{"fp32", Precision::fp32}, {"fp16", Precision::fp16}, {"bf16", Precision::bf16},
                                      {"fp8", Precision::fp8},   {"fp4", Precision::fp4},   {"mxfp8", Precision::fp8},
                                      {"nvfp4", Precision::fp4}};
  return words;
}
const Words<Recompute>& recomputes() {
  static const Words<Recompute> words{
      {"none", Recompute::none}, {"selective", Recompute::selective}, {"full", Recompute::full}};
  return words;
}
const Words<Framework>& frameworks() {
  static const Words<Framework> words{
      {"megatron", Framework::megatron},   {"megatron-deepspeed", Framework::megatron_deepspeed},
      {"deepspeed", Framework::deepspeed}, {"fsdp", Framework::fsdp},
      {"fsdp2", Framework::fsdp2},         {"torchtune", Framework::torchtune},
      {"litgpt", Framework::litgpt},       {"ddp", Framework::ddp},
      {"transformers", Framework::transformers}};
  return words;
}
const Words<Method>& methods() {
  static const Words<Method> words{{"full", Method::full}, {"lora", Method::lora}, {"qlora", Method::qlora}};
  return words;
}
const Words<Offload>& offloads() {
  static const Words<Offload> words{{"none", Offload::none}, {"optimizer", Offload::optimizer}, {"all", Offload::all}, {"activations", Offload::activations}};
  return words;
}

template <class Value>
std::string_view word_of(const Words<Value>& words, Value value) {
  for (const auto& [word, meaning] : words)
    if (meaning == value) return word;
  return "";
}
template <class Value>
std::optional<Value> value_of(const Words<Value>& words, std::string_view text) {
  const std::string wanted = lower(text);
  for (const auto& [word, meaning] : words)
    if (word == wanted) return meaning;
  return std::nullopt;
}
std::string divides(std::string_view what, std::int64_t whole, std::string_view by, std::int64_t part) {
  return std::string(what) + " " + std::to_string(whole) + " cannot be divided by " + std::string(by) + "=" +
         std::to_string(part);
}
}  // namespace

std::string_view text_of(Precision value) { return word_of(precisions(), value); }
std::string_view text_of(Recompute value) { return word_of(recomputes(), value); }
std::string_view text_of(Framework value) { return word_of(frameworks(), value); }
std::string_view text_of(Method value) { return word_of(methods(), value); }
std::string_view text_of(Offload value) { return word_of(offloads(), value); }
std::optional<Precision> precision_of(std::string_view text) { return value_of(precisions(), text); }
std::optional<Recompute> recompute_of(std::string_view text) { return value_of(recomputes(), text); }
std::optional<Framework> framework_of(std::string_view text) { return value_of(frameworks(), text); }
std::optional<Method> method_of(std::string_view text) { return value_of(methods(), text); }
std::optional<Offload> offload_of(std::string_view text) { return value_of(offloads(), text); }

std::optional<int> sharding_of(std::string_view text) {
  static const Words<int> words{{"none", 0},  {"ddp", 0},    {"0", 0},      {"1", 1},      {"2", 2},
                                {"3", 3},     {"fsdp", 3},   {"zero0", 0},  {"zero1", 1},  {"zero2", 2},
                                {"zero3", 3}, {"zero-0", 0}, {"zero-1", 1}, {"zero-2", 2}, {"zero-3", 3}};
  return value_of(words, text);
}

std::string text_of(const Parallelism& parallelism) {
  std::string out;
  const auto add = [&](std::string_view name, int degree, int usual) {
    if (degree != usual) out += (out.empty() ? "" : " ") + std::string(name) + "=" + std::to_string(degree);
  };
  add("dp", parallelism.dp, 0);
  add("tp", parallelism.tp, 1);
  add("pp", parallelism.pp, 1);
  add("cp", parallelism.cp, 1);
  add("ep", parallelism.ep, 1);
  add("zero", parallelism.zero, 0);
  add("vpp", parallelism.virtual_stages, 1);
  add("mb", parallelism.micro_batch, 0);
  if (parallelism.recompute != Recompute::none) out += " recompute=" + std::string(text_of(parallelism.recompute));
  if (parallelism.offload != Offload::none) out += " offload=" + std::string(text_of(parallelism.offload));
  return out;
}

std::optional<double> optimizer_bytes(std::string_view name) {
  static const Words<double> words{{"adamw", 8},      {"adam", 8}, {"adamw-8bit", 2},   {"adam-8bit", 2},
                                   {"adamw-bf16", 4}, {"sgd", 0},  {"sgd-momentum", 4}, {"lion", 4},
                                   {"adafactor", 4},  {"muon", 4}};
  return value_of(words, name);
}

StateBytes usual_bytes(const Training& training) {
  StateBytes out = training.bytes;
  const bool single = training.precision == Precision::fp32;
  // Half-precision weights need a copy in fp32 for the optimizer; FSDP2 keeps the fp32 weights themselves, sharded, and
  // casts them for each use; torchtune and litgpt train in bf16 throughout.
  const bool keeps_fp32 = training.framework == Framework::fsdp2 || training.framework == Framework::ddp;
  const bool half_throughout = training.framework == Framework::torchtune || training.framework == Framework::litgpt;
  const bool wide_grads = training.framework == Framework::megatron && training.precision != Precision::fp8 &&
                          training.precision != Precision::fp4;
  if (out.weight < 0) out.weight = single || keeps_fp32 ? 4 : 2;
  if (out.grad < 0) out.grad = single || keeps_fp32 || wide_grads ? 4 : 2;
  if (out.optimizer < 0) {
    double state = optimizer_bytes(training.optimizer).value_or(8);
    if (half_throughout) state = std::min(state, 4.0);
    out.optimizer = state + (single || keeps_fp32 || half_throughout ? 0 : 4);
  }
  return out;
}

std::int64_t micro_batches(const Training& training, const Parallelism& parallelism) {
  const std::int64_t each = static_cast<std::int64_t>(parallelism.dp) * parallelism.micro_batch;
  return std::max<std::int64_t>(1, (training.batch + each - 1) / each);
}

Stages stages_of(int layers, int pp) {
  const double even = static_cast<double>(layers) / pp;
  if (pp == 1) return {even, even, even};
  if (layers % pp != 0 && (layers + 2) % pp == 0) {
    const double slots = static_cast<double>(layers + 2) / pp;
    return {pp > 2 ? slots : slots - 1, slots - 1, slots - 1};
  }
  const double most = layers % pp == 0 ? even : static_cast<double>(layers / pp + 1);
  return {most, most, most};
}

Framework usual_framework(Method method, int gpus, Framework of_full) {
  if (method == Method::full) return of_full;
  return gpus == 1 ? Framework::ddp : Framework::transformers;
}

bool divides_models(Framework framework) {
  return framework == Framework::megatron || framework == Framework::megatron_deepspeed || framework == Framework::fsdp2;
}

std::vector<int> sharding_stages(Framework framework) {
  if (framework == Framework::ddp) return {0};
  if (framework == Framework::fsdp || framework == Framework::transformers) return {0, 2, 3};
  return {0, 1, 2, 3};
}

bool recomputes_parts(Framework framework) {
  return divides_models(framework) || framework == Framework::torchtune;
}

bool shards_in_pipelines(Framework framework) { return framework == Framework::fsdp2; }

std::vector<std::string> faults_of(const Training& training, const Parallelism& parallelism) {
  std::vector<std::string> out;
  const Model& model = training.model;
  for (const auto& [name, degree] : {std::pair{"dp", parallelism.dp},
                                     {"tp", parallelism.tp},
                                     {"pp", parallelism.pp},
                                     {"cp", parallelism.cp},
                                     {"ep", parallelism.ep},
                                     {"micro-batch", parallelism.micro_batch}})
    if (degree < 1) out.push_back(std::string(name) + " must be at least 1");
  if (!out.empty()) return out;
  if (model.heads > 0 && model.heads % parallelism.tp != 0)
    out.push_back(divides("number of heads", model.heads, "tp", parallelism.tp));
  if (model.hidden > 0 && model.hidden % parallelism.tp != 0)
    out.push_back(divides("hidden size", model.hidden, "tp", parallelism.tp));
  if (model.layers > 0 && parallelism.pp > model.layers)
    out.push_back("pp=" + std::to_string(parallelism.pp) + " is more than the " + std::to_string(model.layers) + " layers");
  if (training.sequence % parallelism.cp != 0) out.push_back(divides("sequence", training.sequence, "cp", parallelism.cp));
  if (parallelism.ep > 1 && !model.mixture())
    out.push_back("ep=" + std::to_string(parallelism.ep) + ", but the model has no experts");
  if (parallelism.ep > 1 && model.mixture() && model.experts % parallelism.ep != 0)
    out.push_back(divides("number of experts", model.experts, "ep", parallelism.ep));
  if (parallelism.ep > 1 && (parallelism.dp * parallelism.cp) % parallelism.ep != 0)
    out.push_back(divides("dp times cp", parallelism.dp * parallelism.cp, "ep", parallelism.ep));
  if (training.batch < parallelism.dp)
    out.push_back("a batch of " + std::to_string(training.batch) + " gives dp=" + std::to_string(parallelism.dp) +
                  " replicas less than one sequence each");
  else if (training.batch % (static_cast<std::int64_t>(parallelism.dp) * parallelism.micro_batch) != 0)
    out.push_back(
        divides("batch", training.batch, "dp*micro_batch", static_cast<std::int64_t>(parallelism.dp) * parallelism.micro_batch));
  if (parallelism.zero == 3 && parallelism.pp > 1 && !shards_in_pipelines(training.framework))
    out.push_back("zero=3 with pp=" + std::to_string(parallelism.pp) + " would gather the parameters for every micro-batch");
  if (parallelism.zero == 2 && parallelism.pp > 1)
    out.push_back("zero=2 with pp=" + std::to_string(parallelism.pp) + ": gradients are kept over the micro-batches");
  if (parallelism.recompute == Recompute::selective && !recomputes_parts(training.framework))
    out.push_back("recompute=selective, but " + std::string(text_of(training.framework)) +
                  " recomputes complete layers or nothing");
  if (parallelism.virtual_stages > 1 && parallelism.pp == 1) out.push_back("virtual stages need pp > 1");
  if (parallelism.virtual_stages > 1 && model.layers > 0 && model.layers < parallelism.pp * parallelism.virtual_stages)
    out.push_back("not enough layers for " + std::to_string(parallelism.pp * parallelism.virtual_stages) + " virtual stages");
  return out;
}

bool possible(const Training& training, const Parallelism& parallelism) {
  const Model& model = training.model;
  const std::int64_t each = static_cast<std::int64_t>(parallelism.dp) * parallelism.micro_batch;
  return (model.heads == 0 || model.heads % parallelism.tp == 0) && model.hidden % parallelism.tp == 0 &&
         parallelism.pp * parallelism.virtual_stages <= std::max(model.layers, 1) && training.sequence % parallelism.cp == 0 &&
         training.batch % each == 0 && training.batch >= each && (parallelism.zero < 2 || parallelism.pp == 1 || (parallelism.zero == 3 && shards_in_pipelines(training.framework))) &&
         (parallelism.recompute != Recompute::selective || recomputes_parts(training.framework)) &&
         (parallelism.virtual_stages == 1 || parallelism.pp > 1) &&
         (parallelism.ep == 1 ||
          (model.mixture() && model.experts % parallelism.ep == 0 && (parallelism.dp * parallelism.cp) % parallelism.ep == 0));
}

}  // namespace gridctl::plan
