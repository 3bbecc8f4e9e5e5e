// SPDX-License-Identifier: Apache-2.0
#include "job/workload.hpp"

#include <array>
#include <nlohmann/json.hpp>

#include "job/workload_json.hpp"

namespace gridctl::job {

using nlohmann::json;

namespace {
// In the order of their enums.
constexpr std::array<std::string_view, 6> k_class_names{"auto", "tight", "medium", "loose", "service", "federated"};
constexpr std::array<std::string_view, 7> k_backend_names{"auto", "nccl", "rccl", "oneccl", "gloo", "mpi", "none"};

template <class Word, std::size_t count>
Result<Word> word_of(const std::array<std::string_view, count>& names, std::string_view name, const char* what) {
  for (std::size_t i = 0; i < count; ++i)
    if (names[i] == name) return static_cast<Word>(i);
  return make_error(Code::usage, "'" + std::string(name.substr(0, 40)) + "' is not a " + what);
}

json maybe(const auto& value) { return value ? json(*value) : json(nullptr); }

json maybe_ms(const std::optional<Duration>& value) {
  return value ? json(std::chrono::duration_cast<std::chrono::milliseconds>(*value).count()) : json(nullptr);
}

template <class T>
std::optional<T> said(const json& in, const char* key) {
  const auto found = in.find(key);
  return found == in.end() || found->is_null() ? std::nullopt : std::optional<T>(found->get<T>());
}

std::optional<Duration> said_ms(const json& in, const char* key) {
  const auto ms = said<std::int64_t>(in, key);
  return ms ? std::optional<Duration>(std::chrono::milliseconds{*ms}) : std::nullopt;
}
}  // namespace

std::string_view class_name(JobClass job_class) { return k_class_names.at(static_cast<std::size_t>(job_class)); }

Result<JobClass> parse_class(std::string_view name) { return word_of<JobClass>(k_class_names, name, "class of jobs"); }

std::string_view backend_name(Backend backend) { return k_backend_names.at(static_cast<std::size_t>(backend)); }

Result<Backend> parse_backend(std::string_view name) {
  return word_of<Backend>(k_backend_names, name, "collective library");
}

std::optional<double> exchange_bytes(const Workload& workload) {
  if (workload.exchange_bytes) return static_cast<double>(*workload.exchange_bytes);
  if (workload.params) return *workload.params * k_bytes_per_gradient;
  return std::nullopt;
}

namespace {
json trained_json(const Trained& trained) {
  if (trained.model.empty()) return nullptr;
  return {{"model", trained.model},   {"method", trained.method},     {"framework", trained.framework},
          {"layout", trained.layout}, {"sequence", trained.sequence}, {"batch", trained.batch},
          {"memory_said", trained.memory_said}};
}
Trained trained_of(const json& in) {
  Trained out;
  const auto found = in.find("trained");
  if (found == in.end() || found->is_null()) return out;
  out.model = found->value("model", "");
  out.method = found->value("method", "");
  out.framework = found->value("framework", "");
  out.layout = found->value("layout", "");
  out.sequence = found->value("sequence", out.sequence);
  out.batch = found->value("batch", out.batch);
  out.memory_said = found->value("memory_said", false);
  return out;
}
json predicted_json(const std::optional<Predicted>& predicted) {
  if (!predicted) return nullptr;
  return {{"layout", predicted->layout}, {"gpu", predicted->gpu},
          {"gpus", predicted->gpus},     {"step_s", predicted->step_s},
          {"peak_bytes", predicted->peak_bytes}, {"tokens_per_s", predicted->tokens_per_s},
          {"row", predicted->row}};
}
std::optional<Predicted> predicted_of(const json& in) {
  const auto found = in.find("predicted");
  if (found == in.end() || found->is_null()) return std::nullopt;
  Predicted out;
  out.layout = found->value("layout", "");
  out.gpu = found->value("gpu", "");
  out.gpus = found->value("gpus", 1);
  out.step_s = found->value("step_s", 0.0);
  out.tokens_per_s = found->value("tokens_per_s", 0.0);
  out.peak_bytes = found->value("peak_bytes", 0.0);
  out.row = found->value("row", "");
  return out;
}
}  // namespace

json workload_json(const Workload& workload) {
  return {{"class", class_name(workload.job_class)},
          {"backend", backend_name(workload.backend)},
          {"tasks", workload.tasks},
          {"params", maybe(workload.params)},
          {"exchange_bytes", maybe(workload.exchange_bytes)},
          {"step_ms", maybe_ms(workload.step)},
          {"sync_every", workload.sync_every},
          {"work_ms", maybe_ms(workload.work)},
          {"model_memory_bytes", maybe(workload.model_memory_bytes)},
          {"trained", trained_json(workload.trained)},
          {"predicted", predicted_json(workload.predicted)}};
}

Result<Workload> workload_of(const json& in) {
  Workload workload;
  TRY_ASSIGN(workload.job_class, parse_class(in.value("class", "auto")));
  TRY_ASSIGN(workload.backend, parse_backend(in.value("backend", "auto")));
  workload.tasks = in.value("tasks", 0);
  workload.params = said<double>(in, "params");
  workload.exchange_bytes = said<std::uint64_t>(in, "exchange_bytes");
  workload.step = said_ms(in, "step_ms");
  workload.sync_every = in.value("sync_every", workload.sync_every);
  workload.work = said_ms(in, "work_ms");
  workload.model_memory_bytes = said<std::uint64_t>(in, "model_memory_bytes");
  workload.trained = trained_of(in);
  workload.predicted = predicted_of(in);
  return workload;
}

}  // namespace gridctl::job
