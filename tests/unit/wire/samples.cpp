// SPDX-License-Identifier: Apache-2.0
#include <regex>

#include "samples.hpp"
#include "wire/bag.hpp"
#include "wire/guest.hpp"
#include "wire/pause.hpp"
#include "wire/insight.hpp"
#include "wire/own.hpp"
#include "wire/receipts.hpp"

namespace gridctl::wire::samples {

using std::chrono::milliseconds;

Digest digest(unsigned char fill) {
  Digest value;
  value.bytes.fill(std::byte{fill});
  return value;
}

AttemptSpec spec() {
  AttemptSpec spec;
  spec.job = {"k3jf7qw2mxnpa"};
  spec.job_name = "train-gpt";
  spec.attempt = {2};
  spec.epoch = {7};
  spec.engine = EngineKind::podman;
  spec.image = "pytorch/pytorch:2.4.0";
  spec.image_archive = digest(0x11);
  spec.workdir = digest(0x22);
  spec.mounts = {{digest(0x33), "/data"}, {digest(0x34), "relative/dir"}};
  spec.restore = digest(0x44);
  spec.restore_name = "k3jf7qw2mxnpa@12";
  spec.checkpoint_path = "out";
  spec.checkpoints = true;
  spec.checkpoint_min_interval = milliseconds{15'000};
  spec.setup = "pip install -r requirements.txt\n";
  spec.run = "python train.py --resume \"$GRIDCTL_RESUME_FROM\" # läuft\n";
  spec.envs = {{"LR", "3e-4"}, {"EMPTY", ""}, {"QUOTED", "a\"b\\c\td"}};
  spec.secret_names = {"HF_TOKEN"};
  spec.gpu_uuids = {"GPU-6f1c9e10-0000-4000-8000-000000000001"};
  spec.cpus = 3.5;
  spec.memory_bytes = 17'179'869'184;
  spec.stop_grace = milliseconds{30'500};
  spec.log_ring_bytes = 1 << 20;
  spec.disk_bytes_max = 18'446'744'073'709'551'615ull;
  return spec;
}

AttemptStatus status() {
  AttemptStatus status;
  status.job = {"k3jf7qw2mxnpa"};
  status.epoch = {7};
  status.phase = AttemptPhase::ended;
  status.doing = "setup";
  status.end = EndReason::oom;
  status.exit_code = 137;
  status.signal = 9;
  status.detail = "killed by the memory limit";
  status.started_ms_ago = 60'000;
  status.ended_ms_ago = 5;
  status.log_bytes = 123'456;
  status.checkpoints = {{1, digest(0x55), 1'000'000, 3, 40'000, "format"}, {2, digest(0x56), 1'000'001, 4, 0, "exit"}};
  status.max_epoch = {9};
  return status;
}

namespace {
AttemptStatus limited_status() {
  AttemptStatus limited = status();
  limited.running_ms_ago = 50'000;
  limited.allowed_ms = 7'000;
  return limited;
}

AttemptStatus paused_status() {
  AttemptStatus paused = status();
  paused.phase = AttemptPhase::running;
  paused.paused_ms_ago = 9'000;
  paused.paused_ms = 60'000;
  return paused;
}

AttemptStatus busy_status() {
  AttemptStatus busy = status();
  busy.phase = AttemptPhase::running;
  busy.use = Use{4'000, 3.5, 6ull << 30, {{97, 70ull << 30, 80ull << 30, 64}, {}}};
  return busy;
}

template <class T>
Sample sample(std::string name, const T& value, Result<T> (*parse)(std::string_view)) {
  return {std::move(name), encode(value), [parse](std::string_view text) -> Result<std::string> {
            TRY_ASSIGN(const T parsed, parse(text));
            return encode(parsed);
          }};
}

EndRecord failed_end() {
  EndRecord record{4096, make_error(Code::checkpoint_damaged, "chunk is missing", "gridctl checkpoint verify k3jf7")};
  record.error->retry = Retry::other_host;
  return record;
}

AttemptSpec worker_spec() {
  AttemptSpec worker = spec();
  worker.bag = BagSpec{4,  5'000, milliseconds{60'000}, 1 << 20, 1 << 24, true, BagItems::columns, true, "in/{}",
                       true, 1, 2, BagMode::stream, 32, true, 5, {"*.png"}};
  return worker;
}

BagRequest bag_request(const JobId& job) {
  const BagAsk ask{job,
                   {7},
                   12,
                   {{OrderKind::grant, 5, 2, {"a b", "ä"}, 0}, {OrderKind::revoke, 100, 50, {}, 0}, {OrderKind::finish, 0, 0, {}, 3}},
                   40,
                   1000,
                   1 << 20};
  return {{ask, {job, {8}}}, milliseconds{5'000}};
}

BagReply bag_reply(const JobId& job) {
  const TaskResult done{17, 1, 3, TaskEnd::ended, 2, 0, {1'700'000'000'123}, 1'500, 20'000, 4'096, 10, 3, 7, 99};
  TaskResult revoked{100, 50, 4, TaskEnd::revoked};
  BagTold told{job, {7}, {}, 15, 40, 42, {done, revoked}, 9, {5, 6}, 0, 5'000, false}, failed{job, {8}};
  failed.error = make_error(Code::not_found, "this attempt is not on this host");
  return {{told, failed}};
}

std::vector<Sample> make_all() {
  const JobId job{"k3jf7qw2mxnpa"};
  const CheckpointRef ref{job, {7}, 3};
  std::vector<Sample> samples{
      sample("hello", ControllerHello{1, 3, {"bulk", "log"}, {"abcdefghijkmnpqrstuvwxyz23"}, digest(0x17)}, &parse_controller_hello),
      sample("hello-reply", AgentHello{1, {"bulk"}, to_hex(digest(0xAB)), "m1", "b1", {123'456'789'012'345}, digest(0x18), std::string(128, '5')},
             &parse_agent_hello),
      sample("prepare", PrepareRequest{{"k3jf7:7:start"}, job, {7}}, &parse_prepare),
      sample("prepare-reply", PrepareReply{{5}, "b1"}, &parse_prepare_reply),
      sample("spec", spec(), &parse_attempt_spec),
      sample("start", StartRequest{{"op-1"}, {77}, "b1", milliseconds{86'400'000}, spec(), {{"HF_TOKEN", "hf_secret"}}},
             &parse_start),
      sample("limited-start",
             StartRequest{{"op-1"}, {77}, "b1", milliseconds{86'400'000}, spec(), {},
                          Allowance{milliseconds{5'000}, "month_budget", milliseconds{9'000}}},
             &parse_start),
      sample("limited-poll",
             PollRequest{{99}, milliseconds{60'000},
                         {{job, {7}, 2, {}, Allowance{milliseconds{5'000}, "budget", {}}}, {{"other"}, {1}, 0, {}, Allowance{}}}},
             &parse_poll),
      sample("start-reply", StartReply{true}, &parse_start_reply),
      sample("stop", StopRequest{{"op-2"}, job, {7}, milliseconds{30'000}}, &parse_stop),
      sample("clean", CleanRequest{{"op-3"}, job, {6}}, &parse_clean),
      sample("standby", StandbyRequest{job, digest(0x5B)}, &parse_standby),
      sample("no-standby", StandbyRequest{job, {}}, &parse_standby),
      sample("poll", PollRequest{{99}, milliseconds{60'000}, {{job, {7}, 2}, {{"other"}, {1}, 0}}}, &parse_poll),
      sample("poll-reply", PollReply{{101}, "b1", {status(), status()}, 0.25, 1ull << 40, {}}, &parse_poll_reply),
      sample("held-poll-reply",
             PollReply{{102}, "b1", {}, 0, 1, {{{job, {7}, {"GPU-1"}, 2, 1ull << 30}, {{}, {}, {"GPU-2"}, 0.5, 0}}}},
             &parse_poll_reply),
      sample("ending-poll-reply", PollReply{{103}, "b1", {}, 0, 1, {}, milliseconds{5'400'000}}, &parse_poll_reply),
      sample("status", status(), &parse_attempt_status),
      sample("limited-status", limited_status(), &parse_attempt_status),
      sample("paused-status", paused_status(), &parse_attempt_status),
      sample("busy-status", busy_status(), &parse_attempt_status),
      sample("pause", PauseRequest{{"op-4"}, job, {7}, false, true}, &parse_pause),
      sample("rekey", RekeyRequest{digest(0x71)}, &parse_rekey),
      sample("rekey-reply", RekeyReply{digest(0x72)}, &parse_rekey_reply),
      sample("receipts", ReceiptsRequest{digest(0x73), 16, Rates{250'000, 10'000, 50'000, 20'000}, {{15, "{answer}"}}}, &parse_receipts),
      sample("receipts-reply", ReceiptsReply{digest(0x74), Rates{250'000, 10'000, 50'000, 20'000}, 17, 15, {"{receipt}"}, {"job1.3"}}, &parse_receipts_reply),
      sample("pause-reply", PauseReply{35ull << 30, milliseconds{19'700}}, &parse_pause_reply),
      sample("log", LogRequest{job, {7}, 1000, 4096}, &parse_log),
      {"metrics", encode_metrics(LogRequest{job, {7}, 1000, 4096}),
       [](std::string_view text) -> Result<std::string> {
         TRY_ASSIGN(const LogRequest parsed, parse_metrics_request(text));
         return encode_metrics(parsed);
       }},
      sample("log-reply", LogReply{1000, 123'456}, &parse_log_reply),
      sample("have", HaveRequest{{digest(1), digest(2)}}, &parse_have),
      sample("have-for-job", HaveForJob{{{digest(1)}}, job}, &parse_have_for_job),
      sample("keep", KeepRequest{job, {7}}, &parse_keep),
      sample("have-reply", HaveReply{{0, 4095}}, &parse_have_reply),
      sample("put", PutRequest{digest(3), 4u << 20}, &parse_put),
      sample("get", GetRequest{ref, {digest(1), digest(9)}}, &parse_get),
      sample("end", EndRecord{4096, {}}, &parse_end),
      sample("end-failed", failed_end(), &parse_end),
      sample("end-encoded", EndRecord{2'850'000, {}, 2, 4}, &parse_end),
  };
  samples.push_back(sample("worker-spec", worker_spec(), &parse_attempt_spec));
  samples.push_back(sample("bag", bag_request(job), &parse_bag));
  samples.push_back(sample("bag-reply", bag_reply(job), &parse_bag_reply));
  samples.push_back(sample("bag-orders", BagOrders{12, bag_request(job).workers[0].orders}, &parse_bag_orders));
  samples.push_back({"bag-output", encode_bag_output(LogRequest{job, {7}, 1000, 4096}),
                     [](std::string_view text) -> Result<std::string> {
                       TRY_ASSIGN(const LogRequest parsed, parse_bag_output(text));
                       return encode_bag_output(parsed);
                     }});
  samples.push_back({"manifest", encode_manifest(ref), [](std::string_view text) -> Result<std::string> {
                       TRY_ASSIGN(const CheckpointRef parsed, parse_manifest_request(text));
                       return encode_manifest(parsed);
                     }});
  return samples;
}
}  // namespace

const std::vector<Sample>& all() {
  static const std::vector<Sample> samples = make_all();
  return samples;
}

std::string Sample::back() const {
  static const std::regex hint("\"hint\":\"[^\"]*\"");
  return std::regex_replace(payload, hint, "\"hint\":\"\"");
}

}  // namespace gridctl::wire::samples
