// SPDX-License-Identifier: Apache-2.0
#include "job/spec.hpp"

#include "base/names.hpp"
#include "base/record.hpp"

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

namespace {
constexpr int k_format = 4;  // raised when an older gridctl would misread a Spec
constexpr int k_format_with_service = 4, k_format_with_tasks = 3, k_format_with_variants = 2;
constexpr int k_format_without_variants = 1;

using Interval = CheckpointPolicy::Interval;
constexpr Names<Interval, Interval::off> interval_name{"auto", "fixed", "off"};

// Stores an enumeration with two values as a flag: true for the second.
template <class R, class E>
void add_choice(R& r, const char* key, E& choice, std::remove_const_t<E> first, std::remove_const_t<E> second) {
  bool is_second = choice == second;
  r(key, is_second);
  if constexpr (R::reads) choice = is_second ? second : first;
}
}  // namespace

Result<Affinity> parse_affinity(std::string_view name) { return affinity_name.parse(name, "an affinity"); }

template <class R>
void fields(R& r, Of<R, GpuRequest>& m) {
  std::optional<std::string> vendor;
  if (m.vendor) vendor = vendor_name(*m.vendor);
  r.null_or("vendor", vendor);
  if constexpr (R::reads)
    if (vendor) {
      const Result<Vendor> known = parse_vendor(*vendor);
      r.check(known.has_value(), "names an unknown vendor");
      m.vendor = *known;
    }
  r("names", m.names).null_or("memory_min_bytes", m.memory_min).null_or("memory_max_bytes", m.memory_max);
  r("count_min", m.count_min);
  if constexpr (R::reads) m.count_max = m.count_min;
  r("count_max", m.count_max);
}

template <class R>
void fields(R& r, Of<R, Resources>& m) {
  r("gpus", m.gpus)("cpus", m.cpus)("memory_bytes", m.memory_bytes)("disk_bytes", m.disk_bytes);
  r("any_order", m.any_order);
}

template <class R>
void fields(R& r, Of<R, Mount>& m) {
  r.must("target", m.target).must("source", m.source);
}

template <class R>
void fields(R& r, Of<R, KeepPolicy>& m) {
  r("last", m.last)("hourly", m.hourly)("daily", m.daily)("weekly", m.weekly);
  r("best", m.best)("metric", m.metric)("highest", m.highest);
}

template <class R>
void fields(R& r, Of<R, CheckpointPolicy>& m) {
  r("path", m.path);
  r.word_or("interval", m.interval, interval_name, scan(interval_name, Interval::off), Interval::automatic);
  r("every_ms", m.every)("signal", m.signal);
  r.short_or("keep", m.keep.last, m.keep, m.keep == KeepPolicy::newest(m.keep.last));
  r("standby", m.standby)("copies", m.copies)("upload_limit", m.upload_limit)("local_shards", m.local_shards);
  r("whole_when", m.whole_when);
}

template <class R>
void fields(R& r, Of<R, RecoveryPolicy>& m) {
  r("lost_after_ms", m.lost_after)("max_failures", m.max_failures)("restart_on", m.restart_on)("fail_on", m.fail_on);
  r("lease_ms", m.lease);
  add_choice(r, "tell_hangs", m.hangs, Hangs::restart, Hangs::tell);
  add_choice(r, "replace_stragglers", m.stragglers, Stragglers::tell, Stragglers::replace);
  bool only_trusted = m.restore_from == RestoreFrom::trusted, restore_any = m.restore_from == RestoreFrom::any;
  r("only_trusted", only_trusted).unless("restore_any", restore_any, false);
  if constexpr (R::reads)
    m.restore_from = only_trusted ? RestoreFrom::trusted : restore_any ? RestoreFrom::any : RestoreFrom::own_class;
  r.unless("exact_required", m.exact_required, false);
  r.unless("endless", m.endless, false).unless("hang_after_ms", m.hang_after, std::chrono::minutes{10});
  r.unless("restart_one", m.restart_one, false).unless("notice", m.notice, 0);
}

template <class R>
void fields(R& r, Of<R, Constraints>& m) {
  r("region_in", m.region_in)("region_not", m.region_not)("classes", m.classes).null_or("max_price", m.max_price);
  r("providers", m.providers)("labels", m.labels)("query", m.query)("is_private", m.is_private);
  r("any_interconnect", m.any_interconnect).unless("clear_traffic", m.clear_traffic, false);
  r.unless("unmeasured", m.unmeasured, false).unless("unproven", m.unproven, false);
  r.unless("image_tags", m.image_tags, false);
}

template <class R>
void fields(R& r, Of<R, GangPolicy>& m) {
  r("nodes_min", m.nodes_min)("spares", m.spares)("ranks_per_node", m.ranks_per_node);
}

template <class R>
void fields(R& r, Of<R, Variant>& m) {
  r.must("kind", m.kind).must("run", m.run)("image", m.image)("image_is_archive", m.image_is_archive);
  r("setup", m.setup)("resume_run", m.resume_run);
}

template <class R>
void fields(R& r, Of<R, Output>& m) {
  r.must("from", m.from);
  r.word_or("when", m.when, output_when_name, scan(output_when_name, OutputWhen::failure), OutputWhen::always);
  r("sync_ms", m.sync);
}

template <class R>
void fields(R& r, Of<R, Deadline>& m) {
  r.null_or("at_ms", m.at)("after_ms", m.after)("hard", m.hard);
}

template <class R>
void fields(R& r, Of<R, Raise>& m) {
  r("memory", m.memory)("disk", m.disk)("memory_bytes", m.memory_bytes)("disk_bytes", m.disk_bytes)("level", m.level);
}

template <class R>
void fields(R& r, Of<R, Tasks>& m) {
  r.word_or("items", m.items, item_form_name, scan(item_form_name, ItemForm::columns), ItemForm::none);
  r("array_first", m.array_first)("array_step", m.array_step)("render", m.render)("retries", m.retries);
  r("timeout_ms", m.timeout)("max_parallel", m.max_parallel).null_or("max_fails", m.max_fails);
  r("stdin", m.stdin_from)("folder", m.folder)("finally", m.finally_run);
  r("stream_window", m.stream_window)("stream_json", m.stream_json)("split", m.split)("outputs", m.outputs).unless("raise", m.raise, Raise{});
}

template <class R>
void fields(R& r, Of<R, Service>& m) {
  r("port", m.port)("path", m.path)("initial_delay_ms", m.initial_delay)("every_ms", m.every);
  r("timeout_ms", m.timeout)("drain_ms", m.drain)("retry_post", m.retry_post)("keys_file", m.keys_file);
  r.unless("version", m.version, 1)
      .unless("replicas_min", m.replicas_min, 0)
      .unless("sleeps", m.sleeps, false)
      .unless("scale_concurrency", m.scale_concurrency, 0.0)
      .unless("scale_rate", m.scale_rate, 0.0)
      .unless("probe_headers", m.probe_headers, {})
      .unless("probe_body", m.probe_body, "")
      .unless("probe_command", m.probe_command, "");
  if (R::reads || m.affinity != Affinity::none)
    r.word_or("affinity", m.affinity, affinity_name, parse_affinity, Affinity::none);
  r.added("up_after_ms", m.up_after).added("down_after_ms", m.down_after);
}

template <class R>
void fields(R& r, Of<R, Spec>& m) {
  int format = m.service            ? k_format_with_service
               : m.tasks            ? k_format_with_tasks
               : m.variants.empty() ? k_format_without_variants
                                    : k_format_with_variants;
  r.must("format", format).check(format <= k_format, "was written by a newer gridctl");
  r.must("name", m.name)
      .must("run", m.run)("resources", m.resources)("num_nodes", m.num_nodes)("gang", m.gang)("image", m.image);
  r("image_is_archive", m.image_is_archive).null_or("root_writable", m.root_writable)("workdir", m.workdir);
  r.unless("image_digests", m.image_digests, {});
  r("envs", m.envs)("secrets", m.secrets)("file_mounts", m.file_mounts)("setup", m.setup);
  r("resume_run", m.resume_run)("outputs", m.outputs)("variants", m.variants)("checkpoint", m.checkpoint);
  r("recovery", m.recovery)("constraints", m.constraints);
  r.word_or("optimize", m.optimize, optimize_name, scan(optimize_name, Optimize::reliability), Optimize::cost);
  r("priority", m.priority)("owner", m.owner)("workload", m.workload);
  r.word("launcher", m.launcher, launcher_name, parse_launcher);
  r.null_or("budget_total", m.budget_total).null_or("max_duration_ms", m.max_duration).null_or("deadline", m.deadline);
  r("replicas", m.twins)("replica_of", m.twin_of).maybe("bag", m.tasks).maybe("service", m.service);
}

WallTime moment_of(const Deadline& deadline, WallTime submitted_at) {
  return deadline.at.value_or(submitted_at + deadline.after);
}

std::string nodes_text(const Spec& spec) {
  return (is_elastic(spec) ? std::to_string(nodes_least(spec)) + ".." : "") + std::to_string(spec.num_nodes);
}

std::string to_json(const Spec& spec) { return write_record(spec); }

Result<Spec> parse_spec(std::string_view text) {
  return read_record<Spec>(text, "the job's stored specification", k_lenient_rules, Code::state_unreadable);
}

}  // namespace gridctl::job
