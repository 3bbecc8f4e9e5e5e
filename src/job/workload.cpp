// SPDX-License-Identifier: Apache-2.0
#include "job/workload.hpp"

#include "base/names.hpp"
#include "job/workload_record.hpp"

namespace gridctl::job {

namespace {
constexpr Names<JobClass, JobClass::federated> k_class_names{"auto",  "tight",   "medium",
                                                             "loose", "service", "federated"};
constexpr Names<Backend, Backend::none> k_backend_names{"auto", "nccl", "rccl", "oneccl", "gloo", "mpi", "none"};

template <class Word>
Result<Word> known(std::optional<Word> word, std::string_view name, const char* what) {
  if (word) return *word;
  return make_error(Code::usage, "'" + std::string(name.substr(0, 40)) + "' is not a " + what);
}
}  // namespace

std::string_view class_name(JobClass job_class) { return k_class_names(job_class); }
Result<JobClass> parse_class(std::string_view name) { return known(k_class_names.find(name), name, "class of jobs"); }

std::string_view backend_name(Backend backend) { return k_backend_names(backend); }
Result<Backend> parse_backend(std::string_view name) {
  return known(k_backend_names.find(name), name, "collective library");
}

std::optional<double> exchange_bytes(const Workload& workload) {
  if (workload.exchange_bytes) return static_cast<double>(*workload.exchange_bytes);
  if (workload.params) return *workload.params * k_bytes_per_gradient;
  return std::nullopt;
}

template <class R>
void fields(R& r, Of<R, Trained>& m) {
  r("model", m.model)("method", m.method)("framework", m.framework)("layout", m.layout)("sequence", m.sequence);
  r("batch", m.batch)("memory_said", m.memory_said);
}

template <class R>
void fields(R& r, Of<R, Predicted>& m) {
  r("layout", m.layout)("gpu", m.gpu)("gpus", m.gpus)("step_s", m.step_s)("peak_bytes", m.peak_bytes);
  r("tokens_per_s", m.tokens_per_s)("row", m.row);
}

template <class R>
void fields(R& r, Of<R, Workload>& m) {
  r.word("class", m.job_class, class_name, parse_class).word("backend", m.backend, backend_name, parse_backend);
  r("tasks", m.tasks).null_or("params", m.params).null_or("exchange_bytes", m.exchange_bytes);
  r.null_or("step_ms", m.step)("sync_every", m.sync_every).null_or("work_ms", m.work);
  r.null_or("model_memory_bytes", m.model_memory_bytes)("trained", m.trained).null_or("predicted", m.predicted);
}
GRIDCTL_FIELDS(Workload)

}  // namespace gridctl::job
