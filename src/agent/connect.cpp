// SPDX-License-Identifier: Apache-2.0
#include "agent/connect.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <set>
#include <thread>

#include "agent/bag_host.hpp"
#include "agent/bench.hpp"
#include "agent/enter.hpp"
#include "agent/guest.hpp"
#include "agent/health.hpp"
#include "agent/log_ring.hpp"
#include "agent/metrics.hpp"
#include "agent/network.hpp"
#include "agent/requests.hpp"
#include "agent/results.hpp"
#include "agent/self.hpp"
#include "agent/snapshots.hpp"
#include "agent/stacks.hpp"
#include "agent/standby.hpp"
#include "agent/uploads.hpp"
#include "agent/use_meter.hpp"
#include "base/numbers.hpp"
#include "base/text.hpp"
#include "os/mutex.hpp"
#include "os/log.hpp"
#include "os/process.hpp"
#include "probe/inventory.hpp"
#include "store/chunk_store.hpp"
#include "transfer/fd_link.hpp"
#include "transfer/serve.hpp"
#include "transfer/serve_remote.hpp"
#include "wire/insight.hpp"
#include "wire/own.hpp"
#include "wire/pause.hpp"
#include "wire/remote.hpp"
#include "wire/stream.hpp"
#include "wire/upload.hpp"

namespace gridctl::agent {
namespace {

constexpr Duration k_hello_wait = std::chrono::seconds{60};     // a connection that says nothing is dropped
constexpr Duration k_idle_max = std::chrono::hours{24 * 30};    // then SSH itself has long noticed
constexpr Duration k_send_wait = std::chrono::minutes{10};      // a peer that reads nothing for so long is gone
constexpr Duration k_silence = std::chrono::milliseconds{500};  // after it the link may be broken: nothing tells yet
constexpr int k_adopt_ms = 2000;                                // how long a dead supervisor may go unnoticed
constexpr std::uint32_t k_log_reply_bytes_max = 512 * 1024;     // of one log reply, half a frame

// Events and replies share the outgoing link.
class SharedLink final : public wire::Link {
 public:
  SharedLink(transfer::FdLink& link, os::Clock& clock) : link_(link), clock_(clock) {}
  Result<void> send(const wire::Frame& frame, BootTime deadline) override {
    const os::MutexLock lock(mutex_);
    return link_.send(frame, std::max(deadline, clock_.boot() + k_send_wait));
  }
  Result<wire::Frame> receive(BootTime deadline) override {
    if (!on_silence) return link_.receive(deadline);
    auto frame = link_.receive(std::min(deadline, clock_.boot() + k_silence));
    if (frame || frame.error().code != Code::timed_out) return frame;
    on_silence();
    return link_.receive(deadline);
  }
  [[nodiscard]] bool is_closed() const { return link_.is_closed(); }
  std::function<void()> on_silence;  // nothing has come for k_silence; in the receiver's thread

 private:
  transfer::FdLink& link_;
  os::Clock& clock_;
  os::Mutex mutex_;  // of sending; one thread receives
};

// Tells the controller about changes, and gives attempts whose supervisor died a new one.
class Watcher {
 public:
  Watcher(Path home, ControllerId controller, SharedLink& link, bool push_events, os::Clock& clock)
      : requests_(home, controller, clock),
        folder_(home / "jobs" / controller.value / k_notify_folder),
        link_(link),
        push_events_(push_events),
        clock_(clock),
        stop_(::eventfd(0, EFD_CLOEXEC)) {
    (void)os::make_directories(folder_);
    events_ = os::Fd(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
    ::inotify_add_watch(events_.get(), folder_.c_str(), IN_MOVED_TO);
    requests_.adopt_all();
    requests_.finish_removals();
    thread_ = std::thread([this] { watch(); });
  }
  ~Watcher() {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto wrote = ::write(stop_.get(), &one, sizeof one);
    thread_.join();
  }
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

 private:
  void watch() {
    for (;;) {
      pollfd waiting[] = {{stop_.get(), POLLIN, 0}, {events_.get(), POLLIN, 0}};
      const int ready = ::poll(waiting, 2, k_adopt_ms);
      if (waiting[0].revents != 0) return;
      if (ready == 0) requests_.adopt_all();
      if (waiting[1].revents == 0) continue;
      for (const std::string& name : changed())
        if (push_events_ && !push(name)) return;
    }
  }

  [[nodiscard]] std::set<std::string> changed() {
    std::set<std::string> names;
    alignas(inotify_event) char buffer[16384];
    ssize_t got = 0;
    while ((got = ::read(events_.get(), buffer, sizeof buffer)) > 0) {
      for (ssize_t at = 0; at < got;) {
        const auto* event = reinterpret_cast<const inotify_event*>(buffer + at);
        if (event->len > 0) names.insert(event->name);
        at += static_cast<ssize_t>(sizeof(inotify_event)) + event->len;
      }
    }
    return names;
  }

  [[nodiscard]] bool push(const std::string& name) {
    const auto cut = name.find('.');
    if (cut == std::string::npos) return true;
    const auto epoch = leading_number<std::uint64_t>(std::string_view(name).substr(cut + 1));
    if (!epoch) return true;
    const auto reply = requests_.report({name.substr(0, cut)}, Epoch{*epoch});
    if (!reply) return true;
    return link_.send({wire::FrameKind::event, 0, wire::encode(*reply)}, clock_.boot() + k_send_wait).has_value();
  }

  Requests requests_;
  Path folder_;
  SharedLink& link_;
  const bool push_events_;
  os::Clock& clock_;
  os::Fd stop_, events_;
  std::thread thread_;
};

class Connection {
 public:
  Connection(SharedLink& link, int in, int out, os::Clock& clock, const os::Path& guest)
      : link_(link), in_(in), out_(out), clock_(clock), home_(agent_home()) {
    if (!guest.empty()) guest_.emplace(guest, clock);
  }
  ~Connection() { link_.on_silence = nullptr; }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  Result<void> serve() {
    TRY(greet());
    for (;;) {
      TRY_ASSIGN(const wire::Frame request, link_.receive(clock_.boot() + k_idle_max));
      if (request.kind != wire::FrameKind::request && refused_put_) continue;  // the data of a chunk follow its request at once
      if (request.kind != wire::FrameKind::request)
        return make_error(Code::protocol_violation, "received a frame that belongs to no operation");
      const Result<void> allowed = allow(request);
      if (!allowed) {
        TRY(reply(request.stream, wire::error_payload(allowed.error())));
        continue;
      }
      TRY(handle(request));
      if (guest_ && wire::request_name(request.payload) == k_start_operation) end_if_closed(request);
    }
  }

 private:
  // A guest whose start is refused gets this host's promise that it will not begin later, like everyone else.
  Result<void> allow(const wire::Frame& request) {
    if (!guest_) return {};
    const std::string operation = wire::request_name(request.payload);
    Result<void> allowed = guest_->check(operation, request.payload);
    if (!allowed) guest_->note_refusal(operation, allowed.error());
    refused_put_ = refused_put_ || (!allowed && operation == k_put_operation);
    if (allowed || operation != k_start_operation) return allowed;
    TRY(stop_started(request));
    return allowed;
  }

  Result<void> stop_started(const wire::Frame& request) {
    TRY_ASSIGN(const wire::StartRequest start, wire::parse_start(request.payload));
    return requests_->stop({start.op, start.spec.job, start.spec.epoch, Duration{}});
  }

  // The owner may have paused since the start was allowed, and have ended everything that ran before.
  void end_if_closed(const wire::Frame& request) {
    if (guest_->check_open()) return;
    if (const Result<void> stopped = stop_started(request); !stopped)
      os::log(os::LogLevel::warn, "continuing with a start that arrived during a pause: " + stopped.error().one_line());
  }

  [[nodiscard]] std::vector<std::string> features() const {
    std::vector<std::string> words{"events", "bulk", "health", "links"};
    for (const std::string_view word : {wire::k_gangs_feature, wire::k_results_feature, wire::k_streams_feature,
                                        wire::k_pause_feature, wire::k_bags_feature})
      words.emplace_back(word);
    if (guest_) words.emplace_back(wire::k_rekey_feature);
    if (guest_) words.emplace_back(wire::k_receipts_feature);
    if (guest_) return words;
    for (const std::string_view word : {wire::k_remotes_feature, wire::k_uploads_feature})
      words.emplace_back(word);
    return words;
  }

  Result<void> greet() {
    TRY_ASSIGN(const wire::Frame frame, link_.receive(clock_.boot() + k_hello_wait));
    if (frame.kind != wire::FrameKind::request || wire::request_name(frame.payload) != wire::k_hello_operation)
      return make_error(Code::protocol_violation, "the connection does not begin with hello");
    TRY_ASSIGN(const wire::ControllerHello hello, wire::parse_controller_hello(frame.payload));
    const int version = std::min(hello.version_max, wire::k_version_max);
    Result<void> good = check_component("the controller id", hello.controller.value);
    if (good && (version < hello.version_min || version < wire::k_version_min))
      good = make_error(Code::unsupported, "no common protocol version: this agent speaks 1, gridctl " +
                                               std::to_string(hello.version_min) + " to " +
                                               std::to_string(hello.version_max));
    if (good && guest_) good = guest_->check_controller(hello.controller);
    if (good && guest_) good = guest_->check_jobs(home_, hello.controller);
    if (!good) {
      TRY(reply(frame.stream, wire::error_payload(good.error())));
      return good;
    }
    TRY(os::make_directories(home_));
    wire::AgentHello answer;
    answer.version = version;
    answer.features = features();
    for (std::string& word : transfer::Codecs::ours().words()) answer.features.push_back(std::move(word));
    takes_ = transfer::Codecs::of(hello.features);
    answer.build = self_hash();
    answer.machine_id = os::machine_id();
    answer.boot_id = os::boot_id();
    answer.host_time = clock_.boot();
    if (hello.nonce) prove_identity(home_, *hello.nonce, answer);
    TRY(reply(frame.stream, wire::encode(answer)));
    requests_.emplace(home_, hello.controller, clock_);
    own_.emplace(home_, hello.controller).sweep(clock_.wall());
    snapshots_.emplace(*requests_, *own_);
    health_.emplace(home_, clock_);
    use_.emplace(home_, hello.controller, clock_);
    bench_.emplace(home_, hello.controller, clock_, [this, open = guest_ ? guest_->while_open() : nullptr]() -> Result<void> {
      if (link_.is_closed()) return make_error(Code::cancelled, "the controller is gone");
      return open ? open() : Result<void>{};
    });
    standby_.emplace(home_, hello.controller).sweep(clock_.wall());
    KeptWork(home_).sweep(clock_.wall());
    events_ = std::ranges::find(hello.features, "events") != hello.features.end();
    watcher_.emplace(home_, hello.controller, link_, events_, clock_);
    return {};
  }

  Result<void> reply(std::uint32_t stream, std::string payload) {
    return link_.send({wire::FrameKind::reply, stream, std::move(payload)}, clock_.boot() + k_send_wait);
  }
  // An error of the operation is its answer; only an error of the link ends the connection.
  template <class T>
  Result<void> answer(std::uint32_t stream, const Result<T>& outcome) {
    if (!outcome) return reply(stream, wire::error_payload(outcome.error()));
    if constexpr (std::is_void_v<T>) {
      return reply(stream, "{}");
    } else {
      return reply(stream, wire::encode(*outcome));
    }
  }

  template <class Parse, class Act>
  Result<void> respond(const wire::Frame& frame, Parse parse, Act act) {
    TRY_ASSIGN(const auto request, parse(frame.payload));
    return answer(frame.stream, act(request));
  }

  Result<void> handle(const wire::Frame& frame) {
    const std::string operation = wire::request_name(frame.payload);
    if (transfer::BulkServer::serves(operation)) return bulk(frame);
    if (wire::is_remote_request(operation)) return place(frame);
    if (operation == wire::k_upload_operation) return Uploads(link_, *snapshots_, clock_).handle(frame);
    if (operation == wire::k_probe_operation) return probe(frame.stream);
    if (Bench::serves(operation)) return bench(operation, frame);
    if (Links::serves(operation)) return Links(link_, home_, clock_).handle(frame);
    if (const bool printed = operation == wire::k_log_operation; printed || operation == wire::k_metrics_operation)
      return log(frame, printed);
    if (operation == wire::k_stacks_operation) return stacks(frame);
    if (operation == wire::k_steps_operation)
      return respond(frame, wire::parse_steps, [&](const auto& request) -> Result<wire::StepsReply> {
        TRY_ASSIGN(const AttemptDir attempt, requests_->attempt(request.job, request.epoch));
        return steps_of(attempt);
      });
    if (operation == wire::k_health_operation) {
      TRY_ASSIGN(const auto request, wire::parse_health_request(frame.payload));
      return reply(frame.stream, wire::encode(guest_ ? Guest::limited(health_->answer(request)) : health_->answer(request)));
    }
    if (operation == wire::k_prepare_operation)
      return respond(frame, wire::parse_prepare, [&](const auto& request) { return requests_->prepare(request); });
    if (operation == k_start_operation)
      return respond(frame, wire::parse_start, [&](wire::StartRequest request) -> Result<wire::StartReply> {
        if (guest_) guest_->limit(request);
        if (const Result<void> opened = guest_ ? guest_->open_account(request.spec) : Result<void>{}; !opened) {
          TRY(requests_->stop({request.op, request.spec.job, request.spec.epoch, Duration{}}));  // it will not begin later
          return opened.error();
        }
        return guest_ ? guest_->settled(home_, request.spec, requests_->start(request)) : requests_->start(request);
      });
    if (operation == wire::k_stop_operation)
      return respond(frame, wire::parse_stop, [&](const auto& request) { return requests_->stop(request); });
    if (operation == wire::k_pause_operation)
      return respond(frame, wire::parse_pause, [&](const auto& request) { return requests_->pause(request); });
    if (operation == wire::k_clean_operation)
      return respond(frame, wire::parse_clean, [&](const auto& request) { return requests_->clean(request); });
    if (operation == wire::k_standby_operation) return standby(frame);
    if (guest_ && operation == wire::k_rekey_operation)
      return respond(frame, wire::parse_rekey, [&](const auto& request) { return guest_->rekey(request); });
    if (guest_ && operation == wire::k_receipts_operation)
      return respond(frame, wire::parse_receipts, [&](const auto& request) { return guest_->receipts(request); });
    if (operation == wire::k_bag_operation)
      return respond(frame, wire::parse_bag, [&](const auto& request) -> Result<wire::BagReply> {
        return BagHost(*requests_, clock_).answer(request, [&] { return !link_.is_closed(); });
      });
    if (operation == wire::k_bag_output_operation) return bag_output(frame);
    if (operation == wire::k_enter_operation) return stream(frame);
    if (operation == wire::k_keep_operation)
      return respond(frame, wire::parse_keep, [&](const auto& request) { return requests_->keep(request, *own_); });
    if (operation == wire::k_results_operation)
      return respond(frame, wire::parse_results, [&](const auto& request) -> Result<wire::ResultsReply> {
        TRY_ASSIGN(const AttemptDir attempt, requests_->attempt(request.job, request.epoch));
        TRY_ASSIGN(const Workplace place, find_workplace(attempt));
        return gather_results(place, request, progress(frame.stream));
      });
    if (operation == wire::k_poll_operation)
      return respond(frame, wire::parse_poll, [&](const auto& request) {
        Result<wire::PollReply> told = requests_->poll(request);
        if (told) use_->add_to(*told);
        if (told && guest_) told->ends_in = guest_->ends_in();
        return told;
      });
    return reply(frame.stream,
                 wire::error_payload(
                     make_error(Code::unsupported, "unknown operation '" + sanitize(operation.substr(0, 40)) + "'")));
  }

  // Tells the controller that work is in progress; stops the work if there is no controller any more.
  [[nodiscard]] std::function<Result<void>(std::uint64_t)> progress(std::uint32_t stream) {
    return [this, stream, mutex = std::make_shared<os::Mutex>(),
            told = clock_.boot()](std::uint64_t) mutable -> Result<void> {
      const os::MutexLock lock(*mutex);
      if (clock_.boot() - told < wire::k_results_progress_every) return {};
      told = clock_.boot();
      if (link_.is_closed()) return make_error(Code::cancelled, "the controller is gone");
      return link_.send({wire::FrameKind::event, stream, "{}"}, told + k_send_wait);
    };
  }

  Result<void> probe(std::uint32_t stream) {
    probe::ProbeOptions options;
    options.home = home_;
    Inventory inventory = probe::take_inventory(clock_, options);
    if (guest_) std::erase_if(inventory.engines, [&](const auto& one) { return !guest_->offers(one.kind); });
    if (guest_) guest_->limit(inventory);
    return reply(stream, to_json(inventory));
  }

  Result<void> bench(const std::string& operation, const wire::Frame& frame) {
    const Result<std::string> answered = bench_->handle(operation, frame.payload);
    return reply(frame.stream, answered ? *answered : wire::error_payload(answered.error()));
  }

  // Sends a piece of the output, or of $GRIDCTL_METRICS.
  Result<void> log(const wire::Frame& frame, bool printed) {
    TRY_ASSIGN(const auto request, printed ? wire::parse_log(frame.payload) : wire::parse_metrics_request(frame.payload));
    const auto attempt = requests_->attempt(request.job, request.epoch);
    if (!attempt) return reply(frame.stream, wire::error_payload(attempt.error()));
    if (!os::exists(attempt->path))
      return reply(frame.stream, wire::error_payload(make_error(Code::not_found, "this attempt is not on this host")));
    const std::uint32_t most = std::min(request.max_bytes, k_log_reply_bytes_max);
    const auto slice = printed ? read_log(attempt->log(), request.offset, most)
                               : Result(metrics_from(attempt->run(newest_launch(*attempt)), request.offset, most));
    if (!slice) return reply(frame.stream, wire::error_payload(slice.error()));
    return reply_with(frame.stream, wire::encode(wire::LogReply{slice->offset, slice->end_offset}), slice->bytes);
  }

  Result<void> bag_output(const wire::Frame& frame) {
    TRY_ASSIGN(const auto request, wire::parse_bag_output(frame.payload));
    std::string bytes;
    const auto head = BagHost(*requests_, clock_).output(request, bytes);
    if (!head) return reply(frame.stream, wire::error_payload(head.error()));
    return reply_with(frame.stream, wire::encode(*head), bytes);
  }

  Result<void> reply_with(std::uint32_t stream, std::string head, const std::string& bytes) {
    TRY(reply(stream, std::move(head)));
    const BootTime deadline = clock_.boot() + k_send_wait;
    if (!bytes.empty()) TRY(link_.send({wire::FrameKind::data, stream, bytes}, deadline));
    wire::EndRecord end;
    end.bytes = bytes.size();
    return link_.send({wire::FrameKind::end, stream, wire::encode(end)}, deadline);
  }

  Result<void> stacks(const wire::Frame& frame) {
    TRY_ASSIGN(const auto request, wire::parse_stacks(frame.payload));
    const auto attempt = requests_->attempt(request.job, request.epoch);
    const Result<std::string> text = attempt ? stacks_of(*attempt, clock_) : attempt.error();
    if (!text) return reply(frame.stream, wire::error_payload(text.error()));
    return reply_with(frame.stream, "{}", *text);
  }

  Result<void> open_cache() {
    if (cache_) return {};
    store::StoreOptions options;
    options.encode = false;  // what lies here is about to be used, or came from a job that wants its processor
    TRY_ASSIGN(auto opened, store::ChunkStore::open(home_ / "cache", options));
    cache_.emplace(std::move(opened));
    return {};
  }

  Result<void> bulk(const wire::Frame& frame) {
    TRY(open_cache());
    if (!bulk_) {
      bulk_.emplace(link_, *cache_, *snapshots_, clock_, takes_);
      link_.on_silence = [this] { bulk_->keep(); };
    }
    return bulk_->handle(frame);
  }

  Result<void> place(const wire::Frame& frame) {
    if (!places_) places_.emplace(link_, clock_, os::home_directory(), home_);
    return places_->handle(frame);
  }

  Result<void> standby(const wire::Frame& frame) {
    TRY_ASSIGN(const auto request, wire::parse_standby(frame.payload));
    if (!request.root) return answer(frame.stream, standby_->drop(request.job));
    TRY(open_cache());
    Result<store::FileChunks> own = own_->chunks_of(request.job);
    if (!own) return answer(frame.stream, Result<void>(own.error()));
    store::EitherReader chunks(*own, *cache_);
    return answer(frame.stream, standby_->make(request.job, *request.root, chunks));
  }

  // From here on, the connection carries the bytes of that conversation, and none of ours.
  Result<void> stream(const wire::Frame& frame) {
    TRY_ASSIGN(const auto request, wire::parse_enter(frame.payload));
    const auto entered = [&]() -> Result<os::Fd> {
      if (events_) return make_error(Code::refused, "a connection with events cannot carry streams");
      if (!request.job) return enter(std::nullopt);
      TRY_ASSIGN(const AttemptDir attempt, requests_->attempt(*request.job, *request.epoch));
      return enter(attempt);
    };
    Result<os::Fd> inside = entered();
    if (!inside) return reply(frame.stream, wire::error_payload(inside.error()));
    TRY(reply(frame.stream, "{}"));
    relay(in_, out_, std::move(*inside));
    return make_error(Code::host_unreachable, "the conversation of streams has ended");
  }

  SharedLink& link_;
  const int in_, out_;
  bool events_ = false;  // the controller wants them
  bool refused_put_ = false;  // of a guest
  os::Clock& clock_;
  Path home_;
  std::optional<Guest> guest_;
  std::optional<Requests> requests_;
  std::optional<OwnSnapshots> own_;
  std::optional<HostSnapshots> snapshots_;
  std::optional<Health> health_;
  std::optional<UseMeter> use_;
  std::optional<Bench> bench_;
  std::optional<Standby> standby_;
  transfer::Codecs takes_;  // what the controller decodes
  std::optional<store::ChunkStore> cache_;
  std::optional<transfer::BulkServer> bulk_;
  std::optional<transfer::RemoteServer> places_;
  std::optional<Watcher> watcher_;
};

}  // namespace

int run_connect(int read_fd, int write_fd, os::Clock& clock, const os::Path& guest) {
  ::signal(SIGPIPE, SIG_IGN);
  transfer::FdLink link(read_fd, write_fd, false, clock);
  if (!link.send_raw(wire::k_preamble, clock.boot() + k_hello_wait)) return 1;
  SharedLink shared(link, clock);
  const auto outcome = Connection(shared, read_fd, write_fd, clock, guest).serve();
  return outcome.error().code == Code::host_unreachable ? 0 : 1;
}

}  // namespace gridctl::agent
