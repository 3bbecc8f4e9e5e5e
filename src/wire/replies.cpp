// SPDX-License-Identifier: Apache-2.0
// What the agent answers on the heartbeat connection.
#include <climits>
#include <nlohmann/json.hpp>

#include "wire/fields.hpp"

namespace gridctl::wire {

using nlohmann::json;

namespace {

constexpr std::int64_t k_ms_max = 1ll << 42;  // a century: sums of a few stay numbers, in nanoseconds too
constexpr std::size_t k_features_max = 256;   // names in a hello

AgentHello read_hello(const Fields& fields) {
  return {static_cast<int>(fields.integer("version", 0, 1'000'000)),
          fields.texts("features", k_features_max),
          fields.text("build"),
          fields.text("machine_id"),
          fields.text("boot_id"),
          fields.boot_time("host_time_ns")};
}

PrepareReply read_prepare_reply(const Fields& fields) {
  return {fields.boot_time("host_time_ns"), fields.text("boot_id")};
}

StartReply read_start_reply(const Fields& fields) { return {fields.flag("already")}; }

HostCheckpoint read_checkpoint(const Fields& fields) {
  HostCheckpoint checkpoint{fields.number("number"),
                            fields.digest("root"),
                            fields.number("bytes"),
                            fields.number("files"),
                            fields.integer("age_ms", 0, k_ms_max),
                            fields.text("how")};
  if (fields.has("written_ms")) checkpoint.written_ms = fields.integer("written_ms", 0, k_ms_max);
  if (checkpoint.how.size() > k_how_max) checkpoint.how.resize(k_how_max);
  if (fields.has("metrics")) checkpoint.metrics = fields.metrics("metrics");
  checkpoint.provisional = fields.has("provisional") && fields.flag("provisional");
  return checkpoint;
}

AttemptPhase read_phase(const Fields& fields) {
  const std::string name = fields.text("phase");
  for (const AttemptPhase phase : {AttemptPhase::absent, AttemptPhase::starting, AttemptPhase::running,
                                   AttemptPhase::stopping, AttemptPhase::ended})
    if (phase_name(phase) == name) return phase;
  fields.fail("names an unknown phase");
}

EndReason read_end_reason(const Fields& fields) {
  const Result<EndReason> reason = parse_end_reason(fields.text("end"));
  if (!reason) fields.fail("names an unknown end");
  return *reason;
}

AttemptStatus read_status(const Fields& fields) {
  AttemptStatus status;
  status.job = fields.job();
  status.epoch = fields.epoch();
  status.phase = read_phase(fields);
  status.doing = fields.text("doing");
  status.end = read_end_reason(fields);
  status.exit_code = static_cast<int>(fields.integer("exit_code", -1, 255));
  status.signal = static_cast<int>(fields.integer("signal", 0, 128));
  status.detail = fields.text("detail");
  status.started_ms_ago = fields.integer("started_ms_ago", -1, k_ms_max);
  status.ended_ms_ago = fields.integer("ended_ms_ago", -1, k_ms_max);
  status.log_bytes = fields.number("log_bytes");
  status.checkpoints = fields.list("checkpoints", k_checkpoints_listed_max, &read_checkpoint);
  status.max_epoch = fields.epoch("max_epoch");
  if (fields.has("running_ms_ago")) status.running_ms_ago = fields.integer("running_ms_ago", -1, k_ms_max);
  if (fields.has("allowed_ms")) status.allowed_ms = fields.integer("allowed_ms", -1, k_ms_max);
  if (fields.has("no_checkpoint")) status.no_checkpoint = fields.text("no_checkpoint");
  return status;
}

HeldShare read_held(const Fields& fields) {
  HeldShare share;
  if (fields.has("job")) share.job = fields.job(), share.epoch = fields.epoch();
  share.gpu_uuids = fields.texts("gpu_uuids", k_held_max);
  share.cpus = fields.real("cpus");
  share.memory_bytes = fields.number("memory_bytes");
  return share;
}

json held_json(const HeldShare& share) {
  json value{{"gpu_uuids", share.gpu_uuids}, {"cpus", share.cpus}, {"memory_bytes", share.memory_bytes}};
  if (!share.job.empty()) value["job"] = share.job.value, value["epoch"] = share.epoch.value;
  return value;
}

PollReply read_poll_reply(const Fields& fields) {
  PollReply reply{fields.boot_time("host_time_ns"),
                  fields.text("boot_id"),
                  fields.list("attempts", k_attempts_max, &read_status),
                  fields.real("load1"),
                  fields.number("disk_free_bytes"),
                  {}};
  if (fields.has("held")) reply.held = fields.list("held", k_held_max, &read_held);
  return reply;
}

LogReply read_log_reply(const Fields& fields) { return {fields.number("offset"), fields.number("end_offset")}; }

json checkpoint_json(const HostCheckpoint& checkpoint) {
  json out{{"number", checkpoint.number}, {"root", to_hex(checkpoint.root)}, {"bytes", checkpoint.bytes},
           {"files", checkpoint.files},   {"age_ms", checkpoint.age_ms},     {"how", checkpoint.how}};
  if (checkpoint.written_ms) out["written_ms"] = *checkpoint.written_ms;
  if (!checkpoint.metrics.empty()) out["metrics"] = checkpoint.metrics;
  if (checkpoint.provisional) out["provisional"] = true;
  return out;
}

json status_json(const AttemptStatus& status) {
  json checkpoints = json::array();
  for (const HostCheckpoint& checkpoint : status.checkpoints) checkpoints.push_back(checkpoint_json(checkpoint));
  json out{{"job", status.job.value},
           {"epoch", status.epoch.value},
           {"phase", phase_name(status.phase)},
           {"doing", status.doing},
           {"end", end_reason_name(status.end)},
           {"exit_code", status.exit_code},
           {"signal", status.signal},
           {"detail", status.detail},
           {"started_ms_ago", status.started_ms_ago},
           {"ended_ms_ago", status.ended_ms_ago},
           {"log_bytes", status.log_bytes},
           {"checkpoints", std::move(checkpoints)},
           {"max_epoch", status.max_epoch.value}};
  if (status.running_ms_ago >= 0) out["running_ms_ago"] = status.running_ms_ago;
  if (status.allowed_ms >= 0) out["allowed_ms"] = status.allowed_ms;
  if (!status.no_checkpoint.empty()) out["no_checkpoint"] = status.no_checkpoint;
  return out;
}
}  // namespace

std::string_view phase_name(AttemptPhase phase) {
  switch (phase) {
    case AttemptPhase::absent: return "absent";
    case AttemptPhase::starting: return "starting";
    case AttemptPhase::running: return "running";
    case AttemptPhase::stopping: return "stopping";
    case AttemptPhase::ended: return "ended";
  }
  return "absent";
}

std::string_view end_reason_name(EndReason reason) {
  switch (reason) {
    case EndReason::none: return "none";
    case EndReason::exited: return "exited";
    case EndReason::signalled: return "signalled";
    case EndReason::oom: return "oom";
    case EndReason::stopped: return "stopped";
    case EndReason::lease_expired: return "lease_expired";
    case EndReason::host_rebooted: return "host_rebooted";
    case EndReason::vanished: return "vanished";
    case EndReason::start_failed: return "start_failed";
    case EndReason::disk_full: return "disk_full";
    case EndReason::image_failed: return "image_failed";
    case EndReason::limit: return "limit";
  }
  return "none";
}

Result<EndReason> parse_end_reason(std::string_view name) {
  for (std::uint8_t number = 0; number <= static_cast<std::uint8_t>(EndReason::limit); ++number)
    if (end_reason_name(static_cast<EndReason>(number)) == name) return static_cast<EndReason>(number);
  return make_error(Code::protocol_violation, "the peer named an unknown end of an attempt");
}

std::string encode(const AgentHello& hello) {
  return dump({{"version", hello.version},
               {"features", hello.features},
               {"build", hello.build},
               {"machine_id", hello.machine_id},
               {"boot_id", hello.boot_id},
               {"host_time_ns", hello.host_time.ns}});
}

std::string encode(const PrepareReply& reply) {
  return dump({{"host_time_ns", reply.host_time.ns}, {"boot_id", reply.boot_id}});
}

std::string encode(const StartReply& reply) { return dump({{"already", reply.already}}); }

std::string encode(const AttemptStatus& status) { return dump(status_json(status)); }

std::string encode(const PollReply& reply) {
  json attempts = json::array();
  for (const AttemptStatus& status : reply.attempts) attempts.push_back(status_json(status));
  json value{{"host_time_ns", reply.host_time.ns},
             {"boot_id", reply.boot_id},
             {"attempts", std::move(attempts)},
             {"load1", reply.load1},
             {"disk_free_bytes", reply.disk_free_bytes}};
  if (reply.held) {
    value["held"] = json::array();
    for (const HeldShare& share : *reply.held) value["held"].push_back(held_json(share));
  }
  return dump(value);
}

std::string encode(const LogReply& reply) { return dump({{"offset", reply.offset}, {"end_offset", reply.end_offset}}); }

Result<AgentHello> parse_agent_hello(std::string_view text) { return parse_message(text, "hello", &read_hello); }
Result<PrepareReply> parse_prepare_reply(std::string_view text) {
  return parse_message(text, "prepare reply", &read_prepare_reply);
}
Result<StartReply> parse_start_reply(std::string_view text) {
  return parse_message(text, "start reply", &read_start_reply);
}
Result<AttemptStatus> parse_attempt_status(std::string_view text) {
  return parse_message(text, "attempt status", &read_status);
}
Result<PollReply> parse_poll_reply(std::string_view text) {
  return parse_message(text, "poll reply", &read_poll_reply);
}
Result<LogReply> parse_log_reply(std::string_view text) { return parse_message(text, "log reply", &read_log_reply); }

}  // namespace gridctl::wire
