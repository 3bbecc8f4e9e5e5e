// SPDX-License-Identifier: Apache-2.0
#include "control/follow/host_work.hpp"

#include <algorithm>
#include <utility>

#include "control/copies/chunks.hpp"
#include "control/copies/healing.hpp"
#include "control/fleet/health.hpp"
#include "control/follow/interpret_status.hpp"
#include "control/follow/log_file.hpp"
#include "control/reach/connect_agent.hpp"
#include "control/reach/pace.hpp"
#include "control/reach/request.hpp"
#include "store/chunk_store.hpp"
#include "transfer/pull.hpp"
#include "transfer/push.hpp"

namespace gridctl::control {

namespace {
LaunchResult unfit_result(const Unfit& unfit) {
  LaunchResult result;
  result.detail = unfit.why;
  result.host_fault = !unfit.busy;
  result.busy = unfit.busy;
  return result;
}

constexpr Duration k_reach = std::chrono::seconds{20};          // login, agent upload, hello
constexpr Duration k_reach_more = std::chrono::seconds{5};      // of a connection that would only help
constexpr Duration k_stop_patience = std::chrono::seconds{90};  // beyond the grace, until a stop is complete
constexpr Duration k_stop_look = std::chrono::milliseconds{200};
constexpr std::uint64_t k_checkpoint_bytes_max = 16ull << 40;  // a larger one is a lie (or needs another tool)
constexpr std::uint32_t k_log_read = 512 * 1024;
constexpr std::uint64_t k_standby_rate = 20'000'000;  // bytes a second: a host that writes slower is no standby

using transfer::BulkLink;

// Whatever comes from the host shows that it lives.
class HeardLink : public wire::Link {
 public:
  HeardLink(std::unique_ptr<wire::Link> link, std::shared_ptr<LifeSign> life, os::Clock& clock)
      : link_(std::move(link)), life_(std::move(life)), clock_(clock) {
    life_->heard(clock_.boot());
  }
  Result<void> send(const wire::Frame& frame, BootTime deadline) override { return link_->send(frame, deadline); }
  Result<wire::Frame> receive(BootTime deadline) override {
    TRY_ASSIGN(wire::Frame frame, link_->receive(deadline));
    life_->heard(clock_.boot());
    return frame;
  }

 private:
  std::unique_ptr<wire::Link> link_;
  std::shared_ptr<LifeSign> life_;
  os::Clock& clock_;
};

Result<BulkLink> reach(const HostAccess& place, Duration patience = k_reach) {
  TRY_ASSIGN(BulkLink bulk,
             open_bulk(place.provider, place.paths, place.controller, place.clock->boot() + patience, *place.clock));
  if (place.life != nullptr) bulk.link = std::make_unique<HeardLink>(std::move(bulk.link), place.life, *place.clock);
  return bulk;
}

transfer::Route route(const HostAccess& place, const BulkLink& first) {
  return {*first.link, first.codecs, [&place] { return reach(place, k_reach_more); }, first.took};
}

BootTime soon(os::Clock& clock) { return clock.boot() + k_work_answer; }

// One question typed: what the conversations of talk.hpp want to know, and what they hear.
Result<Answer> put(wire::Link& link, os::Clock& clock, std::uint32_t stream, const Request& question) {
  const std::string payload = std::visit([](const auto& request) { return wire::encode(request); }, question);
  TRY_ASSIGN(const std::string text, ask(link, stream, payload, soon(clock)));
  if (std::holds_alternative<wire::PrepareRequest>(question)) {
    TRY_ASSIGN(wire::PrepareReply reply, wire::parse_prepare_reply(text));
    return Answer{std::move(reply)};
  }
  if (std::holds_alternative<wire::PollRequest>(question)) {
    TRY_ASSIGN(wire::PollReply reply, wire::parse_poll_reply(text));
    return Answer{std::move(reply)};
  }
  return Answer{Ack{}};
}

Result<wire::AttemptStatus> look(wire::Link& link, os::Clock& clock, const JobId& job, Epoch epoch) {
  TRY_ASSIGN(const Answer answer, put(link, clock, 1, Request{look_request(job, epoch)}));
  return look_answer(answer, job, epoch);
}

// Each piece of work has an instance of its own: what one cannot seal must not cost another what it has put.
Result<store::ChunkStore> open_store(const HostAccess& place) { return open_chunks(place.paths); }

Result<store::Tree> tree_of(store::ChunkStore& store, const Digest& root) {
  TRY_ASSIGN(const Bytes manifest, store.get(root));
  return store::parse_manifest(manifest);
}

// Returns the tree's bytes.
Result<std::uint64_t> push_one(const HostAccess& place, store::ChunkStore& store, const BulkLink& link,
                               const Digest& root) {
  TRY_ASSIGN(const Bytes manifest, store.get(root));
  TRY_ASSIGN(const store::Tree tree, store::parse_manifest(manifest));
  LinkMeter::Transfer moving(place.meter, place.provider.name, true, *place.clock);
  TRY_ASSIGN(const transfer::TransferStats stats,
             transfer::push_tree(route(place, link), tree, manifest, store, *place.clock));
  moving.moved(stats.bytes_moved);
  return tree.total_bytes();
}

Result<void> push_all(const HostAccess& place, const BulkLink& link, const wire::AttemptSpec& spec) {
  TRY_ASSIGN(store::ChunkStore store, open_store(place));
  if (spec.workdir) TRY(push_one(place, store, link, *spec.workdir).context("while sending the working directory"));
  for (const wire::TreeRef& mount : spec.mounts)
    TRY(push_one(place, store, link, mount.root).context("while sending the mount " + mount.target));
  if (spec.image_archive) TRY(push_one(place, store, link, *spec.image_archive).context("while sending the image"));
  if (spec.restore)
    TRY(push_one(place, store, link, *spec.restore).context("while sending checkpoint " + spec.restore_name));
  return {};
}

// What is damaged here of the checkpoint is brought back from where there is a copy. Empty: nothing was.
Result<std::string> heal(const HostAccess& place, const LaunchOrder& order) {
  const CopiesOf& copies = order.copies;
  if (!order.spec.restore || copies.nearest_first.empty()) return std::string();
  TRY_ASSIGN(store::ChunkStore store, open_store(place));
  TRY_ASSIGN(const HealedFrom healed, heal_from(place.paths, store, copies.nearest_first, {copies.job, copies.seq},
                                                *order.spec.restore, *place.clock));
  return healed.healed.blobs == 0 ? std::string() : describe(healed);
}

// With what is damaged here healed, if it can be. After an error a connection is in no known state: `link` is another
// one then.
Result<void> push_whole(const HostAccess& place, BulkLink& link, const LaunchOrder& order, std::string& healed_from) {
  Result<void> pushed = push_all(place, link, order.spec);
  if (pushed || (pushed.error().code != Code::checkpoint_damaged && pushed.error().code != Code::not_found))
    return pushed;
  const Result<std::string> healed = heal(place, order);
  if (!healed) return std::move(pushed).context(healed.error().one_line());
  if (healed->empty()) return pushed;
  healed_from = *healed;
  TRY_ASSIGN(link, reach(place));
  return push_all(place, link, order.spec);
}

}  // namespace

namespace {

// What the host lacks is sent, then it is asked to prepare; or it shows that it cannot be started there.
LaunchTalk::Next begin_launch(const HostAccess& place, BulkLink& link, const LaunchOrder& order, LaunchTalk& talk,
                              std::string& healed_from) {
  if (order.doubt.kind == LaunchDoubt::Kind::refused) return talk.first();
  if (const Result<void> pushed = push_whole(place, link, order, healed_from); !pushed)
    return talk.give_up(not_started(pushed.error(), pushed.error().code == Code::no_space));
  if (const auto unfit = unfit_to_start(*link.link, *place.clock, place.provider.inventory, order.spec.gpu_uuids))
    return talk.give_up(unfit_result(*unfit));
  return talk.first();
}

}  // namespace

LaunchResult launch(const HostAccess& place, const LaunchOrder& order) {
  LaunchTalk talk(order.spec, order.lease, order.secrets, order.doubt);
  Result<BulkLink> link = reach(place);
  if (!link) return talk.unreached(link.error());
  std::string healed_from;
  LaunchTalk::Next next = begin_launch(place, *link, order, talk, healed_from);
  for (std::uint32_t stream = 2; std::holds_alternative<Request>(next); ++stream) {
    const Request& question = std::get<Request>(next);
    // Sending files takes long. Who was given up meanwhile must not start it: its successor may run. But an earlier
    // START may be there, and whoever withdrew this one may not know yet what was committed: the host is asked.
    if (std::holds_alternative<wire::StartRequest>(question) && order.wanted && *order.wanted != order.spec.epoch.value)
      next = talk.give_up(not_started(make_error(Code::cancelled, "it is not wanted any more"), false));
    else next = talk.next(put(*link->link, *place.clock, stream, question));
  }
  LaunchResult result = std::get<LaunchResult>(next);
  result.healed_from = std::move(healed_from);
  return result;
}

Result<void> stop(const HostAccess& place, const JobId& job, Epoch epoch, Duration grace) {
  TRY_ASSIGN(const BulkLink bulk, reach(place));
  TRY(put(*bulk.link, *place.clock, 1, Request{stop_request(job, epoch, grace)}));
  return {};
}

Result<std::uint64_t> make_standby(const HostAccess& place, const JobId& job, const Digest& root) {
  TRY_ASSIGN(store::ChunkStore store, open_store(place));
  TRY_ASSIGN(const BulkLink link, reach(place));
  TRY_ASSIGN(const std::uint64_t bytes, push_one(place, store, link, root));
  const BootTime patience = soon(*place.clock) + std::chrono::seconds{bytes / k_standby_rate};
  TRY(ask(*link.link, 2, wire::encode(wire::StandbyRequest{job, root}), patience));
  return bytes;
}

Result<void> drop_standby(const HostAccess& place, const JobId& job) {
  TRY_ASSIGN(const BulkLink link, reach(place));
  TRY(ask(*link.link, 2, wire::encode(wire::StandbyRequest{job, {}}), soon(*place.clock)));
  return {};
}

Result<Pulled> pull(const HostAccess& place, const JobId& job, Epoch epoch, const wire::HostCheckpoint& checkpoint,
                    const std::optional<Digest>& head) {
  const BootTime began = place.clock->boot();
  TRY_ASSIGN(store::ChunkStore store, open_store(place));
  const Result<store::Tree> earlier = head ? tree_of(store, *head) : make_error(Code::not_found, "there is no head");
  TRY_ASSIGN(const BulkLink bulk, reach(place));
  LinkMeter::Transfer moving(place.meter, place.provider.name, false, *place.clock);
  TRY_ASSIGN(const transfer::Pulled result,
             transfer::pull_checkpoint(route(place, bulk), {job, epoch, checkpoint.number}, checkpoint.root,
                                       k_checkpoint_bytes_max, store, *place.clock, {}, earlier ? &*earlier : nullptr));
  Pulled pulled;
  pulled.from = checkpoint;
  pulled.bytes = result.tree.total_bytes();
  pulled.files = result.tree.file_count();
  pulled.stored_bytes = result.stats.bytes_sent;
  moving.moved(result.stats.bytes_moved);
  pulled.took = place.clock->boot() - began;
  return pulled;
}

namespace {

Result<void> read_log(const HostAccess& place, wire::Link& link, const JobId& job, Epoch epoch, AttemptNumber attempt,
                      std::uint64_t end) {
  const os::Path path = place.paths.log_of(job, attempt);
  for (std::uint32_t stream = 100;; ++stream) {
    TRY_ASSIGN(const std::uint64_t offset, log_next_offset(path));
    if (offset >= end) return {};
    TRY_ASSIGN(const std::string payload,
               ask(link, stream, wire::encode(wire::LogRequest{job, epoch, offset, k_log_read}), soon(*place.clock)));
    TRY_ASSIGN(const wire::LogReply reply, wire::parse_log_reply(payload));
    std::string bytes;
    for (;;) {
      TRY_ASSIGN(const wire::Frame frame, link.receive(place.clock->boot() + k_work_answer));
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

}  // namespace

namespace {
// Worth another try before the end of a job's output or its last checkpoint is given up. It has let us in before; only
// our own disk can be full; and an error of a disk, theirs or ours, may have been the only one.
bool is_worth_retrying(Code code, bool patient) {
  return is_uncertain(code) || code == Code::auth_refused || code == Code::no_space || (patient && code == Code::io);
}
}  // namespace

Result<Gathered> collect(const HostAccess& place, const JobId& job, Epoch epoch, AttemptNumber attempt,
                         std::uint64_t known, const std::optional<Digest>& head, bool patient) {
  TRY_ASSIGN(const BulkLink bulk, reach(place));
  wire::Link& link = *bulk.link;
  TRY_ASSIGN(const wire::AttemptStatus status, look(link, *place.clock, job, epoch));
  Gathered out;
  if (const Result<void> read = read_log(place, link, job, epoch, attempt, status.log_bytes); !read) {
    if (is_worth_retrying(read.error().code, patient)) return read.error();
    out.problem = "the end of the output is missing: " + read.error().one_line();
  }
  if (const wire::HostCheckpoint* checkpoint = newest_beyond(status, known)) {
    Result<Pulled> pulled = pull(place, job, epoch, *checkpoint, head);
    if (pulled) {
      out.checkpoint = std::move(*pulled);
    } else if (is_worth_retrying(pulled.error().code, patient)) {
      return pulled.error();
    } else {
      out.problem = "the last checkpoint could not be fetched: " + pulled.error().one_line();
    }
  }
  return out;
}

Result<Gathered> settle(const HostAccess& place, const JobId& job, const job::PendingCleanup& end, std::uint64_t known,
                        const std::optional<Digest>& head) {
  const BootTime patience = place.clock->boot() + k_stop_patience;
  Gathered out;
  TRY_ASSIGN(const BulkLink bulk, reach(place));
  CleanUpTalk talk(job, end);
  CleanUpTalk::Next next = talk.first();
  for (std::uint32_t stream = 1;; ++stream) {
    if (const auto* failed = std::get_if<Error>(&next)) return *failed;
    if (std::holds_alternative<CleanUpTalk::CleanedUp>(next)) return out;
    if (std::holds_alternative<CleanUpTalk::Fetch>(next)) {
      TRY_ASSIGN(out, collect(place, job, end.epoch, end.attempt, known, head, false));
      if (out.checkpoint) return out;
      next = talk.fetched();
    } else if (std::holds_alternative<CleanUpTalk::Pause>(next)) {
      if (place.clock->boot() > patience)
        return make_error(Code::timed_out, "the attempt on " + end.host.value + " does not end");
      os::pause_for(k_stop_look);
      next = talk.repeat();
    } else {
      next = talk.next(put(*bulk.link, *place.clock, stream, std::get<Request>(next)));
    }
  }
}

}  // namespace gridctl::control
