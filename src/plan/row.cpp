// SPDX-License-Identifier: Apache-2.0
// Reads a line of an estimate: the columns of a table of runs, each optional.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/json_fields.hpp"
#include "base/text.hpp"
#include "plan/estimate.hpp"

namespace gridctl::plan {

namespace {
using Json = nlohmann::json;
constexpr std::int64_t k_degree_max = 1'000'000, k_layers_max = 100'000, k_width_max = 1'000'000;
constexpr std::int64_t k_tokens_max = 1'000'000'000'000;
constexpr double k_params_max = 1e18;

// Returns the columns that are read, and those of published tables that add nothing.
const std::vector<std::string>& known_columns() {
  static const std::vector<std::string> names{
      "arch", "ffn", "kv_heads", "gated_mlp", "tied_embeddings", "learned_positions", "experts", "experts_per_token",
      "shared_experts", "expert_ffn", "head_dim", "biases", "sharding", "precision", "act_recompute",
      "sequence_parallel", "flash_attention", "dropout", "fused_mlp", "autocast", "optimizer", "framework",
      "weight_bytes", "grad_bytes", "optimizer_bytes", "extra_bytes_per_param", "gpu", "gpu_memory_gb", "gpu_tflops",
      "group", "calibrate", "step_time_s", "peak_mem_gb", "model", "params", "layers", "hidden", "heads", "vocab",
      "seq_len", "n_gpus", "gpus_per_node", "interconnect", "dp", "tp", "pp", "cp", "ep", "vpp", "micro_batch",
      "global_batch", "method", "trainable_params", "offload", "dataset", "run_id", "tokens_per_s_per_gpu",
      "tflops_per_gpu", "flop_convention", "mfu_pct", "hfu_pct", "mem_unit", "oom", "source", "notes"};
  return names;
}

template <class Value>
Value word_or(const JsonFields& fields, std::string_view name, std::optional<Value> (*meaning)(std::string_view),
              Value usual, std::string_view choices) {
  const std::string text = fields.text(name);
  if (text.empty()) return usual;
  if (const std::optional<Value> value = meaning(text)) return *value;
  throw BadField(std::string(name) + " '" + sanitize(text, 60) + "' is unknown: expected " + std::string(choices));
}

int degree(const JsonFields& fields, std::string_view name, int usual) {
  return fields.small<int>(name, k_degree_max, 1).value_or(usual);
}

void read_shape(const JsonFields& fields, Row& row) {
  Model& m = row.training.model;
  const std::string arch = fields.text("arch");
  if (!arch.empty() && arch != "gpt" && arch != "llama" && arch != "moe")
    throw BadField("arch '" + sanitize(arch, 60) + "' is unknown: expected gpt, llama or moe");
  const std::string name = fields.text("model");
  if (const Model* known = family(name); known != nullptr && !fields.has("layers")) m = *known;
  m.name = name;
  m.params_said = fields.real("params", 1, k_params_max).value_or(0);
  m.layers = fields.small<int>("layers", k_layers_max, 1).value_or(m.layers);
  m.hidden = fields.small<int>("hidden", k_width_max, 1).value_or(m.hidden);
  m.heads = fields.small<int>("heads", k_width_max, 1)
                .value_or(m.heads > 0 ? m.heads : std::max(m.hidden / 128, m.hidden > 0 ? 1 : 0));
  if (arch == "moe" && !fields.has("experts") && m.experts == 0) throw BadField("arch is moe, but experts is missing");
  const bool gpt = arch == "gpt" || (arch.empty() && m.biases);
  if (!arch.empty()) {
    m.gated_mlp = m.tied_embeddings = !gpt;
    m.biases = m.learned_positions = gpt;
    m.tied_embeddings = gpt;
  }
  m.kv_heads = fields.small<int>("kv_heads", k_width_max, 1).value_or(m.kv_heads > 0 ? m.kv_heads : m.heads);
  m.gated_mlp = fields.maybe_flag("gated_mlp").value_or(m.gated_mlp);
  m.tied_embeddings = fields.maybe_flag("tied_embeddings").value_or(m.tied_embeddings);
  m.learned_positions = fields.maybe_flag("learned_positions").value_or(m.learned_positions);
  m.biases = fields.maybe_flag("biases").value_or(m.biases);
  m.head_dim = fields.small<int>("head_dim", k_width_max, 1).value_or(m.head_dim);
  m.ffn = fields.small<int>("ffn", 10 * k_width_max, 1)
              .value_or(m.ffn > 0     ? m.ffn
                        : m.gated_mlp ? m.hidden * 8 / 3
                                      : 4 * m.hidden);
  m.vocab = fields.whole("vocab", 1, k_tokens_max).value_or(m.vocab > 0 ? m.vocab : gpt ? 51200 : 32000);
  m.experts = fields.small<int>("experts", k_width_max).value_or(m.experts);
  m.experts_per_token = fields.small<int>("experts_per_token", k_width_max)
                            .value_or(m.experts > 1 && m.experts_per_token == 0 ? 2 : m.experts_per_token);
  m.shared_experts = fields.small<int>("shared_experts", k_width_max).value_or(m.shared_experts);
  m.expert_ffn = fields.small<int>("expert_ffn", k_width_max, 1).value_or(m.expert_ffn);
}

void read_training(const JsonFields& fields, Row& row) {
  Training& t = row.training;
  t.method = word_or(fields, "method", method_of, Method::full, "full, lora or qlora");
  double gpus = 1;
  for (const char* name : {"dp", "tp", "pp", "cp"}) gpus *= degree(fields, name, 1);
  gpus = degree(fields, "n_gpus", static_cast<int>(std::min(gpus, 1e6)));
  const Framework large = t.model.known_shape() ? Framework::megatron : Framework::deepspeed;
  t.framework =
      word_or(fields, "framework", framework_of,
              usual_framework(t.method, static_cast<int>(gpus), large),
              "megatron, megatron-deepspeed, deepspeed, fsdp, fsdp2, torchtune, litgpt, ddp or transformers");
  const bool said_precision = fields.has("precision");
  t.precision = word_or(fields, "precision", precision_of, Precision::bf16, "fp32, fp16, bf16 or fp8");
  if (!said_precision && !fields.has("framework")) t.precision = Precision::fp16;
  t.trainable = fields.real("trainable_params", 0, k_params_max).value_or(0);
  t.optimizer = fields.text("optimizer").empty() ? "adamw" : lower(fields.text("optimizer"));
  if (!optimizer_bytes(t.optimizer)) throw BadField("optimizer '" + sanitize(t.optimizer, 60) + "' is unknown");
  const bool old =
      !t.model.gated_mlp && (t.framework == Framework::megatron || t.framework == Framework::megatron_deepspeed ||
                             t.framework == Framework::deepspeed);
  t.flash_attention = fields.maybe_flag("flash_attention").value_or(!old);
  t.dropout = fields.maybe_flag("dropout").value_or(!t.flash_attention && !t.model.gated_mlp);
  t.bytes.weight = fields.real("weight_bytes", 0, 16).value_or(-1);
  t.bytes.grad = fields.real("grad_bytes", 0, 16).value_or(-1);
  t.bytes.optimizer = fields.real("optimizer_bytes", 0, 32).value_or(-1);
  // Eager layers under autocast keep fp32 weights; otherwise weights and states have the precision of the matrices.
  if (const auto cast = fields.maybe_flag("autocast"); cast && t.precision != Precision::fp32) {
    if (t.bytes.weight < 0) t.bytes.weight = *cast ? 4 : 2;
    if (t.bytes.grad < 0) t.bytes.grad = *cast ? 4 : 2;
    if (t.bytes.optimizer < 0) t.bytes.optimizer = *optimizer_bytes(t.optimizer) / (*cast ? 1 : 2);
  }
  t.fused_mlp = fields.maybe_flag("fused_mlp").value_or(false);
  t.bytes.extra = fields.real("extra_bytes_per_param", 0, 32).value_or(0);
  t.sequence = fields.whole("seq_len", 1, k_tokens_max).value_or(2048);
  t.model.positions = t.model.learned_positions ? t.sequence : 0;
}

void read_parallelism(const JsonFields& fields, Row& row) {
  Parallelism& l = row.parallelism;
  Training& t = row.training;
  l.tp = degree(fields, "tp", 1);
  l.pp = degree(fields, "pp", 1);
  l.cp = degree(fields, "cp", 1);
  l.ep = degree(fields, "ep", 1);
  const int replica = l.tp * l.pp * l.cp;
  const int gpus = degree(fields, "n_gpus", 0);
  l.dp = degree(fields, "dp", gpus > 0 ? std::max(gpus / replica, 1) : 1);
  if (gpus > 0 && gpus != l.gpus())
    throw BadField("n_gpus " + std::to_string(gpus) + " is not dp*tp*pp*cp = " + std::to_string(l.gpus()));
  l.zero = word_or(fields, "sharding", sharding_of, 0, "none, zero1, zero2 or zero3");
  l.micro_batch = degree(fields, "micro_batch", 1);
  row.recompute_said = fields.has("act_recompute");
  l.recompute = word_or(fields, "act_recompute", recompute_of, Recompute::none, "none, selective or full");
  l.sequence_parallel =
      fields.maybe_flag("sequence_parallel").value_or(l.tp > 1 && (t.flash_attention || t.model.gated_mlp));
  l.offload = word_or(fields, "offload", offload_of, Offload::none, "none, optimizer, all or activations");
  const auto batch = fields.whole("global_batch", 1, k_tokens_max);
  row.batch_said = batch.has_value();
  t.batch = batch.value_or(static_cast<std::int64_t>(l.dp) * l.micro_batch * std::max(1, l.pp > 1 ? 8 * l.pp : 1));
  // Today's Megatron interleaves if the bubble would be large, unless the row says otherwise.
  const bool wide_bubble = l.pp > 1 && t.batch / (static_cast<std::int64_t>(l.dp) * l.micro_batch) < 4LL * l.pp;
  const int each = t.model.layers / l.pp;
  row.stages_said = fields.has("vpp");
  l.virtual_stages =
      degree(fields, "vpp",
             t.framework == Framework::megatron && t.model.gated_mlp && wide_bubble ? std::clamp(each, 1, 4) : 1);
  // torch's pipeline schedules get the local batch, and divide it themselves.
  if (t.framework == Framework::fsdp2 && l.pp > 1 && t.batch == static_cast<std::int64_t>(l.dp) * l.micro_batch)
    l.micro_batch = 1;
}

void read_machines(const JsonFields& fields, Row& row) {
  const std::string name = fields.text("gpu");
  const auto memory = fields.real("gpu_memory_gb", 0.01, 1e6), tflops = fields.real("gpu_tflops", 1e-6, 1e6);
  const sched::GpuModel* model = nullptr;
  Device device;
  if (!name.empty()) {
    Result<const sched::GpuModel*> found = gpu_named(name);
    if (!found && !(memory && tflops)) throw BadField(found.error().message);
    if (found) device = device_of(*(model = *found));
  } else if (!(memory && tflops)) {
    device = device_of(*(model = *gpu_named("A100 SXM4 80GB")));
    if (memory || tflops) throw BadField("give gpu_memory_gb and gpu_tflops together");
  }
  if (memory && tflops) {
    const Device given = device_of_figures(*memory, *tflops);
    if (model == nullptr) device = given;
    device.memory = given.memory;
    device.flops_bf16 = given.flops_bf16;
  } else if (memory) device.memory = *memory * k_giga;
  const int per_node = degree(fields, "gpus_per_node", std::min(8, row.parallelism.gpus()));
  row.cluster = cluster_of(device, model, per_node);
  if (const auto link = inter_link_of(fields.text("interconnect"), per_node)) row.cluster.inter_link = *link;
}

void check_row(const Row& row, const JsonFields& fields) {
  if (!row.training.model.known_shape() && row.training.model.params_said <= 0)
    throw BadField("give params, or layers and hidden");
  if (!row.training.model.known_shape() && (fields.has("layers") || fields.has("hidden")))
    throw BadField("give layers and hidden together");
  for (const std::string& fault : faults_of(row.training.model)) throw BadField(fault);
  // Published tables have batches that do not divide, and ZeRO in pipelines: those are rounded, not refused.
  const Parallelism& l = row.parallelism;
  const Model& m = row.training.model;
  const auto no = [](std::string text) { throw BadField(std::move(text)); };
  if (m.known_shape() && m.heads % l.tp != 0)
    no(std::to_string(m.heads) + " heads cannot be divided by tp=" + std::to_string(l.tp));
  if (m.known_shape() && l.pp > m.layers)
    no("pp=" + std::to_string(l.pp) + " is more than the " + std::to_string(m.layers) + " layers");
  if (row.training.sequence % l.cp != 0)
    no("seq_len " + std::to_string(row.training.sequence) + " cannot be divided by cp=" + std::to_string(l.cp));
  if (l.ep > 1 && !m.mixture()) no("ep=" + std::to_string(l.ep) + ", but the model has no experts");
  if (l.ep > 1 && m.experts % l.ep != 0)
    no(std::to_string(m.experts) + " experts cannot be divided by ep=" + std::to_string(l.ep));
  if (row.batch_said && row.training.batch < l.dp)
    no("global_batch " + std::to_string(row.training.batch) + " is less than dp=" + std::to_string(l.dp));
  if (m.max_sequence > 0 && row.training.sequence > m.max_sequence)
    no("seq_len " + std::to_string(row.training.sequence) + " is longer than the " + std::to_string(m.max_sequence) +
       " that " + m.name + " knows");
}

// Chooses the recomputation of the framework's own recipes, otherwise the least that fits.
void choose_recompute(Row& row) {
  if (row.training.framework == Framework::torchtune) {
    row.parallelism.recompute = Recompute::full;  // enable_activation_checkpointing is true in its configurations
    return;
  }
  const MemoryFacts facts = memory_facts(row.training);
  for (const Recompute one : {Recompute::none, Recompute::selective, Recompute::full}) {
    row.parallelism.recompute = one;
    if (memory_of(row.training, facts, row.parallelism).peak() <= row.cluster.device.memory) return;
  }
}

// Removes the empty cells of a table, which count as absent.
Json cleaned(const Json& object) {
  Json out = Json::object();
  for (const auto& [name, value] : object.items()) {
    if (!value.is_string()) {
      // Accepts 405e9 and 8.0 as whole numbers.
      if (value.is_number_float() && name != "params" && std::floor(value.get<double>()) == value.get<double>() &&
          std::abs(value.get<double>()) < 9e15)
        out[name] = static_cast<std::int64_t>(value.get<double>());
      else out[name] = value;
      continue;
    }
    const std::string text(trim(value.get<std::string>()));
    if (text.empty() || text == "n/a" || text == "not stated") continue;
    out[name] = text;
  }
  return out;
}
}  // namespace

Result<Row> read_row(std::string_view line) {
  if (line.size() > k_row_bytes_max) return make_error(Code::usage, "the line is longer than 64 KiB");
  const Json raw = Json::parse(line, nullptr, false);
  if (raw.is_discarded()) return make_error(Code::usage, "not JSON");
  if (!raw.is_object()) return make_error(Code::usage, "not a JSON object");
  const Json object = cleaned(raw);
  Row row;
  try {
    const JsonFields fields(object);
    for (const auto& [name, value] : object.items())
      if (const auto& known = known_columns(); std::ranges::find(known, name) == known.end()) {
        const std::string near = nearest(name, known);
        row.notes.push_back("column '" + sanitize(name, 60) + "' is unknown and was ignored" +
                            (near.empty() ? "" : "; did you mean '" + near + "'?"));
      }
    read_shape(fields, row);
    read_training(fields, row);
    read_parallelism(fields, row);
    read_machines(fields, row);
    check_row(row, fields);
    row.calibrate = fields.flag("calibrate");
    row.measured_seconds = fields.real("step_time_s", 1e-9, 1e9);
    if (const auto peak = fields.real("peak_mem_gb", 1e-9, 1e9)) row.measured_peak = *peak * k_giga;
    if (row.calibrate && !row.measured_seconds && !row.measured_peak)
      throw BadField("calibrate needs step_time_s or peak_mem_gb");
    row.group = fields.text("group");
    row.time_known = row.memory_known = row.training.model.known_shape();
    if (!row.recompute_said && row.memory_known) choose_recompute(row);
  } catch (const BadField& bad) {
    return make_error(Code::usage, bad.what());
  }
  return row;
}

}  // namespace gridctl::plan
