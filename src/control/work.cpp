// SPDX-License-Identifier: Apache-2.0
#include "control/work.hpp"

#include <algorithm>
#include <utility>

#include "control/log_file.hpp"
#include "control/reach.hpp"
#include "store/chunk_store.hpp"
#include "transfer/pull.hpp"
#include "transfer/push.hpp"

namespace gridctl::control {

namespace {

constexpr Duration k_reach = std::chrono::seconds{20};          // login, agent upload, hello
constexpr Duration k_answer = std::chrono::seconds{15};         // one small request
constexpr Duration k_stop_patience = std::chrono::seconds{90};  // beyond the grace, until a stop is complete
constexpr Duration k_stop_look = std::chrono::milliseconds{200};
constexpr std::uint64_t k_checkpoint_bytes_max = 16ull << 40;  // a larger one is a lie (or needs another tool)
constexpr std::uint32_t k_log_read = 512 * 1024;

using LinkPtr = std::unique_ptr<wire::Link>;

Result<LinkPtr> reach(const WorkPlace& place) {
  return open_link(place.provider, place.paths, place.controller, place.clock->boot() + k_reach, *place.clock);
}

// One request and its one reply. An error that the agent sent is returned as that error.
Result<std::string> ask(wire::Link& link, os::Clock& clock, std::uint32_t stream, std::string payload) {
  const BootTime deadline = clock.boot() + k_answer;
  TRY(link.send({wire::FrameKind::request, stream, std::move(payload)}, deadline));
  for (;;) {
    TRY_ASSIGN(wire::Frame frame, link.receive(deadline));
    if (frame.kind == wire::FrameKind::event) continue;
    if (frame.kind != wire::FrameKind::reply || frame.stream != stream)
      return make_error(Code::protocol_violation, "the agent answered what was not asked");
    if (std::optional<Error> error = wire::payload_error(frame.payload)) return *error;
    return std::move(frame.payload);
  }
}

// What the host says of one attempt. With lease zero nothing is renewed.
Result<wire::AttemptStatus> look(wire::Link& link, os::Clock& clock, const JobId& job, Epoch epoch) {
  wire::PollRequest request;
  request.attempts.push_back({job, epoch, 0});
  TRY_ASSIGN(const std::string payload, ask(link, clock, 1, wire::encode(request)));
  TRY_ASSIGN(wire::PollReply reply, wire::parse_poll_reply(payload));
  for (wire::AttemptStatus& status : reply.attempts)
    if (status.job == job && status.epoch == epoch) return std::move(status);
  return make_error(Code::protocol_violation, "the agent's poll reply leaves out the attempt that was asked for");
}

OpId operation(const JobId& job, Epoch epoch, const char* what) {
  return {job.value + ".e" + std::to_string(epoch.value) + "." + what};
}

// Each piece of work has an instance of its own: what one cannot seal must not cost another what it has put.
Result<store::ChunkStore> open_store(const WorkPlace& place) {
  return store::ChunkStore::open(place.paths.chunk_store());
}

Result<void> push_one(const WorkPlace& place, store::ChunkStore& store, wire::Link& link, const Digest& root) {
  TRY_ASSIGN(const Bytes manifest, store.get(root));
  TRY_ASSIGN(const store::Tree tree, store::parse_manifest(manifest));
  TRY(transfer::push_tree(link, tree, manifest, store, *place.clock));
  return {};
}

Result<void> push_all(const WorkPlace& place, wire::Link& link, const wire::AttemptSpec& spec) {
  TRY_ASSIGN(store::ChunkStore store, open_store(place));
  if (spec.workdir) TRY(push_one(place, store, link, *spec.workdir).context("while sending the working directory"));
  for (const wire::TreeRef& mount : spec.mounts)
    TRY(push_one(place, store, link, mount.root).context("while sending the mount " + mount.target));
  if (spec.image_archive) TRY(push_one(place, store, link, *spec.image_archive).context("while sending the image"));
  if (spec.restore)
    TRY(push_one(place, store, link, *spec.restore).context("while sending checkpoint " + spec.restore_name));
  return {};
}

LaunchResult not_started(const Error& error, bool host_fault) {
  LaunchResult result;
  result.detail = error.one_line();
  result.host_fault = host_fault;
  return result;
}

// A refusal is a promise that this epoch never runs there; unless the very attempt is there already, because an earlier
// START of ours got through and only its answer was lost.
LaunchResult refused(const WorkPlace& place, wire::Link& link, const Error& error, const wire::AttemptSpec& spec) {
  LaunchResult result = not_started(error, error.code != Code::busy && error.code != Code::refused);
  result.busy = error.code == Code::busy;
  if (error.code != Code::refused) return result;
  const Result<wire::AttemptStatus> status = look(link, *place.clock, spec.job, spec.epoch);
  if (!status) return {LaunchResult::Kind::unknown, status.error().one_line(), false, false, {}};
  if (status->phase != wire::AttemptPhase::absent) return {LaunchResult::Kind::accepted, "", false, false, {}};
  result.host_max_epoch = status->max_epoch;
  return result;
}

// The link broke or fell silent: nothing is known.
bool is_uncertain(Code code) {
  return code == Code::host_unreachable || code == Code::timed_out || code == Code::protocol_violation;
}

}  // namespace

LaunchResult launch(const WorkPlace& place, const LaunchOrder& order) {
  Result<LinkPtr> link = reach(place);
  if (!link) return not_started(link.error(), false);
  if (const Result<void> pushed = push_all(place, **link, order.spec); !pushed)
    return not_started(pushed.error(), pushed.error().code == Code::no_space);
  const wire::PrepareRequest prepare{operation(order.spec.job, order.spec.epoch, "prepare"), order.spec.job,
                                     order.spec.epoch};
  Result<std::string> answer = ask(**link, *place.clock, 2, wire::encode(prepare));
  if (!answer && is_uncertain(answer.error().code)) return not_started(answer.error(), false);
  if (!answer) return refused(place, **link, answer.error(), order.spec);
  const Result<wire::PrepareReply> prepared = wire::parse_prepare_reply(*answer);
  if (!prepared) return not_started(prepared.error(), true);
  const wire::StartRequest start{operation(order.spec.job, order.spec.epoch, "start"),
                                 prepared->host_time,
                                 prepared->boot_id,
                                 order.lease,
                                 order.spec,
                                 order.secrets};
  answer = ask(**link, *place.clock, 3, wire::encode(start));
  if (answer) return {LaunchResult::Kind::accepted, "", false, false, {}};
  if (is_uncertain(answer.error().code))
    return {LaunchResult::Kind::unknown, answer.error().one_line(), false, false, {}};
  return refused(place, **link, answer.error(), order.spec);
}

Result<void> stop(const WorkPlace& place, const JobId& job, Epoch epoch, Duration grace) {
  TRY_ASSIGN(const LinkPtr link, reach(place));
  // The grace is part of the name: a second request with less patience is another operation.
  const OpId op = operation(job, epoch, ("stop-" + std::to_string(grace.count() / 1'000'000)).c_str());
  TRY(ask(*link, *place.clock, 1, wire::encode(wire::StopRequest{op, job, epoch, grace})));
  return {};
}

Result<Pulled> pull(const WorkPlace& place, const JobId& job, Epoch epoch, const wire::HostCheckpoint& checkpoint) {
  TRY_ASSIGN(store::ChunkStore store, open_store(place));
  TRY_ASSIGN(const LinkPtr link, reach(place));
  TRY_ASSIGN(const transfer::Pulled result,
             transfer::pull_checkpoint(*link, {job, epoch, checkpoint.number}, checkpoint.root, k_checkpoint_bytes_max,
                                       store, *place.clock));
  Pulled pulled;
  pulled.from = checkpoint;
  pulled.bytes = result.tree.total_bytes();
  pulled.files = result.tree.file_count();
  pulled.stored_bytes = result.stats.bytes_sent;
  return pulled;
}

namespace {

Result<void> read_log(const WorkPlace& place, wire::Link& link, const JobId& job, Epoch epoch, AttemptNumber attempt,
                      std::uint64_t end) {
  const os::Path path = place.paths.log_of(job, attempt);
  for (std::uint32_t stream = 100;; ++stream) {
    TRY_ASSIGN(const std::uint64_t offset, log_next_offset(path));
    if (offset >= end) return {};
    TRY_ASSIGN(const std::string payload,
               ask(link, *place.clock, stream, wire::encode(wire::LogRequest{job, epoch, offset, k_log_read})));
    TRY_ASSIGN(const wire::LogReply reply, wire::parse_log_reply(payload));
    std::string bytes;
    for (;;) {
      TRY_ASSIGN(const wire::Frame frame, link.receive(place.clock->boot() + k_answer));
      if (frame.kind == wire::FrameKind::event) continue;
      if (frame.kind == wire::FrameKind::end) {
        TRY_ASSIGN(const wire::EndRecord record, wire::parse_end(frame.payload));
        if (record.error) return *record.error;
        break;
      }
      if (frame.kind != wire::FrameKind::data || bytes.size() + frame.payload.size() > k_log_read)
        return make_error(Code::protocol_violation, "the agent sent more output than was asked for");
      bytes += frame.payload;
    }
    if (bytes.empty()) return {};
    TRY(log_append(path, reply.offset, bytes));
  }
}

const wire::HostCheckpoint* newest(const wire::AttemptStatus& status, std::uint64_t known) {
  const wire::HostCheckpoint* best = nullptr;
  for (const wire::HostCheckpoint& c : status.checkpoints)
    if (c.number > known && (best == nullptr || c.number > best->number)) best = &c;
  return best;
}

}  // namespace

Result<Gathered> collect(const WorkPlace& place, const JobId& job, Epoch epoch, AttemptNumber attempt,
                         std::uint64_t known) {
  TRY_ASSIGN(const LinkPtr link, reach(place));
  TRY_ASSIGN(const wire::AttemptStatus status, look(*link, *place.clock, job, epoch));
  Gathered out;
  if (const Result<void> read = read_log(place, *link, job, epoch, attempt, status.log_bytes); !read) {
    if (is_uncertain(read.error().code)) return read.error();
    out.problem = "the end of the output is missing: " + read.error().one_line();
  }
  if (const wire::HostCheckpoint* checkpoint = newest(status, known)) {
    Result<Pulled> pulled = pull(place, job, epoch, *checkpoint);
    if (pulled) {
      out.checkpoint = std::move(*pulled);
    } else if (is_uncertain(pulled.error().code)) {
      return pulled.error();
    } else {
      out.problem = "the last checkpoint could not be fetched: " + pulled.error().one_line();
    }
  }
  return out;
}

Result<Gathered> settle(const WorkPlace& place, const JobId& job, const job::LooseEnd& end, std::uint64_t known) {
  const BootTime patience = place.clock->boot() + k_stop_patience;
  Gathered out;
  bool stop_sent = false;
  {
    TRY_ASSIGN(const LinkPtr link, reach(place));
    for (;;) {
      TRY_ASSIGN(const wire::AttemptStatus status, look(*link, *place.clock, job, end.epoch));
      const bool over = status.phase == wire::AttemptPhase::ended || status.phase == wire::AttemptPhase::absent;
      if (over && end.stale) {
        TRY_ASSIGN(out, collect(place, job, end.epoch, end.attempt, known));
      }
      if (over) break;
      if (!stop_sent) TRY(stop(place, job, end.epoch, Duration::zero()));
      stop_sent = true;
      if (place.clock->boot() > patience)
        return make_error(Code::timed_out, "the attempt on " + end.host.value + " does not end");
      os::pause_for(k_stop_look);
    }
    const OpId op = operation(job, end.epoch, "clean");
    TRY(ask(*link, *place.clock, 2, wire::encode(wire::CleanRequest{op, job, end.epoch})));
  }
  return out;
}

}  // namespace gridctl::control
