// SPDX-License-Identifier: Apache-2.0
// What the controller sends on the heartbeat connection.
#include <nlohmann/json.hpp>

#include "wire/fields.hpp"

namespace gridctl::wire {

using nlohmann::json;

namespace {
constexpr std::size_t k_features_max = 256;             // names in a hello
constexpr std::size_t k_limit_name_max = 32;            // bytes
constexpr std::uint64_t k_log_bytes_max = 64ull << 20;  // asked for at once

ControllerHello read_hello(const Fields& fields) {
  return {static_cast<int>(fields.integer("version_min", 0, 1'000'000)),
          static_cast<int>(fields.integer("version_max", 0, 1'000'000)), fields.texts("features", k_features_max),
          ControllerId{fields.id("controller")}};
}

std::optional<Allowance> read_allowance(const Fields& fields) {
  if (!fields.has("limits")) return std::nullopt;
  const Fields limits = fields.object("limits");
  Allowance allowance;
  if (limits.has("run_ms")) allowance.run = limits.duration("run_ms");
  if (limits.has("run_limit")) allowance.run_limit = limits.text("run_limit", k_limit_name_max);
  if (limits.has("time_ms")) allowance.time = limits.duration("time_ms");
  return allowance;
}

json allowance_json(const Allowance& allowance) {
  json out = json::object();
  if (allowance.run) out["run_ms"] = to_ms(*allowance.run), out["run_limit"] = allowance.run_limit;
  if (allowance.time) out["time_ms"] = to_ms(*allowance.time);
  return out;
}

PrepareRequest read_prepare(const Fields& fields) { return {fields.op(), fields.job(), fields.epoch()}; }

StartRequest read_start(const Fields& fields) {
  return {fields.op(),
          fields.boot_time("echo_ns"),
          fields.text("boot_id"),
          fields.duration("lease_ms"),
          read_spec(fields.object("spec")),
          fields.text_map("secrets"),
          read_allowance(fields)};
}

StopRequest read_stop(const Fields& fields) {
  return {fields.op(), fields.job(), fields.epoch(), fields.duration("grace_ms")};
}

CleanRequest read_clean(const Fields& fields) { return {fields.op(), fields.job(), fields.epoch()}; }

StandbyRequest read_standby(const Fields& fields) { return {fields.job(), fields.optional_digest("restore")}; }

PollRequest::Want read_want(const Fields& fields) {
  const auto optional = [&](const char* key) { return fields.has(key) ? fields.duration(key) : Duration{}; };
  return {fields.job(),
          fields.epoch(),
          fields.number("checkpoints_kept_from"),
          {optional("checkpoint_interval_ms"), optional("checkpoint_min_interval_ms")},
          read_allowance(fields)};
}

PollRequest read_poll(const Fields& fields) {
  return {fields.boot_time("echo_ns"), fields.duration("lease_ms"),
          fields.list("attempts", k_attempts_max, &read_want)};
}

LogRequest read_log(const Fields& fields) {
  return {fields.job(), fields.epoch(), fields.number("offset"),
          static_cast<std::uint32_t>(fields.number("max_bytes", k_log_bytes_max))};
}
}  // namespace

std::string request_name(std::string_view payload) {
  std::string name;
  const Result<void> read =
      read_object(payload, "request", [&](const Fields& fields) { name = fields.text("op", 64); });
  return read ? name : "";
}

std::string encode_plain(std::string_view op) { return dump({{"op", op}}); }

std::string encode(const ControllerHello& hello) {
  return dump({{"op", "hello"},
               {"version_min", hello.version_min},
               {"version_max", hello.version_max},
               {"features", hello.features},
               {"controller", hello.controller.value}});
}

std::string encode(const PrepareRequest& request) {
  return dump(
      {{"op", "prepare"}, {"id", request.op.value}, {"job", request.job.value}, {"epoch", request.epoch.value}});
}

std::string encode(const StartRequest& request) {
  json out{{"op", "start"},
           {"id", request.op.value},
           {"echo_ns", request.echo.ns},
           {"boot_id", request.boot_id},
           {"lease_ms", to_ms(request.lease)},
           {"spec", spec_json(request.spec)},
           {"secrets", request.secrets}};
  if (request.allowance) out["limits"] = allowance_json(*request.allowance);
  return dump(out);
}

std::string encode(const StopRequest& request) {
  return dump({{"op", "stop"},
               {"id", request.op.value},
               {"job", request.job.value},
               {"epoch", request.epoch.value},
               {"grace_ms", to_ms(request.grace)}});
}

std::string encode(const CleanRequest& request) {
  return dump({{"op", "clean"}, {"id", request.op.value}, {"job", request.job.value}, {"epoch", request.epoch.value}});
}

std::string encode(const StandbyRequest& request) {
  json out{{"op", "standby"}, {"job", request.job.value}};
  if (request.root) out["restore"] = to_hex(*request.root);
  return dump(out);
}

std::string encode(const PollRequest& request) {
  json attempts = json::array();
  for (const PollRequest::Want& want : request.attempts) {
    json one{
        {"job", want.job.value}, {"epoch", want.epoch.value}, {"checkpoints_kept_from", want.checkpoints_kept_from}};
    if (want.tempo.interval > Duration{}) one["checkpoint_interval_ms"] = to_ms(want.tempo.interval);
    if (want.tempo.pause > Duration{}) one["checkpoint_min_interval_ms"] = to_ms(want.tempo.pause);
    if (want.allowance) one["limits"] = allowance_json(*want.allowance);
    attempts.push_back(std::move(one));
  }
  return dump({{"op", "poll"},
               {"echo_ns", request.echo.ns},
               {"lease_ms", to_ms(request.lease)},
               {"attempts", std::move(attempts)}});
}

std::string encode(const LogRequest& request) {
  return dump({{"op", "log"},
               {"job", request.job.value},
               {"epoch", request.epoch.value},
               {"offset", request.offset},
               {"max_bytes", request.max_bytes}});
}

Result<ControllerHello> parse_controller_hello(std::string_view text) {
  return parse_request(text, "hello", &read_hello);
}
Result<PrepareRequest> parse_prepare(std::string_view text) { return parse_request(text, "prepare", &read_prepare); }
Result<StartRequest> parse_start(std::string_view text) { return parse_request(text, "start", &read_start); }
Result<StopRequest> parse_stop(std::string_view text) { return parse_request(text, "stop", &read_stop); }
Result<CleanRequest> parse_clean(std::string_view text) { return parse_request(text, "clean", &read_clean); }
Result<StandbyRequest> parse_standby(std::string_view text) { return parse_request(text, "standby", &read_standby); }
Result<PollRequest> parse_poll(std::string_view text) { return parse_request(text, "poll", &read_poll); }
Result<LogRequest> parse_log(std::string_view text) { return parse_request(text, "log", &read_log); }

}  // namespace gridctl::wire
