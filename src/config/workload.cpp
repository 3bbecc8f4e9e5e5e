// SPDX-License-Identifier: Apache-2.0
// Reads `class`, `backend`, `launcher` and `workload`: the character of the job as work.
#include <algorithm>

#include "base/bytes.hpp"
#include "base/text.hpp"
#include "config/job_parts.hpp"
#include "plan/memory.hpp"
#include "plan/search.hpp"

namespace gridctl::config {

namespace {
using namespace std::chrono_literals;
constexpr double k_params_max = 1e15;
constexpr std::uint64_t k_bytes_max = 1'000'000'000'000'000'000;  // 1 EB: beyond it a typing error
constexpr double k_step_min = 0.001, k_step_max = 86400;          // seconds
constexpr Duration k_work_min = 1s, k_work_max = 24h * 3650;

template <class Word>
Result<void> read_word(const Fields& fields, std::string_view key, Result<Word> (*parse)(std::string_view),
                       const std::vector<std::string>& words, Word& into) {
  const Node* value = fields.find(key);
  if (value == nullptr) return {};
  const auto parsed = parse(value->kind == Node::Kind::scalar ? value->text : "");
  if (parsed) {
    into = *parsed;
    return {};
  }
  const std::vector<std::string> but_last(words.begin(), words.end() - 1);
  Error error = fields.expected(key, join(but_last, ", ") + " or " + words.back());
  if (value->kind == Node::Kind::scalar) error.message += suggestion(value->text, words);
  return error;
}

// Parses "7B", "350M", "1.5T", "6700000000".
Result<double> parse_params(std::string_view text) {
  static constexpr std::string_view k_letters = "kmbt";
  double factor = 1;
  if (!text.empty()) {
    const std::size_t power = k_letters.find(static_cast<char>(text.back() | 0x20));
    for (std::size_t i = 0; power != std::string_view::npos && i <= power; ++i) factor *= 1000;
    if (power != std::string_view::npos) text.remove_suffix(1);
  }
  const auto number = parse_decimal(text, {0, k_params_max});
  if (number && *number * factor >= 1 && *number * factor <= k_params_max) return *number * factor;
  return make_error(Code::usage, "a number of parameters such as 350M, 7B or 1.5T");
}

Result<std::uint64_t> parse_bytes(std::string_view text) {
  const auto size = parse_size(text);
  if (size && *size > 0 && *size <= k_bytes_max) return *size;
  return make_error(Code::usage, "a size such as 500MB or 80GB");
}

// Steps are the only duration that people give in fractions of a second: "1.5s".
Result<Duration> parse_step(std::string_view text) {
  double wanted = -1;
  if (const auto whole = parse_duration(text)) wanted = seconds(*whole);
  if (text.ends_with('s')) text.remove_suffix(1);
  if (const auto number = parse_decimal(text, {0, k_step_max})) wanted = *number;
  if (wanted < k_step_min || wanted > k_step_max)
    return make_error(Code::usage, "a duration from 1ms to 1d such as 320ms, 1.5s or 2m");
  return Duration{std::chrono::milliseconds{static_cast<std::int64_t>(wanted * 1000 + 0.5)}};
}

// Reads `model`: params, memory and step are planned unless given. Known families have their shape; for others, the
// user gives the parameters.
Result<void> read_model(const Fields& fields, job::Workload& into) {
  std::string name;
  TRY(fields.text("model", name));
  if (name.empty()) return {};
  const plan::Model* const model = plan::family(name);
  if (model == nullptr) {
    std::vector<std::string> names;
    for (const plan::Model& one : plan::families()) names.push_back(one.name);
    Error error = fields.expected("model", "a model such as llama-3-8b");
    error.message += suggestion(lower(name), names);
    return error;
  }
  plan::Training training;
  training.model = *model;
  std::string method;
  TRY(fields.text("method", method));
  if (!method.empty()) {
    const auto known = plan::method_of(method);
    if (!known) return fields.expected("method", "full, lora or qlora");
    training.method = *known;
  }
  int sequence = static_cast<int>(std::min<std::int64_t>(model->max_sequence > 0 ? model->max_sequence : 4096, 4096));
  int batch = 0;
  TRY(fields.integer("seq", 1, 10'000'000, sequence));
  TRY(fields.integer("batch", 1, 1'000'000'000, batch));
  training.sequence = sequence;
  training.framework = plan::usual_framework(training.method, 1, training.framework);
  into.trained = {model->name, method, "", "", sequence, batch, into.model_memory_bytes.has_value()};
  TRY(fields.text("framework", into.trained.framework));
  if (!into.trained.framework.empty() && !plan::framework_of(into.trained.framework))
    return fields.expected("framework", "megatron, deepspeed, fsdp, fsdp2, ddp, transformers, torchtune or litgpt");
  TRY(fields.text("layout", into.trained.layout));
  if (!into.trained.layout.empty())
    if (const auto parts = plan::read_wanted(into.trained.layout); !parts)
      return fields.expected("layout", "parts such as dp=8,zero=3 (" + parts.error().message + ")");
  plan::Parallelism parallelism;  // one replica that recomputes: the least that a replica needs, however it is divided
  parallelism.recompute = plan::Recompute::full;
  const plan::MemoryFacts facts = plan::memory_facts(training);
  if (!into.params) into.params = training.method == plan::Method::full ? facts.count.total : facts.trainable;
  if (!into.model_memory_bytes)
    into.model_memory_bytes = static_cast<std::uint64_t>(plan::memory_of(training, facts, parallelism).peak());
  return {};
}

Result<void> read_mapping(const Fields& root, const Node& node, job::Workload& into) {
  TRY_ASSIGN(const Fields fields, Fields::open(root.source(), node, "workload",
                                               {"params", "exchange", "step", "sync_every", "work", "model_memory",
                                                "model", "method", "seq", "batch", "framework", "layout"}));
  TRY(fields.value("params", into.params, parse_params));
  TRY(fields.value("exchange", into.exchange_bytes, parse_bytes));
  TRY(fields.value("step", into.step, parse_step));
  TRY(fields.integer("sync_every", 1, job::k_sync_every_max, into.sync_every));
  TRY(fields.duration("work", k_work_min, k_work_max, into.work));
  TRY(fields.value("model_memory", into.model_memory_bytes, parse_bytes));
  return read_model(fields, into);
}
}  // namespace

Result<void> read_launcher(const Fields& root, job::Launcher& into) {
  return read_word(root, "launcher", &job::parse_launcher, job::launcher_names(), into);
}

Result<void> read_workload(const Fields& root, job::Workload& into) {
  TRY(read_word(root, "class", &job::parse_class, {"auto", "tight", "medium", "loose", "service", "federated"},
                into.job_class));
  TRY(read_word(root, "backend", &job::parse_backend, {"auto", "nccl", "rccl", "oneccl", "gloo", "mpi", "none"},
                into.backend));
  if (const Node* value = root.find("workload")) TRY(read_mapping(root, *value, into));
  return {};
}

}  // namespace gridctl::config
