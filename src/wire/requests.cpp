// SPDX-License-Identifier: Apache-2.0
// Reads and writes the controller's requests on the heartbeat connection.
#include "wire/coding.hpp"
#include "wire/insight.hpp"

namespace gridctl::wire {

namespace {
constexpr std::size_t k_limit_name_max = 32;            // bytes
constexpr std::uint64_t k_log_bytes_max = 64ull << 20;  // asked for at once
}  // namespace

template <class R>
void fields(R& r, Of<R, ControllerHello>& m) {
  r("version_min", m.version_min, 0, 1'000'000)("version_max", m.version_max, 0, 1'000'000);
  r("features", m.features, k_features_max)("controller", m.controller);
  r.maybe("nonce", m.nonce);
}

template <class R>
void fields(R& r, Of<R, Allowance>& m) {
  r.maybe("run_ms", m.run).unless("run_limit", m.run_limit, "", k_limit_name_max).maybe("time_ms", m.time);
}

template <class R>
void fields(R& r, Of<R, PrepareRequest>& m) {
  r("id", m.op)("job", m.job)("epoch", m.epoch);
}

template <class R>
void fields(R& r, Of<R, StartRequest>& m) {
  r("id", m.op)("echo_ns", m.echo)("boot_id", m.boot_id)("lease_ms", m.lease)("spec", m.spec)("secrets", m.secrets);
  r.maybe("limits", m.allowance);
}

template <class R>
void fields(R& r, Of<R, StopRequest>& m) {
  r("id", m.op)("job", m.job)("epoch", m.epoch)("grace_ms", m.grace);
}

template <class R>
void fields(R& r, Of<R, CleanRequest>& m) {
  r("id", m.op)("job", m.job)("epoch", m.epoch).unless("keep_work_ms", m.keep_work, {});
}

template <class R>
void fields(R& r, Of<R, StandbyRequest>& m) {
  r("job", m.job).maybe("restore", m.root);
}

template <class R>
void fields(R& r, Of<R, PollRequest::Want>& m) {
  r.unless("checkpoint_interval_ms", m.tempo.interval, {}).unless("checkpoint_min_interval_ms", m.tempo.pause, {});
  r("checkpoints_kept_from", m.checkpoints_kept_from)("epoch", m.epoch)("job", m.job).maybe("limits", m.allowance);
}

template <class R>
void fields(R& r, Of<R, PollRequest>& m) {
  r("attempts", m.attempts, k_attempts_max)("echo_ns", m.echo)("lease_ms", m.lease);
}

template <class R>
void fields(R& r, Of<R, LogRequest>& m) {
  r("job", m.job)("epoch", m.epoch)("offset", m.offset)("max_bytes", m.max_bytes, k_log_bytes_max);
}
GRIDCTL_FIELDS(LogRequest)

Result<void> read_peer(std::string_view text, std::string_view what, const std::function<void(RecordReader&)>& read) {
  if (text.size() > k_frame_max) return make_error(Code::protocol_violation, "message refused: it is too long");
  Result<void> done = read_object(text, what, k_peer_rules, Code::protocol_violation, read);
  if (!done) return make_error(Code::protocol_violation, "message refused: " + done.error().message);
  return done;
}

std::string request_name(std::string_view payload) {
  std::string name;
  return read_peer(payload, "request", [&](RecordReader& reader) { reader("op", name, 64); }) ? name : "";
}

std::string encode_plain(std::string_view op) {
  return write_object([&](RecordWriter& writer) { writer("op", std::string(op)); });
}

GRIDCTL_REQUEST(ControllerHello, parse_controller_hello, k_hello_operation)
GRIDCTL_REQUEST(PrepareRequest, parse_prepare, k_prepare_operation)
GRIDCTL_REQUEST(StartRequest, parse_start, "start")
GRIDCTL_REQUEST(StopRequest, parse_stop, k_stop_operation)
GRIDCTL_REQUEST(CleanRequest, parse_clean, k_clean_operation)
GRIDCTL_REQUEST(StandbyRequest, parse_standby, k_standby_operation)
GRIDCTL_REQUEST(PollRequest, parse_poll, k_poll_operation)
GRIDCTL_REQUEST(LogRequest, parse_log, k_log_operation)
std::string encode_metrics(const LogRequest& m) { return encode_request(k_metrics_operation, m); }

Result<LogRequest> parse_metrics_request(std::string_view text) {
  return parse_request<LogRequest>(text, k_metrics_operation);
}

}  // namespace gridctl::wire
