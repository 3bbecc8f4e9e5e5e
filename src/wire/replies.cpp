// SPDX-License-Identifier: Apache-2.0
// Writes the agent's answers on the heartbeat connection. In those sent every few seconds, members are sorted by name,
// which is read fastest.
#include "base/names.hpp"
#include "base/use_record.hpp"
#include "wire/coding.hpp"

namespace gridctl::wire {

namespace {
constexpr std::size_t k_proof_digits = 128;  // of a signature
constexpr std::int64_t k_ms_max = 1ll << 42;  // a century: sums of a few stay numbers, in nanoseconds too
constexpr Names<EndReason, EndReason::limit> k_end_reasons{"none",         "exited",        "signalled",     "oom",
                                                           "stopped",      "lease_expired", "host_rebooted", "vanished",
                                                           "start_failed", "disk_full",     "image_failed",  "limit"};
}  // namespace

template <class R>
void fields(R& r, Of<R, AgentHello>& m) {
  r("version", m.version, 0, 1'000'000)("features", m.features, k_features_max)("build", m.build);
  r("machine_id", m.machine_id)("boot_id", m.boot_id)("host_time_ns", m.host_time);
  r.maybe("peer_key", m.peer_key).unless("peer_proof", m.peer_proof, "", k_proof_digits);
}

template <class R>
void fields(R& r, Of<R, PrepareReply>& m) {
  r("host_time_ns", m.host_time)("boot_id", m.boot_id);
}

template <class R>
void fields(R& r, Of<R, StartReply>& m) {
  r("already", m.already);
}

template <class R>
void fields(R& r, Of<R, HostCheckpoint>& m) {
  constexpr double k_number_max = std::numeric_limits<double>::max();
  r("age_ms", m.age_ms, 0, k_ms_max).unless("as_left", m.as_left, false)("bytes", m.bytes)("files", m.files)("how", m.how);
  r.unless("metrics", m.metrics, {}, k_metrics_max, -k_number_max, k_number_max);
  r.unless("notes", m.notes, {}, k_checkpoint_notes_max)("number", m.number);
  r.unless("provisional", m.provisional, false)("root", m.root).unless("torn", m.torn, false);
  r.maybe("written_ms", m.written_ms, -k_ms_max, k_ms_max);
  if constexpr (R::reads) {
    if (m.written_ms && *m.written_ms < 0) m.written_ms.reset();  // only a figure: the checkpoint counts without it
    if (m.how.size() > k_how_max) m.how.resize(k_how_max);
    for (const auto& [name, value] : m.metrics) r.check(is_metric_name(name), "has a bad entry in 'metrics'");
  }
}

template <class R>
void fields(R& r, Of<R, AttemptStatus>& m) {
  r.unless("allowed_ms", m.allowed_ms, -1, -1, k_ms_max)("checkpoints", m.checkpoints, k_checkpoints_listed_max);
  r("detail", m.detail)("doing", m.doing).word("end", m.end, end_reason_name, parse_end_reason);
  r("ended_ms_ago", m.ended_ms_ago, -1, k_ms_max)("epoch", m.epoch)("exit_code", m.exit_code, -1, 255)("job", m.job);
  r("log_bytes", m.log_bytes)("max_epoch", m.max_epoch).unless("no_checkpoint", m.no_checkpoint, "");
  r.unless("paused_ms", m.paused_ms, 0, 0, k_ms_max).unless("paused_ms_ago", m.paused_ms_ago, -1, -1, k_ms_max);
  r.word("phase", m.phase, phase_name, scan(phase_name, AttemptPhase::ended));
  r.unless("running_ms_ago", m.running_ms_ago, -1, -1, k_ms_max)("signal", m.signal, 0, 128);
  r("started_ms_ago", m.started_ms_ago, -1, k_ms_max).maybe("use", m.use);
}

template <class R>
void fields(R& r, Of<R, HeldShare>& m) {
  r.unless("job", m.job, {});
  if (!m.job.empty()) r("epoch", m.epoch);
  r("gpu_uuids", m.gpu_uuids, k_held_max)("cpus", m.cpus)("memory_bytes", m.memory_bytes);
}

template <class R>
void fields(R& r, Of<R, PollReply>& m) {
  r("attempts", m.attempts, k_attempts_max)("boot_id", m.boot_id)("disk_free_bytes", m.disk_free_bytes);
  r.maybe("ends_in_ms", m.ends_in).maybe("held", m.held, k_held_max)("host_time_ns", m.host_time)("load1", m.load1);
}

template <class R>
void fields(R& r, Of<R, LogReply>& m) {
  r("offset", m.offset)("end_offset", m.end_offset);
}

std::string_view phase_name(AttemptPhase phase) {
  static constexpr Names<AttemptPhase, AttemptPhase::ended> k_names{"absent", "starting", "running", "stopping",
                                                                    "ended"};
  return k_names(phase);
}

std::string_view end_reason_name(EndReason reason) { return k_end_reasons(reason); }

Result<EndReason> parse_end_reason(std::string_view name) {
  if (const auto reason = k_end_reasons.find(name)) return *reason;
  return make_error(Code::protocol_violation, "the peer named an unknown end of an attempt");
}

void make_older(AttemptStatus& status, std::int64_t ms) {
  const auto add = [ms](std::int64_t& ago) {
    if (ago >= 0) ago += ms;
  };
  for (std::int64_t* ago : {&status.started_ms_ago, &status.running_ms_ago, &status.ended_ms_ago, &status.paused_ms_ago}) add(*ago);
  for (HostCheckpoint& checkpoint : status.checkpoints) add(checkpoint.age_ms);
  if (status.use) status.use->age_ms += ms;
  if (status.allowed_ms >= 0) status.allowed_ms = std::max<std::int64_t>(status.allowed_ms - ms, 0);
}

GRIDCTL_REPLY(AgentHello, parse_agent_hello, "hello")
GRIDCTL_REPLY(PrepareReply, parse_prepare_reply, "prepare reply")
GRIDCTL_REPLY(StartReply, parse_start_reply, "start reply")
GRIDCTL_REPLY(AttemptStatus, parse_attempt_status, "attempt status")
GRIDCTL_REPLY(PollReply, parse_poll_reply, "poll reply")
GRIDCTL_REPLY(LogReply, parse_log_reply, "log reply")

}  // namespace gridctl::wire
