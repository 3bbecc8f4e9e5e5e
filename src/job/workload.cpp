// SPDX-License-Identifier: Apache-2.0
#include "job/workload.hpp"

#include "job/workload_record.hpp"

namespace gridctl::job {

Result<JobClass> parse_class(std::string_view name) { return class_name.parse(name, "a class of jobs"); }
Result<Backend> parse_backend(std::string_view name) { return backend_name.parse(name, "a collective library"); }

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
