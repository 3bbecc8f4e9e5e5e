// SPDX-License-Identifier: Apache-2.0
#include "wire/coding.hpp"

namespace gridctl::wire {

namespace {
constexpr std::size_t k_mounts_max = 1000;  // trees of one attempt
constexpr std::size_t k_gpus_max = 256;     // as many as an inventory may list
constexpr int k_signal_max = 31;
}  // namespace

template <class R>
void fields(R& r, Of<R, TreeRef>& m) {
  r("root", m.root)("target", m.target);
}

template <class R>
void fields(R& r, Of<R, AttemptSpec>& m) {
  r("job", m.job)("job_name", m.job_name)("attempt", m.attempt)("epoch", m.epoch);
  r.word("engine", m.engine, engine_name, parse_engine);
  r("image", m.image).null_or("image_archive", m.image_archive).null_or("workdir", m.workdir);
  r("mounts", m.mounts, k_mounts_max).null_or("restore", m.restore)("restore_name", m.restore_name);
  r("checkpoint_path", m.checkpoint_path)("checkpoints", m.checkpoints);
  r("checkpoint_min_interval_ms", m.checkpoint_min_interval);
  r("setup", m.setup, k_script_max)("run", m.run, k_script_max);
  r("envs", m.envs)("secret_names", m.secret_names)("gpu_uuids", m.gpu_uuids, k_gpus_max);
  r("cpus", m.cpus)("memory_bytes", m.memory_bytes)("stop_grace_ms", m.stop_grace);
  r("log_ring_bytes", m.log_ring_bytes)("disk_bytes_max", m.disk_bytes_max);
  // The following members are newer than the others.
  r.unless("upload_limit", m.upload_limit, 0).unless("whole_when", m.whole_when, "", k_glob_max);
  r.unless("checkpoint_by_marker", m.checkpoint_by_marker, false).unless("root_writable", m.root_writable, false);
  r.unless("keep_work_ms", m.keep_work, {}).unless("interval_signal", m.interval_signal, 0, 0, k_signal_max);
  r.unless("notice_signal", m.notice_signal, 0, 0, k_signal_max);
  r.unless("checkpoint_late", m.checkpoint_late, false).maybe("gang", m.gang).maybe("bag", m.bag);
}
GRIDCTL_FIELDS(AttemptSpec)

GRIDCTL_REPLY(AttemptSpec, parse_attempt_spec, "attempt")

}  // namespace gridctl::wire
